/*
 * The status of the sinks, as kindling-upload reports it, for status and metrics; and POST
 * /v1/sinks/NAME/test. kindling-upload talks to servers, so its messages are copied field by field.
 */
#include "daemon/serve/metric_text.h"
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SINKS_CAUSES_MAX 32

static const char *const sinks_numbers[] = { "taken", "delivered", "spooled", "unconfirmed" };
static const char *const sinks_details[] = { "oldest_s", "files", "bytes", "taken_to_ns" };

static double sinks_number(const cJSON *o, const char *key)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(n) && n->valuedouble >= 0 ? n->valuedouble : 0;
}

static const char *sinks_text(const cJSON *o, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return s ? s : "";
}

static void sinks_copy(cJSON *to, const cJSON *from)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(from, "dropped"), *cause;
	const char *error = sinks_text(from, "last_error");
	cJSON *dropped;
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sinks_numbers); i++)
		cJSON_AddNumberToObject(to, sinks_numbers[i], sinks_number(from, sinks_numbers[i]));
	dropped = cJSON_AddObjectToObject(to, "dropped");
	cJSON_ArrayForEach(cause, causes) if (cJSON_IsNumber(cause) && cause->string &&
					      n++ < SINKS_CAUSES_MAX)
		cJSON_AddNumberToObject(dropped, cause->string, cause->valuedouble);
	for (size_t i = 0; i < ARRAY_SIZE(sinks_details); i++)
		cJSON_AddNumberToObject(to, sinks_details[i], sinks_number(from, sinks_details[i]));
	if (*error)
		cJSON_AddStringToObject(to, "last_error", error);
	else
		cJSON_AddNullToObject(to, "last_error");
}

/* The latest report about the sink @name; NULL = none yet. */
static const cJSON *sinks_find(const cJSON *said, const char *name)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, said) if (strcmp(sinks_text(o, "name"), name) == 0) return o;
	return NULL;
}

/* All sinks of the settings, in their order, also those without a report. */
cJSON *sinks_json(struct host *h)
{
	const struct config *c = host_config(h);
	const char *text = host_uploads_status(h);
	cJSON *list = cJSON_CreateArray(), *said = text ? cJSON_Parse(text) : NULL;

	for (unsigned i = 0; i < c->n_sinks; i++) {
		const struct config_sink *s = &c->sinks[i];
		const cJSON *from = sinks_find(said, s->name);
		cJSON *o = cJSON_CreateObject();

		cJSON_AddStringToObject(o, "name", s->name);
		cJSON_AddStringToObject(o, "type", sink_type_names[s->type]);
		sinks_copy(o, from);
		if (!from)
			cJSON_ReplaceItemInObject(
				o, "last_error",
				cJSON_CreateString("kindling-upload is not running yet"));
		cJSON_AddItemToArray(list, o);
	}
	cJSON_Delete(said);
	return list;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Names and types of sinks are words of the settings and need no escaping. */
static void sinks_put(struct metric_text *m, const cJSON *list, const char *key,
		      enum metric_type type, const char *family, const char *unit, const char *help)
{
	char labels[160];
	const cJSON *o;

	metric_family(m, type, family, unit, help);
	cJSON_ArrayForEach(o, list)
	{
		snprintf(labels, sizeof(labels), "sink=\"%s\",type=\"%s\"", sinks_text(o, "name"),
			 sinks_text(o, "type"));
		metric_number(m, labels, sinks_number(o, key));
	}
}

static bool sinks_is_word(const char *s)
{
	return s && *s && strlen(s) < 64 && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz_")];
}

static void sinks_put_dropped(struct metric_text *m, const cJSON *list)
{
	const cJSON *o, *cause;
	char labels[256];

	metric_family(m, METRIC_COUNTER, "kindling_sink_dropped", NULL,
		      "Samples that the sink lost, by cause.");
	cJSON_ArrayForEach(o, list) cJSON_ArrayForEach(cause, cJSON_GetObjectItem(o, "dropped"))
	{
		if (!sinks_is_word(cause->string))
			continue;
		snprintf(labels, sizeof(labels), "sink=\"%s\",type=\"%s\",cause=\"%s\"",
			 sinks_text(o, "name"), sinks_text(o, "type"), cause->string);
		metric_number(m, labels, cause->valuedouble);
	}
}

void sinks_metrics(struct metric_text *m, struct host *h)
{
	cJSON *list;

	if (!host_config(h)->n_sinks)
		return;
	list = sinks_json(h);
	sinks_put(m, list, "taken", METRIC_COUNTER, "kindling_sink_taken", NULL,
		  "Samples of the history that the sink took.");
	sinks_put(m, list, "delivered", METRIC_COUNTER, "kindling_sink_delivered", NULL,
		  "Samples that the server of the sink confirmed.");
	sinks_put(m, list, "spooled", METRIC_GAUGE, "kindling_sink_spooled", NULL,
		  "Those that wait.");
	sinks_put(m, list, "unconfirmed", METRIC_GAUGE, "kindling_sink_unconfirmed", NULL,
		  "Samples that may have arrived: the answer is outstanding, or was lost.");
	sinks_put_dropped(m, list);
	sinks_put(m, list, "oldest_s", METRIC_GAUGE, "kindling_sink_oldest_seconds", "seconds",
		  "Age of the oldest profile that is not delivered yet.");
	sinks_put(m, list, "bytes", METRIC_GAUGE, "kindling_sink_spool_bytes", "bytes",
		  "Size of the sink's spool.");
	cJSON_Delete(list);
}

/* ---- a test ---------------------------------------------------------------------------------- */

static void sinks_on_test(void *userdata, bool ok, const char *text)
{
	struct request *r = userdata;
	cJSON *o = cJSON_CreateObject();

	r->on_end = NULL;
	cJSON_AddBoolToObject(o, "ok", ok);
	cJSON_AddStringToObject(o, "answer", text);
	(void)answer_json(r, 200, o);
	serve_resume(r);
}

static void sinks_on_end(void *userdata)
{
	struct request *r = userdata;

	host_uploads_forget(r->serve->host, r);
}

enum MHD_Result serve_sinks(struct request *r, const char *method, const char *rest)
{
	size_t len = strcspn(rest, "/");
	char name[64];
	int e;

	if (len == 0 || len >= sizeof(name) || strcmp(rest + len, "/test") != 0)
		return answer_error(r, 404, "the only request about a sink is sinks/NAME/test");
	if (strcmp(method, "POST") != 0)
		return answer_error(r, 405, "sinks/NAME/test takes POST");
	memcpy(name, rest, len);
	name[len] = '\0';
	e = host_uploads_test(r->serve->host, name, sinks_on_test, r);
	if (e == -ENOENT)
		return answer_error(r, 404, "there is no sink called \"%s\" in the settings", name);
	if (e < 0)
		return answer_error(r, 503, "kindling-upload does not run, or is busy; try again");
	r->on_end = sinks_on_end;
	r->end_userdata = r;
	serve_suspend(r);
	return MHD_YES;
}

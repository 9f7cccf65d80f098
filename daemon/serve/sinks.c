/*
 * The status of the sinks, as kindling-upload reports it, for status and metrics; and POST
 * /v1/sinks/NAME/test. kindling-upload talks to servers, so its messages are copied field by field.
 */
#include "daemon/serve/metric_text.h"
#include "daemon/serve/serve_priv.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SINKS_CAUSES_MAX 32

static const char *const sinks_numbers[] = { "taken", "delivered", "spooled", "unconfirmed" };
static const char *const sinks_details[] = { "files", "bytes", "taken_to_ns" };

static double sinks_number(const cJSON *o, const char *key)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(n) && n->valuedouble >= 0 ? n->valuedouble : 0;
}

/* json_add_double() writes the times in ns with an exponent. */
static uint64_t sinks_whole(const cJSON *n)
{
	double d = cJSON_IsNumber(n) ? n->valuedouble : 0;

	return d > 0 && d < 0x1p63 ? (uint64_t)d : 0;
}

static void sinks_copy_whole(struct text_out *to, const cJSON *from, const char *key)
{
	json_add_u64(to, key, sinks_whole(cJSON_GetObjectItemCaseSensitive(from, key)));
}

static const char *sinks_text(const cJSON *o, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return s ? s : "";
}

/* Writes what kindling-upload reported; zeros if @from is NULL. */
static void sinks_copy(struct text_out *to, const cJSON *from)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(from, "dropped"), *cause;
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sinks_numbers); i++)
		sinks_copy_whole(to, from, sinks_numbers[i]);
	json_begin_object(to, "dropped");
	cJSON_ArrayForEach(cause, causes) if (cJSON_IsNumber(cause) && cause->string &&
					      n++ < SINKS_CAUSES_MAX)
		json_add_u64(to, cause->string, sinks_whole(cause));
	json_end_object(to);
	for (size_t i = 0; i < ARRAY_SIZE(sinks_details); i++)
		sinks_copy_whole(to, from, sinks_details[i]);
	json_add_double(to, "oldest_s", sinks_number(from, "oldest_s"));
	json_add_string_or_null(to, "last_error",
				from ? sinks_text(from, "last_error")
				     : "kindling-upload is not running yet");
}

/* The latest report about the sink @name; NULL = none yet. */
static const cJSON *sinks_find(const cJSON *said, const char *name)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, said) if (strcmp(sinks_text(o, "name"), name) == 0) return o;
	return NULL;
}

/* What kindling-upload reported last, to be freed with cJSON_Delete(); NULL = nothing yet. */
static cJSON *sinks_said(struct host *h)
{
	const char *text = host_uploads_status(h);

	return text ? cJSON_Parse(text) : NULL;
}

/* All sinks of the settings, in their order, also those without a report. */
void sinks_json(struct text_out *to, const char *key, struct host *h)
{
	const struct config *c = host_config(h);
	cJSON *said = sinks_said(h);

	json_begin_list(to, key);
	for (unsigned i = 0; i < c->n_sinks; i++) {
		const struct config_sink *s = &c->sinks[i];

		json_begin_object(to, NULL);
		json_add_string(to, "name", s->name);
		json_add_string(to, "type", sink_type_names[s->type]);
		sinks_copy(to, sinks_find(said, s->name));
		json_end_object(to);
	}
	json_end_list(to);
	cJSON_Delete(said);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Names and types of sinks are words of the settings and need no escaping. */
static void sinks_put(struct metric_text *m, const struct config *c, const cJSON *said,
		      const char *key, enum metric_type type, const char *family, const char *unit,
		      const char *help)
{
	char labels[160];

	metric_family(m, type, family, unit, help);
	for (unsigned i = 0; i < c->n_sinks; i++) {
		const struct config_sink *s = &c->sinks[i];

		snprintf(labels, sizeof(labels), "sink=\"%s\",type=\"%s\"", s->name,
			 sink_type_names[s->type]);
		metric_number(m, labels, sinks_number(sinks_find(said, s->name), key));
	}
}

static bool sinks_is_word(const char *s)
{
	return s && *s && strlen(s) < 64 && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz_")];
}

static void sinks_put_dropped_of(struct metric_text *m, const struct config_sink *s,
				 const cJSON *from)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(from, "dropped"), *cause;
	char labels[256];
	int n = 0;

	cJSON_ArrayForEach(cause, causes)
	{
		if (!cJSON_IsNumber(cause) || !cause->string || n++ >= SINKS_CAUSES_MAX ||
		    !sinks_is_word(cause->string))
			continue;
		snprintf(labels, sizeof(labels), "sink=\"%s\",type=\"%s\",cause=\"%s\"", s->name,
			 sink_type_names[s->type], cause->string);
		metric_number(m, labels, cause->valuedouble);
	}
}

static void sinks_put_dropped(struct metric_text *m, const struct config *c, const cJSON *said)
{
	metric_family(m, METRIC_COUNTER, "kindling_sink_dropped", NULL,
		      "Samples that the sink lost, by cause.");
	for (unsigned i = 0; i < c->n_sinks; i++)
		sinks_put_dropped_of(m, &c->sinks[i], sinks_find(said, c->sinks[i].name));
}

void sinks_metrics(struct metric_text *m, struct host *h)
{
	const struct config *c = host_config(h);
	cJSON *said;

	if (!c->n_sinks)
		return;
	said = sinks_said(h);
	sinks_put(m, c, said, "taken", METRIC_COUNTER, "kindling_sink_taken", NULL,
		  "Samples of the history that the sink took.");
	sinks_put(m, c, said, "delivered", METRIC_COUNTER, "kindling_sink_delivered", NULL,
		  "Samples that the server of the sink confirmed.");
	sinks_put(m, c, said, "spooled", METRIC_GAUGE, "kindling_sink_spooled", NULL,
		  "Those that wait.");
	sinks_put(m, c, said, "unconfirmed", METRIC_GAUGE, "kindling_sink_unconfirmed", NULL,
		  "Samples that may have arrived: the answer is outstanding, or was lost.");
	sinks_put_dropped(m, c, said);
	sinks_put(m, c, said, "oldest_s", METRIC_GAUGE, "kindling_sink_oldest_seconds", "seconds",
		  "Age of the oldest profile that is not delivered yet.");
	sinks_put(m, c, said, "bytes", METRIC_GAUGE, "kindling_sink_spool_bytes", "bytes",
		  "Size of the sink's spool.");
	cJSON_Delete(said);
}

/* ---- a test ---------------------------------------------------------------------------------- */

static void sinks_on_test(void *userdata, bool ok, const char *text)
{
	struct request *r = userdata;
	struct text_out json = { 0 };

	r->on_end = NULL;
	json_begin_object(&json, NULL);
	json_add_bool(&json, "ok", ok);
	json_add_string(&json, "answer", text);
	json_end_object(&json);
	(void)answer_json(r, 200, &json);
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

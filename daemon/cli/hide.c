/* See hide.h. */
#include "daemon/cli/hide.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/mem.h"

#define WORD_MIN 3 /* shorter names are parts of too many words */

static const char *const hide_names[] = { "name",  "container",	   "container_id", "pod",
					  "image", "image_digest", "service" };
/* Keys whose text is kindling's own: states, causes, sentences. */
static const char *const hide_known[] = {
	"version",   "state",  "jdk",	 "engine",	"engine_note", "walker",
	"placement", "reason", "step",	 "reason_step", "note",	       "what",
	"why",	     "source", "type",	 "check",	"verdict",     "finding",
	"change",    "event",  "events", "profilers",	"when",	       "when_loaded"
};

static bool hide_is_in(const char *const *list, size_t n, const char *key)
{
	for (size_t i = 0; key && i < n; i++)
		if (strcmp(list[i], key) == 0)
			return true;
	return false;
}
#define IS_IN(list, key) hide_is_in(list, ARRAY_SIZE(list), key)

/* ---- names ----------------------------------------------------------------------------------- */

static void hide_learn_word(struct hide *h, const char *word)
{
	if (strlen(word) < WORD_MIN || h->n == HIDE_WORDS_MAX)
		return;
	for (unsigned i = 0; i < h->n; i++)
		if (strcmp(h->words[i], word) == 0)
			return;
	h->words[h->n] = strdup(word);
	h->n += h->words[h->n] != NULL;
}

void hide_learn(struct hide *h, const cJSON *json)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, json)
	{
		bool labels = json->string && (strcmp(json->string, "labels") == 0 ||
					       strcmp(json->string, "annotations") == 0);

		if (cJSON_IsString(o) && (labels || IS_IN(hide_names, o->string)))
			hide_learn_word(h, o->valuestring);
		hide_learn(h, o);
	}
}

/* Finds the longest name with which @s begins. Returns its number, and its length in *ret_len. */
static unsigned hide_at(const struct hide *h, const char *s, size_t *ret_len)
{
	unsigned found = 0;

	*ret_len = 0;
	for (unsigned i = 0; i < h->n; i++) {
		size_t len = strlen(h->words[i]);

		if (len > *ret_len && strncmp(s, h->words[i], len) == 0) {
			*ret_len = len;
			found = i + 1;
		}
	}
	return found;
}

void hide_text(const struct hide *h, FILE *to, const char *s)
{
	bool quoted = false;

	while (*s) {
		size_t len = 0;
		unsigned name = quoted ? 0 : hide_at(h, s, &len);

		if (name) {
			fprintf(to, "name-%u", name);
			s += len;
			continue;
		}
		if (*s == '"')
			quoted = !quoted;
		if (!quoted || *s == '"')
			fputs(*s == '"' && quoted ? "\"..." : (char[]){ *s, '\0' }, to);
		s++;
	}
	if (quoted)
		fputc('"', to);
}

/* The same as a malloc'ed string; NULL = no memory. */
static char *hide_copy(const struct hide *h, const char *s)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	hide_text(h, f, s);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void hide_string(const struct hide *h, struct text_out *to, const char *key, const char *s,
			bool known)
{
	CLEANUP(freep) char *text = known ? hide_copy(h, s) : NULL;

	if (known)
		json_add_string(to, key, text ? text : "");
	else
		json_add_string(to, key, "(left out)");
}

/* @name: the value's key, or that of the list that it is in; NULL = there is none. */
static void hide_value(const struct hide *h, struct text_out *to, const cJSON *value,
		       const char *name)
{
	const cJSON *o;

	if (cJSON_IsString(value)) {
		hide_string(h, to, value->string, value->valuestring,
			    IS_IN(hide_known, name) || IS_IN(hide_names, name));
		return;
	}
	if (!cJSON_IsObject(value) && !cJSON_IsArray(value)) {
		json_add_parsed(to, value->string, value);
		return;
	}
	if (cJSON_IsObject(value))
		json_begin_object(to, value->string);
	else
		json_begin_list(to, value->string);
	cJSON_ArrayForEach(o, value)
	{
		const char *own = o->string ? o->string : name;

		if (!own || strcmp(own, "labels") != 0)
			hide_value(h, to, o, own);
	}
	if (cJSON_IsObject(value))
		json_end_object(to);
	else
		json_end_list(to);
}

void hide_json(const struct hide *h, struct text_out *to, const cJSON *json)
{
	hide_value(h, to, json, NULL);
}

/* ---- log lines ------------------------------------------------------------------------------- */

/* Writes a pair "key=value"; the value is in quotes or ends at a space. Returns what follows it. */
static const char *hide_pair(const struct hide *h, FILE *to, const char *s)
{
	static const char *const sentences[] = { "reason", "why", "what" };
	static const char *const private[] = { "sink", "task", "file", "text", "socket" };
	size_t key_len = strcspn(s, "= \n"), n = 0;
	char key[64], value[1024];

	snprintf(key, sizeof(key), "%.*s", (int)key_len, s);
	if (s[key_len] != '=') { /* a word without "=" is the event's name */
		hide_text(h, to, key);
		return s + key_len;
	}
	fprintf(to, "%s=", key);
	s += key_len + 1;
	if (*s != '"') {
		key_len = strcspn(s, " \n");
		snprintf(value, sizeof(value), "%.*s", (int)key_len, s);
		if (IS_IN(private, key))
			fputs("...", to);
		else
			hide_text(h, to, value);
		return s + key_len;
	}
	for (s++; *s && *s != '"' && *s != '\n'; s++) {
		if (*s == '\\' && s[1])
			s++;
		if (n + 1 < sizeof(value))
			value[n++] = *s;
	}
	value[n] = '\0';
	fputc('"', to);
	if (IS_IN(sentences, key))
		hide_text(h, to, value);
	else
		fputs(n ? "..." : "", to);
	fputc('"', to);
	return *s == '"' ? s + 1 : s;
}

void hide_log(const struct hide *h, FILE *to, const char *lines)
{
	while (*lines) {
		const char *before = lines;

		if (*lines == ' ' || *lines == '\n') {
			fputc(*lines++, to);
			continue;
		}
		lines = hide_pair(h, to, lines);
		if (lines == before)
			lines++;
	}
}

/* ---- metrics --------------------------------------------------------------------------------- */

void hide_metrics(FILE *to, const char *text)
{
	static const char *const private[] = { "name=\"", "sink=\"" };

	while (*text) {
		const char *begin = NULL;

		for (size_t i = 0; i < ARRAY_SIZE(private) && !begin; i++)
			if (strncmp(text, private[i], strlen(private[i])) == 0)
				begin = private[i];
		if (!begin) {
			fputc(*text++, to);
			continue;
		}
		fprintf(to, "%s\"", begin);
		for (text += strlen(begin); *text && *text != '"'; text++)
			if (*text == '\\' && text[1])
				text++;
		text += *text == '"';
	}
}

void hide_deinit(struct hide *h)
{
	while (h->n)
		free(h->words[--h->n]);
}

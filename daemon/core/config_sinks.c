/* Parses the list `sinks`, and checks each sink. */
#include "daemon/core/config_sinks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/config_priv.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/value.h"
#include "proto/wire.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

const char *const sink_type_names[SINK_TYPE_COUNT] = {
#define X(id, name) name,
	SINK_TYPES(X)
#undef X
};

static const char *const event_names[WIRE_EVENT_COUNT] = {
#define X(id, name, unit) name,
	WIRE_EVENTS(X)
#undef X
};

/* ---- the table ------------------------------------------------------------------------------- */

enum sink_key_kind {
	SINK_KEY_NAME,
	SINK_KEY_TYPE,
	SINK_KEY_TEXT,
	SINK_KEY_URL,
	SINK_KEY_PATH, /* absolute */
	SINK_KEY_DURATION,
	SINK_KEY_SIZE,
	SINK_KEY_BOOL,
	SINK_KEY_WORDS, /* a list of words: `command`, `events` */
	SINK_KEY_PAIRS,
};

#define OF(id) (1u << SINK_##id)
#define ALL    ((1u << SINK_TYPE_COUNT) - 1)
#define HTTP   (OF(S3) | OF(PYROSCOPE) | OF(OTLP) | OF(CLICKHOUSE) | OF(SKYWALKING))

struct sink_key {
	const char *name;
	enum sink_key_kind kind;
	size_t offset, size;
	unsigned types; /* that take it */
	uint64_t min, max; /* of numbers */
};

#define KEY(name, kind, types, min, max)                                            \
	{                                                                           \
#name, SINK_KEY_##kind, offsetof(struct config_sink, name),         \
			sizeof(((struct config_sink *)NULL)->name), types, min, max \
	}
#define KEY_AS(key, member, kind, types, min, max)                                    \
	{                                                                             \
		key, SINK_KEY_##kind, offsetof(struct config_sink, member),           \
			sizeof(((struct config_sink *)NULL)->member), types, min, max \
	}

static const struct sink_key keys[] = {
	KEY(name, NAME, ALL, 0, 0),
	KEY(type, TYPE, ALL, 0, 0),
	KEY(events, WORDS, ALL, 0, 0),
	KEY(targets, PAIRS, ALL, 0, 0),
	KEY(threads, BOOL, ALL, 0, 0),
	KEY(format, TEXT, OF(FILES) | OF(EXEC) | OF(S3), 0, 0),
	KEY_AS("interval", interval_ns, DURATION, ALL, 10 * NS_PER_S, 3600 * NS_PER_S),
	KEY_AS("timeout", timeout_ns, DURATION, HTTP | OF(EXEC), NS_PER_S, 3600 * NS_PER_S),
	KEY_AS("spool_size", spool_bytes, SIZE, ALL, MIB, 1024 * GIB),
	KEY_AS("spool_age", spool_age_ns, DURATION, ALL, 60 * NS_PER_S, 30 * 86400 * NS_PER_S),
	KEY(directory, PATH, OF(FILES), 0, 0),
	KEY_AS("keep", keep_bytes, SIZE, OF(FILES), MIB, 1024 * 1024 * GIB),
	KEY(command, WORDS, OF(EXEC), 0, 0),
	KEY(url, URL, HTTP, 0, 0),
	KEY(proxy, URL, HTTP, 0, 0),
	KEY(headers, PAIRS, HTTP, 0, 0),
	KEY(user, TEXT, HTTP & ~(OF(S3) | OF(SKYWALKING)), 0, 0),
	KEY(password_file, PATH, HTTP & ~(OF(S3) | OF(SKYWALKING)), 0, 0),
	KEY(password_env, TEXT, HTTP & ~(OF(S3) | OF(SKYWALKING)), 0, 0),
	KEY(bearer_file, PATH, HTTP & ~OF(S3), 0, 0),
	KEY(bearer_env, TEXT, HTTP & ~OF(S3), 0, 0),
	KEY(ca_file, PATH, HTTP, 0, 0),
	KEY(cert_file, PATH, HTTP, 0, 0),
	KEY(key_file, PATH, HTTP, 0, 0),
	KEY(bucket, TEXT, OF(S3), 0, 0),
	KEY(region, TEXT, OF(S3), 0, 0),
	KEY(prefix, TEXT, OF(S3), 0, 0),
	KEY(access_key_file, PATH, OF(S3), 0, 0),
	KEY(access_key_env, TEXT, OF(S3), 0, 0),
	KEY(secret_key_file, PATH, OF(S3), 0, 0),
	KEY(secret_key_env, TEXT, OF(S3), 0, 0),
	KEY(session_token_file, PATH, OF(S3), 0, 0),
	KEY(session_token_env, TEXT, OF(S3), 0, 0),
	KEY(protocol, TEXT, OF(OTLP), 0, 0),
	KEY(database, TEXT, OF(CLICKHOUSE), 0, 0),
	KEY(instance, TEXT, OF(SKYWALKING), 0, 0),
	KEY(create, BOOL, OF(CLICKHOUSE), 0, 0),
};

static const struct sink_key *sink_key_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool sink_name_is_fine(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n > 0 && !s[n];
}

static int sink_set_type(struct reading *r, struct config_sink *s, const char *text)
{
	for (int i = 0; i < SINK_TYPE_COUNT; i++)
		if (strcmp(text, sink_type_names[i]) == 0) {
			s->type = i;
			return 0;
		}
	return config_refuse(
		r,
		"must be files, exec, s3, pyroscope, otlp, clickhouse or skywalking, not \"%.100s\"",
		text);
}

static int sink_set_text(struct reading *r, const struct sink_key *k, char *to, const char *text)
{
	if (!*text)
		return config_refuse(r, "must not be empty");
	if (strlen(text) >= k->size)
		return config_refuse(r, "is longer than %zu bytes", k->size - 1);
	for (const char *p = text; *p; p++) /* it may become part of an HTTP header or a log line */
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return config_refuse(r, "contains a control character");
	if (k->kind == SINK_KEY_NAME && !sink_name_is_fine(text))
		return config_refuse(r, "may have letters, digits, - and _, not \"%.100s\"", text);
	if (k->kind == SINK_KEY_PATH && *text != '/')
		return config_refuse(r, "must be an absolute path, not \"%.100s\"", text);
	if (k->kind == SINK_KEY_URL && strncmp(text, "http://", 7) != 0 &&
	    strncmp(text, "https://", 8) != 0)
		return config_refuse(r, "must begin with http:// or https://, not \"%.100s\"",
				     text);
	if (k->kind == SINK_KEY_URL && strchr(text + 8, '@'))
		return config_refuse(r, "must not contain a user or password; use user and "
					"password_file");
	strcpy(to, text);
	return 0;
}

static int sink_set_number(struct reading *r, const struct sink_key *k, uint64_t *to,
			   const char *text)
{
	bool size = k->kind == SINK_KEY_SIZE;
	char min[32], max[32];
	uint64_t value;
	int n = size ? value_bytes(text, &value) : value_duration_ns(text, &value);

	if (n == -EINVAL)
		return config_refuse(r, "must be a %s, not \"%.100s\"",
				     size ? "size, as in 256MiB" : "duration, as in 60s", text);
	if (n < 0 || value < k->min || value > k->max)
		return config_refuse(
			r, "must be between %s and %s",
			size ? value_bytes_text(k->min, min) : value_duration_text(k->min, min),
			size ? value_bytes_text(k->max, max) : value_duration_text(k->max, max));
	*to = value;
	return 0;
}

static int sink_set_value(struct reading *r, struct config_sink *s, const struct sink_key *k,
			  const char *text)
{
	void *to = (char *)s + k->offset;

	switch (k->kind) {
	case SINK_KEY_TYPE:
		return sink_set_type(r, s, text);
	case SINK_KEY_DURATION:
	case SINK_KEY_SIZE:
		return sink_set_number(r, k, to, text);
	case SINK_KEY_BOOL:
		return value_bool(text, to) < 0
			       ? config_refuse(r, "must be true or false, not \"%.100s\"", text)
			       : 0;
	case SINK_KEY_WORDS:
		return config_refuse(r, "must be a list of words, as in [%s]",
				     strcmp(k->name, "events") == 0 ? "cpu, lock"
								    : "/usr/local/bin/take, -x");
	case SINK_KEY_PAIRS:
		return config_refuse(r, "must be a map, as in { %s }",
				     strcmp(k->name, "headers") == 0 ? "X-Scope-OrgID: shop"
								     : "pod: shop/*");
	default:
		return sink_set_text(r, k, to, text);
	}
}

/* ---- lists and maps -------------------------------------------------------------------------- */

static bool sink_event_is_known(const char *word)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (strcmp(word, event_names[e]) == 0)
			return true;
	return false;
}

static int sink_add_event(struct reading *r, struct config_sink *s, const char *word)
{
	size_t used = strlen(s->events);

	if (!sink_event_is_known(word))
		return config_refuse(
			r, "must be a list of cpu, lock, alloc, wall, offcpu; not \"%.100s\"",
			word);
	if (used + strlen(word) + 2 > sizeof(s->events))
		return config_refuse(r, "names an event twice");
	snprintf(s->events + used, sizeof(s->events) - used, "%s%s", used ? "," : "", word);
	return 0;
}

static int sink_add_word(struct reading *r, struct config_sink *s, const char *word)
{
	size_t used = 0;

	for (unsigned i = 0; i < s->n_words; i++)
		used += strlen(s->command + used) + 1;
	if (s->n_words == 0 && *word != '/')
		return config_refuse(r, "must begin with the path of a program, not \"%.100s\"",
				     word);
	if (used + strlen(word) + 1 > sizeof(s->command))
		return config_refuse(r, "is longer than %zu bytes", sizeof(s->command) - 1);
	strcpy(s->command + used, word);
	s->n_words++;
	return 0;
}

/* Reads a list of words, from after its start event to its end event. */
static int sink_take_words(struct reading *r, struct config_sink *s, const struct sink_key *k)
{
	bool events = strcmp(k->name, "events") == 0, end = false;
	yaml_event_t event;
	int n = 0;

	while (n == 0 && !end) {
		const char *word;

		n = config_next_event(r, &event);
		if (n < 0)
			return n;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		word = event.type == YAML_SCALAR_EVENT ? (const char *)event.data.scalar.value : "";
		if (!end && (!*word || strlen(word) != event.data.scalar.length))
			n = config_refuse(r, "is a list of words");
		else if (!end)
			n = events ? sink_add_event(r, s, word) : sink_add_word(r, s, word);
		yaml_event_delete(&event);
	}
	if (n == 0 && !(events ? s->events[0] != '\0' : s->n_words != 0))
		n = config_refuse(r, "names nothing");
	return n;
}

static int sink_take_scalar(struct reading *r, char *to, size_t size, bool *ret_end)
{
	yaml_event_t event;
	int n = config_next_event(r, &event);
	const char *text;

	if (n < 0)
		return n;
	*ret_end = event.type == YAML_MAPPING_END_EVENT;
	text = event.type == YAML_SCALAR_EVENT ? (const char *)event.data.scalar.value : "";
	if (!*ret_end && !*text)
		n = config_refuse(r, "must be a map of words, `name: value`");
	else if (!*ret_end && strlen(text) >= size)
		n = config_refuse(r, "\"%.40s...\" is longer than %zu bytes", text, size - 1);
	for (const char *p = text; n == 0 && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			n = config_refuse(r, "contains a control character");
	if (n == 0 && !*ret_end)
		strcpy(to, text);
	yaml_event_delete(&event);
	return n;
}

static int sink_take_pairs(struct reading *r, struct config_pair *pairs, unsigned *n_pairs)
{
	bool end = false;
	int n = 0;

	while (n == 0 && !end) {
		struct config_pair pair;
		bool none = false;

		n = sink_take_scalar(r, pair.name, sizeof(pair.name), &end);
		if (n < 0 || end)
			return n;
		n = sink_take_scalar(r, pair.value, sizeof(pair.value), &none);
		if (n == 0 && strpbrk(pair.name, ": ="))
			n = config_refuse(r, "\"%.60s\" is not a valid name", pair.name);
		if (n == 0 && *n_pairs == SINK_PAIRS_MAX)
			n = config_refuse(r, "may have at most %d entries", SINK_PAIRS_MAX);
		if (n == 0) {
			struct config_pair *to = &pairs[(*n_pairs)++];

			snprintf(to->name, sizeof(to->name), "%s", pair.name);
			snprintf(to->value, sizeof(to->value), "%s", pair.value);
		}
	}
	return n;
}

/* ---- one sink -------------------------------------------------------------------------------- */

/* Reads the value of the key @k. */
static int sink_take_value(struct reading *r, struct config_sink *s, const struct sink_key *k)
{
	bool headers = strcmp(k->name, "headers") == 0;
	yaml_event_t event;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	if (event.type == YAML_SCALAR_EVENT &&
	    strlen((const char *)event.data.scalar.value) != event.data.scalar.length)
		n = config_refuse(r, "contains a NUL byte");
	else if (event.type == YAML_SCALAR_EVENT)
		n = sink_set_value(r, s, k, (const char *)event.data.scalar.value);
	else if (event.type == YAML_SEQUENCE_START_EVENT && k->kind == SINK_KEY_WORDS)
		n = sink_take_words(r, s, k);
	else if (event.type == YAML_MAPPING_START_EVENT && k->kind == SINK_KEY_PAIRS)
		n = sink_take_pairs(r, headers ? s->headers : s->targets,
				    headers ? &s->n_headers : &s->n_targets);
	else
		n = sink_set_value(r, s, k, "");
	yaml_event_delete(&event);
	return n;
}

/* Reads a key with its value, or the end of the sink: *ret_end. */
static int sink_take_pair(struct reading *r, struct config_sink *s, uint64_t *seen, bool *ret_end)
{
	size_t parent = strlen(r->name);
	const struct sink_key *k = NULL;
	yaml_event_t event;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	*ret_end = event.type == YAML_MAPPING_END_EVENT;
	if (event.type == YAML_SCALAR_EVENT) {
		snprintf(r->name + parent, sizeof(r->name) - parent, ".%.40s",
			 (const char *)event.data.scalar.value);
		k = sink_key_find((const char *)event.data.scalar.value);
	}
	yaml_event_delete(&event);
	if (*ret_end)
		return 0;
	if (!k)
		return config_refuse(r, "there is no such setting of a sink");
	if (*seen & 1ull << (k - keys))
		return config_refuse(r, "is set a second time");
	*seen |= 1ull << (k - keys);
	n = sink_take_value(r, s, k);
	if (n == 0)
		r->name[parent] = '\0';
	return n;
}

static void sink_defaults(struct config_sink *s)
{
	memset(s, 0, sizeof(*s)); /* also the padding, which memcmp() compares */
	s->type = -1;
	s->interval_ns = 60 * NS_PER_S;
	s->timeout_ns = 30 * NS_PER_S;
	s->spool_bytes = 256 * MIB;
	s->spool_age_ns = 86400 * NS_PER_S;
	s->threads = true;
}

static int sink_need(struct reading *r, const struct config_sink *s, const char *value,
		     const char *key)
{
	if (*value)
		return 0;
	return config_refuse(r, "a sink of type %s needs %s", sink_type_names[s->type], key);
}

/* kindling-upload checks at its start which formats a sink supports; only the spelling is checked
 * here. */
static int sink_check_type(struct reading *r, const struct config_sink *s)
{
	bool secret = s->secret_key_file[0] || s->secret_key_env[0];
	bool access = s->access_key_file[0] || s->access_key_env[0];
	int n = 0;

	if (HTTP & 1u << s->type)
		n = sink_need(r, s, s->url, "url");
	if (n == 0 && s->type == SINK_FILES)
		n = sink_need(r, s, s->directory, "directory");
	if (n == 0 && s->type == SINK_EXEC)
		n = sink_need(r, s, s->command, "command");
	if (n == 0 && s->type == SINK_S3)
		n = sink_need(r, s, s->bucket, "bucket");
	if (n == 0 && secret && !access)
		n = sink_need(r, s, "", "access_key_file or access_key_env");
	if (n == 0 && access && !secret)
		n = sink_need(r, s, "", "secret_key_file or secret_key_env");
	if (n == 0 && s->protocol[0] && strcmp(s->protocol, "http") != 0 &&
	    strcmp(s->protocol, "grpc") != 0)
		n = config_refuse(r, "protocol must be http or grpc, not \"%s\"", s->protocol);
	if (n == 0 && s->interval_ns % (10 * NS_PER_S))
		n = config_refuse(r, "interval must be a multiple of 10s, the length of a window");
	if (n == 0 && (s->password_file[0] || s->password_env[0]) && !s->user[0])
		n = config_refuse(r, "a password needs user");
	if (n == 0 && s->key_file[0] && !s->cert_file[0])
		n = config_refuse(r, "key_file needs cert_file");
	return n;
}

static int sink_check_targets(struct reading *r, const struct config_sink *s)
{
	static const char *const names[] = { "name",  "container", "pod", "namespace",
					     "image", "service",   "node" };

	for (unsigned i = 0; i < s->n_targets; i++) {
		bool known = strncmp(s->targets[i].name, "label.", 6) == 0;

		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			known |= strcmp(s->targets[i].name, names[k]) == 0;
		if (!known)
			return config_refuse(
				r,
				"targets: there is no condition %s; the conditions are name, "
				"service, container, pod, namespace, image, node and label.NAME",
				s->targets[i].name);
	}
	return 0;
}

/* Checks a complete sink, also that no earlier sink has the same name. @seen: bit i = keys[i] was
 * set. */
static int sink_check(struct reading *r, const struct config_sink *s, uint64_t seen)
{
	const struct config *c = r->config;

	if (!s->name[0])
		return config_refuse(r, "a sink needs a name");
	if (s->type < 0)
		return config_refuse(r, "sink %s needs a type, as in `type: files`", s->name);
	for (unsigned i = 0; i < c->n_sinks; i++)
		if (strcmp(c->sinks[i].name, s->name) == 0)
			return config_refuse(r, "there is a sink called %s already, at line %u",
					     s->name, c->sinks[i].line);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (seen & 1ull << i && !(keys[i].types & 1u << s->type))
			return config_refuse(r, "%s is not a setting of a sink of type %s",
					     keys[i].name, sink_type_names[s->type]);
	int n = sink_check_type(r, s);

	return n < 0 ? n : sink_check_targets(r, s);
}

int config_take_sinks(struct reading *r)
{
	struct config *c = r->config;
	size_t parent = strlen(r->name);
	yaml_event_t event;
	int n;

	_Static_assert(ARRAY_SIZE(keys) <= 64, "one bit a key");
	if (c->n_sinks)
		return config_refuse(r, "is set a second time");
	while ((n = config_next_event(r, &event)) == 0) {
		yaml_event_type_t type = event.type;
		struct config_sink *s = &c->sinks[c->n_sinks];
		uint64_t seen = 0;
		bool end = false;
		size_t line = r->line;

		yaml_event_delete(&event);
		if (type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (c->n_sinks == SINKS_MAX)
			return config_refuse(r, "at most %d sinks are allowed", SINKS_MAX);
		snprintf(r->name + parent, sizeof(r->name) - parent, "[%u]", c->n_sinks);
		if (type != YAML_MAPPING_START_EVENT)
			return config_refuse(
				r, "must be one sink, `- {name: x, type: files, directory: /x}`");
		sink_defaults(s);
		s->line = (unsigned)line;
		while (n == 0 && !end)
			n = sink_take_pair(r, s, &seen, &end);
		/* in Pyroscope each label value of a sample makes another series */
		if (s->type == SINK_PYROSCOPE &&
		    !(seen & 1ull << (sink_key_find("threads") - keys)))
			s->threads = false;
		if (n == 0) {
			r->line = line;
			n = sink_check(r, s, seen);
		}
		if (n < 0)
			return n;
		c->n_sinks++;
		r->name[parent] = '\0';
	}
	return n;
}

const char *config_sink_text(const struct config_sink *s, char *buf, size_t size)
{
	char interval[32];

	snprintf(buf, size, "{name: %s, type: %s, interval: %s%s%s%s%s%s%s%s%s}", s->name,
		 sink_type_names[s->type], value_duration_text(s->interval_ns, interval),
		 s->url[0] ? ", url: " : "", s->url, s->directory[0] ? ", directory: " : "",
		 s->directory, s->format[0] ? ", format: " : "", s->format,
		 s->events[0] ? ", events: " : "", s->events);
	return buf;
}

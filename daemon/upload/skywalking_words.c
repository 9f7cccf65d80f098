/* See skywalking_words.h. */
#include "daemon/upload/skywalking_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"
#include "proto/wire.h"
#include "skywalking.pb-c.h"

static uint8_t *words_pack(const ProtobufCMessage *m, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(len + 1);

	if (bytes)
		*ret_len = protobuf_c_message_pack(m, bytes);
	return bytes;
}

/* ---- messages to the OAP --------------------------------------------------------------------- */

/* protobuf-c does not write to its strings, but declares them without const */
#define TEXT(s) ((char *)(uintptr_t)(s))

uint8_t *skywalking_ping(const struct skywalking_instance *i, size_t *ret_len)
{
	Kindling__Sw__Ping m = KINDLING__SW__PING__INIT;

	m.service = TEXT(i->service);
	m.instance = TEXT(i->name);
	return words_pack(&m.base, ret_len);
}

uint8_t *skywalking_properties(const struct skywalking_instance *i,
			       const struct skywalking_property *p, size_t n, size_t *ret_len)
{
	CLEANUP(freep) Kindling__Sw__Pair *pairs = calloc(n + 1, sizeof(*pairs));
	CLEANUP(freep) Kindling__Sw__Pair **list = calloc(n + 1, sizeof(Kindling__Sw__Pair *));
	Kindling__Sw__Properties m = KINDLING__SW__PROPERTIES__INIT;

	if (!pairs || !list)
		return NULL;
	for (size_t k = 0; k < n; k++) {
		kindling__sw__pair__init(&pairs[k]);
		pairs[k].key = TEXT(p[k].key);
		pairs[k].value = TEXT(p[k].value);
		list[k] = &pairs[k];
	}
	m.service = TEXT(i->service);
	m.instance = TEXT(i->name);
	m.properties = list;
	m.n_properties = n;
	return words_pack(&m.base, ret_len);
}

uint8_t *skywalking_task_query(const struct skywalking_instance *i, int64_t last_created_ms,
			       size_t *ret_len)
{
	Kindling__Sw__TaskQuery m = KINDLING__SW__TASK_QUERY__INIT;

	m.service = TEXT(i->service);
	m.instance = TEXT(i->name);
	m.last_command_time = last_created_ms;
	return words_pack(&m.base, ret_len);
}

uint8_t *skywalking_meta(const struct skywalking_instance *i, const char *task_id, size_t size,
			 const char *error, size_t *ret_len)
{
	Kindling__Sw__TaskMeta meta = KINDLING__SW__TASK_META__INIT;
	Kindling__Sw__TaskData m = KINDLING__SW__TASK_DATA__INIT;

	meta.service = TEXT(i->service);
	meta.instance = TEXT(i->name);
	meta.task_id = TEXT(task_id);
	meta.type = error ? KINDLING__SW__TASK_STATUS__EXECUTION_TASK_ERROR
			  : KINDLING__SW__TASK_STATUS__PROFILING_SUCCESS;
	meta.content_size = error ? -1 : (int32_t)size;
	m.meta = &meta;
	if (error) {
		m.result_case = KINDLING__SW__TASK_DATA__RESULT_ERROR_MESSAGE;
		m.error_message = TEXT(error);
	}
	return words_pack(&m.base, ret_len);
}

uint8_t *skywalking_content(const void *bytes, size_t len, size_t *ret_len)
{
	Kindling__Sw__TaskData m = KINDLING__SW__TASK_DATA__INIT;

	m.result_case = KINDLING__SW__TASK_DATA__RESULT_CONTENT;
	m.content.data = (uint8_t *)(uintptr_t)bytes;
	m.content.len = len;
	return words_pack(&m.base, ret_len);
}

/* ---- messages from the OAP ------------------------------------------------------------------- */

static unsigned words_event(const char *word, size_t len)
{
	static const struct {
		const char *name;
		unsigned event;
	} events[] = { { "cpu", WIRE_EVENT_CPU },    { "ctimer", WIRE_EVENT_CPU },
		       { "itimer", WIRE_EVENT_CPU }, { "wall", WIRE_EVENT_WALL },
		       { "lock", WIRE_EVENT_LOCK },  { "alloc", WIRE_EVENT_ALLOC } };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (strlen(events[i].name) == len && strncmp(events[i].name, word, len) == 0)
			return 1u << events[i].event;
	return 0;
}

/* Parses "5ms", "10us", "2s"; a bare number is ns. 0 = not a duration. */
static uint64_t words_duration_ns(const char *s)
{
	char *end;
	unsigned long long n = strtoull(s, &end, 10), unit = 0;

	if (end == s || n > NS_PER_S * 60)
		return 0;
	if (*end == '\0' || *end == ',' || strncmp(end, "ns", 2) == 0)
		unit = 1;
	else if (strncmp(end, "us", 2) == 0)
		unit = 1000;
	else if (strncmp(end, "ms", 2) == 0)
		unit = NS_PER_MS;
	else if (*end == 's')
		unit = NS_PER_S;
	return unit && n <= 60 * NS_PER_S / unit ? n * unit : 0;
}

/* Parses "2k", "1m" to bytes; 0 = not a size. */
static uint64_t words_size(const char *s)
{
	static const char units[] = "kmg";
	char *end;
	unsigned long long n = strtoull(s, &end, 10);
	const char *unit = *end ? strchr(units, *end | 0x20) : NULL;

	if (end == s || n > 1ull << 30)
		return 0;
	return unit ? n << 10 * (unit - units + 1) : n;
}

/* Parses one of the words between commas. */
static void words_argument(const char *word, size_t len, struct skywalking_task *t)
{
	size_t key = strcspn(word, "=,");

	if (key == len) /* a word without "=" continues the list of event= */
		t->events |= words_event(word, len);
	else if (key == 5 && strncmp(word, "event", 5) == 0)
		t->events |= words_event(word + 6, len - 6);
	else if (key == 8 && strncmp(word, "interval", 8) == 0)
		t->interval_ns = words_duration_ns(word + 9);
	else if (key == 4 && strncmp(word, "lock", 4) == 0) {
		t->events |= 1u << WIRE_EVENT_LOCK;
		t->lock_min_ns = words_duration_ns(word + 5);
	} else if (key == 4 && strncmp(word, "wall", 4) == 0) {
		t->events |= 1u << WIRE_EVENT_WALL;
		t->wall_interval_ns = words_duration_ns(word + 5);
	} else if (key == 5 && strncmp(word, "alloc", 5) == 0) {
		t->events |= 1u << WIRE_EVENT_ALLOC;
		t->alloc_interval = words_size(word + 6);
	} else {
		t->events |= words_event(word, key);
	}
}

void skywalking_arguments(const char *text, struct skywalking_task *t)
{
	while (*text) {
		size_t len = strcspn(text, ",");

		if (len)
			words_argument(text, len, t);
		text += len;
		text += *text == ',';
	}
	/* `interval` is that of CPU samples, or without them that of wall-clock samples */
	if (!(t->events & 1u << WIRE_EVENT_CPU) && !t->wall_interval_ns)
		t->wall_interval_ns = t->interval_ns;
	if (t->events == 0)
		snprintf(t->why, sizeof(t->why),
			 "kindling collects none of the task's events; it has cpu, wall, lock, "
			 "alloc");
}

/* The value of @key, "" if the command does not have it. */
static const char *words_arg(const Kindling__Sw__Command *c, const char *key)
{
	for (size_t i = 0; i < c->n_args; i++)
		if (strcmp(c->args[i]->key, key) == 0)
			return c->args[i]->value;
	return "";
}

/* Reads a task. false: this is none, or an old one. */
static bool words_take_task(const Kindling__Sw__Command *c, int64_t last_created_ms,
			    struct skywalking_task *t)
{
	const char *id = words_arg(c, "TaskId");
	unsigned long seconds;

	memset(t, 0, sizeof(*t));
	if (strcmp(c->command, "AsyncProfilerTaskQuery") != 0)
		return false;
	t->created_ms = strtoll(words_arg(c, "CreateTime"), NULL, 10);
	/* a truncated id could be that of another task */
	if (t->created_ms <= last_created_ms || !*id || strlen(id) >= sizeof(t->id))
		return false;
	utf8_copy(t->id, sizeof(t->id), id, strlen(id));
	seconds = strtoul(words_arg(c, "Duration"), NULL, 10);
	t->seconds = seconds > SKYWALKING_SECONDS_MAX ? SKYWALKING_SECONDS_MAX : (unsigned)seconds;
	skywalking_arguments(words_arg(c, "ExecArgs"), t);
	if (t->seconds == 0)
		snprintf(t->why, sizeof(t->why), "the task has no duration");
	return true;
}

int skywalking_tasks(const void *message, size_t len, int64_t last_created_ms,
		     struct skywalking_task tasks[SKYWALKING_TASKS_MAX])
{
	Kindling__Sw__Commands *m = kindling__sw__commands__unpack(NULL, len, message);
	int n = 0;

	if (!m)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_commands && n < SKYWALKING_TASKS_MAX; i++)
		n += words_take_task(m->commands[i], last_created_ms, &tasks[n]);
	kindling__sw__commands__free_unpacked(m, NULL);
	return n;
}

int skywalking_answer(const void *message, size_t len, enum skywalking_verdict *ret)
{
	Kindling__Sw__TaskAnswer *m = kindling__sw__task_answer__unpack(NULL, len, message);

	if (!m)
		return -EBADMSG;
	*ret = m->type == KINDLING__SW__TASK_STATUS__PROFILING_SUCCESS	      ? SKYWALKING_GO
	       : m->type == KINDLING__SW__TASK_STATUS__TERMINATED_BY_OVERSIZE ? SKYWALKING_OVERSIZE
									      : SKYWALKING_FAILED;
	kindling__sw__task_answer__free_unpacked(m, NULL);
	return 0;
}

/*
 * See config.h. Reads libyaml's events. The current key is a path, joined by dots, which is looked
 * up in the table of config_fields.h; an unknown key is an error.
 */
#include "daemon/core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/core/config_priv.h"
#include "daemon/ground/mem.h"
#include "proto/wire.h"

#define FILE_BYTES_MAX (256 * 1024)

_Static_assert(sizeof(((struct reading *)0)->seen[0]) * 8 >= 64, "one bit an entry");

int config_refuse(struct reading *r, const char *fmt, ...)
{
	int n = 0;
	va_list ap;

	if (r->line)
		n = snprintf(r->err, r->err_size, "%s:%zu: ", r->file, r->line);
	else
		n = snprintf(r->err, r->err_size, "%s: ", r->file);
	if (r->name[0] && n >= 0 && (size_t)n < r->err_size)
		n += snprintf(r->err + n, r->err_size - (size_t)n, "%s: ", r->name);
	if (n >= 0 && (size_t)n < r->err_size) {
		va_start(ap, fmt);
		vsnprintf(r->err + n, r->err_size - (size_t)n, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

int config_next_event(struct reading *r, yaml_event_t *ret)
{
	if (!yaml_parser_parse(&r->parser, ret)) {
		r->line = r->parser.problem_mark.line + 1;
		r->name[0] = '\0';
		return config_refuse(r, "is not YAML: %s",
				     r->parser.problem ? r->parser.problem : "out of memory");
	}
	r->line = ret->start_mark.line + 1;
	return 0;
}

int config_need_event(struct reading *r, yaml_event_type_t type, const char *sentence)
{
	yaml_event_t event;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	if (event.type != type)
		n = config_refuse(r, "%s", sentence);
	yaml_event_delete(&event);
	return n;
}

static const struct config_entry *config_find_field(const char *name)
{
	for (size_t i = 0; i < config_entry_count; i++)
		if (strcmp(config_entries[i].name, name) == 0)
			return &config_entries[i];
	return NULL;
}

/* The first field below the section @name. */
static const struct config_entry *config_find_section(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < config_entry_count; i++)
		if (strncmp(config_entries[i].name, name, len) == 0 &&
		    config_entries[i].name[len] == '.')
			return &config_entries[i];
	return NULL;
}

static int config_refuse_unknown(struct reading *r)
{
	const struct config_entry *near = config_nearest(r->name);

	if (near)
		return config_refuse(r, "there is no such setting; did you mean %s?", near->name);
	return config_refuse(r, "there is no such setting");
}

static int config_refuse_twice(struct reading *r, const struct config_entry *e)
{
	uint64_t bit = 1ull << (e - config_entries);

	if (r->seen[r->depth] & bit)
		return config_refuse(r, "is set a second time");
	r->seen[r->depth] |= bit;
	return 0;
}

static const char *const event_names[WIRE_EVENT_COUNT] = {
#define X(id, name, unit) name,
	WIRE_EVENTS(X)
#undef X
};

/* Adds the event named @event to those to collect. false: there is no such event. */
static bool config_collect(struct reading *r, const char *event)
{
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (strcmp(event, event_names[e]) != 0)
			continue;
		r->config->events = (r->events_given ? r->config->events : 0) | 1u << e;
		r->events_given = true;
		return true;
	}
	return false;
}

/* A section of an event makes it be collected, even if the section is empty. */
static void config_note_event(struct reading *r)
{
	if (strncmp(r->name, CONFIG_EVENTS ".", sizeof(CONFIG_EVENTS)) == 0)
		(void)config_collect(r, r->name + sizeof(CONFIG_EVENTS));
}

/* Reads a list of words such as `mdc: [trace_id, traceId]`, which is kept as one text with commas.
 */
static int config_read_list(struct reading *r)
{
	char text[CONFIG_VALUE_MAX] = "";
	const struct config_entry *e = config_find_field(r->name);
	yaml_event_t event;
	int n = config_refuse_twice(r, e), end = 0;
	char why[200];

	while (n == 0 && !end) {
		size_t len = strlen(text);

		n = config_next_event(r, &event);
		if (n < 0)
			return n;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end && (event.type != YAML_SCALAR_EVENT ||
			     strpbrk((const char *)event.data.scalar.value, ", ")))
			n = config_refuse(r, "must be a list of words, as in [%s]",
					  e->type == CONFIG_METHODS ? "com.acme.Worker.next"
								    : "trace_id, traceId");
		else if (!end && len + event.data.scalar.length + 2 > e->size)
			n = config_refuse(r, "is longer than %u characters", e->size - 1);
		else if (!end)
			snprintf(text + len, sizeof(text) - len, "%s%s", len ? "," : "",
				 (const char *)event.data.scalar.value);
		yaml_event_delete(&event);
	}
	if (n < 0)
		return n;
	n = config_set(r->config, e, text, why, sizeof(why));
	return n < 0 ? config_refuse(r, "%s", why) : 0;
}

/* Reads `events: [cpu, lock]`, from after the list's start event to its end event. */
static int config_read_events(struct reading *r)
{
	yaml_event_t event;
	bool end = false;
	int n = config_refuse_twice(r, config_find_section(r->name));

	while (n == 0 && !end) {
		n = config_next_event(r, &event);
		if (n < 0)
			return n;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end && event.type != YAML_SCALAR_EVENT)
			n = config_refuse(r, "must be a list of words, as in [cpu, lock]");
		else if (!end && !config_collect(r, (const char *)event.data.scalar.value))
			n = config_refuse(r,
					  "must be a list of cpu, lock, alloc, wall, offcpu; not "
					  "\"%.100s\"",
					  (const char *)event.data.scalar.value);
		yaml_event_delete(&event);
	}
	if (n == 0 && !r->events_given)
		n = config_refuse(r, "is empty; leave it out to collect cpu, lock and offcpu");
	return n;
}

const char *config_events(const struct config *c, char *buf, size_t size)
{
	size_t n = 0;

	*buf = '\0';
	for (unsigned e = 0; e < WIRE_EVENT_COUNT && n < size; e++)
		if (c->events & 1u << e)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "",
					      event_names[e]);
	return buf;
}

static bool config_is_label_list(const char *name)
{
	return strcmp(name, CONFIG_LABELS_SET) == 0 || strcmp(name, CONFIG_LABEL_RULES) == 0;
}

static int config_read_value(struct reading *r, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	const struct config_entry *e = config_find_field(r->name);
	char why[200];
	int n;

	if (strcmp(r->name, CONFIG_RULES) == 0)
		return event->data.scalar.length
			       ? config_refuse(r, "must be a list of rules, `- deny: {...}`")
			       : 0;
	if (config_is_label_list(r->name))
		return event->data.scalar.length
			       ? config_refuse(r, strcmp(r->name, CONFIG_LABELS_SET) == 0
							  ? "must be a map of labels, { team: "
							    "shop }"
							  : "must be a list of rules, `- drop: "
							    "image`")
			       : 0;
	if (strcmp(r->name, CONFIG_SINKS) == 0)
		return event->data.scalar.length
			       ? config_refuse(r, "must be a list of sinks, `- {name: x, type: "
						  "files}`")
			       : 0;
	if (!e) {
		e = config_find_section(r->name);
		if (!e)
			return config_refuse_unknown(r);
		if (event->data.scalar.length ==
		    0) { /* a section whose fields are all commented out */
			config_note_event(r);
			return config_refuse_twice(r, e);
		}
		return config_refuse(r, "has settings of its own, such as %s, and takes no value",
				     e->name);
	}
	n = config_refuse_twice(r, e);
	if (n < 0)
		return n;
	if (strlen(text) != event->data.scalar.length)
		return config_refuse(r, "contains a NUL byte");
	n = config_set(r->config, e, text, why, sizeof(why));
	if (strcmp(e->name, "events.cpu.interval") == 0)
		r->config->cpu_interval_given = true;
	return n < 0 ? config_refuse(r, "%s", why) : 0;
}

static int config_enter_section(struct reading *r)
{
	const struct config_entry *e = config_find_section(r->name);
	int n;

	if (config_find_field(r->name))
		return config_refuse(r, "takes one value, not settings below it");
	if (!e)
		return config_refuse_unknown(r);
	n = config_refuse_twice(r, e);
	if (n < 0)
		return n;
	if (r->depth == DEPTH_MAX)
		return config_refuse(r, "is nested too deep");
	config_note_event(r);
	r->depth++;
	r->name_len[r->depth] = strlen(r->name);
	return 0;
}

static int config_read_key(struct reading *r, const yaml_event_t *event)
{
	size_t parent = r->name_len[r->depth];
	const char *key;
	int n;

	if (event->type != YAML_SCALAR_EVENT)
		return config_refuse(r, "a setting's name must be a word");
	key = (const char *)event->data.scalar.value;
	if (strlen(key) != event->data.scalar.length || strchr(key, '.'))
		return config_refuse(
			r, "a setting's name must not contain dots; indent the settings below it");
	n = snprintf(r->name + parent, sizeof(r->name) - parent, "%s%s", parent ? "." : "", key);
	if (n < 0 || (size_t)n >= sizeof(r->name) - parent) {
		r->name[parent] = '\0';
		return config_refuse(r, "there is no setting with such a long name");
	}
	return 0;
}

/* Reads one key with its value, or the end of a section. Sets *ret_end at the end of the outermost
 * section. */
static int config_read_pair(struct reading *r, bool *ret_end)
{
	yaml_event_t event;
	size_t key_line;
	int n;

	n = config_next_event(r, &event);
	if (n < 0)
		return n;
	if (event.type == YAML_MAPPING_END_EVENT) {
		yaml_event_delete(&event);
		*ret_end = r->depth == 0;
		if (r->depth)
			r->depth--;
		r->name[r->name_len[r->depth]] = '\0';
		return 0;
	}
	n = config_read_key(r, &event);
	yaml_event_delete(&event);
	if (n < 0)
		return n;
	key_line = r->line;
	n = config_next_event(r, &event);
	if (n < 0)
		return n;
	r->line = key_line; /* errors name the key's line; a section begins on the next one */
	if (event.type == YAML_SCALAR_EVENT)
		n = config_read_value(r, &event);
	else if (event.type == YAML_MAPPING_START_EVENT && strcmp(r->name, CONFIG_LABELS_SET) == 0)
		n = config_take_labels(r);
	else if (event.type == YAML_MAPPING_START_EVENT)
		n = config_enter_section(r);
	else if (event.type == YAML_SEQUENCE_START_EVENT &&
		 strcmp(r->name, CONFIG_LABEL_RULES) == 0)
		n = config_take_label_rules(r);
	else if (event.type == YAML_SEQUENCE_START_EVENT && strcmp(r->name, CONFIG_RULES) == 0)
		n = config_take_rules(r);
	else if (event.type == YAML_SEQUENCE_START_EVENT &&
		 (strcmp(r->name, "trace.mdc") == 0 || strcmp(r->name, "idle") == 0))
		n = config_read_list(r);
	else if (event.type == YAML_SEQUENCE_START_EVENT && strcmp(r->name, CONFIG_SINKS) == 0)
		n = config_take_sinks(r);
	else if (event.type == YAML_SEQUENCE_START_EVENT && strcmp(r->name, CONFIG_EVENTS) == 0)
		n = config_read_events(r);
	else
		n = config_refuse(r, "takes one value, not a list or an alias");
	yaml_event_delete(&event);
	return n;
}

/* Reads the next event, which must be of one of the two types; *ret_is_first: it is the first. */
static int config_expect(struct reading *r, yaml_event_type_t first, yaml_event_type_t second,
			 bool *ret_is_first)
{
	yaml_event_t event;
	int n;

	n = config_next_event(r, &event);
	if (n < 0)
		return n;
	*ret_is_first = event.type == first;
	if (event.type == YAML_SCALAR_EVENT && event.data.scalar.length)
		n = config_refuse(r, "must be settings, `name: value`, and not one word");
	else if (event.type != first && event.type != second)
		n = config_refuse(r, "must be one map of settings, `name: value`");
	yaml_event_delete(&event);
	return n;
}

static int config_read_document(struct reading *r)
{
	bool end = false, yes;
	int n;

	n = config_expect(r, YAML_STREAM_START_EVENT, YAML_STREAM_START_EVENT, &yes);
	if (n < 0)
		return n;
	n = config_expect(r, YAML_DOCUMENT_START_EVENT, YAML_STREAM_END_EVENT, &yes);
	if (n < 0 || !yes) /* a file without any settings is fine */
		return n;
	n = config_expect(r, YAML_MAPPING_START_EVENT, YAML_SCALAR_EVENT, &yes);
	if (n < 0)
		return n;
	while (yes && !end) {
		n = config_read_pair(r, &end);
		if (n < 0)
			return n;
	}
	n = config_expect(r, YAML_DOCUMENT_END_EVENT, YAML_DOCUMENT_END_EVENT, &yes);
	if (n < 0)
		return n;
	return config_expect(r, YAML_STREAM_END_EVENT, YAML_STREAM_END_EVENT, &yes);
}

int config_parse(struct config *c, const char *name, const char *text, size_t len, char *err,
		 size_t err_size)
{
	struct reading r = { .config = c, .file = name, .err = err, .err_size = err_size };
	int n;

	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	n = config_read_document(&r);
	yaml_parser_delete(&r.parser);
	return n;
}

int config_load(struct config *c, const char *path, char *err, size_t err_size)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return config_load_fd(c, path, fd < 0 ? -errno : fd, err, err_size);
}

int config_load_fd(struct config *c, const char *path, int fd, char *err, size_t err_size)
{
	CLEANUP(freep) char *text = NULL;
	struct stat st;
	size_t len = 0;
	ssize_t n;

	errno = fd < 0 ? -fd : 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		int error = errno;

		snprintf(err, err_size, "%s: cannot be read: %s", path, strerror(error));
		return -error;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(err, err_size, "%s: is not a file", path);
		return -EINVAL;
	}
	text = malloc(FILE_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, FILE_BYTES_MAX + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0) {
		int error = errno;

		snprintf(err, err_size, "%s: cannot be read: %s", path, strerror(error));
		return -error;
	}
	if (len > FILE_BYTES_MAX) {
		snprintf(err, err_size, "%s: is longer than %d KiB", path, FILE_BYTES_MAX / 1024);
		return -EFBIG;
	}
	return config_parse(c, path, text, len, err, err_size);
}

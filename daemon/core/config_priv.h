/* The state of reading a settings file, shared by config.c, which reads the file, and
 * config_rules.c, config_labels.c and config_sinks.c, which read its lists. */
#pragma once

#include <yaml.h>
#include "daemon/core/config_fields.h"

#define DEPTH_MAX	   4
#define NAME_MAX_BYTES	   128
#define CONFIG_RULES	   "targets.rules"
#define CONFIG_EVENTS	   "events"
#define CONFIG_LABELS_SET  "labels.set"
#define CONFIG_LABEL_RULES "labels.rules"
#define CONFIG_SINKS	   "sinks"

struct reading {
	struct config *config;
	yaml_parser_t parser;
	const char *file;
	size_t line;
	char name[NAME_MAX_BYTES]; /* the current key, "events.cpu.interval" */
	size_t name_len[DEPTH_MAX + 1]; /* of its parents */
	unsigned depth;
	/* which keys were set, to refuse them a second time: bit i of seen[depth] stands for the
	 * part of config_entries[i].name at this depth */
	uint64_t seen[DEPTH_MAX + 1];
	bool events_given; /* the key `events` replaces the default */
	char *err;
	size_t err_size;
};

/* Writes "file:line: name: sentence" into r->err. Returns -EINVAL. */
int config_refuse(struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reads the next event; the caller frees it with yaml_event_delete(). 0, or -EINVAL: not YAML. */
int config_next_event(struct reading *r, yaml_event_t *ret);
/* Reads the next event, which must be of @type, else it is refused with @sentence. */
int config_need_event(struct reading *r, yaml_event_type_t type, const char *sentence);
/* These read a list or map, from after its start event to its end event. 0 or -errno. */
int config_take_rules(struct reading *r);
int config_take_labels(struct reading *r);
int config_take_label_rules(struct reading *r);
int config_take_sinks(struct reading *r);
/* Writes @s in double quotes as in YAML; needs up to twice the length of @s, and 3 bytes. */
void config_quoted(const char *s, char *buf, size_t size);

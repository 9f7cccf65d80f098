/* Where the reader of a settings file stands: config.c walks it, config_rules.c,
 * config_labels.c and config_sinks.c its lists. */
#pragma once

#include <yaml.h>
#include "daemon/core/config_fields.h"

#define DEPTH_MAX      4
#define NAME_MAX_BYTES 128
#define CONFIG_RULES   "targets.rules"
#define CONFIG_EVENTS  "events"
#define CONFIG_LABELS_SET  "labels.set"
#define CONFIG_LABEL_RULES "labels.rules"
#define CONFIG_SINKS	   "sinks"

struct reading {
	struct config *config;
	yaml_parser_t parser;
	const char *file;
	size_t line;
	char name[NAME_MAX_BYTES]; /* the key we stand at, "events.cpu.interval" */
	size_t name_len[DEPTH_MAX + 1]; /* of its parents */
	unsigned depth;
	uint64_t
		seen[DEPTH_MAX + 1]; /* bit i of [depth]: prefix of entry i was met at this depth */
	bool events_given; /* `events` names what is collected: the default does not count */
	char *err;
	size_t err_size;
};

/* "file:line: name: sentence" into r->err; -EINVAL */
int config_refuse(struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int config_next_event(struct reading *r, yaml_event_t *ret); /* 0, or refused: it is no YAML */
/* The next event must be of @type, else it is refused with @sentence. */
int config_need_event(struct reading *r, yaml_event_type_t type, const char *sentence);
int config_take_rules(struct reading *r); /* after the list's start event up to its end event */
int config_take_labels(struct reading *r); /* likewise, of the map */
int config_take_label_rules(struct reading *r);
/* In double quotes, as YAML has them; twice the length of the longest text fits. */
void config_quoted(const char *s, char *buf, size_t size);
int config_take_sinks(struct reading *r); /* likewise */

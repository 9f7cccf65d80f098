/* Where the reader of a settings file stands: config.c walks it, config_rules.c its one list. */
#pragma once

#include <yaml.h>
#include "daemon/core/config_fields.h"

#define DEPTH_MAX      4
#define NAME_MAX_BYTES 128
#define CONFIG_RULES   "targets.rules"
#define CONFIG_EVENTS  "events"

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
int config_take_rules(struct reading *r); /* from behind the begin of the list to its end */

/*
 * The table of settings: what each is called, where it lives in struct config, what it may be and a
 * sentence about it. Private to core: the parser reads it, config_field() shows it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "daemon/core/config.h"

enum config_type {
	CONFIG_PATH, /* absolute, or "auto" = leave the default */
	CONFIG_FILE, /* likewise, and it can be read */
	CONFIG_PROGRAM, /* likewise, and it can be run */
	CONFIG_DURATION,
	CONFIG_SIZE,
	CONFIG_PERCENT,
	CONFIG_BOOL,
	CONFIG_LOG_LEVEL,
	CONFIG_BPF,
	CONFIG_COUNT,
	CONFIG_MODE, /* bool: opt-in */
	CONFIG_FOREIGN, /* bool: yield */
	CONFIG_MONITORS,
	CONFIG_CLOUD, /* bool: auto */
	CONFIG_TEXT,
	CONFIG_SOCKET, /* unix:///path of a Unix socket, whose path is kept; "" = off */
};

struct config_entry {
	const char *name; /* dots between the nested maps */
	enum config_type type;
	uint32_t offset, size; /* of the member of struct config */
	uint64_t min, max; /* of numbers */
	const char *sentence;
};

extern const struct config_entry config_entries[];
extern const size_t config_entry_count;

/* The field that is closest to the misspelt @name, NULL if none is close. */
const struct config_entry *config_nearest(const char *name);
/*
 * Convert @text into the entry's member of @c. 0, or -EINVAL with a sentence in @why. A path "auto"
 * leaves the member alone.
 */
int config_set(struct config *c, const struct config_entry *entry, const char *text, char *why,
	       size_t why_size);

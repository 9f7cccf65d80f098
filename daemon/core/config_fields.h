/*
 * The table of settings: the name, type, range and member in struct config of each, and a sentence
 * about it. Only for this room; others use config_field() and config_value().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "daemon/core/config.h"

enum config_type {
	CONFIG_PATH, /* absolute, or "auto" = the default */
	CONFIG_FILE, /* likewise; config_check_files() needs a readable file */
	CONFIG_PROGRAM, /* likewise; config_check_files() needs an executable one */
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
	CONFIG_METHODS, /* names of classes and methods with dots, separated by commas */
	CONFIG_SOCKET, /* unix:///path of a Unix socket, whose path is kept; "" = off */
};

struct config_entry {
	const char *name; /* of nested maps, joined by dots: "events.cpu.interval" */
	enum config_type type;
	uint32_t offset, size; /* of the member of struct config */
	uint64_t min, max; /* of numbers */
	const char *sentence;
};

extern const struct config_entry config_entries[];
extern const size_t config_entry_count;

/* The field whose name is closest to the misspelt @name, NULL if none is close. */
const struct config_entry *config_nearest(const char *name);
/*
 * Converts @text and stores it in the entry's member of @c. 0, or -EINVAL with a sentence in @why.
 * The path "auto" leaves the member unchanged.
 */
int config_set(struct config *c, const struct config_entry *entry, const char *text, char *why,
	       size_t why_size);

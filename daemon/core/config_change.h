/*
 * Replaces the current settings by new ones: finds what has changed, and when each change takes
 * effect. Pure.
 */
#pragma once

#include "daemon/core/config.h"

enum config_when {
	CONFIG_NOW,
	CONFIG_NEXT_ATTACH, /* JVMs that are attached to from now on */
	CONFIG_RESTART, /* not before the daemon is restarted; until then the old value applies */
	CONFIG_WHEN_COUNT
};
extern const char *const config_when_names[CONFIG_WHEN_COUNT]; /* "now", "next attach", "restart" */

#define CONFIG_CHANGES_MAX 64

struct config_change {
	const char *name; /* "events.cpu.interval", "events", "targets.rules", "sinks" */
	char from[256], to[256]; /* as in the file; for rules, labels and sinks: their number */
	enum config_when when;
};

struct config_changes {
	unsigned n;
	struct config_change list[CONFIG_CHANGES_MAX];
};

/* When a change of the setting @name takes effect: a field's name, "events", "targets.rules",
 * "sinks" ... */
enum config_when config_when(const char *name);
/* Copies what differs in @next to @live, unless it needs a restart. @ret lists all differences. */
void config_apply(struct config *live, const struct config *next, struct config_changes *ret);

/*
 * New settings in the place of those in force: what changed, and from when on each counts. Pure.
 */
#pragma once

#include "daemon/core/config.h"

enum config_when {
	CONFIG_NOW,
	CONFIG_NEXT_ATTACH, /* JVMs that are attached to from now on */
	CONFIG_RESTART, /* not before the daemon starts again: what is in force stays */
	CONFIG_WHEN_COUNT
};
extern const char *const config_when_names[CONFIG_WHEN_COUNT]; /* "now", "next attach", "restart" */

#define CONFIG_CHANGES_MAX 48

struct config_change {
	const char *name; /* "events.cpu.interval", "events", "targets.rules", "sinks" */
	char from[256], to[256]; /* as the file would have them; of rules and sinks: how many */
	enum config_when when;
};

struct config_changes {
	unsigned n;
	struct config_change list[CONFIG_CHANGES_MAX];
};

/* Field @name, "events" (which of them are collected), "targets.rules" or "sinks". */
enum config_when config_when(const char *name);
/* What differs in @next is taken over into @live, but what needs a restart; all of it is in @ret.
 */
void config_apply(struct config *live, const struct config *next, struct config_changes *ret);

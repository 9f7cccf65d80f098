/* See config_change.h. A field that is in no list here needs a restart. */
#include "daemon/core/config_change.h"

#include <stdio.h>
#include <string.h>
#include "daemon/core/config_priv.h"
#include "daemon/ground/mem.h"

const char *const config_when_names[CONFIG_WHEN_COUNT] = {
	[CONFIG_NOW] = "now",
	[CONFIG_NEXT_ATTACH] = "next attach",
	[CONFIG_RESTART] = "restart",
};

/* Settings that are read at each use, or that agents get by another START. */
static const char *const at_once[] = {
	CONFIG_EVENTS,
	CONFIG_RULES,
	CONFIG_LABELS_SET,
	CONFIG_LABEL_RULES,
	"labels.threads",
	"labels.pods",
	"labels.cloud",
	CONFIG_SINKS,
	"log.level",
	"events.cpu.interval",
	"events.cpu.max_cpu",
	"events.offcpu.min",
	"events.offcpu.virtual",
	"events.lock.min_wait",
	"events.lock.monitors",
	"events.alloc.interval",
	"events.wall.interval",
	"events.wall.threads",
	"trace.otel",
	"trace.skywalking",
	"trace.brave",
	"trace.published",
	"trace.mdc",
	"trace.keep",
	"idle",
	"targets.mode",
	"targets.attach_rate",
	"targets.max",
	"targets.foreign_profilers",
	"targets.crash_block",
	"limits.memory",
	"limits.decode_cpu",
};
/* Settings that cannot change in a JVM that is already attached to. */
static const char *const next_attach[] = {
	"agent.library", "agent.ring_size", "agent.pipe_size",	     "injector",
	"quiet_attach",	 "attach.deadline", "attach.tmpfs_over_tmp",
};

static bool config_change_is_in(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

enum config_when config_when(const char *name)
{
	if (config_change_is_in(at_once, ARRAY_SIZE(at_once), name))
		return CONFIG_NOW;
	if (config_change_is_in(next_attach, ARRAY_SIZE(next_attach), name))
		return CONFIG_NEXT_ATTACH;
	return CONFIG_RESTART;
}

/* Returns NULL if the list is full; a test checks that it is long enough. */
static struct config_change *config_change_add(struct config_changes *c, const char *name)
{
	struct config_change *change = c->n < CONFIG_CHANGES_MAX ? &c->list[c->n++] : NULL;

	if (!change)
		return NULL;
	change->name = name;
	change->when = config_when(name);
	return change;
}

static void config_change_apply_field(struct config *live, const struct config *next, size_t i,
				      struct config_changes *ret)
{
	const struct config_entry *e = &config_entries[i];
	struct config_change *change;
	char from[CONFIG_VALUE_MAX], to[CONFIG_VALUE_MAX];

	config_value(live, i, from, sizeof(from));
	config_value(next, i, to, sizeof(to));
	if (strcmp(from, to) == 0)
		return;
	change = config_change_add(ret, e->name);
	if (change) {
		snprintf(change->from, sizeof(change->from), "%.*s", (int)sizeof(change->from) - 1,
			 from);
		snprintf(change->to, sizeof(change->to), "%.*s", (int)sizeof(change->to) - 1, to);
	}
	if (config_when(e->name) != CONFIG_RESTART)
		memcpy((char *)live + e->offset, (const char *)next + e->offset, e->size);
}

static void config_change_apply_events(struct config *live, const struct config *next,
				       struct config_changes *ret)
{
	struct config_change *change;

	if (live->events == next->events)
		return;
	change = config_change_add(ret, CONFIG_EVENTS);
	if (change) {
		config_events(live, change->from, sizeof(change->from));
		config_events(next, change->to, sizeof(change->to));
	}
	live->events = next->events;
}

static bool config_change_same_rules(const struct config *a, const struct config *b)
{
	char x[2048], y[2048];

	if (a->n_rules != b->n_rules)
		return false;
	for (unsigned i = 0; i < a->n_rules; i++)
		if (strcmp(config_rule(a, i, x, sizeof(x)), config_rule(b, i, y, sizeof(y))) != 0)
			return false;
	return true;
}

static void config_change_note_count(struct config_changes *ret, const char *name, unsigned from,
				     unsigned to)
{
	struct config_change *change = config_change_add(ret, name);

	if (!change)
		return;
	snprintf(change->from, sizeof(change->from), "%u of them", from);
	snprintf(change->to, sizeof(change->to), "%u of them", to);
}

static void config_change_apply_rules(struct config *live, const struct config *next,
				      struct config_changes *ret)
{
	if (!config_change_same_rules(live, next))
		config_change_note_count(ret, CONFIG_RULES, live->n_rules, next->n_rules);
	/* copied even if they are the same, because their line numbers may have changed */
	memcpy(live->rules, next->rules, sizeof(live->rules));
	memcpy(live->file, next->file, sizeof(live->file));
	live->n_rules = next->n_rules;
}

/* Unused entries and padding of both lists are zero, so memcmp() finds every difference. */
static void config_change_apply_labels(struct config *live, const struct config *next,
				       struct config_changes *ret)
{
	if (memcmp(live->labels, next->labels, sizeof(live->labels)) != 0)
		config_change_note_count(ret, CONFIG_LABELS_SET, live->n_labels, next->n_labels);
	if (memcmp(live->label_rules, next->label_rules, sizeof(live->label_rules)) != 0)
		config_change_note_count(ret, CONFIG_LABEL_RULES, live->n_label_rules,
					 next->n_label_rules);
	memcpy(live->labels, next->labels, sizeof(live->labels));
	memcpy(live->label_rules, next->label_rules, sizeof(live->label_rules));
	live->n_labels = next->n_labels;
	live->n_label_rules = next->n_label_rules;
}

/* Compares all but the line numbers. */
static bool config_change_same_sinks(const struct config *a, const struct config *b)
{
	struct config_sink x;

	if (a->n_sinks != b->n_sinks)
		return false;
	for (unsigned i = 0; i < a->n_sinks; i++) {
		memcpy(&x, &a->sinks[i], sizeof(x));
		x.line = b->sinks[i].line;
		if (memcmp(&x, &b->sinks[i], sizeof(x)) != 0)
			return false;
	}
	return true;
}

static void config_change_apply_sinks(struct config *live, const struct config *next,
				      struct config_changes *ret)
{
	if (!config_change_same_sinks(live, next))
		config_change_note_count(ret, CONFIG_SINKS, live->n_sinks, next->n_sinks);
	memcpy(live->sinks, next->sinks, sizeof(live->sinks));
	live->n_sinks = next->n_sinks;
}

void config_apply(struct config *live, const struct config *next, struct config_changes *ret)
{
	ret->n = 0;
	config_change_apply_events(live, next, ret);
	for (size_t i = 0; i < config_entry_count; i++)
		config_change_apply_field(live, next, i, ret);
	config_change_apply_rules(live, next, ret);
	config_change_apply_labels(live, next, ret);
	config_change_apply_sinks(live, next, ret);
}

/*
 * A kindlingd that runs under a seccomp filter cannot read the filters of JVMs; another process
 * does that for it (injector/filters.h). In a pod that is another container, which may start later
 * than kindlingd. The filters of JVMs that are attached to before that are not checked, so the
 * first attach waits up to AWAIT_S seconds for that process.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <stdio.h>
#include "daemon/core/warden.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

#define AWAIT_S	 10
#define AGAIN_NS (50 * NS_PER_MS)
#define LATER_NS (10 * NS_PER_S) /* once JVMs are attached to without it */

void await_filters_explain(const struct targets *table, struct fault *ret)
{
	*ret = (struct fault){ 0 };
	fault_set(ret, EAGAIN, FAULT_PREFLIGHT,
		  "waits up to %d s for the process that reads seccomp filters, at %.60s", AWAIT_S,
		  table->filters.path);
}

static void await_filters_go_on(struct targets *table)
{
	table->filters.awaited = false;
	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->state == TARGET_FOUND && t->priv->queued)
			t->fault = (struct fault){ 0 };
	targets_inject_next(table);
}

static void await_filters_on_again(void *userdata)
{
	struct targets *table = userdata;

	if (warden_filters_listen(table->filters.path) == 1) {
		table->filters.timer = loop_timer_free(table->filters.timer);
		table->filters.missing = false;
		log_info("daemon.filters", "socket=%s", log_str(table->filters.path));
	} else if (!table->filters.awaited || clock_mono_ns() < table->filters.until_mono_ns) {
		return;
	} else {
		table->filters.missing = true;
		loop_timer_set(table->filters.timer, LATER_NS, LATER_NS);
		log_warn("daemon.filters",
			 "socket=%s error=\"nobody answers there for %d s: JVMs are attached to "
			 "without their seccomp filters being read\"",
			 log_str(table->filters.path), AWAIT_S);
	}
	if (table->filters.awaited)
		await_filters_go_on(table);
}

int targets_await_filters(struct targets *table, const char *path)
{
	snprintf(table->filters.path, sizeof(table->filters.path), "%s", path);
	table->filters.until_mono_ns = clock_mono_ns() + AWAIT_S * NS_PER_S;
	table->filters.awaited = true;
	return loop_timer_add(table->loop, 0, AGAIN_NS, await_filters_on_again, table,
			      &table->filters.timer);
}

bool targets_filters_note(const struct targets *table, char *buf, size_t size)
{
	*buf = '\0';
	if (table->filters.missing)
		snprintf(buf, size,
			 "nobody answers at %s, so JVMs are attached to without being checked",
			 table->filters.path);
	return *buf;
}

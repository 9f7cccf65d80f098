/*
 * Profilers of others in a JVM. They may come at any time, so a JVM that streams is looked at again
 * now and then; its agent minds its signals itself (agent/session.c), whatever is found here.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "daemon/core/clock.h"
#include "daemon/discovery/proc.h"

#define AGAIN_SCANS 4 /* of discovery.scan_interval: maps of a big JVM takes milliseconds */

static int open_target(const struct target *t)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return proc_open(proc_dfd, t->jvm.pid);
}

void neighbours_look(struct target *t)
{
	CLEANUP(fd_closep) int pid_dfd = open_target(t);

	if (pid_dfd < 0)
		return;
	profilers_read_maps(pid_dfd, &t->profilers);
	profilers_read_options(pid_dfd, &t->profilers);
}

bool neighbours_forbid(const struct target *t, struct fault *why)
{
	char names[PROFILERS_TEXT_SIZE];

	if (!t->profilers || !t->priv->table->config->yields)
		return false;
	*why = (struct fault){ 0 };
	fault_set(why, EBUSY, FAULT_PROFILER,
		  "another profiler is loaded (%s), and targets.foreign_profilers is yield",
		  profilers_text(t->profilers, names));
	return true;
}

static void on_again(void *userdata)
{
	struct target *t = userdata;
	struct wishes *wishes = &t->priv->table->wishes;
	const struct wish *wish = wishes_find(wishes, t->jvm.pid, t->jvm.start_time);
	CLEANUP(fd_closep) int pid_dfd = -1;
	struct fault why;

	if (t->state != TARGET_STREAMING) {
		t->priv->neighbours_timer = loop_timer_free(t->priv->neighbours_timer);
		return;
	}
	pid_dfd = open_target(t);
	if (pid_dfd < 0)
		return;
	profilers_read_maps(pid_dfd, &t->profilers); /* options stay what they were */
	if (!(wish && wish->attach) && neighbours_forbid(t, &why))
		target_keep_out(t, KEEP_PROFILER, &why);
}

void neighbours_watch(struct target *t)
{
	const struct targets *table = t->priv->table;
	uint64_t ns = AGAIN_SCANS * table->config->scan_interval_ns;

	if (!t->priv->neighbours_timer)
		(void)loop_timer_add(table->loop, ns, ns, on_again, t, &t->priv->neighbours_timer);
}

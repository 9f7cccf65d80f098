/*
 * What attempts may have left. Where a daemon and its injector were killed together, files, mounts
 * and an .attach_pid may lie in a target. Its next attempt takes them away. One that streams
 * already, or is kept out, gets none: an injector looks, and tidies up. A few at a time, because
 * after a restart of the daemon that is every JVM of the host.
 *
 * And where a target was stopped or frozen in the middle of an attempt, what it has not looked at
 * yet has to stay: it is looked after until it runs again and all of it is gone.
 */
#include "daemon/target/target_priv.h"

#include <time.h>
#include "daemon/ground/clock.h"

#define PAUSE_NS (100 * NS_PER_MS)
#define AT_ONCE	 4
#define AGAIN_NS NS_PER_S /* doubled each time, five times */

/* Had it begun before the daemon did? Field 22 of stat counts ticks since the boot. */
static bool is_older(const struct target *t)
{
	uint64_t ticks_s = (uint64_t)sysconf(_SC_CLK_TCK);

	return t->jvm.start_time / ticks_s <= t->priv->table->begin_boot_s;
}

void left_begin(struct targets *table)
{
	struct timespec boot = { 0, 0 };

	clock_gettime(CLOCK_BOOTTIME, &boot);
	table->begin_boot_s = (uint64_t)boot.tv_sec;
}

void left_look(struct target *t)
{
	if ((t->state != TARGET_STREAMING && t->state != TARGET_DRAINING &&
	     t->state != TARGET_EXCLUDED && t->state != TARGET_DETACHED) ||
	    !is_older(t))
		return;
	t->priv->may_have_left = true;
	loop_timer_set(t->priv->table->left_timer, PAUSE_NS, 0);
}

void left_report(struct targets *table, pid_t pid, uint64_t start_time)
{
	struct target *t = table->first;
	unsigned n;

	while (t && (t->jvm.pid != pid || t->jvm.start_time != start_time))
		t = t->priv->next;
	if (!t)
		return;
	n = t->priv->left_looks++;
	t->priv->may_have_left = true;
	loop_timer_set(table->left_timer, AGAIN_NS << (n < 5 ? n : 5), 0);
}

void targets_on_left(void *userdata)
{
	struct targets *table = userdata;
	int n = 0;

	for (struct target *t = table->first; t && !table->stopping; t = t->priv->next) {
		if (!t->priv->may_have_left)
			continue;
		if (n++ == AT_ONCE) {
			loop_timer_set(table->left_timer, PAUSE_NS, 0);
			return;
		}
		t->priv->may_have_left = false;
		/* an attempt that runs does it itself, and would lose its own files */
		if (t->state != TARGET_GONE && t->state != TARGET_INJECTING)
			target_clean_up(t);
	}
}

/*
 * Removes what attempts have left behind. If a daemon and its injector were killed together, the
 * target may still have their files, mounts and an .attach_pid file. Its next attempt removes them.
 * For a target without a next attempt, because it streams already or is kept out, an injector is
 * started only to clean up. At most AT_ONCE run at a time, because after a restart of the daemon
 * every JVM of the host may need one.
 *
 * If a target was stopped or frozen in the middle of an attempt, the files that it has not read yet
 * must stay. Then the cleaning is repeated until the target runs again and all files are gone.
 */
#include "daemon/target/target_priv.h"

#include <time.h>
#include "daemon/ground/clock.h"

#define PAUSE_NS (100 * NS_PER_MS)
#define AT_ONCE	 4
#define AGAIN_NS NS_PER_S /* until the next cleaning of one target; doubled up to five times */

/* Did the process start before the daemon? Its start_time is in clock ticks since the boot,
 * proc_pid_stat(5). */
static bool left_predates_daemon(const struct target *t)
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
	    !left_predates_daemon(t))
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
		/* a running attempt cleans up itself; another injector would remove its files */
		if (t->state != TARGET_GONE && t->state != TARGET_INJECTING)
			target_clean_up(t);
	}
}

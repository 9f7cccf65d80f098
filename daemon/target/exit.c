/*
 * How a JVM ended, and what follows from it: the circuit breaker. BPF tells the status; without it
 * only the file is known that HotSpot writes into its working directory, and where neither is,
 * nobody can tell a crash from an end: then nothing is blocked.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"

void exit_watch(struct target *t)
{
	t->priv->attach_mono_ns = clock_mono_ns();
	exit_open_cwd(t);
}

/* Again when it streams: a young JVM visits /tmp/hsperfdata_USER for a moment. */
void exit_open_cwd(struct target *t)
{
	char path[32];

	fd_close(t->priv->cwd_fd);
	snprintf(path, sizeof(path), "/proc/%d/cwd", t->jvm.pid);
	t->priv->cwd_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* hs_err_pidN.log in its working directory, newer than the attach. Only looked at, never opened. */
static bool wrote_hs_err(const struct target *t)
{
	char name[40];
	struct stat st;
	int64_t attach_s;

	if (t->priv->cwd_fd < 0)
		return false;
	snprintf(name, sizeof(name), "hs_err_pid%d.log", t->jvm.ns_pid);
	if (fstatat(t->priv->cwd_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	attach_s = (int64_t)((clock_real_ns() - (clock_mono_ns() - t->priv->attach_mono_ns)) /
			     NS_PER_S);
	return st.st_uid == t->jvm.uid && st.st_mtim.tv_sec >= attach_s;
}

/* All like it are left alone from now on; an agent that is in one goes. */
static void block(struct target *t, const char *reason)
{
	struct targets *table = t->priv->table;
	uint64_t now = clock_real_ns();
	const struct cohort *cohort;
	struct fault why;

	table->crashes.count++;
	TARGET_LOG(WARNING, t, "target.crash", "pid=%d name=%s reason=%s", t->jvm.pid,
		   log_str(t->jvm.name), log_str(reason));
	if (!table->config->crash_block_ns)
		return;
	crash_block(&table->crashes, &t->jvm, reason, now + table->config->crash_block_ns);
	for (struct target *x = table->first; x; x = x->priv->next) {
		const struct wish *w = wishes_find(&table->wishes, x->jvm.pid, x->jvm.start_time);

		cohort = crash_find(&table->crashes, &x->jvm, now);
		if (!cohort || (w && w->attach) ||
		    (x->state != TARGET_STREAMING && x->state != TARGET_INJECTING))
			continue;
		crash_explain(cohort, &why);
		target_keep_out(x, KEEP_CRASH, &why);
	}
}

static void look(struct target *t, int status)
{
	uint64_t since_ns = clock_mono_ns() - t->priv->attach_mono_ns;
	int signo = crash_signal(status);
	bool file;
	char reason[160];

	if (t->priv->crash_seen || !t->priv->attach_mono_ns || since_ns > CRASH_SOON_NS)
		return;
	file = wrote_hs_err(t);
	if (!signo && !file)
		return;
	t->priv->crash_seen = true;
	snprintf(reason, sizeof(reason), "process %d %s%s %llu s after an attach", t->jvm.pid,
		 signo ? "died of SIG" : "wrote hs_err", signo ? sigabbrev_np(signo) : "",
		 (unsigned long long)(since_ns / NS_PER_S));
	block(t, reason);
}

void exit_look(struct target *t)
{
	look(t, t->priv->exit_status);
	t->priv->cwd_fd = fd_close(t->priv->cwd_fd);
}

/* "it was killed by SIGKILL", for the state GONE */
void exit_explain(const struct target *t, struct fault *ret)
{
	int status = t->priv->exit_status;

	*ret = (struct fault){ 0 };
	if (t->priv->exit_known && WIFSIGNALED(status))
		fault_set(ret, ESRCH, FAULT_IDENTITY, "the process was ended by SIG%s",
			  sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
}

/* Comes before or after the pidfd's word that it has ended. */
void targets_exited(struct targets *table, pid_t pid, int status)
{
	struct target *t = table->first;

	while (t && (t->jvm.pid != pid || t->priv->exit_known))
		t = t->priv->next;
	if (!t)
		return;
	t->priv->exit_known = true;
	t->priv->exit_status = status;
	if (t->state != TARGET_GONE)
		return;
	exit_explain(t, &t->fault);
	look(t, status);
}

const struct cohort *targets_cohort(const struct targets *table, unsigned index)
{
	return index < table->crashes.n ? &table->crashes.list[index] : NULL;
}

uint64_t targets_crashes(const struct targets *table)
{
	return table->crashes.count;
}

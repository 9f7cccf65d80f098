/*
 * Finds out how a JVM ended, and lets the circuit breaker act on a crash. BPF reports the exit
 * status. Without BPF a crash shows only by the file hs_err_pidN.log that HotSpot writes into its
 * working directory; without either nothing is blocked.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

void exit_watch(struct target *t)
{
	t->priv->attach_mono_ns = clock_mono_ns();
	exit_find_cwd(t);
}

static void exit_on_cwd(void *userdata, const struct look_answer *a, int fds[LOOK_FDS])
{
	struct target *t = userdata;

	t->priv->cwd_question = NULL;
	if (a->result < 0)
		return;
	fd_close(t->priv->cwd_fd);
	t->priv->cwd_fd = TAKE_FD(fds[0]);
}

/* Called before the attempt, and again once the target streams: a JVM that is just starting changes
 * its working directory to /tmp/hsperfdata_USER for a moment. */
void exit_find_cwd(struct target *t)
{
	struct target_priv *p = t->priv;
	const struct look_question q = { .kind = LOOK_CWD,
					 .pid = t->jvm.pid,
					 .start_time = t->jvm.start_time };

	p->cwd_question = look_cancel(p->cwd_question);
	(void)look_ask(p->table->look, &q, tenant_number(p->tenant->name), -1, exit_on_cwd, t,
		       &p->cwd_question);
}

void exit_forget(struct target *t)
{
	struct target_priv *p = t->priv;

	p->cwd_question = look_cancel(p->cwd_question);
	p->crash_question = look_cancel(p->crash_question);
	p->cwd_fd = fd_close(p->cwd_fd);
}

/* Blocks the cohort of @t, and detaches from those of its JVMs that are profiled, unless an
 * operator attached to them. */
static void exit_block(struct target *t, const char *reason)
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
		const struct override *w =
			overrides_find(&table->overrides, x->jvm.pid, x->jvm.start_time);

		cohort = crash_find(&table->crashes, &x->jvm, now);
		if (!cohort || (w && w->attach) ||
		    (x->state != TARGET_STREAMING && x->state != TARGET_INJECTING))
			continue;
		crash_explain(cohort, &why);
		target_keep_out(x, KEEP_CRASH, &why);
	}
}

static void exit_judge(struct target *t, int status, bool wrote_hs_err)
{
	uint64_t since_ns = clock_mono_ns() - t->priv->attach_mono_ns;
	int signo = crash_signal(status);
	char reason[160];

	if (t->priv->crash_seen || !t->priv->attach_mono_ns || since_ns > CRASH_SOON_NS)
		return;
	if (!signo && !wrote_hs_err)
		return;
	t->priv->crash_seen = true;
	snprintf(reason, sizeof(reason), "process %d %s%s %llu s after an attach", t->jvm.pid,
		 signo ? "died of SIG" : "wrote hs_err", signo ? sigabbrev_np(signo) : "",
		 (unsigned long long)(since_ns / NS_PER_S));
	exit_block(t, reason);
}

static void exit_on_hs_err(void *userdata, const struct look_answer *a, int fds[LOOK_FDS])
{
	struct target *t = userdata;

	(void)fds;
	t->priv->crash_question = NULL;
	exit_judge(t, t->priv->exit_status, a->result == 1);
}

/* Looks for hs_err_pidN.log, newer than the attach, in the JVM's working directory. The answering
 * process takes the descriptor of the directory, because closing the last one may block on its file
 * system. */
static void exit_ask_for_hs_err(struct target *t)
{
	struct target_priv *p = t->priv;
	uint64_t since_ns = clock_mono_ns() - p->attach_mono_ns;
	struct look_question q = { .kind = LOOK_HS_ERR, .pid = t->jvm.pid };

	q.hs_err.ns_pid = t->jvm.ns_pid;
	q.hs_err.uid = t->jvm.uid;
	q.hs_err.since_s = (int64_t)((clock_real_ns() - since_ns) / NS_PER_S);
	(void)look_ask(p->table->look, &q, tenant_number(p->tenant->name), TAKE_FD(p->cwd_fd),
		       exit_on_hs_err, t, &p->crash_question);
}

void exit_look(struct target *t)
{
	exit_judge(t, t->priv->exit_status, false);
	t->priv->cwd_question = look_cancel(t->priv->cwd_question);
	if (t->priv->cwd_fd >= 0)
		exit_ask_for_hs_err(t);
}

/* "the process was ended by SIGKILL", for the state GONE; code 0 if the process exited by itself */
void exit_explain(const struct target *t, struct fault *ret)
{
	int status = t->priv->exit_status;

	*ret = (struct fault){ 0 };
	if (t->priv->exit_known && WIFSIGNALED(status))
		fault_set(ret, ESRCH, FAULT_IDENTITY, "the process was ended by SIG%s",
			  sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
}

/* May be called before or after the pidfd has reported the end. */
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
	exit_judge(t, status, false);
}

const struct cohort *targets_cohort(const struct targets *table, unsigned index)
{
	return index < table->crashes.n ? &table->crashes.list[index] : NULL;
}

uint64_t targets_crashes(const struct targets *table)
{
	return table->crashes.count;
}

/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * The signals of the off-CPU programs: for which times off the CPU there may be one, and how it is
 * delayed until the thread returns to user mode.
 */
#pragma once

/* A program runs at the end of each system call: for threads without restartable sequences. */
const volatile __u8 has_syscall_exits;

#define WINDOW_SHIFT	27 /* 134 ms */
/* A part of all signals is reserved for long waits, so that a great number of short ones does not
 * use up all signals. */
#define LONG_PART 4 /* a quarter */

#define RUN_NS_MAX 20000 /* cap of a timed run: in longer ones a hypervisor took the CPU */

/* The number of signals, of @max, that waits of this kind may use. */
static __u64 signals_for(int is_long, __u64 max)
{
	return is_long ? max : max - max / LONG_PART;
}

/* May one more signal be sent of those that are for all targets, of which @max are for such times?
 */
static int is_shared_left(__u64 max, __u64 now)
{
	__u64 window = now >> WINDOW_SHIFT;

	if (shared_window != window) {
		shared_window = window;
		shared_in_window = 0;
	}
	if (shared_in_window >= max)
		return 0;
	__sync_fetch_and_add(&shared_in_window, 1);
	return 1;
}

/* May this signal still be sent in this window? Half of those for all targets are for waits alone,
 * and no time in the run queue is long: what is reserved for long waits is not for it. */
static int is_within_budget(struct offcpu_target *g, enum offcpu_part part, int is_long, __u64 now)
{
	int is_long_wait = is_long && part == OFFCPU_WAITS;
	__u64 shared = part == OFFCPU_WAITS ? signals_for(is_long, shared_max) : shared_max / 2;
	struct offcpu_quota *q = &g->parts[part];

	if (g->signals_in_window >= signals_for(is_long_wait, g->signals_max) ||
	    q->signals_in_window >= q->signals_max ||
	    (q->signals_in_window >= q->own_max && !is_shared_left(shared, now)))
		return 0;
	__sync_fetch_and_add(&g->signals_in_window, 1);
	__sync_fetch_and_add(&q->signals_in_window, 1);
	return 1;
}

enum habit {
	HABIT_NONE,
	HABIT_HOLDS, /* spares this time off the CPU its signal */
	HABIT_ASKS, /* so it does, unless there may be a signal to learn whether it goes on */
};

/* What the habit of waiting for work, which the daemon found, says of a time off the CPU, @is_long
 * or not, of @t. */
static enum habit habit_of(const struct offcpu_thread *t, const struct offcpu_target *g,
			   int is_long, __u64 now)
{
	if (g->spares < (is_long ? OFFCPU_SPARES_LONG : OFFCPU_SPARES_SIGNALS) || !t->idle_ns ||
	    t->class != t->idle_class)
		return HABIT_NONE;
	if (now - t->idle_ns < g->habit_ns)
		return HABIT_HOLDS;
	if (t->asked_ns > t->idle_ns) /* the daemon has not confirmed it */
		return now - t->asked_ns < OFFCPU_ANSWER_NS ? HABIT_HOLDS : HABIT_NONE;
	return now - t->idle_ns < OFFCPU_UNCONFIRMED_NS ? HABIT_ASKS : HABIT_NONE;
}

/* The same for a wait that a lock event will tell of. */
static enum habit told_habit_of(const struct offcpu_thread *t, const struct offcpu_target *g,
				__u64 off_ns, __u64 now)
{
	__u32 age = (__u32)(now >> OFFCPU_TOLD_SHIFT) - t->told;

	if (g->spares < OFFCPU_SPARES_SIGNALS || t->class != OFFCPU_FUTEX || !t->told ||
	    age > OFFCPU_TOLD_UNITS || off_ns >= OFFCPU_TOLD_NS_MAX)
		return HABIT_NONE;
	return (now >> 10) % OFFCPU_TOLD_PART ? HABIT_HOLDS : HABIT_ASKS;
}

/* May a signal be sent in this window to learn whether a habit goes on? At most half of all are for
 * that. */
static int may_ask(struct offcpu_target *g, __u64 now)
{
	if (g->asked_in_window > g->signals_max / 2 || !is_within_budget(g, OFFCPU_WAITS, 0, now)) {
		__sync_fetch_and_add(&g->unasked, 1);
		return 0;
	}
	__sync_fetch_and_add(&g->asked_in_window, 1);
	__sync_fetch_and_add(&g->asked, 1);
	return 1;
}

/* Does a time off the CPU of a thread that is spared its signal have no record either? */
static int spares_records(const struct offcpu_target *g, __u64 off_ns, int is_long)
{
	return is_long ? g->spares >= OFFCPU_SPARES_LONG_RECORDS &&
				 off_ns < g->parts[OFFCPU_WAITS].signal_min_ns *
						  OFFCPU_VERY_LONG_MINIMUMS
		       : g->spares >= OFFCPU_SPARES_RECORDS;
}

/* Would its stack tell nothing, as the daemon found of this thread's first ones? */
static int is_bare(const struct offcpu_thread *t)
{
	return t->bare_stacks >= OFFCPU_BARE_STACKS_ENOUGH &&
	       (t->class == OFFCPU_FUTEX || t->class == OFFCPU_SLEEP);
}

/* Begins the target's present window, unless that was done. */
static void begin_window(struct offcpu_target *g, __u64 now)
{
	__u64 window = now >> WINDOW_SHIFT;

	/* if two CPUs begin a window at once, one count may be lost */
	if (g->window == window)
		return;
	g->window = window;
	g->in_window = 0;
	g->signals_in_window = 0;
	g->asked_in_window = 0;
	for (int i = 0; i < OFFCPU_PARTS; i++)
		g->parts[i].in_window = g->parts[i].signals_in_window = 0;
}

/* May there be one more record in this window? There may be twice as many of long times. */
static int has_record_left(struct offcpu_target *g, struct offcpu_quota *q, int is_long)
{
	__u64 n = __sync_fetch_and_add(&g->in_window, 1);
	__u64 of_part = __sync_fetch_and_add(&q->in_window, 1);

	return n < g->records_max * (is_long ? 2 : 1) &&
	       of_part < q->records_max * (is_long ? 2 : 1);
}

/* The signal for times off the CPU. Without a kernel function it has no value, so that it has to be
 * one of its own: OFFCPU_BY_OWN_SIGNAL. */
static __u32 signo_of(const struct sampler_target *t)
{
#ifdef WITHOUT_KFUNCS
	return t->off_signo;
#else
	return t->signo;
#endif
}

static int is_open_to_signals(struct task_struct *task)
{
	__u32 tgid = task->tgid, signo;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);

	if (!t)
		return 0;
	signo = signo_of(t);
	return signo && !(task->flags & PF_EXITING) && !is_blocked(task, signo);
}

/* Is it the agent's thread? Only asked of threads that block the signal, as that one does. */
static int is_the_agents_thread(struct task_struct *task)
{
	char name[sizeof(task->comm)] = { 0 };

	bpf_probe_read_kernel(name, sizeof(name), task->comm);
#pragma unroll
	for (unsigned i = 0; i < sizeof("kindling"); i++)
		if (name[i] != "kindling"[i])
			return 0;
	return 1;
}

/*
 * Will the signal that is pending for this thread also report this time off the CPU? A thread may
 * leave the CPU again on its way back to user mode, after its signal was sent: at that point Linux
 * 6.18 makes it wait for its quota. A signal that was sent for CPU time alone does not report it.
 */
static int is_reported_by_pending(struct task_struct *task)
{
	__u32 at = (__u32)task->pid & (SAMPLER_SLOTS - 1);
	struct slot *slot = bpf_map_lookup_elem(&slots, &at);

	return slot && slot->tid == (__u32)task->pid && slot->sent_off_ns;
}

static int has_pending(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);

	return t && is_pending(task, t->signo);
}

/* Adds a signal and the time since @begin, which differs much between machines: the interrupt that a
 * signal needs may leave a virtual machine. Returns that time. */
static __u64 count_signal(__u64 begin)
{
	__u64 took_ns = bpf_ktime_get_ns() - begin;

	if (took_ns > RUN_NS_MAX)
		took_ns = RUN_NS_MAX;
	__sync_fetch_and_add(&signals, 1);
	__sync_fetch_and_add(&signals_ns, took_ns);
	return took_ns;
}

/* Both return whether a signal will be sent, and set the stay in the kernel that it belongs to.
 * @took_ns: the time that this takes is added to it. */
static int signal_by_task_work(struct task_struct *task, struct offcpu_thread *t, __u64 off_ns,
			       __u64 now, __u64 *took_ns)
{
	enum put_off r;
	__u64 begin;

	if (has_pending(task))
		return is_reported_by_pending(task);
	begin = bpf_ktime_get_ns();
	r = put_off(task, task->pid, 0, off_ns);
	*took_ns += count_signal(begin);
	if (r == PUT_OFF_ANEW)
		t->stay_ns = now;
	return r != PUT_OFF_NOT;
}

/* Will a program run when the system call ends that @t slept in? A thread that was preempted may be
 * past that. */
static int ends_syscall(const struct offcpu_thread *t)
{
	return has_syscall_exits && t->syscall_nr >= 0 && (t->state == 'S' || t->state == 'D');
}

static int signal_by_rseq(struct task_struct *task, struct offcpu_thread *t, __u64 off_ns,
			  __u64 now)
{
	if (!task->rseq && !ends_syscall(t))
		return 0;
	if (!t->owed_ns)
		t->stay_ns = now;
	t->owed_ns = off_ns;
	return 1;
}

#ifdef WITHOUT_KFUNCS
/* As send_at_return(), for one of the two signals. */
static void send_one(struct sampler_counts *c, struct sampler_target *t, __u32 signo, int is_off)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!has_agents_handler(c, t, task, signo)) {
		c->off_dropped += is_off;
	} else if (is_blocked(task, signo)) {
		c->held++;
		c->off_dropped += is_off;
	} else if (bpf_send_signal_thread(signo) < 0) {
		c->failed++;
		c->off_dropped += is_off;
	} else {
		c->sent++;
		c->off_sent += is_off;
	}
}

/* A signal without a value stands for one tick. */
static void send_owed(struct sampler_counts *c, struct sampler_target *t, __u32 ticks, __u64 off_ns)
{
	if (ticks) {
		c->held += ticks - 1;
		send_one(c, t, t->signo, 0);
	}
	if (off_ns)
		send_one(c, t, t->off_signo, 1);
}
#else
static void send_owed(struct sampler_counts *c, struct sampler_target *t, __u32 ticks, __u64 off_ns)
{
	send_at_return(c, t, ticks * t->interval_ns, off_ns);
}
#endif

/* ---- ticks that are put off before Linux 6.18 ---- */

/* @task gets the CPU: programs will run when it returns to user mode. */
static __always_inline void stay_begin(struct task_struct *task, __u64 now)
{
	struct sampler_stay *s;

	if (!task->rseq && !has_syscall_exits)
		return;
	s = stay_of(task->pid);
	if (!s)
		return;
	if (s->tid != (__u32)task->pid) {
		s->tid = task->pid;
		s->ticks = 0;
	}
	s->returns = task->rseq != 0;
	s->exits = has_syscall_exits;
	s->seen_ns = now;
}

/* Takes the ticks that were put off for @task, which returns to user mode or, @at_exit, is at the
 * end of a system call. They wait until the next return if that call is made again. */
static __always_inline __u32 stay_take(struct task_struct *task, int at_exit)
{
	struct sampler_stay *s = stay_of(task->pid);
	struct pt_regs *regs;
	__u32 ticks;

	if (!s || s->tid != (__u32)task->pid || (at_exit && s->returns))
		return 0;
	s->returns = 0;
	ticks = s->ticks;
	if (!ticks)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (syscall_in(regs) >= 0 && is_in_vain(regs))
		return 0;
	s->ticks = 0;
	return ticks;
}

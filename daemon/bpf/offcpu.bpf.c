/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * The off-CPU half of the host engine. At every context switch the times of targets' threads are
 * added up: time on the CPU when a thread leaves it; time in the run queue and time off the CPU, by
 * class, when it comes back. No time is counted twice or left out, so the sums are the time that
 * passed.
 *
 * A thread comes back in the middle of the context switch. A signal sent there would interrupt its
 * system call, and the kernel refuses it when the CPU was idle before. So the signal is delayed
 * until the thread returns to user mode: by task work or, before Linux 6.18, by the tracepoint of
 * restartable sequences; on request, for threads without them, by that of the ends of system calls.
 *
 * For other switches of the host the cost is two reads of a bitmap.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "sampler.h"
#include "offcpu.h"
#include "signal.bpf.h"
#include "offcpu_tables.bpf.h"
#include "offcpu_clock.bpf.h"
#include "offcpu_classes.bpf.h"
#include "offcpu_throttled.bpf.h"
#include "offcpu_signals.bpf.h"
#include "offcpu_record.bpf.h"

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

#define STATE_INTERRUPTIBLE   1 /* TASK_..., include/linux/sched.h */
#define STATE_UNINTERRUPTIBLE 2
#define STATE_WAKING	      0x200

#define SYSCALL_END_NS 1000000 /* a thread that slept in a system call is at its end before */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- leaving the CPU ------------------------------------------------------------------------- */

static __always_inline void set_off_class(struct offcpu_thread *t, struct task_struct *task,
					  int preempted, __u32 state)
{
	struct pt_regs *regs = registers_of(task);
	int nr = call_of(t, regs);

	t->syscall_nr = nr;
	if (preempted || state == 0) {
		t->state = 'R';
		t->class = is_throttled(task) ? OFFCPU_THROTTLED : OFFCPU_RUNQUEUE;
		throttled_begin(t, task);
	} else if ((state & STATE_INTERRUPTIBLE || state & STATE_UNINTERRUPTIBLE) &&
		   !is_frozen(task, state & STATE_INTERRUPTIBLE)) {
		t->state = state & STATE_INTERRUPTIBLE ? 'S' : 'D';
		t->class = class_of(task, regs, nr);
	} else {
		t->state = 'T';
		t->class = OFFCPU_OTHER;
	}
}

/* @throttled_ns: the part of @queue_ns without quota */
static void account_off(struct offcpu_thread *t, __u64 off_ns, __u64 queue_ns, __u64 throttled_ns)
{
	__u32 class = t->class;

	barrier_var(class); /* keeps the checked value in one register for the verifier */
	t->runqueue_ns += queue_ns - throttled_ns;
	t->off_ns[OFFCPU_THROTTLED] += throttled_ns;
	if (class < OFFCPU_RUNQUEUE)
		t->off_ns[class] += off_ns - queue_ns;
}

/*
 * Adds the time since the last switch to the time on the CPU. Some kernels leave out some switches
 * (in a virtual machine, some of those away from threads of its init): if the thread was last seen
 * to leave the CPU, the kernel's own count of its CPU time gives the part that it ran since.
 */
static void account_run(struct offcpu_thread *t, struct task_struct *task, __u64 now)
{
	__u64 passed_ns = now - t->since_ns, ran_ns = passed_ns;

	if (t->now == OFFCPU_NOW_OFF) {
		__u64 before_ns = task->se.prev_sum_exec_runtime;

		/* the verifier accepts only one load through each pointer */
		barrier_var(before_ns);
		if (t->state)
			before_ns = t->ran_ns;
		ran_ns = task->se.sum_exec_runtime - before_ns;
		if (ran_ns > passed_ns)
			ran_ns = passed_ns;
		account_off(t, passed_ns - ran_ns,
			    t->class == OFFCPU_RUNQUEUE ? passed_ns - ran_ns : 0, 0);
		__sync_fetch_and_add(&missed, 1);
	}
	t->oncpu_ns += ran_ns;
}

/* The clock of the CPU that a thread left may be a microsecond ahead of that of the next. */
static __always_inline __u64 not_before(const struct offcpu_thread *t, __u64 now)
{
	return now > t->since_ns ? now : t->since_ns;
}

/* Notes the kernel's counts of @task at the time when it leaves the CPU. */
static __always_inline void note_left(struct offcpu_thread *t, struct task_struct *task)
{
	t->ran_ns = task->se.sum_exec_runtime;
	if (has_queue_clock(task))
		t->delayed_ns = task->sched_info.run_delay;
	t->woken_ns = 0;
}

static __always_inline void switch_out(struct task_struct *task, int preempted, __u32 state,
				       __u64 now)
{
	struct offcpu_thread *t = thread_known(task);

	if (!t)
		t = thread_new(task);
	if (!t)
		return;
	now = not_before(t, now);
	account_run(t, task, now);
	note_left(t, task);
	t->since_ns = now;
	t->now = OFFCPU_NOW_OFF;
	set_off_class(t, task, preempted, state);
}

/* ---- coming back ----------------------------------------------------------------------------- */

/* Counts a time off the CPU of @off_ns by what became of its signal. */
static __always_inline void count_interval(struct offcpu_target *g, struct offcpu_quota *q,
					   __u64 off_ns, __u8 flags)
{
	if (flags == OFFCPU_SIGNALLED) {
		__sync_fetch_and_add(&q->signalled, 1);
		__sync_fetch_and_add(&g->signalled, 1);
		__sync_fetch_and_add(&g->signalled_ns, off_ns);
	} else if (flags == OFFCPU_OVER_BUDGET) {
		__sync_fetch_and_add(&g->over_budget, 1);
		__sync_fetch_and_add(&g->over_budget_ns, off_ns);
		if (off_ns >= q->signal_min_ns)
			__sync_fetch_and_add(&q->over_budget, 1);
	} else if (flags == OFFCPU_UNNEEDED) {
		__sync_fetch_and_add(&g->unneeded, 1);
		__sync_fetch_and_add(&g->unneeded_ns, off_ns);
	} else {
		__sync_fetch_and_add(&g->unreachable, 1);
		__sync_fetch_and_add(&g->unreachable_ns, off_ns);
	}
}

/* Reports a time off the CPU of @off_ns, if that is long enough for its target: as a record, and by
 * a signal. Returns the time that the signal took. */
static __always_inline __u64 report_interval(struct task_struct *task, struct offcpu_thread *t,
					     __u64 off_ns, __u64 queue_ns, __u64 throttled_ns,
					     __u64 now, int by_task_work)
{
	struct offcpu_target *g = target_at(t->target, t->pid);
	int is_long, is_open, spares_record, is_told = 0, asks, spared;
	enum offcpu_part part = t->class == OFFCPU_RUNQUEUE ? OFFCPU_QUEUED : OFFCPU_WAITS;
	struct offcpu_quota *q = g ? &g->parts[part] : 0;
	__u64 took_ns = 0;
	enum habit habit;
	__u8 flags;

	if (!q || off_ns < q->min_ns) {
		t->short_count++;
		return 0;
	}
	is_long = off_ns >= q->signal_min_ns * OFFCPU_LONG_MINIMUMS;
	is_open = is_open_to_signals(task);
	begin_window(g, now);
	habit = habit_of(t, g, is_long, now);
	if (habit == HABIT_NONE) {
		habit = told_habit_of(t, g, off_ns, now);
		is_told = habit != HABIT_NONE;
	}
	asks = habit == HABIT_ASKS && is_open &&
	       (is_told ? is_within_budget(g, part, is_long, now) : may_ask(g, now));
	spares_record = spares_records(g, off_ns, is_long);
	spared = (habit && !asks) || (spares_record && is_bare(t));
	if (spared)
		__sync_fetch_and_add(&g->spared, 1);
	/* the agent's thread waits for samples, which concerns nobody */
	if ((!is_open && is_the_agents_thread(task)) || (spared && spares_record)) {
		t->short_count++;
		return 0;
	}
	if (off_ns > HOST_COOKIE_OFFCPU_NS_MAX)
		off_ns = HOST_COOKIE_OFFCPU_NS_MAX;
	__sync_fetch_and_add(&g->intervals, 1);
	__sync_fetch_and_add(&g->interval_ns, off_ns);
	__sync_fetch_and_add(&q->intervals, 1);
	if (!has_record_left(g, q, is_long) && !asks) {
		__sync_fetch_and_add(&g->lost, 1);
		__sync_fetch_and_add(&g->lost_ns, off_ns);
		return 0;
	}
	if (!is_open)
		flags = OFFCPU_UNREACHABLE;
	else if (spared || (is_bare(t) && !asks))
		flags = OFFCPU_UNNEEDED;
	else if (!asks && (off_ns < q->signal_min_ns || !is_within_budget(g, part, is_long, now)))
		flags = OFFCPU_OVER_BUDGET;
	else if (by_task_work ? signal_by_task_work(task, t, off_ns, now, &took_ns)
			      : signal_by_rseq(task, t, off_ns, now))
		flags = OFFCPU_SIGNALLED;
	else
		flags = OFFCPU_UNREACHABLE;
	if (asks && !is_told)
		t->asked_ns = now;
	count_interval(g, q, off_ns, flags);
	record(task, t, g, off_ns, queue_ns, throttled_ns, now, flags);
	return took_ns;
}

/* Sets the class of a thread that was not seen to leave the CPU: a new thread was in the run queue
 * until now. */
static __noinline void set_class_late(struct task_struct *task, struct offcpu_thread *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	int nr = syscall_in(regs);

	if (has_queue_clock(task))
		t->delayed_ns = task->sched_info.run_delay; /* before is unknown */
	t->syscall_nr = nr;
	if (t->since_ns == task->start_time) {
		t->state = 'R';
		t->class = OFFCPU_RUNQUEUE;
	} else {
		t->state = 'S';
		t->class = class_of(task, regs, nr);
	}
}

/* The switch away from the CPU was not reported. The kernel's own count gives the time that the
 * thread ran since; why it left is unknown. Returns the rest of @passed_ns. */
static __u64 account_missed_switch(struct offcpu_thread *t, struct task_struct *task,
				   __u64 passed_ns)
{
	__u64 ran_ns = task->se.sum_exec_runtime - t->ran_ns;

	if (ran_ns > passed_ns)
		ran_ns = passed_ns;
	t->oncpu_ns += ran_ns;
	note_left(t, task);
	t->class = OFFCPU_OTHER;
	t->state = 'S';
	__sync_fetch_and_add(&missed, 1);
	return passed_ns - ran_ns;
}

/*
 * How long @task, which gets the CPU now, was in run queues since it left the CPU, by the kernel's
 * own count: it is added to run_delay when the thread goes to another CPU's run queue, and, only
 * after this call, when it gets the CPU. A kernel without that count leaves the time since the
 * thread was woken.
 */
static __always_inline __u64 queued_ns(struct offcpu_thread *t, struct task_struct *task, __u64 now)
{
	__u64 since, clock, before_ns;

	if (!has_queue_clock(task))
		return t->woken_ns && t->woken_ns < now ? now - t->woken_ns : 0;
	before_ns = task->sched_info.run_delay - t->delayed_ns;
	since = task->sched_info.last_queued;
	clock = task->se.cfs_rq->rq->clock;
	return before_ns + (since && clock > since ? clock - since : 0);
}

/* Returns the time that a signal took. */
static __always_inline __u64 switch_in(struct task_struct *task, __u64 now, int by_task_work)
{
	struct offcpu_thread *t = thread_known(task);
	__u64 off_ns, queue_ns = 0, throttled_ns;
	int met;

	if (!t)
		t = thread_new(task);
	if (!t)
		return 0;
	/* a thread that slept already when its process became a target, too: its time off the CPU
	 * counts since then */
	met = t->now == OFFCPU_NOW_OFF;
	now = not_before(t, now);
	off_ns = now - t->since_ns;
	if (!t->state)
		set_class_late(task, t);
	else if (t->now == OFFCPU_NOW_RUNS)
		off_ns = account_missed_switch(t, task, off_ns);
	if (t->class >= OFFCPU_RUNQUEUE)
		queue_ns = off_ns;
	else if (t->class != OFFCPU_THROTTLED)
		queue_ns = queued_ns(t, task, now);
	if (queue_ns > off_ns)
		queue_ns = off_ns;
	throttled_ns = throttled_end(t, task, off_ns, &queue_ns);
	account_off(t, off_ns, queue_ns, throttled_ns);
	t->since_ns = now;
	t->now = OFFCPU_NOW_RUNS;
	/* if its leaving was not seen, its begin is unknown */
	if (met && off_ns >= floor_ns)
		return report_interval(task, t, off_ns, queue_ns, throttled_ns, now, by_task_work);
	t->short_count++;
	return 0;
}

/* ---- threads of a new target ----------------------------------------------------------------- */

/* The context of an iterator's program (kernel/bpf/task_iter.c). */
struct bpf_iter__task {
	__u64 meta;
	struct task_struct *task; /* NULL in the last call */
};

/*
 * Runs for each thread of the host when processes are about to become targets: they are in the
 * table of targets, but their bit is not set, so the other programs still ignore them. Adds their
 * threads. Nobody saw those leave the CPU that sleep already, but their registers tell what they
 * sleep in. What is learnt has members of its own, because a thread may get the CPU at the same
 * time.
 */
SEC("iter/task")
int on_thread_found(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_thread *t;
	struct pt_regs *regs;
	int nr;

	if (!task)
		return 0;
	registers_learn(task);
	t = targets_bit(task->tgid) ? 0 : thread_new(task);
	if (!t || !task->__state)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = syscall_in(regs);
	t->class = OFFCPU_OTHER; /* until it runs */
	t->asleep_class = class_of(task, regs, nr) + 1;
	t->asleep_syscall_nr = nr;
	t->now = OFFCPU_NOW_OFF;
	return 0;
}

/* ---- the programs ---------------------------------------------------------------------------- */

static void blame(struct task_struct *task, __u64 run_ns)
{
	__u32 pid = task->tgid, *index = bpf_map_lookup_elem(&indexes, &pid);
	struct offcpu_target *g = index ? target_at(*index, pid) : 0;

	if (g)
		__sync_fetch_and_add(&g->timed_ns, run_ns);
}

/* @began: without the time for signals, which is counted apart. What two readings of the clock are
 * apart is taken off, because other runs have none. */
static __noinline void time_run(struct task_struct *prev, struct task_struct *next, __u64 began)
{
	__u64 ended = bpf_ktime_get_ns(), reading_ns = bpf_ktime_get_ns() - ended;
	__u64 run_ns = ended - began;

	run_ns = run_ns > reading_ns ? run_ns - reading_ns : 0;
	if (run_ns > RUN_NS_MAX)
		run_ns = RUN_NS_MAX;
	__sync_fetch_and_add(&timed_ns, run_ns);
	blame(prev, run_ns);
	if (next->tgid != prev->tgid)
		blame(next, run_ns);
}

static __always_inline int on_switch(int preempted, struct task_struct *prev,
				     struct task_struct *next, __u32 state, int by_task_work)
{
	int leaves = targets_bit(prev->tgid), arrives = targets_bit(next->tgid);
	__u64 now, began = 0, signal_ns = 0;

	if (!leaves && !arrives)
		return 0;
	now = switch_ns(prev);
	if ((now >> 5) % OFFCPU_COST_EVERY == 0)
		began = bpf_ktime_get_ns();
	if (leaves)
		switch_out(prev, preempted, state, now);
	if (arrives && !by_task_work)
		stay_begin(next, now);
	if (arrives)
		signal_ns = switch_in(next, now, by_task_work);
	if (began)
		time_run(prev, next, began + signal_ns);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_put_off, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return on_switch(preempt, prev, next, prev_state, 1);
}

#ifdef WITHOUT_KFUNCS
/* Kernels before Linux 5.18 do not pass the state. Another CPU may have begun to wake @prev. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_rseq, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 state = prev->__state;

	return on_switch(preempt, prev, next, state == STATE_WAKING ? STATE_INTERRUPTIBLE : state,
			 0);
}
#else
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_rseq, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return on_switch(preempt, prev, next, prev_state, 0);
}
#endif

/* Is it too late, or too early, for the signal that a thread is owed? @at_exit: a thread may have
 * slept after its system call had ended, so that this is the end of the next one. */
static __always_inline int is_given_up(struct task_struct *task, const struct offcpu_thread *t,
				       int at_exit, __u64 now)
{
	return (t->syscall_nr >= 0 && is_in_vain((struct pt_regs *)bpf_task_pt_regs(task))) ||
	       (at_exit && now > t->since_ns + SYSCALL_END_NS);
}

/* Takes the time off the CPU for which a thread is owed a signal; 0 = none. */
static __always_inline __u64 take_owed(struct task_struct *task, struct sampler_counts *c,
				       int at_exit)
{
	struct offcpu_thread *t = thread_known(task);
	__u64 off_ns;

	/* a thread with restartable sequences gets it at its return, after the end of the call */
	if (!t || !t->owed_ns || (at_exit && task->rseq))
		return 0;
	off_ns = t->owed_ns;
	t->owed_ns = 0;
	if (!is_given_up(task, t, at_exit, bpf_ktime_get_ns()))
		return off_ns;
	c->off_dropped++;
	return 0;
}

/* Sends the signal that a thread is owed. */
static __always_inline int on_way_back(struct task_struct *task, int at_exit)
{
	__u32 tgid = task->tgid, zero = 0, ticks;
	struct sampler_target *s;
	struct sampler_counts *c;
	__u64 off_ns, begin;

	c = targets_bit(task->tgid) ? bpf_map_lookup_elem(&counts, &zero) : 0;
	if (!c)
		return 0;
	off_ns = take_owed(task, c, at_exit);
	ticks = stay_take(task, at_exit);
	if (!off_ns && !ticks)
		return 0;
	begin = bpf_ktime_get_ns();
	s = bpf_map_lookup_elem(&targets, &tgid);
	if (s)
		send_owed(c, s, ticks, off_ns);
	count_signal(begin);
	return 0;
}

/* Runs on the way back to user mode, right after a switch. */
SEC("tp_btf/rseq_update")
int BPF_PROG(on_rseq, struct task_struct *task)
{
	return on_way_back(task, 0);
}

/* Runs at the end of each system call of the host. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_syscall_exit)
{
	return on_way_back(bpf_get_current_task_btf(), 1);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct offcpu_thread *t = targets_bit(task->tgid) ? thread_known(task) : 0;
	struct task_struct *waker;

	if (!t || t->now != OFFCPU_NOW_OFF || t->woken_ns)
		return 0;
	waker = bpf_get_current_task_btf();
	t->woken_ns = waking_ns(waker, t->since_ns);
	throttled_begin(t, task);
	/* a record asks later whether it is the cause */
	t->waker_tid = waker->flags & PF_KTHREAD ? 0 : waker->pid;
	t->waker_pid = waker->tgid;
	t->waker_syscall_nr = t->waker_tid ? syscall_in(registers_of(waker)) : -1;
	t->waker_exits = !!(waker->flags & PF_EXITING);
	return 0;
}

static void targets_clear_bit(int tgid)
{
	__u32 at = (__u32)tgid;

	if (at < OFFCPU_PIDS)
		__sync_fetch_and_and(&is_target[at >> 6], ~(1ULL << (at & 63)));
}

/* A thread ends: sends its final times to the daemon and frees its slot. */
static void thread_end(struct task_struct *task, struct offcpu_thread *t)
{
	__u64 now = bpf_ktime_get_ns(), used = bpf_ringbuf_query(&records, RB_AVAIL_DATA);
	struct offcpu_tenant *n = tenant_at(t->tenant);
	struct offcpu_end *e = 0;
	__u32 tid = task->pid;

	if (has_ring_room(t->tenant, used, sizeof(*e)))
		e = bpf_ringbuf_reserve(&records, sizeof(*e), 0);
	now = not_before(t, now);
	account_run(t, task, now);
	t->since_ns = now;
	if (e) {
		e->kind = OFFCPU_ENDED;
		e->unused = 0;
		__builtin_memcpy(&e->thread, t, sizeof(*t));
		bpf_ringbuf_submit(e, wake_flag(used));
	} else {
		__sync_fetch_and_add(&ends_lost, 1);
	}
	/* the daemon may free it, too */
	if (__sync_val_compare_and_swap(&t->tid, tid, 0) == tid && n)
		count_slot(n, -1);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	/* looked up without the bit: when the last two threads end at once, the first event may
	 * clear it before the second comes */
	struct offcpu_thread *t = thread_known(task);

	if (t)
		thread_end(task, t);
	/* the event comes for every thread; it comes after the thread is no longer counted as
	 * live */
	if (task->signal->live.counter == 0 && targets_bit(task->tgid))
		targets_clear_bit(task->tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_new_program, struct task_struct *task)
{
	if (targets_bit(task->tgid))
		targets_clear_bit(task->tgid);
	return 0;
}

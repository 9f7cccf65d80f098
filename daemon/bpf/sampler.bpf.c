/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * The on-CPU half of the host engine: at every tick of a CPU's clock event, the thread that runs
 * there gets the agent's signal if its process is a target.
 *
 * SIGPROF ends a process that has no handler for it. So a signal is sent only while the thread's
 * handler is the agent's, and never during a system call in which it could stay pending until an
 * exec resets the handlers. The target's entry ends with the program: the BPF program removes it at
 * exec and at exit, without waiting for the daemon.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "sampler.h"
#include "signal.bpf.h"

#if defined(__TARGET_ARCH_arm64)
#define REG_IP 32 /* index of the program counter among the registers of a perf event */
#else
#define REG_IP 16
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampler_stack);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SAMPLER_RING_BYTES);
} stacks SEC(".maps");

__u32 wants_stacks; /* 1 = kernel stacks are wanted */
__u64 period_ns; /* average time between two ticks of a CPU: the shortest interval wanted */

/*
 * A target with a longer interval gets each tick with the same probability, independent of earlier
 * ticks. Every n-th tick would be a rhythm, and a program with the same rhythm would be sampled at
 * only one place.
 */
static int is_due(__u64 interval_ns)
{
	__u64 period = period_ns;

	if (interval_ns <= period)
		return 1;
	return (__u64)(bpf_get_prandom_u32() >> 8) * interval_ns < period << 24;
}

/* The entry of the running process, if this tick is for it. */
static struct sampler_target *target_of_tick(struct sampler_counts *c)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);

	c->ticks++;
	return t && is_due(t->interval_ns) ? t : 0;
}

static void send(struct sampler_counts *c, struct sampler_target *t)
{
	if (bpf_send_signal_thread(t->signo) < 0)
		c->failed++;
	else
		c->sent++;
}

/* ---- kernel stacks ------------------------------------------------------------------------- */

/* Kernel addresses have the highest bit set on every supported machine. */
static int is_in_kernel(void *ctx)
{
	return (__s64)(*(volatile __u64 *)(ctx + REG_IP * sizeof(__u64))) < 0;
}

/*
 * The record does not wake the daemon, which reads the ring before it handles samples, and once a
 * second. Nothing is recorded for a thread that blocks the signal, as no sample of it will come: it
 * is the agent's own thread, or runs the agent's handler, whose system calls do not belong to the
 * program.
 */
static void take_stack(void *ctx, struct sampler_counts *c, struct sampler_target *t,
		       struct task_struct *task)
{
	__u32 zero = 0;
	struct sampler_stack *s;
	long bytes;

	if (!wants_stacks || !is_in_kernel(ctx) || is_blocked(task, t->signo))
		return;
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return;
	c->stacks++;
	s->mono_ns = bpf_ktime_get_ns();
	s->pid = bpf_get_current_pid_tgid() >> 32;
	s->tid = own_tid(task);
	bytes = bpf_get_stack(ctx, s->ips, sizeof(s->ips), 0);
	if (bytes <= 0 || bytes > (long)sizeof(s->ips) ||
	    bpf_ringbuf_output(&stacks, s, sizeof(*s) - sizeof(s->ips) + (__u64)bytes,
			       BPF_RB_NO_WAKEUP) < 0)
		c->stacks_lost++;
}

/* ---- at once ---- */

/* by number of the system call: enum sampler_wait */
const volatile __u8 wait_of_call[SAMPLER_CALLS];

#define FUTEX_WAIT	      0 /* operations, include/uapi/linux/futex.h */
#define FUTEX_LOCK_PI	      6
#define FUTEX_WAIT_BITSET     9
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2	      13
#define FUTEX_OPERATION	      0x7f

static __u32 argument(struct pt_regs *regs, int i)
{
#if defined(__TARGET_ARCH_arm64)
	return (__u32)(i == 1 ? regs->regs[1] : i == 2 ? regs->regs[2] : regs->regs[3]);
#else
	return (__u32)(i == 1 ? regs->si : i == 2 ? regs->dx : regs->r10);
#endif
}

/* Is it a call that waits, unless what it waits for is there, and that a signal ends with EINTR? */
static int is_wait(struct pt_regs *regs, int nr)
{
	__u64 at = (__u32)nr;
	__u32 operation;

	barrier_var(at); /* keeps the checked value in one register for the verifier */
	switch (at < SAMPLER_CALLS ? wait_of_call[at] : SAMPLER_NO_WAIT) {
	case SAMPLER_WAIT:
		return 1;
	case SAMPLER_WAIT_FUTEX:
		operation = argument(regs, 1) & FUTEX_OPERATION;
		return operation == FUTEX_WAIT || operation == FUTEX_LOCK_PI ||
		       operation == FUTEX_WAIT_BITSET || operation == FUTEX_WAIT_REQUEUE_PI ||
		       operation == FUTEX_LOCK_PI2;
	case SAMPLER_WAIT_POLL:
		return argument(regs, 2) != 0;
	case SAMPLER_WAIT_EPOLL:
		return argument(regs, 3) != 0;
	default:
		return 0;
	}
}

/*
 * Puts a tick within a system call off, if a program will run when the thread returns from it: for
 * sure, because the thread has been off the CPU in this call or because one runs at the end of
 * each; or most likely, because the call waits. A tick in user mode stands for those that were put
 * off in a call which did not wait.
 */
static int is_put_off(void *ctx, struct sampler_counts *c, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct sampler_stay *s = stay_of(tid);
	int nr = syscall_in(regs);

	if (!s || s->tid != tid || bpf_ktime_get_ns() - s->seen_ns > STAY_SEEN_NS)
		return 0;
	if (nr >= 0 && is_in_kernel(ctx) && (s->returns || s->exits || is_wait(regs, nr))) {
		s->ticks++;
		return 1;
	}
	c->held += s->ticks;
	s->ticks = 0;
	return 0;
}

/* For kernels before 6.18: sends the signal at once, unless it can be put off. A read or write that
 * copies for a long time returns early then. */
SEC("perf_event")
int on_tick(void *ctx)
{
	struct sampler_counts *c;
	struct sampler_target *t;
	struct task_struct *task;
	__u32 zero = 0;

	c = bpf_map_lookup_elem(&counts, &zero);
	t = c ? target_of_tick(c) : 0;
	if (!t)
		return 0;
	task = bpf_get_current_task_btf();
	if (!has_agents_handler(c, t, task, t->signo))
		return 0;
	take_stack(ctx, c, t, task);
	if (is_blocked(task, t->signo) || is_in_unsafe_call(task))
		c->held++;
	else if (!is_put_off(ctx, c, task))
		send(c, t);
	return 0;
}

/* ---- delayed until the thread returns to user mode: nothing in the kernel is disturbed ---- */

SEC("perf_event")
int on_tick_put_off(void *ctx)
{
	struct sampler_counts *c;
	struct sampler_target *t;
	struct task_struct *task;
	__u32 zero = 0;

	c = bpf_map_lookup_elem(&counts, &zero);
	t = c ? target_of_tick(c) : 0;
	if (!t)
		return 0;
	task = bpf_get_current_task_btf();
	take_stack(ctx, c, t, task);
	if (!put_off(task, (__u32)bpf_get_current_pid_tgid(), t->interval_ns, 0))
		c->held++;
	return 0;
}

static void target_remove(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	bpf_map_delete_elem(&targets, &tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec)
{
	target_remove();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	/* the event comes for every thread; it comes after the thread is no longer counted as
	 * live */
	if (task->signal->live.counter == 0)
		target_remove();
	return 0;
}

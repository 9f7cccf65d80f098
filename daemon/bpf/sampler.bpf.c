/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel wants to read one that it knows) */
/*
 * The on-CPU half of the host engine: at every tick of a CPU's clock event, the thread that runs
 * there gets the agent's signal if its process is a target.
 *
 * SIGPROF ends a process that has no handler for it. So a signal is sent only while the thread's
 * handler is the agent's, and never into a system call that could carry it, pending, past the
 * moment when an exec resets the handlers. The target's entry ends with the program: the kernel
 * program removes it at exec and at exit, without waiting for the daemon.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "sampler.h"

#if defined(__TARGET_ARCH_arm64)
#define REG_IP		  32 /* among the registers of a perf event */
#define NR_EXECVE	  221
#define NR_EXECVEAT	  281
#define NR_RT_SIGPROCMASK 135
#else
#define REG_IP		  16
#define NR_EXECVE	  59
#define NR_EXECVEAT	  322
#define NR_RT_SIGPROCMASK 14
#endif

#define BPF_RB_NO_WAKEUP 1

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLER_TARGETS_MAX);
	__type(key, __u32);
	__type(value, struct sampler_target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampler_counts);
} counts SEC(".maps");

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

__u32 wants_stacks; /* of the kernel */
__u64 period_ns; /* average time between two ticks of a CPU: the shortest interval wanted */

/*
 * A target that wants fewer ticks gets each one with the same probability, independent of earlier
 * ones: every n-th would be a rhythm, and a program with the same rhythm would be sampled at one
 * place only.
 */
static int is_due(__u64 interval_ns)
{
	__u64 period = period_ns;

	if (interval_ns <= period)
		return 1;
	return (__u64)(bpf_get_prandom_u32() >> 8) * interval_ns < period << 24;
}

static __u64 handler_of(struct task_struct *task, __u32 signo)
{
	struct sighand_struct *sighand = BPF_CORE_READ(task, sighand);
	__u64 handler = 0;
	void *at;

	if (!sighand || signo < 1 || signo > 64)
		return 0;
	/* libbpf does not relocate an index that is not a constant */
	at = (void *)sighand + bpf_core_field_offset(struct sighand_struct, action) +
	     (signo - 1) * bpf_core_type_size(struct k_sigaction) +
	     bpf_core_field_offset(struct k_sigaction, sa) +
	     bpf_core_field_offset(struct sigaction, sa_handler);
	bpf_probe_read_kernel(&handler, sizeof(handler), at);
	return handler;
}

static int is_blocked(struct task_struct *task, __u32 signo)
{
	return BPF_CORE_READ(task, blocked.sig[0]) >> ((signo - 1) & 63) & 1;
}

/*
 * exec keeps a pending signal and forgets its handler; a signal that becomes pending while the mask
 * changes stays pending, perhaps until an exec. The syscall number is -1 here for ticks that
 * interrupted user mode or a fault.
 */
static int is_in_such_a_call(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_arm64)
	int nr = BPF_CORE_READ(regs, syscallno);
#else
	int nr = (int)BPF_CORE_READ(regs, orig_ax);
#endif

	return nr == NR_EXECVE || nr == NR_EXECVEAT || nr == NR_RT_SIGPROCMASK;
}

/* The entry of the running process, if this tick is for it. */
static struct sampler_target *target_of_tick(struct sampler_counts *c)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);

	c->ticks++;
	return t && is_due(t->interval_ns) ? t : 0;
}

/* Is the handler the agent's? 0 and 1 are SIG_DFL and SIG_IGN, whatever the entry says. */
static int is_the_agents(struct sampler_counts *c, struct sampler_target *t,
			 struct task_struct *task)
{
	int is = t->handler > 1 && handler_of(task, t->signo) == t->handler;

	if (!is)
		c->foreign++;
	return is;
}

static void send(struct sampler_counts *c, struct sampler_target *t)
{
	if (bpf_send_signal_thread(t->signo) < 0)
		c->failed++;
	else
		c->sent++;
}

/* ---- stacks of the kernel ------------------------------------------------------------------ */

/* The number that the thread, and the agent in it, sees as its own. */
static __u32 own_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 nr = 0;
	void *at;

	if (!pid)
		return 0; /* the thread exits */
	at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	     (__u64)BPF_CORE_READ(pid, level) * bpf_core_type_size(struct upid) +
	     bpf_core_field_offset(struct upid, nr);
	bpf_probe_read_kernel(&nr, sizeof(nr), at);
	return nr;
}

/* Kernel addresses have the highest bit set on every supported machine. */
static int is_in_kernel(void *ctx)
{
	return (__s64)(*(volatile __u64 *)(ctx + REG_IP * sizeof(__u64))) < 0;
}

/*
 * The daemon is not woken: it reads the ring before it handles samples, and once a second. A thread
 * that blocks the signal gets no sample for the stack to belong to: it is the agent's own thread,
 * or is in the agent's handler, whose system calls are not the program's.
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

/* Kernels before 6.18: sends the signal at once. A read or write that copies for long returns
 * early. */
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
	if (!is_the_agents(c, t, task))
		return 0;
	take_stack(ctx, c, t, task);
	if (is_blocked(task, t->signo) || is_in_such_a_call(task))
		c->held++;
	else
		send(c, t);
	return 0;
}

/* ---- delayed until the thread returns to user mode: nothing in the kernel is disturbed ---- */

struct slot {
	struct bpf_task_work work;
	__u64 owed_ns; /* what the pending signal stands for: one interval for each tick of @tid */
	__u32 tid;
	__u32 unused;
};

/* By thread number. If two threads share a slot the second one loses its tick. No clearing is
 * needed, however a thread ends. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_SLOTS);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* weak: libbpf resolves it even when the program that calls it is not loaded */
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw,
					      void *map__map,
					      int (*callback)(struct bpf_map *map, void *key,
							      void *value),
					      void *aux__prog) __ksym __weak;

extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type,
				__u64 value) __ksym __weak;

/* The signal's value: ticks within one stretch in the kernel are merged into one signal. */
static void send_with(struct sampler_counts *c, struct sampler_target *t, struct task_struct *task,
		      __u64 owed_ns)
{
	if (bpf_send_signal_task(task, t->signo, PIDTYPE_PID, owed_ns) < 0)
		c->failed++;
	else
		c->sent++;
}

/* On the way back to user mode; after an exec, the handler here is the new program's. */
static int on_return(struct bpf_map *map, void *key, void *value)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct slot *slot = value;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);
	struct sampler_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 owed_ns = slot->owed_ns;

	/* a tick between the two lines is lost: some nanoseconds in many milliseconds */
	slot->owed_ns = 0;
	if (!t || !c || !is_the_agents(c, t, task))
		return 0;
	if (is_blocked(task, t->signo))
		c->held++;
	else
		send_with(c, t, task, owed_ns);
	return 0;
}

static void put_off(struct sampler_counts *c, struct sampler_target *t, struct slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	/* the thread is interrupted here, so on_return runs after all of this */
	if (bpf_task_work_schedule_resume_impl(task, &slot->work, &slots, on_return, 0) == 0) {
		slot->tid = tid;
		slot->owed_ns = t->interval_ns;
	} else if (slot->tid == tid) {
		slot->owed_ns += t->interval_ns;
	} else {
		c->held++;
	}
}

SEC("perf_event")
int on_tick_put_off(void *ctx)
{
	__u32 zero = 0, at = (__u32)bpf_get_current_pid_tgid() & (SAMPLER_SLOTS - 1);
	struct sampler_counts *c;
	struct sampler_target *t;
	struct slot *slot;

	c = bpf_map_lookup_elem(&counts, &zero);
	t = c ? target_of_tick(c) : 0;
	if (!t)
		return 0;
	take_stack(ctx, c, t, bpf_get_current_task_btf());
	slot = bpf_map_lookup_elem(&slots, &at);
	if (slot)
		put_off(c, t, slot);
	return 0;
}

static void forget(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	bpf_map_delete_elem(&targets, &tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec)
{
	forget();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	/* the event comes for every thread; the count of live threads is lowered before it */
	if (task->signal->live.counter == 0)
		forget();
	return 0;
}

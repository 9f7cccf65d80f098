/*
 * Shared by the programs that send signals: the checks whether a thread may get one, and the delay
 * until it returns to user mode. Each object file has its own copy of the code but uses the same
 * maps: sampler.bpf.c's object creates them, the other one reuses them.
 */
#pragma once

#include "../../proto/host_cookie.h"

#if defined(__TARGET_ARCH_arm64)
#define NR_EXECVE	  221
#define NR_EXECVEAT	  281
#define NR_RT_SIGPROCMASK 135
#define NR_RESTART_SYSCALL 128
#else
#define NR_EXECVE	   59
#define NR_EXECVEAT	   322
#define NR_RT_SIGPROCMASK  14
#define NR_POLL		   7
#define NR_NANOSLEEP	   35
#define NR_FUTEX	   202
#define NR_RESTART_SYSCALL 219
#define NR_CLOCK_NANOSLEEP 230
#endif

/* Results of system calls that user mode never sees: ERESTARTSYS (include/linux/errno.h) and above.
 */
#define ERRORS_INTERNAL 512
#define ERRORS_MAX	4095

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

/* ---- may the thread get a signal? ----------------------------------------------------------- */

static __u64 handler_of(struct task_struct *task, __u32 signo)
{
	struct sighand_struct *sighand = BPF_CORE_READ(task, sighand);
	__u64 handler = 0;
	void *at;

	if (!sighand || signo < 1 || signo > 64)
		return 0;
	/* computed by hand, as libbpf relocates only constant indices */
	at = (void *)sighand + bpf_core_field_offset(struct sighand_struct, action) +
	     (signo - 1) * bpf_core_type_size(struct k_sigaction) +
	     bpf_core_field_offset(struct k_sigaction, sa) +
	     bpf_core_field_offset(struct sigaction, sa_handler);
	bpf_probe_read_kernel(&handler, sizeof(handler), at);
	return handler;
}

/* Is the handler the agent's? Never for 0 and 1, which are SIG_DFL and SIG_IGN, whatever the entry
 * holds. */
static int has_agents_handler(struct sampler_counts *c, struct sampler_target *t,
			      struct task_struct *task, __u32 signo)
{
	int is = t->handler > 1 && handler_of(task, signo) == t->handler;

	if (!is)
		c->foreign++;
	return is;
}

static int is_blocked(struct task_struct *task, __u32 signo)
{
	return BPF_CORE_READ(task, blocked.sig[0]) >> ((signo - 1) & 63) & 1;
}

/* A second signal of this number would be forgotten. */
static __attribute__((unused)) int is_pending(struct task_struct *task, __u32 signo)
{
	return BPF_CORE_READ(task, pending.signal.sig[0]) >> ((signo - 1) & 63) & 1;
}

/* The number of the system call; -1 = the thread entered the kernel by an interrupt or a fault. */
static __always_inline int syscall_in(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->syscallno;
#else
	return (int)regs->orig_ax;
#endif
}

/* Has the kernel prepared to make a system call again that has a timeout, by restart_syscall(2)? */
static __always_inline int is_prepared_again(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->syscallno == -1;
#else
	int nr = syscall_in(regs);

	/* the calls that set restart_block; they do not have this number as their result */
	return regs->ax == NR_RESTART_SYSCALL &&
	       (nr == NR_POLL || nr == NR_NANOSLEEP || nr == NR_FUTEX || nr == NR_CLOCK_NANOSLEEP ||
		nr == NR_RESTART_SYSCALL);
#endif
}

/* Is @regs that of a system call that was woken in vain, as by SIGCONT or a frozen cgroup's thaw?
 * Such a call is made again, or returns EINTR if a signal comes before that. */
static __always_inline int is_in_vain(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	long result = (long)regs->regs[0];
#else
	long result = (long)regs->ax;
#endif

	return (result <= -ERRORS_INTERNAL && result >= -ERRORS_MAX) || is_prepared_again(regs);
}

static int syscall_of(struct task_struct *task)
{
	return syscall_in((struct pt_regs *)bpf_task_pt_regs(task));
}

/*
 * Calls during which no signal is sent: exec keeps a pending signal but resets its handler; a
 * signal that becomes pending while the mask changes may stay pending until an exec.
 */
static __attribute__((unused)) int is_in_unsafe_call(struct task_struct *task)
{
	int nr = syscall_of(task);

	return nr == NR_EXECVE || nr == NR_EXECVEAT || nr == NR_RT_SIGPROCMASK;
}

/* The thread's number in its innermost pid namespace, which the thread and the agent in it see. */
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

/* ---- put off where that costs nothing, before Linux 6.18 ---- */

/* The off-CPU programs may rest, or not know the process any more. */
#define STAY_SEEN_NS 1000000000

/* Indexed as slots are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_SLOTS);
	__type(key, __u32);
	__type(value, struct sampler_stay);
} stays SEC(".maps");

static __attribute__((unused)) struct sampler_stay *stay_of(__u32 tid)
{
	__u32 at = tid & (SAMPLER_SLOTS - 1);

	return bpf_map_lookup_elem(&stays, &at);
}

/* ---- delayed until the thread returns to user mode: nothing in the kernel is disturbed ---- */

struct slot {
	struct bpf_task_work work;
	/* what the pending signal stands for: one interval for each tick of @tid ... */
	__u64 owed_ns;
	__u64 off_ns; /* ... and its last time off the CPU; 0 = none */
	__u64 sent_off_ns; /* that of the last signal that was sent */
	__u32 tid;
	__u32 in_call; /* it was put off within a system call */
};

/* Indexed by thread number. If two threads share a slot the second one loses its tick. Slots of
 * ended threads need no clearing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_SLOTS);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

enum put_off {
	PUT_OFF_NOT, /* another thread uses the slot, or the thread exits */
	PUT_OFF_ANEW,
	PUT_OFF_ADDED, /* added to a signal that was delayed before */
};

#ifdef WITHOUT_KFUNCS
/* The object for kernels before Linux 6.13, which reject a program that names a kernel function
 * they do not have: nothing can be put off there. */
static enum put_off put_off(struct task_struct *task, __u32 tid, __u64 owed_ns, __u64 off_ns)
{
	return PUT_OFF_NOT;
}
#else
typedef int task_work_fn(struct bpf_map *map, void *key, void *value);

/*
 * Weak, because libbpf resolves it even when the program that calls it is not loaded. Linux 7 has
 * another function, whose last argument the verifier adds, and has changed the type of that
 * argument in the older one: libbpf refuses a whole object that names a function by another type.
 * Hence two objects; seen with 6.18 and 7.3.
 */
#ifdef TASK_WORK_LINUX7
extern int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *tw,
					 void *map__map, task_work_fn *callback) __ksym __weak;
#define task_work_schedule(task, tw, map, fn) bpf_task_work_schedule_resume(task, tw, map, fn)
#else
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw,
					      void *map__map, task_work_fn *callback,
					      void *aux__prog) __ksym __weak;
#define task_work_schedule(task, tw, map, fn) \
	bpf_task_work_schedule_resume_impl(task, tw, map, fn, 0)
#endif

extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type,
				__u64 value) __ksym __weak;

static __u64 cookie_of(struct sampler_target *t, __u64 owed_ns, __u64 off_ns)
{
	if (!off_ns)
		return owed_ns;
	return host_cookie_offcpu(off_ns, t->interval_ns ? owed_ns / t->interval_ns : 0);
}

/* Sends the signal to the running thread, on its way back to user mode. After an exec the handler
 * here is already the new program's. One signal stands for everything that is owed at one return,
 * passed in its value. */
static void send_at_return(struct sampler_counts *c, struct sampler_target *t, __u64 owed_ns,
			   __u64 off_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!has_agents_handler(c, t, task, t->signo)) {
		c->off_dropped += off_ns != 0;
	} else if (is_blocked(task, t->signo)) {
		c->held++;
		c->off_dropped += off_ns != 0;
	} else if (bpf_send_signal_task(task, t->signo, PIDTYPE_PID,
					cookie_of(t, owed_ns, off_ns)) < 0) {
		c->failed++;
		c->off_dropped += off_ns != 0;
	} else {
		c->sent++;
		c->off_sent += off_ns != 0;
	}
}

static int on_return(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, zero = 0;
	struct slot *slot = value;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);
	struct sampler_counts *c = bpf_map_lookup_elem(&counts, &zero);
	__u64 owed_ns = slot->owed_ns, off_ns = slot->tid == (__u32)ids ? slot->off_ns : 0;

	slot->off_ns = 0;
	if (slot->in_call && is_in_vain((struct pt_regs *)bpf_task_pt_regs(task))) {
		/* the thread's next signal stands for the CPU time, too */
		slot->sent_off_ns = 0;
		if (c)
			c->off_dropped += off_ns != 0;
		return 0;
	}
	/* a tick between the two reads is lost: some nanoseconds in many milliseconds */
	slot->owed_ns = 0;
	slot->sent_off_ns = off_ns;
	if (t && c && (owed_ns || off_ns))
		send_at_return(c, t, owed_ns, off_ns);
	return 0;
}

/* Delays a signal for @task until it returns to user mode; the task must be in the kernel. @tid:
 * its number; @owed_ns: CPU time to add; @off_ns: the time off the CPU to report, 0 = none. */
static enum put_off put_off(struct task_struct *task, __u32 tid, __u64 owed_ns, __u64 off_ns)
{
	__u32 at = tid & (SAMPLER_SLOTS - 1);
	struct slot *slot = bpf_map_lookup_elem(&slots, &at);

	if (!slot)
		return PUT_OFF_NOT;
	if (task_work_schedule(task, &slot->work, &slots, on_return) == 0) {
		slot->owed_ns = slot->tid == tid ? slot->owed_ns + owed_ns : owed_ns;
		slot->tid = tid;
		slot->in_call = syscall_of(task) >= 0;
		slot->off_ns = off_ns;
		return PUT_OFF_ANEW;
	}
	if (slot->tid != tid)
		return PUT_OFF_NOT;
	slot->owed_ns += owed_ns;
	if (!off_ns)
		return PUT_OFF_ADDED;
	{
		int first = slot->off_ns == 0;

		slot->off_ns = off_ns;
		return first ? PUT_OFF_ANEW : PUT_OFF_ADDED;
	}
}
#endif

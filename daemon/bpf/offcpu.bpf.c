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
 * restartable sequences.
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

#define PF_EXITING 0x00000004 /* include/linux/sched.h */
#define PF_KTHREAD 0x00200000

#define STATE_INTERRUPTIBLE   1 /* TASK_..., include/linux/sched.h */
#define STATE_UNINTERRUPTIBLE 2

#define S_IFMT	 0170000
#define S_IFSOCK 0140000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFDIR	 0040000
#define S_IFIFO	 0010000

#define RB_NO_WAKEUP	1
#define RB_FORCE_WAKEUP 2
#define RB_AVAIL_DATA	0

#define WINDOW_SHIFT	27 /* 134 ms */
#define RECORDS_PER_SIG 8 /* records per window, as a multiple of its signals */
/* A time off the CPU is long from this multiple of the minimum on. A part of all signals is
 * reserved for long times, so that a great number of short ones does not use up all signals. */
#define LONG_MINIMUMS 16
#define LONG_PART     4 /* a quarter */

#define STACKS_KEPT	256 /* per CPU; power of two */
#define KEPT_STACK_MAX	16 /* frames; such waits have seven */
#define STACK_USES_MAX	255 /* then the stack is taken again */
#define FUTEX_CMD_MASK	0x7f /* include/uapi/linux/futex.h */

#define COST_EVERY 64 /* one run in COST_EVERY is timed */
#define RUN_NS_MAX 20000 /* cap of a timed run: in longer ones a hypervisor took the CPU */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFCPU_THREADS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct offcpu_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFCPU_TARGETS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct offcpu_target);
} off_targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFCPU_TENANTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct offcpu_tenant);
} tenants SEC(".maps");

/* process -> its index in off_targets */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_TARGETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} indexes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_record);
} record_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OFFCPU_RING_BYTES);
} records SEC(".maps");

/* a kernel stack that equal waits of one process share */
struct kept_stack {
	__u64 key; /* 0 = empty */
	__u32 uses;
	__s32 bytes;
	__u64 ips[KEPT_STACK_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACKS_KEPT);
	__type(key, __u32);
	__type(value, struct kept_stack);
} kept_stacks SEC(".maps");

/* by number of the system call: OFFCPU_CALL_FD, or a class + 1; 0 = OFFCPU_OTHER */
const volatile __u8 class_of_call[OFFCPU_CALLS];

__u64 is_target[OFFCPU_PIDS / 64]; /* a bit per process; the daemon sets it, both clear it */
__u64 floor_ns; /* the shortest minimum of all targets */
/* Signals per window. Half of all are divided equally, own_max of each target; the other half,
 * @shared_max, is for those that need more. */
__u64 shared_max;
/* Slots of the table of threads: whoever comes first gets one of the first @threads_shared; beyond
 * these each tenant has up to @threads_own_max. */
__s64 threads_used, threads_shared, threads_own_max;
/* Bytes that a tenant may put into the ring between two drains while it is more than half full. */
__u64 ring_own_max;
__u64 drains; /* counted by the daemon */
__u64 shared_window, shared_in_window;
__u64 timed_ns; /* the time of one in COST_EVERY runs for targets, without that for signals */
__u64 signals, signals_ns; /* delayed: their number, and the time that this took the programs */
__u64 missed; /* context switches for which the kernel did not call the program */
__u64 ends_lost; /* ended threads whose times found no room in the ring */

static int targets_bit(int tgid)
{
	__u32 at = (__u32)tgid;

	return at < OFFCPU_PIDS && is_target[at >> 6] >> (at & 63) & 1;
}

/* ---- the table of threads -------------------------------------------------------------------- */

static __u32 thread_first_slot(__u32 tid)
{
	return tid * OFFCPU_HASH >> OFFCPU_HASH_SHIFT;
}

/* Searches the slots after the first one. */
static __noinline struct offcpu_thread *thread_find_further(__u32 tid)
{
	__u32 at = thread_first_slot(tid);

	for (int i = 1; i < OFFCPU_PROBES; i++) {
		__u32 key = (at + i) & (OFFCPU_THREADS - 1);
		struct offcpu_thread *t = bpf_map_lookup_elem(&threads, &key);

		if (t && t->tid == tid)
			return t;
	}
	return 0;
}

static __always_inline struct offcpu_thread *thread_find(__u32 tid)
{
	__u32 key = thread_first_slot(tid);
	struct offcpu_thread *t = bpf_map_lookup_elem(&threads, &key);

	return t && t->tid == tid ? t : thread_find_further(tid);
}

static struct offcpu_tenant *tenant_at(__u32 index)
{
	return bpf_map_lookup_elem(&tenants, &index);
}

/* May this tenant have one more slot? If two CPUs ask at once, it may get one too many. */
static int has_room(const struct offcpu_tenant *n)
{
	return threads_used < threads_shared || n->threads < threads_own_max;
}

static void count_slot(struct offcpu_tenant *n, int by)
{
	__sync_fetch_and_add(&n->threads, by);
	__sync_fetch_and_add(&threads_used, by);
}

/* Claims a free slot for @tid; other CPUs may claim one at the same time. */
static struct offcpu_thread *thread_claim_slot(__u32 tid)
{
	__u32 at = thread_first_slot(tid);

	for (int i = 0; i < OFFCPU_PROBES; i++) {
		__u32 key = (at + i) & (OFFCPU_THREADS - 1);
		struct offcpu_thread *t = bpf_map_lookup_elem(&threads, &key);

		if (t && t->tid == 0 && __sync_val_compare_and_swap(&t->tid, 0, tid) == 0)
			return t;
	}
	return 0;
}

static struct offcpu_target *target_at(__u32 index, __u32 pid)
{
	struct offcpu_target *g = bpf_map_lookup_elem(&off_targets, &index);

	return g && g->pid == pid ? g : 0;
}

/*
 * Adds a thread that is seen for the first time. As it was not seen since its process became a
 * target, or since it began, it has been in its present state all that time.
 */
static __noinline struct offcpu_thread *thread_new(struct task_struct *task)
{
	__u32 pid = task->tgid, *index = bpf_map_lookup_elem(&indexes, &pid);
	struct offcpu_target *g = index ? target_at(*index, pid) : 0;
	struct offcpu_tenant *n = g ? tenant_at(g->tenant) : 0;
	struct offcpu_thread *t;
	__u64 since;

	if (!n || task->flags & PF_EXITING)
		return 0;
	t = has_room(n) ? thread_claim_slot(task->pid) : 0;
	if (!t) {
		__sync_fetch_and_add(&g->crowded, 1);
		return 0;
	}
	since = task->start_time > g->since_ns ? task->start_time : g->since_ns;
	/* another thread may have had this slot */
	t->pid = 0;
	__builtin_memset((void *)t + 8, 0, sizeof(*t) - 8);
	t->tenant = g->tenant;
	count_slot(n, 1);
	t->target = *index;
	t->syscall_nr = -1;
	t->first_ns = since;
	t->since_ns = since;
	t->pid = pid;
	return t;
}

static __always_inline struct offcpu_thread *thread_known(struct task_struct *task)
{
	struct offcpu_thread *t = thread_find(task->pid);

	return t && t->pid == (__u32)task->tgid ? t : 0;
}

/* ---- classes --------------------------------------------------------------------------------- */

static __u64 first_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->orig_x0;
#else
	return regs->di;
#endif
}

static __u64 second_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->regs[1];
#else
	return regs->si;
#endif
}

/* Makes a kernel pointer readable again whose type the verifier does not know any more; a load that
 * faults reads 0. */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;
#define KERNEL(type, at) ((type *)bpf_rdonly_cast(at, bpf_core_type_id_kernel(type)))

/* The class that follows from the type of the file which @task reads or writes. */
static __always_inline __u8 class_of_descriptor(struct task_struct *task, struct pt_regs *regs)
{
	struct fdtable *fdt = task->files->fdt;
	__u32 fd = (__u32)first_argument(regs);
	void *at = (void *)fdt->fd + fd * sizeof(void *);
	struct file *file;

	if (fd >= fdt->max_fds)
		return OFFCPU_OTHER;
	/* reads an element of the array as if it were the first member of a struct fdtable */
	file = (struct file *)KERNEL(struct fdtable, at - bpf_core_field_offset(struct fdtable, fd))
		       ->fd;
	switch (KERNEL(struct file, file)->f_inode->i_mode & S_IFMT) {
	case S_IFSOCK:
		return OFFCPU_SOCKET;
	case S_IFIFO:
		return OFFCPU_PIPE;
	case S_IFREG:
	case S_IFBLK:
	case S_IFDIR:
		return OFFCPU_FILE;
	default:
		return OFFCPU_OTHER;
	}
}

/* The class of @task's sleep in the system call @nr, entered with @regs. */
static __always_inline __u8 class_of(struct task_struct *task, struct pt_regs *regs, int nr)
{
	__u64 at = (__u32)nr; /* -1 is beyond the table */
	__u8 known = 0, class = OFFCPU_OTHER;

	barrier_var(at); /* keeps the checked value in one register for the verifier */
	if (at < OFFCPU_CALLS)
		known = class_of_call[at];
	if (nr == -1)
		return OFFCPU_FAULT;
	if (known == OFFCPU_CALL_FD)
		class = class_of_descriptor(task, regs);
	else if (known)
		class = known - 1;
	/* the call may wait for something else, such as a file that is sent to a socket, or a
	 * page of its buffer */
	if (class != OFFCPU_FILE && class != OFFCPU_FSYNC &&
	    BPF_CORE_READ_BITFIELD(task, in_iowait))
		return OFFCPU_DISK;
	return class;
}

static int is_throttled(struct task_struct *task)
{
	return bpf_core_field_exists(task->throttled) && task->throttled;
}

/* ---- leaving the CPU ------------------------------------------------------------------------- */

static __always_inline void set_off_class(struct offcpu_thread *t, struct task_struct *task,
					  int preempted, __u32 state)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	int nr = syscall_in(regs);

	t->syscall_nr = nr;
	if (preempted || state == 0) {
		t->state = 'R';
		t->class = is_throttled(task) ? OFFCPU_THROTTLED : OFFCPU_RUNQUEUE;
	} else if (state & STATE_INTERRUPTIBLE || state & STATE_UNINTERRUPTIBLE) {
		t->state = state & STATE_INTERRUPTIBLE ? 'S' : 'D';
		t->class = class_of(task, regs, nr);
	} else {
		t->state = 'T';
		t->class = OFFCPU_OTHER;
	}
}

static void account_off(struct offcpu_thread *t, __u64 off_ns, __u64 queue_ns)
{
	__u32 class = t->class;

	barrier_var(class); /* keeps the checked value in one register for the verifier */
	t->runqueue_ns += queue_ns;
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
			    t->class == OFFCPU_RUNQUEUE ? passed_ns - ran_ns : 0);
		__sync_fetch_and_add(&missed, 1);
	}
	t->oncpu_ns += ran_ns;
}

static __always_inline void switch_out(struct task_struct *task, int preempted, __u32 state,
				       __u64 now)
{
	struct offcpu_thread *t = thread_known(task);

	if (!t)
		t = thread_new(task);
	if (!t)
		return;
	account_run(t, task, now);
	t->ran_ns = task->se.sum_exec_runtime;
	t->since_ns = now;
	t->now = OFFCPU_NOW_OFF;
	t->waker_tid = 0;
	t->woken_ns = 0;
	if (!t->own_tid)
		t->own_tid = own_tid(task);
	set_off_class(t, task, preempted, state);
}

/* ---- coming back ----------------------------------------------------------------------------- */

/* The number of signals, of @max, that are for this kind of times off the CPU. */
static __u64 signals_for(int is_long, __u64 max)
{
	return is_long ? max : max - max / LONG_PART;
}

/* May one more signal be sent of those that are for all targets? */
static int is_shared_left(int is_long, __u64 now)
{
	__u64 window = now >> WINDOW_SHIFT;

	if (shared_window != window) {
		shared_window = window;
		shared_in_window = 0;
	}
	if (shared_in_window >= signals_for(is_long, shared_max))
		return 0;
	__sync_fetch_and_add(&shared_in_window, 1);
	return 1;
}

/* May this signal still be sent in this window? */
static int is_within_budget(struct offcpu_target *g, int is_long, __u64 now)
{
	if (g->signals_in_window >= signals_for(is_long, g->signals_max) ||
	    (g->signals_in_window >= g->own_max && !is_shared_left(is_long, now)))
		return 0;
	__sync_fetch_and_add(&g->signals_in_window, 1);
	return 1;
}

/* Counts a time off the CPU in the target's present window. Returns how many there were before. */
static __u64 count_in_window(struct offcpu_target *g, __u64 now)
{
	__u64 window = now >> WINDOW_SHIFT;

	/* if two CPUs begin a window at once, one count may be lost */
	if (g->window != window) {
		g->window = window;
		g->in_window = 0;
		g->signals_in_window = 0;
	}
	return __sync_fetch_and_add(&g->in_window, 1);
}

static int is_open_to_signals(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct sampler_target *t = bpf_map_lookup_elem(&targets, &tgid);

	return t && !(task->flags & PF_EXITING) && !is_blocked(task, t->signo);
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

static int signal_by_rseq(struct task_struct *task, struct offcpu_thread *t, __u64 off_ns,
			  __u64 now)
{
	if (!task->rseq)
		return 0;
	if (!t->owed_ns)
		t->stay_ns = now;
	t->owed_ns = off_ns;
	return 1;
}

static __u32 own_tid_of(__u32 tid, __u32 pid)
{
	struct offcpu_thread *t = tid && targets_bit(pid) ? thread_find(tid) : 0;

	return t && t->pid == pid ? t->own_tid : 0;
}

/* Wakes the daemon only when a quarter of the ring is full. */
static __u64 wake_flag(__u64 used)
{
	return used >= OFFCPU_RING_BYTES / 4 ? RB_FORCE_WAKEUP : RB_NO_WAKEUP;
}

/*
 * May targets of this tenant put @bytes more into the ring, of which @used are full? The first half
 * is for whoever comes first, so that nobody can take all of it before the daemon has emptied it.
 */
static int has_ring_room(__u32 tenant, __u64 used, __u64 bytes)
{
	struct offcpu_tenant *n = tenant_at(tenant);

	if (!n || used < OFFCPU_RING_BYTES / 2)
		return n != 0;
	if (n->drains != drains) {
		n->drains = drains;
		n->ring_bytes = 0;
	}
	if (n->ring_bytes + bytes > ring_own_max)
		return 0;
	__sync_fetch_and_add(&n->ring_bytes, bytes);
	return 1;
}

/*
 * What decides the kernel stack of a thread that waits in a futex, a sleep or a poll: the system call
 * and what it is asked to do. With the process, so that a hostile one cannot put a stack of its own
 * under the waits of others. 0 = another wait: two of the same call may have different stacks.
 */
static __always_inline __u64 stack_key(struct task_struct *task, struct offcpu_thread *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 nr = (__u32)(t->syscall_nr + 1), what = 0;

	if (t->state != 'S' || t->syscall_nr < 0)
		return 0;
	if (t->class == OFFCPU_FUTEX)
		what = second_argument(regs) & FUTEX_CMD_MASK;
	else if (t->class == OFFCPU_SLEEP)
		what = first_argument(regs) & 0xff; /* a clock */
	else if (t->class != OFFCPU_POLL)
		return 0;
	return (__u64)t->pid << 32 | nr | what << 16;
}

/*
 * Puts the kernel's stack of @task, which gets the CPU now, into @r; returns its bytes. Unwinding it
 * costs more than 10 us, because the kernel's tables for that are in no cache, and is most of what a
 * record costs: equal waits share a stack.
 */
static __always_inline long kernel_stack(struct task_struct *task, struct offcpu_thread *t,
					 struct offcpu_record *r)
{
	__u64 key = stack_key(task, t);
	__u32 at = ((__u32)key ^ (__u32)(key >> 32)) * OFFCPU_HASH >> 24 & (STACKS_KEPT - 1);
	struct kept_stack *k = key ? bpf_map_lookup_elem(&kept_stacks, &at) : 0;
	long bytes;

	if (k && k->key == key && k->uses < STACK_USES_MAX) {
		k->uses++;
		__builtin_memcpy(r->ips, k->ips, sizeof(k->ips));
		return k->bytes;
	}
	bytes = bpf_get_task_stack(task, r->ips, sizeof(r->ips), 0);
	if (k && bytes > 0 && bytes <= (long)sizeof(k->ips)) {
		k->key = key;
		k->uses = 0;
		k->bytes = (__s32)bytes;
		__builtin_memcpy(k->ips, r->ips, sizeof(k->ips));
	}
	return bytes;
}

static void record(struct task_struct *task, struct offcpu_thread *t, struct offcpu_target *g,
		   __u64 off_ns, __u64 queue_ns, __u64 now, __u8 flags)
{
	__u32 zero = 0;
	struct offcpu_record *r = bpf_map_lookup_elem(&record_scratch, &zero);
	__u64 used = bpf_ringbuf_query(&records, RB_AVAIL_DATA), size;
	long bytes;

	if (!r)
		return;
	r->kind = OFFCPU_INTERVAL;
	r->pid = t->pid;
	r->tid = t->tid;
	r->own_tid = t->own_tid;
	r->end_ns = now;
	r->duration_ns = off_ns;
	r->runqueue_ns = queue_ns;
	r->stay_ns = flags & OFFCPU_SIGNALLED ? t->stay_ns : 0;
	r->waker_pid = t->waker_tid ? t->waker_pid : 0;
	r->waker_tid = t->waker_tid;
	r->waker_own_tid = own_tid_of(t->waker_tid, t->waker_pid);
	r->syscall_nr = t->syscall_nr;
	r->class = t->class;
	r->state = t->state;
	r->flags = flags | (BPF_CORE_READ_BITFIELD(task, in_iowait) ? OFFCPU_IOWAIT : 0);
	bytes = kernel_stack(task, t, r);
	if (bytes < 0 || bytes > (long)sizeof(r->ips))
		bytes = 0;
	size = sizeof(*r) - sizeof(r->ips) + (__u64)bytes;
	if (!has_ring_room(t->tenant, used, size) ||
	    bpf_ringbuf_output(&records, r, size, wake_flag(used)) < 0) {
		__sync_fetch_and_add(&g->lost, 1);
		__sync_fetch_and_add(&g->lost_ns, off_ns);
	}
}

/* Reports a time off the CPU of @off_ns, if that is long enough for its target: as a record, and by
 * a signal. Returns the time that the signal took. */
static __always_inline __u64 report_interval(struct task_struct *task, struct offcpu_thread *t,
					     __u64 off_ns, __u64 queue_ns, __u64 now,
					     int by_task_work)
{
	struct offcpu_target *g = target_at(t->target, t->pid);
	int is_long = g && off_ns >= g->min_ns * LONG_MINIMUMS;
	int is_open = g && off_ns >= g->min_ns && is_open_to_signals(task);
	__u64 in_window, took_ns = 0;
	__u8 flags;

	/* the agent's thread waits for samples, which concerns nobody */
	if (!g || off_ns < g->min_ns || (!is_open && is_the_agents_thread(task))) {
		t->short_count++;
		return 0;
	}
	if (off_ns > HOST_COOKIE_OFFCPU_NS_MAX)
		off_ns = HOST_COOKIE_OFFCPU_NS_MAX;
	__sync_fetch_and_add(&g->intervals, 1);
	__sync_fetch_and_add(&g->interval_ns, off_ns);
	in_window = count_in_window(g, now);
	if (in_window >= g->signals_max * RECORDS_PER_SIG * (is_long ? 2 : 1)) {
		__sync_fetch_and_add(&g->lost, 1);
		__sync_fetch_and_add(&g->lost_ns, off_ns);
		return 0;
	}
	if (!is_open)
		flags = OFFCPU_UNREACHABLE;
	else if (t->bare_stacks >= OFFCPU_BARE_STACKS_ENOUGH && t->class == OFFCPU_FUTEX)
		flags = OFFCPU_UNNEEDED;
	else if (!is_within_budget(g, is_long, now))
		flags = OFFCPU_OVER_BUDGET;
	else if (by_task_work ? signal_by_task_work(task, t, off_ns, now, &took_ns)
			      : signal_by_rseq(task, t, off_ns, now))
		flags = OFFCPU_SIGNALLED;
	else
		flags = OFFCPU_UNREACHABLE;
	if (flags == OFFCPU_SIGNALLED) {
		__sync_fetch_and_add(&g->signalled, 1);
		__sync_fetch_and_add(&g->signalled_ns, off_ns);
	} else if (flags == OFFCPU_OVER_BUDGET) {
		__sync_fetch_and_add(&g->over_budget, 1);
		__sync_fetch_and_add(&g->over_budget_ns, off_ns);
	} else if (flags == OFFCPU_UNNEEDED) {
		__sync_fetch_and_add(&g->unneeded, 1);
		__sync_fetch_and_add(&g->unneeded_ns, off_ns);
	} else {
		__sync_fetch_and_add(&g->unreachable, 1);
		__sync_fetch_and_add(&g->unreachable_ns, off_ns);
	}
	record(task, t, g, off_ns, queue_ns, now, flags);
	return took_ns;
}

/* Sets the class of a thread that was not seen to leave the CPU: a new thread was in the run queue
 * until now. */
static __noinline void set_class_late(struct task_struct *task, struct offcpu_thread *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	int nr = syscall_in(regs);

	t->own_tid = own_tid(task);
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
	t->ran_ns = task->se.sum_exec_runtime;
	t->woken_ns = 0;
	t->class = OFFCPU_OTHER;
	t->state = 'S';
	__sync_fetch_and_add(&missed, 1);
	return passed_ns - ran_ns;
}

/*
 * How long @task, which gets the CPU now, was in its run queue: since it was woken, or, if that was
 * not seen, by the kernel's own count, which the kernel resets only after this call. 0 = unknown.
 */
static __u64 queued_ns(struct offcpu_thread *t, struct task_struct *task, __u64 now)
{
	__u64 since, clock;

	if (t->woken_ns)
		return t->woken_ns > t->since_ns && t->woken_ns < now ? now - t->woken_ns : 0;
	if (!bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(task->sched_info.last_queued))
		return 0;
	since = task->sched_info.last_queued;
	clock = task->se.cfs_rq->rq->clock;
	return since && clock > since ? clock - since : 0;
}

/* Returns the time that a signal took. */
static __always_inline __u64 switch_in(struct task_struct *task, __u64 now, int by_task_work)
{
	struct offcpu_thread *t = thread_known(task);
	__u64 off_ns, queue_ns = 0;
	int met;

	if (!t)
		t = thread_new(task);
	if (!t)
		return 0;
	/* a thread that slept already when its process became a target, too: its time off the CPU
	 * counts since then */
	met = t->now == OFFCPU_NOW_OFF;
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
	account_off(t, off_ns, queue_ns);
	t->since_ns = now;
	t->now = OFFCPU_NOW_RUNS;
	/* if its leaving was not seen, its begin is unknown */
	if (met && off_ns >= floor_ns)
		return report_interval(task, t, off_ns, queue_ns, now, by_task_work);
	t->short_count++;
	return 0;
}

/* ---- sleeping since before ------------------------------------------------------------------- */

/* The context of an iterator's program (kernel/bpf/task_iter.c). */
struct bpf_iter__task {
	__u64 meta;
	struct task_struct *task; /* NULL in the last call */
};

/*
 * Runs once for each thread of the host when a process becomes a target. Nobody saw those of its
 * threads leave the CPU that sleep already, but their registers tell what they sleep in. What is
 * learnt has members of its own, because the thread may get the CPU at the same time.
 */
SEC("iter/task")
int on_asleep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_thread *t = task && targets_bit(task->tgid) ? thread_known(task) : 0;
	struct pt_regs *regs;
	int nr;

	if (!t || t->now != OFFCPU_NOW_OFF || t->state)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = syscall_in(regs);
	t->asleep_class = class_of(task, regs, nr) + 1;
	t->asleep_syscall_nr = (__s16)nr;
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

/* @began: without the time for signals, which is counted apart. */
static __noinline void time_run(struct task_struct *prev, struct task_struct *next, __u64 began)
{
	__u64 run_ns = bpf_ktime_get_ns() - began;

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
	__u64 now, signal_ns = 0;

	if (!leaves && !arrives)
		return 0;
	now = bpf_ktime_get_ns();
	if (leaves)
		switch_out(prev, preempted, state, now);
	if (arrives)
		signal_ns = switch_in(next, now, by_task_work);
	if ((now >> 5) % COST_EVERY == 0)
		time_run(prev, next, now + signal_ns);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_put_off, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return on_switch(preempt, prev, next, prev_state, 1);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_rseq, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return on_switch(preempt, prev, next, prev_state, 0);
}

/* Runs on the way back to user mode, right after a switch. */
SEC("tp_btf/rseq_update")
int BPF_PROG(on_rseq, struct task_struct *task)
{
	struct offcpu_thread *t = targets_bit(task->tgid) ? thread_known(task) : 0;
	__u32 tgid = task->tgid, zero = 0;
	struct sampler_target *s;
	struct sampler_counts *c;
	__u64 off_ns, begin;

	if (!t || !t->owed_ns)
		return 0;
	begin = bpf_ktime_get_ns();
	off_ns = t->owed_ns;
	t->owed_ns = 0;
	s = bpf_map_lookup_elem(&targets, &tgid);
	c = bpf_map_lookup_elem(&counts, &zero);
	if (s && c)
		send_at_return(c, s, 0, off_ns);
	count_signal(begin);
	return 0;
}

/*
 * Does @waker, the current thread, wake @t itself, or has an interrupt that came meanwhile done it?
 * No kernel flag that exists in all builds shows that. So a waker counts only if it is within a
 * system call that wakes threads of this class. An interrupt during such a call is mistaken for the
 * waker; these calls are short.
 */
static int waker_is_cause(struct task_struct *waker, struct offcpu_thread *t)
{
	int nr = syscall_of(waker);
	__u8 known = nr >= 0 && nr < OFFCPU_CALLS ? class_of_call[nr] : 0;

	switch (t->class) {
	case OFFCPU_FUTEX:
		return known == OFFCPU_FUTEX + 1 || waker->flags & PF_EXITING;
	case OFFCPU_SOCKET:
	case OFFCPU_ACCEPT:
	case OFFCPU_CONNECT:
	case OFFCPU_POLL:
		return known == OFFCPU_CALL_FD || known == OFFCPU_SOCKET + 1 ||
		       known == OFFCPU_CONNECT + 1;
	case OFFCPU_PIPE:
	case OFFCPU_OTHER: /* for example an eventfd */
		return known == OFFCPU_CALL_FD;
	default:
		return 0;
	}
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct offcpu_thread *t = targets_bit(task->tgid) ? thread_known(task) : 0;
	struct task_struct *waker;

	if (!t || t->now != OFFCPU_NOW_OFF || t->woken_ns)
		return 0;
	t->woken_ns = bpf_ktime_get_ns();
	/* Only records have the waker. A time that is half as long as the shortest of those when it
	 * ends hardly becomes one in the run queue. */
	if (t->woken_ns - t->since_ns < floor_ns / 2)
		return 0;
	waker = bpf_get_current_task_btf();
	if (!(waker->flags & PF_KTHREAD) && waker_is_cause(waker, t)) {
		t->waker_pid = waker->tgid;
		t->waker_tid = waker->pid;
	}
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

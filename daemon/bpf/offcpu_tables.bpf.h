/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * What the off-CPU programs keep: their maps, what the daemon tells them and they tell the daemon, and
 * the table of threads.
 */
#pragma once

#define PF_EXITING 0x00000004 /* include/linux/sched.h */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFCPU_THREADS_MAX); /* the daemon sets a smaller number */
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
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OFFCPU_RING_BYTES);
} records SEC(".maps");

const volatile __u32 threads_mask = OFFCPU_THREADS_MAX - 1;
const volatile __u32 threads_shift = 16; /* 32 - log2 of the number of slots */

__u64 is_target[OFFCPU_PIDS / 64]; /* a bit per process; the daemon sets it, both clear it */
/* A bit per slot of the table of threads that was claimed, so that the daemon need not look at all
 * of them. It clears those of free slots. */
__u64 was_claimed[OFFCPU_THREADS_MAX / 64];
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
__u64 timed_ns; /* the time of one in OFFCPU_COST_EVERY runs for targets, without that for signals
		 */
__u64 signals, signals_ns; /* delayed: their number, and the time that this took the programs */
__u64 missed; /* context switches for which the kernel did not call the program */
__u64 ends_lost; /* ended threads whose times found no room in the ring */

static int targets_bit(int tgid)
{
	__u32 at = (__u32)tgid;

	return at < OFFCPU_PIDS && is_target[at >> 6] >> (at & 63) & 1;
}

static __u32 thread_first_slot(__u32 tid)
{
	return tid * OFFCPU_HASH >> threads_shift;
}

/* Searches the slots after the first one. */
static __noinline struct offcpu_thread *thread_find_further(__u32 tid)
{
	__u32 at = thread_first_slot(tid);

	for (int i = 1; i < OFFCPU_PROBES; i++) {
		__u32 key = (at + i) & threads_mask;
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
		__u32 key = (at + i) & threads_mask;
		struct offcpu_thread *t = bpf_map_lookup_elem(&threads, &key);

		if (!t || t->tid != 0 || __sync_val_compare_and_swap(&t->tid, 0, tid) != 0)
			continue;
		key &= OFFCPU_THREADS_MAX - 1; /* for the verifier */
		__sync_fetch_and_or(&was_claimed[key >> 6], 1ULL << (key & 63));
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
	t->own_tid = own_tid(task);
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

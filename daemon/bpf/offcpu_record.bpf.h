/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * The records of times off the CPU, with their kernel stacks, in a ring of which each tenant has a
 * part.
 */
#pragma once

#define RB_AVAIL_DATA 0

#define STACKS_KEPT	256 /* per CPU; power of two */
#define KEPT_STACK_MAX	16 /* frames; such waits have seven */
#define STACK_USES_MAX	255 /* then the stack is taken again */
#define FUTEX_CMD_MASK	0x7f /* include/uapi/linux/futex.h */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_record);
} record_scratch SEC(".maps");

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

static __u32 own_tid_of(__u32 tid, __u32 pid)
{
	struct offcpu_thread *t = tid && targets_bit(pid) ? thread_find(tid) : 0;

	return t && t->pid == pid ? t->own_tid : 0;
}

/* Wakes the daemon only when a quarter of the ring is full. */
static __u64 wake_flag(__u64 used)
{
	return used >= OFFCPU_RING_BYTES / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
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

	if (t->state != 'S' || t->syscall_nr < 0 || syscall_in(regs) != t->syscall_nr)
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

/*
 * Did the thread that ran when @t was woken wake it, or an interrupt that came meanwhile? No kernel
 * flag that exists in all builds shows that. So a waker counts only if it was within a system call
 * that wakes threads of this class. An interrupt during such a call is mistaken for the waker;
 * these calls are short.
 */
static int is_woken_by_waker(const struct offcpu_thread *t)
{
	__u64 nr = (__u32)t->waker_syscall_nr; /* -1 is beyond the table */
	__u8 known = 0;

	barrier_var(nr); /* keeps the checked value in one register for the verifier */
	if (nr < OFFCPU_CALLS)
		known = class_of_call[nr];
	switch (t->class) {
	case OFFCPU_FUTEX:
		return known == OFFCPU_FUTEX + 1 || t->waker_exits;
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

static void record(struct task_struct *task, struct offcpu_thread *t, struct offcpu_target *g,
		   __u64 off_ns, __u64 queue_ns, __u64 throttled_ns, __u64 now, __u8 flags)
{
	__u32 zero = 0;
	struct offcpu_record *r = bpf_map_lookup_elem(&record_scratch, &zero);
	__u64 used = bpf_ringbuf_query(&records, RB_AVAIL_DATA), size, bytes;
	__u32 waker_tid = t->woken_ns && is_woken_by_waker(t) ? t->waker_tid : 0;

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
	r->waker_pid = waker_tid ? t->waker_pid : 0;
	r->waker_tid = waker_tid;
	r->waker_own_tid = own_tid_of(waker_tid, t->waker_pid);
	r->syscall_nr = t->syscall_nr;
	r->throttled_us = (__u32)(throttled_ns / 1000);
	r->class = t->class;
	r->state = t->state;
	r->flags = flags | (BPF_CORE_READ_BITFIELD(task, in_iowait) ? OFFCPU_IOWAIT : 0);
	bytes = (__u64)kernel_stack(task, t, r);
	/* keeps the checked value in one register; verifiers before Linux 6.13 need it unsigned */
	barrier_var(bytes);
	if (bytes > sizeof(r->ips)) /* or an error */
		bytes = 0;
	size = sizeof(*r) - sizeof(r->ips) + bytes;
	if (!has_ring_room(t->tenant, used, size) ||
	    bpf_ringbuf_output(&records, r, size, wake_flag(used)) < 0) {
		__sync_fetch_and_add(&g->lost, 1);
		__sync_fetch_and_add(&g->lost_ns, off_ns);
	}
}

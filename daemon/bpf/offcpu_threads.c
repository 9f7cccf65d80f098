/* The daemon's side of the table of threads, which the programs of offcpu.bpf.c write at the same
 * time. */
#include "daemon/bpf/offcpu_priv.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "offcpu.skel.h"

#define COPIES_MAX 64

#define CACHE_LINE 64
_Static_assert(sizeof(struct offcpu_thread) % CACHE_LINE == 0 &&
		       offsetof(struct offcpu_thread, short_count) == CACHE_LINE,
	       "what each switch needs of a thread fills one cache line");

static void offcpu_count_slot(struct offcpu_programs *p, uint32_t tenant, __s64 by)
{
	__atomic_fetch_add(&p->tenants[tenant].threads, by, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&p->bpf->bss->threads_used, by, __ATOMIC_SEQ_CST);
}

/* As thread_first_slot() of the programs. */
static uint32_t offcpu_first_slot(const struct offcpu_programs *p, uint32_t tid)
{
	return tid * OFFCPU_HASH >> p->bpf->rodata->threads_shift;
}

static void offcpu_set_claimed(const struct offcpu_programs *p, uint32_t at)
{
	__atomic_fetch_or(&p->bpf->bss->was_claimed[at / 64], 1ULL << at % 64, __ATOMIC_SEQ_CST);
}

/* Is the slot free? Then its bit is cleared; a program may claim it at the same time. */
static bool offcpu_is_free(const struct offcpu_programs *p, uint32_t at)
{
	const struct offcpu_thread *t = &p->threads[at];

	if (__atomic_load_n(&t->tid, __ATOMIC_SEQ_CST))
		return false;
	__atomic_fetch_and(&p->bpf->bss->was_claimed[at / 64], ~(1ULL << at % 64),
			   __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&t->tid, __ATOMIC_SEQ_CST))
		return true;
	offcpu_set_claimed(p, at);
	return false;
}

struct offcpu_thread *offcpu_threads_next(const struct offcpu_programs *p, uint32_t *at)
{
	while (*at < p->n_threads) {
		uint64_t left =
			__atomic_load_n(&p->bpf->bss->was_claimed[*at / 64], __ATOMIC_SEQ_CST) >>
			*at % 64;
		uint32_t slot;

		if (!left) {
			*at = (*at / 64 + 1) * 64;
			continue;
		}
		slot = *at + (uint32_t)__builtin_ctzll(left);
		*at = slot + 1;
		if (!offcpu_is_free(p, slot))
			return &p->threads[slot];
	}
	return NULL;
}

/* Frees a slot, unless the programs do so at this moment. */
static void offcpu_release(struct offcpu_programs *p, struct offcpu_thread *t, __u32 tid)
{
	uint32_t tenant = t->tenant;

	if (__atomic_compare_exchange_n(&t->tid, &tid, 0, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		offcpu_count_slot(p, tenant, -1);
}

struct offcpu_thread *offcpu_threads_find(struct offcpu_programs *p, pid_t pid, uint32_t tid)
{
	uint32_t first = offcpu_first_slot(p, tid);

	for (uint32_t i = 0; i < OFFCPU_PROBES; i++) {
		struct offcpu_thread *t = &p->threads[(first + i) & (p->n_threads - 1)];

		if (t->tid == tid && t->pid == (uint32_t)pid)
			return t;
	}
	return NULL;
}

void offcpu_threads_prune(struct offcpu_programs *p, pid_t pid)
{
	struct offcpu_thread *t;
	uint32_t at = 0;
	char path[64];

	while ((t = offcpu_threads_next(p, &at))) {
		__u32 tid = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);

		if (!tid || t->pid != (uint32_t)pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)pid, tid);
		if (access(path, F_OK) < 0)
			offcpu_release(p, t, tid);
	}
}

void offcpu_threads_drop(struct offcpu_programs *p, pid_t pid)
{
	struct offcpu_thread *t;
	uint32_t at = 0;

	while ((t = offcpu_threads_next(p, &at))) {
		__u32 tid = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);

		if (tid && t->pid == (uint32_t)pid)
			offcpu_release(p, t, tid);
	}
}

void offcpu_threads_count(const struct offcpu_programs *p, uint32_t *counts)
{
	const struct offcpu_thread *t;
	uint32_t at = 0;

	while ((t = offcpu_threads_next(p, &at)))
		if (t->target < OFFCPU_TARGETS_MAX)
			counts[t->target]++;
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint64_t offcpu_threads_sum_ns(const struct offcpu_thread *t)
{
	uint64_t ns = t->oncpu_ns + t->runqueue_ns;

	for (int i = 0; i < OFFCPU_RUNQUEUE; i++)
		ns += t->off_ns[i];
	return ns;
}

bool offcpu_threads_copy(const struct offcpu_thread *t, struct offcpu_thread *ret)
{
	for (int i = 0; i < COPIES_MAX; i++) {
		memcpy(ret, t, sizeof(*ret));
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (!ret->tid || !ret->pid)
			return false;
		/* the sum is wrong while a program is writing */
		if (offcpu_threads_sum_ns(ret) == ret->since_ns - ret->first_ns &&
		    __atomic_load_n(&t->since_ns, __ATOMIC_ACQUIRE) == ret->since_ns)
			return true;
	}
	/* A hypervisor took the CPU away in the middle of a write. The totals go on growing, so
	 * the next reading has what this one leaves out. */
	return false;
}

void offcpu_threads_times(const struct offcpu_thread *t, uint64_t now_ns, struct offcpu_times *ret)
{
	uint64_t open_ns = now_ns > t->since_ns ? now_ns - t->since_ns : 0;

	*ret = (struct offcpu_times){
		.pid = (pid_t)t->pid,
		.tid = t->own_tid,
		.host_tid = t->tid,
		.runs = t->now == OFFCPU_NOW_RUNS,
		.halted = t->now == OFFCPU_NOW_OFF && t->state == 'T',
		.class = t->class < OFFCPU_CLASS_COUNT ? (enum offcpu_class)t->class : OFFCPU_OTHER,
		.syscall_nr = t->syscall_nr,
		.since_ns = t->since_ns,
		.from_ns = t->first_ns,
		.to_ns = t->since_ns + open_ns,
		.oncpu_ns = t->oncpu_ns,
		.runqueue_ns = t->runqueue_ns,
		.short_count = t->short_count,
	};
	memcpy(ret->off_ns, t->off_ns, sizeof(t->off_ns));
	if (!ret->runs && !t->state && t->asleep_class && t->asleep_class <= OFFCPU_CLASS_COUNT) {
		ret->class = (enum offcpu_class)(t->asleep_class - 1);
		ret->syscall_nr = t->asleep_syscall_nr;
	}
	if (!ret->runs && t->woken_ns >= t->since_ns && t->woken_ns < ret->to_ns) {
		/* woken already, and waiting for a CPU */
		ret->off_ns[ret->class] += t->woken_ns - t->since_ns;
		open_ns = ret->to_ns - t->woken_ns;
		ret->class = OFFCPU_RUNQUEUE;
		ret->since_ns = t->woken_ns;
		ret->halted = false;
	}
	if (ret->runs)
		ret->oncpu_ns += open_ns;
	else if (ret->class == OFFCPU_RUNQUEUE)
		ret->runqueue_ns += open_ns;
	else
		ret->off_ns[ret->class] += open_ns;
}

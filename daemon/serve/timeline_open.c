/*
 * See timeline_open.h. The agent reports waits for locks while they go on; the kernel's table has
 * every other thread that is off the CPU. A wait that both have is in the list twice, as two events
 * of one wait are in a timeline: the agent knows the lock, the kernel how long the thread has been
 * off.
 */
#include "daemon/serve/timeline_open.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/profile/offcpu_event.h"
#include "daemon/serve/thread_times.h"

static struct timeline_open timeline_open_of_lock(const struct locks_open *w, uint64_t shift_ns)
{
	return (struct timeline_open){
		.kind = TIMELINE_LOCK,
		.reason = w->wait,
		.flags = (uint8_t)(TIMELINE_OPEN | (w->idle ? TIMELINE_IDLE : 0) |
				   (w->flags & WIRE_LOCK_TIMED ? TIMELINE_TIMED : 0)),
		.tid = w->tid,
		.owner_tid = w->owner_tid,
		.begin_ns = w->begin_ns + shift_ns,
		.class_name = w->class_name,
		.identity = w->identity,
		.syscall_nr = -1,
		.node = w->node,
		.owner_node = w->owner_node,
	};
}

static const struct timeline_open *timeline_open_lock_of(const struct timeline_opens *o,
							 uint32_t n_locks, uint32_t tid)
{
	for (uint32_t i = 0; i < n_locks; i++)
		if (o->list[i].tid == tid)
			return &o->list[i];
	return NULL;
}

static struct timeline_open timeline_open_of_off(const struct time_off *off,
						 const struct timeline_open *lock,
						 const char *thread, uint64_t shift_ns)
{
	struct timeline_open o = {
		.kind = TIMELINE_OFFCPU,
		.reason = off->seen_reason,
		.flags = TIMELINE_OPEN,
		.tid = off->tid,
		.begin_ns = off->begin_ns + shift_ns,
		.class_name = "",
		.syscall_nr = off->syscall_nr,
	};

	/* as `threads` does: the kernel sees a futex, the agent knows what it is for */
	if (offcpu_is_idle_vm_thread(off->reason, thread))
		o.flags |= TIMELINE_IDLE;
	if (lock && off->reason == OFFCPU_REASON_OTHER) {
		o.reason = thread_times_lock_reasons[lock->reason];
		o.flags |= (uint8_t)(TIMELINE_TWICE | (lock->flags & TIMELINE_IDLE));
		o.owner_tid = lock->owner_tid;
		o.class_name = lock->class_name;
		o.identity = lock->identity;
		o.node = lock->node;
		o.owner_node = lock->owner_node;
	}
	return o;
}

int timeline_opens_of(struct host *h, const struct target *t, struct timeline_opens *ret)
{
	const struct locks *l = host_locks(t);
	uint64_t now_ns = clock_mono_ns(), shift_ns = (uint64_t)t->real_minus_mono_ns;
	uint32_t n_locks = 0, n_off = 0, n;
	struct locks_open *locks = NULL;
	const struct time_ledger *ledger;
	struct time_off *off = NULL;
	const char *why;

	*ret = (struct timeline_opens){ 0 };
	if (t->state != TARGET_STREAMING)
		return 0;
	if (l && locks_open(l, now_ns, &locks, &n_locks) < 0)
		return -ENOMEM;
	ledger = host_time_ledger(h, t, &why);
	if (ledger && time_ledger_off(ledger, now_ns, &off, &n_off) < 0)
		n_off = 0;
	ret->list = calloc((size_t)n_locks + n_off + 1, sizeof(*ret->list));
	for (uint32_t i = 0; ret->list && i < n_locks; i++)
		if (locks[i].wait < WIRE_WAIT_COUNT)
			ret->list[ret->n++] = timeline_open_of_lock(&locks[i], shift_ns);
	n = ret->n;
	for (uint32_t i = 0; ret->list && i < n_off; i++)
		ret->list[ret->n++] =
			timeline_open_of_off(&off[i], timeline_open_lock_of(ret, n, off[i].tid),
					     host_thread_name(t, off[i].tid), shift_ns);
	free(locks);
	free(off);
	return ret->list ? 0 : -ENOMEM;
}

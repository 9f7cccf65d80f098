/*
 * See open.h. The agent's thread scans the table of waits when the next of them becomes long, and
 * every few seconds otherwise; a wait that would become long before the next scan wakes the agent's
 * thread. What is read of a waiting thread is used only if the same wait is still going on
 * afterwards.
 *
 * A reported wait leaves a mark in its slot. A waiting thread pushes the end of its wait into the
 * ring before it releases the slot, and the ring is emptied between two scans. So if a wait is gone
 * at two scans and its end has not been seen, the end is lost, and CLOSED is sent instead.
 */
#include "agent/events/open.h"

#include <stdbool.h>
#include <string.h>
#include "agent/base/outlet.h"
#include "agent/events/open_early.h"
#include "agent/events/park.h"
#include "agent/events/unknown_owner.h"
#include "agent/events/waits.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/owner.h"
#include "agent/walker/walker.h"

/* Between two scans, also if one has left something undone: with hundreds of threads a wait becomes
 * long at any moment, and a scan reads all of them. */
#define SCAN_GAP_NS	(250 * NS_PER_MS)
#define SCAN_GAP_MAX_NS (8 * NS_PER_S)
#define SHARE		250 /* scans may take 1/250 of the time */
#define SAVED_NS	(50 * NS_PER_MS) /* scans may take this much at once after a pause */
#define LONG_NS		NS_PER_S /* a wait is long after this time and LONG_MINS thresholds */
#define LONG_MINS	10 /* see LONG_NS */
#define EACH_MAX	256u /* waits reported in one scan */
#define EARLY_MAX	8u /* of these, waits that are not long yet */

enum report {
	REPORTED_NONE,
	REPORTED_OPENING, /* OPEN is in the pending frame */
	REPORTED_OPEN, /* OPEN is in the pipe */
	REPORTED_AGAIN, /* OPEN is to be sent again: it was dropped, or its stack's ids are void */
	REPORTED_GONE, /* the wait was over at the last scan */
	REPORTED_ENDED, /* its end is in the pending frame */
	REPORTED_LOST, /* its end was dropped: CLOSED must be sent */
	REPORTED_CLOSING, /* CLOSED is in the pending frame */
};

static uint64_t
	early_ns; /* a wait that begins before this moment becomes long before the next scan */
static uint32_t due; /* 1 = a scan is needed now */
static uint32_t pending; /* slots in one of the states OPENING, ENDED, CLOSING */

/* The CPU time that scans may take. */
static struct {
	int64_t credit_ns;
	uint64_t credit_at_ns;
	uint64_t begin_ns; /* the thread's CPU clock when this scan began */
	uint64_t not_before_ns; /* no scan before this moment */
} cpu;

/* The record that is being made. */
static struct {
	struct ring_sample head;
	struct walk_frame frames[2 * WALK_FRAMES_MAX];
} record;
_Static_assert(offsetof(struct ring_sample, frames) == sizeof(struct ring_sample), "in one piece");

/* ---- the marks ---- */

static void open_mark(struct wait *w, enum report report)
{
	static const bool is_pending[] = {
		[REPORTED_OPENING] = true, [REPORTED_ENDED] = true, [REPORTED_CLOSING] = true
	};

	pending -= is_pending[w->reported];
	w->reported = (uint8_t)report;
	pending += is_pending[w->reported];
}

static void open_settle(struct wait *w, bool sent)
{
	switch (w->reported) {
	case REPORTED_OPENING:
		open_mark(w, sent ? REPORTED_OPEN : REPORTED_AGAIN);
		break;
	case REPORTED_ENDED:
	case REPORTED_CLOSING:
		open_mark(w, sent ? REPORTED_NONE : REPORTED_LOST);
		break;
	default:
		break;
	}
}

static void open_settle_all(bool sent)
{
	for (uint32_t i = 0; pending && i < waits_used(); i++)
		open_settle(waits_at(i), sent);
	pending = 0;
}

void open_waits_sent(void)
{
	open_settle_all(true);
}

void open_waits_lost(void)
{
	open_settle_all(false);
	__atomic_store_n(&due, 1, __ATOMIC_SEQ_CST);
}

void open_waits_again(void)
{
	for (uint32_t i = 0; i < waits_used(); i++)
		if (waits_at(i)->reported == REPORTED_OPEN)
			open_mark(waits_at(i), REPORTED_AGAIN);
	__atomic_store_n(&due, 1, __ATOMIC_SEQ_CST);
}

void open_wait_ended(const struct ring_sample *s)
{
	struct wait *w = waits_at(s->slot);

	if (w && w->reported != REPORTED_NONE && waits_reported_at(s->slot)->ns == s->mono_ns)
		open_mark(w, REPORTED_ENDED);
}

void open_waits_forget(void)
{
	pending = 0;
	memset(&cpu, 0, sizeof(cpu));
	open_early_forget();
}

/* ---- what is reported ---- */

static void open_begin_record(const struct wait *w, uint32_t slot, uint8_t flags, uint64_t now_ns)
{
	record.head = (struct ring_sample){
		.mono_ns = w->begin_ns,
		.weight = now_ns - w->begin_ns,
		.class_handle = w->lock.class_handle,
		.identity = w->lock.identity,
		.owner_tid = unknown_owner_answer(w->lock.owner_tid),
		.slot = slot,
		.event = WIRE_EVENT_LOCK,
		.wait = w->how,
		.flags = (uint8_t)(w->flags | flags),
	};
}

static void open_waiter_stack(const struct wait *w)
{
	struct walk walk = { .frames = record.frames };

	walk_anchor_sig(&walk, w->java_thread);
	record.head.n_frames = walk.n;
	record.head.broken = walk.broken;
	record.head.virtual_id = walk.virtual_id;
	memcpy(record.head.name, walk.virtual_name, sizeof(record.head.name));
}

/* The owner's stack, if the owner waits or sleeps: its wait, or its CPU clock, must be the same
 * before and after the walk. */
static void open_owner_stack(uint32_t number)
{
	struct walk walk = { .frames = record.frames + record.head.n_frames };
	uint64_t thread = owner_thread(number), cpu_ns;
	int32_t slot = thread ? waits_find(thread) : -1;
	bool waits, same;
	struct wait own;
	uint32_t tid;

	if (!thread)
		return;
	waits = slot >= 0 && waits_copy((uint32_t)slot, &own);
	tid = java_thread_tid_sig(thread);
	cpu_ns = tid ? thread_cpu_ns(tid) : UINT64_MAX;
	walk_anchor_sig(&walk, thread);
	if (waits)
		same = waits_is_same((uint32_t)slot, &own);
	else
		same = cpu_ns != UINT64_MAX && thread_cpu_ns(tid) == cpu_ns;
	if (!walk.broken && same)
		record.head.n_owner_frames = walk.n;
}

/* Does the waiter run on the thread that the slot names? A virtual thread may have given up its
 * carrier to wait: its stack cannot be walked then. */
static bool is_on(const struct wait *w)
{
	if (w->key == w->java_thread)
		return true;
	return w->number && owner_number(w->java_thread) == w->number;
}

/* false = the wait has just ended. */
static bool open_read_monitor(const struct wait *w)
{
	struct owner_monitor monitor;

	owner_blocked_on(w->java_thread, &monitor);
	if (!monitor.address || monitor.waiting != (w->how == WIRE_WAIT_WAIT))
		return false;
	if (monitor.class_handle)
		record.head.class_handle = monitor.class_handle;
	if (!record.head.identity)
		record.head.identity = monitor.identity;
	if (monitor.owner)
		record.head.owner_tid = monitor.owner;
	return true;
}

static bool open_fill(const struct wait *w, const struct wait_lock *parked_for)
{
	record.head.tid = w->number;
	if (!is_on(w))
		return true;
	if (!w->number)
		record.head.tid = owner_number(w->java_thread);
	open_waiter_stack(w);
	if (w->how != WIRE_WAIT_PARK) {
		if (!open_read_monitor(w))
			return false;
	} else if (parked_for) {
		record.head.class_handle = parked_for->class_handle;
		record.head.identity = parked_for->identity;
		if (parked_for->owner_tid)
			record.head.owner_tid = parked_for->owner_tid;
	}
	if (record.head.owner_tid)
		open_owner_stack(record.head.owner_tid);
	return true;
}

/* @with_owner: only if the owner's stack could be walked. */
static void open_report(uint32_t slot, uint64_t now_ns, const struct wait_lock *parked_for,
			bool with_owner)
{
	struct wait copy, *w = waits_at(slot);

	if (!waits_copy(slot, &copy))
		return;
	open_begin_record(&copy, slot, WIRE_LOCK_OPEN, now_ns);
	if (!open_fill(&copy, parked_for) || !record.head.tid || !waits_is_same(slot, &copy))
		return;
	if (with_owner && !record.head.n_owner_frames)
		return;
	*waits_reported_at(slot) = (struct wait_reported){
		.ns = copy.begin_ns,
		.number = record.head.tid,
		.identity = record.head.identity,
	};
	if (outlet->uncounted(&record.head))
		open_mark(w, REPORTED_OPENING);
}

static void open_report_closed(uint32_t slot, uint64_t now_ns)
{
	const struct wait_reported *reported = waits_reported_at(slot);
	struct wait *w = waits_at(slot), old = { .begin_ns = reported->ns, .how = w->how };

	open_begin_record(&old, slot, WIRE_LOCK_CLOSED, now_ns);
	record.head.tid = reported->number;
	record.head.identity = reported->identity;
	open_mark(w, outlet->uncounted(&record.head) ? REPORTED_CLOSING : REPORTED_LOST);
}

/* ---- the scan ---- */

static void open_cpu_begin(uint64_t now_ns)
{
	cpu.credit_ns += (int64_t)((now_ns - cpu.credit_at_ns) / SHARE);
	cpu.credit_at_ns = now_ns;
	if (cpu.credit_ns > (int64_t)SAVED_NS)
		cpu.credit_ns = SAVED_NS;
	cpu.begin_ns = thread_cpu_ns(0);
}

/* Returns the CPU time of this scan, ns. */
static uint64_t open_cpu_end(uint64_t now_ns)
{
	uint64_t ns = thread_cpu_ns(0) - cpu.begin_ns;

	cpu.credit_ns -= (int64_t)ns;
	cpu.not_before_ns = cpu.credit_ns < 0 ? now_ns + (uint64_t)-cpu.credit_ns * SHARE : 0;
	return ns;
}

/* The time of the next scan, at the latest, and this scan's progress. */
struct next {
	uint64_t now_ns, at_ns, long_ns;
	uint32_t reported;
};

static void open_not_later(struct next *next, uint64_t ns)
{
	next->at_ns = ns < next->at_ns ? ns : next->at_ns;
}

static void open_report_one(uint32_t slot, struct next *next, const struct wait_lock *parked_for)
{
	open_report(slot, next->now_ns, parked_for, false);
	/* the wait has just ended, or the pipe is full */
	if (waits_at(slot)->reported != REPORTED_OPENING)
		open_not_later(next, next->now_ns + SCAN_GAP_NS);
}

/* Parks to be reported. One pass over all threads finds out what each of them waits for. */
static struct {
	uint32_t n;
	uint32_t slots[EACH_MAX];
	struct park_query queries[EACH_MAX];
} parks;

static void open_report_parks(struct next *next)
{
	if (parks.n)
		park_read_blockers(parks.queries, parks.n);
	for (uint32_t i = 0; i < parks.n; i++)
		open_report_one(parks.slots[i], next, &parks.queries[i].lock);
	parks.n = 0;
}

/* Waits to be reported early if their owner sleeps. */
static struct {
	uint32_t n, parks;
	uint32_t slots[EARLY_MAX];
	struct park_query queries[EARLY_MAX]; /* for parks; java_thread = 0 for other waits */
} early;

static void open_add_early(uint32_t slot, const struct wait *w)
{
	bool parks_ = w->how == WIRE_WAIT_PARK;

	if (early.n == EARLY_MAX)
		return;
	early.queries[early.n] = (struct park_query){ .java_thread = parks_ ? w->java_thread : 0 };
	early.slots[early.n++] = slot;
	early.parks += parks_;
}

/* The present owner, which may differ from the owner when the wait began. 0 = none, or unknown. */
static uint32_t open_owner_now(const struct wait *w, const struct park_query *ask)
{
	struct owner_monitor monitor;

	if (w->how == WIRE_WAIT_PARK)
		return ask->lock.owner_tid;
	owner_blocked_on(w->java_thread, &monitor);
	return monitor.owner;
}

static void open_report_early_one(uint32_t i, uint64_t now_ns)
{
	uint32_t slot = early.slots[i], owner;
	struct wait w;

	if (!waits_copy(slot, &w) || !is_on(&w))
		return;
	owner = open_owner_now(&w, &early.queries[i]);
	if (!owner || !open_early_sleeps(owner))
		return;
	open_report(slot, now_ns, w.how == WIRE_WAIT_PARK ? &early.queries[i].lock : NULL, true);
	if (waits_at(slot)->reported == REPORTED_OPENING)
		open_early_reported();
}

static void open_report_early(uint64_t now_ns)
{
	if (early.n && open_early_may_report()) {
		if (early.parks)
			park_read_blockers(early.queries, early.n);
		for (uint32_t i = 0; i < early.n; i++)
			open_report_early_one(i, now_ns);
	}
	early.n = early.parks = 0;
}

static bool open_is_going_on(uint32_t slot)
{
	return __atomic_load_n(&waits_at(slot)->begin_ns, __ATOMIC_ACQUIRE) ==
	       waits_reported_at(slot)->ns;
}

static void open_check_reported(uint32_t slot, uint64_t now_ns)
{
	struct wait *w = waits_at(slot);

	if (w->reported == REPORTED_LOST ||
	    (w->reported == REPORTED_GONE && !open_is_going_on(slot)))
		open_report_closed(slot, now_ns);
	else if ((w->reported == REPORTED_OPEN || w->reported == REPORTED_AGAIN) &&
		 !open_is_going_on(slot))
		open_mark(w, REPORTED_GONE);
}

static void open_check(uint32_t slot, struct next *next)
{
	const struct wait *w = waits_at(slot);
	uint64_t begin_ns = __atomic_load_n(&w->begin_ns, __ATOMIC_ACQUIRE);

	if (w->reported && w->reported != REPORTED_OPEN)
		open_not_later(next, next->now_ns + SCAN_GAP_NS);
	/* the slot still has the mark of an earlier wait, whose end is to be sent first */
	if (begin_ns && w->reported && !open_is_going_on(slot))
		(void)open_early_is_due(w, begin_ns); /* called so that a scan follows soon */
	if (!begin_ns ||
	    (w->reported && !(w->reported == REPORTED_AGAIN && open_is_going_on(slot))))
		return;
	if (next->now_ns < begin_ns + next->long_ns) {
		open_not_later(next, begin_ns + next->long_ns);
		if (open_early_is_due(w, begin_ns))
			open_add_early(slot, w);
		return;
	}
	next->reported++;
	if (w->how != WIRE_WAIT_PARK) {
		open_report_one(slot, next, NULL);
	} else {
		parks.slots[parks.n] = slot;
		parks.queries[parks.n++] = (struct park_query){ .java_thread = w->java_thread };
	}
}

/* Without a fence a scan may miss a wait that begins during it; the next scan reports that wait. A
 * fence would cost every wait more than that is worth. */
void open_wait_begins(uint64_t now_ns, bool owned)
{
	bool early_too = owned && open_early_begins();

	if ((now_ns < __atomic_load_n(&early_ns, __ATOMIC_RELAXED) &&
	     __atomic_exchange_n(&early_ns, 0, __ATOMIC_SEQ_CST)) ||
	    early_too) {
		__atomic_store_n(&due, 1, __ATOMIC_SEQ_CST);
		agent_wake();
	}
}

bool open_waits_are_due(void)
{
	return __atomic_load_n(&due, __ATOMIC_SEQ_CST);
}

uint64_t open_waits_scan(uint64_t now_ns)
{
	struct next next = { now_ns, now_ns + SCAN_GAP_MAX_NS, LONG_MINS * events.lock_min_ns, 0 };

	if (next.long_ns < LONG_NS)
		next.long_ns = LONG_NS;
	__atomic_store_n(&due, 0, __ATOMIC_SEQ_CST);
	if (now_ns < cpu.not_before_ns)
		return cpu.not_before_ns;
	open_cpu_begin(now_ns);
	/* set before the table is read, so that waits that begin meanwhile see it */
	if (next.long_ns + SCAN_GAP_NS < SCAN_GAP_MAX_NS)
		__atomic_store_n(&early_ns, next.at_ns - next.long_ns - SCAN_GAP_NS,
				 __ATOMIC_SEQ_CST);
	open_early_scan_begins(now_ns, waits_used());
	for (uint32_t i = 0; i < waits_used() && next.reported < EACH_MAX; i++) {
		if (waits_at(i)->reported)
			open_check_reported(i, now_ns);
		open_check(i, &next);
	}
	open_report_parks(&next);
	open_report_early(now_ns);
	if (next.reported == EACH_MAX)
		open_not_later(&next, now_ns + SCAN_GAP_NS);
	if (next.at_ns < now_ns + SCAN_GAP_NS)
		next.at_ns = now_ns + SCAN_GAP_NS;
	open_not_later(&next, open_early_next(open_cpu_end(now_ns)));
	if (next.at_ns < now_ns + SCAN_GAP_MAX_NS)
		__atomic_store_n(&early_ns, 0, __ATOMIC_SEQ_CST);
	return next.at_ns > cpu.not_before_ns ? next.at_ns : cpu.not_before_ns;
}

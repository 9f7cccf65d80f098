/*
 * See waits.h. The table's keys are in lines of eight, so that a line is checked by one load from
 * memory. A few lines serve most JVMs; larger parts of the table are touched only when the ones
 * before are full. One thread fills and clears a slot, the agent's thread only copies: between two
 * waits in a slot begin_ns is 0, so a copy with the same begin before and after is complete.
 *
 * The table is never unmapped, only its pages are returned to the kernel: a thread that comes late
 * finds zeros.
 */
#include "agent/events/waits.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/events/idle_waits.h"
#include "agent/events/open.h"
#include "agent/events/push.h"
#include "agent/events/unknown_owner.h"
#include "agent/hotspot/virtual_name.h"

#define LINE	    8u /* keys of one cache line */
#define PART_SMALL  (WAITS_MAX / 32)
#define PART_MIDDLE (WAITS_MAX / 4)

struct wait_table {
	uint64_t keys[WAITS_MAX]; /* 0 = free */
	struct wait waits[WAITS_MAX];
	struct wait_reported reported[WAITS_MAX];
};

static struct wait_table *table;
static uint32_t used; /* end of the parts that have been in use */
static uint32_t n_in_progress; /* parks in the table that waits_add() added */

static struct {
	uint64_t short_waits, short_ns; /* totals from slots that were cleared */
	uint64_t unpaired;
} counts;

/* ---- slots ---- */

/* The table has three parts. A part is used when the lines of a key in the one before are full. */
static const struct part {
	uint32_t first, end; /* slots */
	uint32_t lines; /* consecutive lines in which a key may be */
} parts[] = {
	{ 0, PART_SMALL, 2 },
	{ PART_SMALL, PART_MIDDLE, 2 },
	{ PART_MIDDLE, WAITS_MAX, 4 },
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static uint32_t waits_hash_of(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32);
}

/* The @i-th line of a key in a part: its first slot. */
static uint32_t waits_line_of(const struct part *p, uint32_t hash, uint32_t i)
{
	uint32_t n = (p->end - p->first) / LINE;
	uint32_t line = (uint32_t)((uint64_t)hash * n >> 32) + i;

	return p->first + (line < n ? line : line - n) * LINE;
}

static int32_t waits_find_in(const uint64_t *keys, uint32_t first, uint64_t key)
{
	for (uint32_t k = first; k < first + LINE; k++)
		if (__atomic_load_n(&keys[k], __ATOMIC_ACQUIRE) == key)
			return (int32_t)k;
	return -1;
}

/* The slot of @key, or -1. */
static int32_t waits_find_entry(const struct wait_table *t, uint64_t key)
{
	uint32_t hash = waits_hash_of(key), limit = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (const struct part *p = parts + PARTS; p-- > parts;)
		for (uint32_t i = 0; p->end <= limit && i < p->lines; i++) {
			int32_t slot = waits_find_in(t->keys, waits_line_of(p, hash, i), key);

			if (slot >= 0)
				return slot;
		}
	return -1;
}

static int32_t waits_claim_in_line(uint64_t *keys, uint32_t first, uint64_t key)
{
	for (uint32_t k = first; k < first + LINE; k++) {
		uint64_t none = 0;

		if (__atomic_load_n(&keys[k], __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&keys[k], &none, key, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return (int32_t)k;
	}
	return -1;
}

static void waits_raise_used(uint32_t end)
{
	uint32_t seen = __atomic_load_n(&used, __ATOMIC_RELAXED);

	while (seen < end && !__atomic_compare_exchange_n(&used, &seen, end, false,
							  __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static int32_t waits_claim_in_part(struct wait_table *t, const struct part *p, uint64_t key)
{
	uint32_t hash = waits_hash_of(key);
	int32_t slot = -1;

	for (uint32_t i = 0; slot < 0 && i < p->lines; i++)
		slot = waits_claim_in_line(t->keys, waits_line_of(p, hash, i), key);
	return slot;
}

/* Tries the largest part in use first, as it has the most room: usually one line is enough, even
 * where thousands wait. */
static int32_t waits_claim(struct wait_table *t, uint64_t key)
{
	uint32_t limit = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	const struct part *next = parts;
	int32_t slot = -1;

	while (next < parts + PARTS && next->end <= limit)
		next++;
	for (const struct part *p = next; slot < 0 && p > parts; p--)
		slot = waits_claim_in_part(t, p - 1, key);
	for (; slot < 0 && next < parts + PARTS; next++) {
		slot = waits_claim_in_part(t, next, key);
		if (slot >= 0)
			waits_raise_used(next->end);
	}
	return slot;
}

static void waits_no_longer_in_progress(struct wait *w)
{
	if (w->was_in_progress && __atomic_exchange_n(&w->was_in_progress, 0, __ATOMIC_RELAXED))
		__atomic_fetch_sub(&n_in_progress, 1, __ATOMIC_RELAXED);
}

static void waits_is_over(struct wait *w)
{
	(void)unknown_owner_end(w->lock.owner_tid);
	__atomic_store_n(&w->begin_ns, 0, __ATOMIC_RELEASE);
	waits_no_longer_in_progress(w);
}

static void waits_release(struct wait_table *t, uint32_t slot)
{
	waits_is_over(&t->waits[slot]);
	__atomic_store_n(&t->keys[slot], 0, __ATOMIC_RELEASE);
}

/* ---- begin and end ---- */

static void waits_count_unpaired(void)
{
	__atomic_fetch_add(&counts.unpaired, 1, __ATOMIC_RELAXED);
}

/* The caller holds @slot. */
static uint64_t waits_fill(struct wait_table *t, uint32_t slot, const struct wait *from)
{
	struct wait *w = &t->waits[slot];
	uint64_t now_ns = mono_ns();

	__atomic_thread_fence(__ATOMIC_RELEASE);
	w->java_thread = from->java_thread;
	w->key = from->key;
	w->lock = from->lock;
	w->number = from->number;
	w->how = from->how;
	w->flags = from->flags;
	__atomic_store_n(&w->begin_ns, now_ns, __ATOMIC_RELEASE);
	open_wait_begins(now_ns, from->lock.owner_tid != 0);
	return now_ns;
}

static int32_t waits_enter(struct wait_table *t, const struct wait *from)
{
	int32_t slot = waits_find_entry(t, from->key); /* from a wait whose end was not seen */

	if (slot >= 0)
		waits_is_over(&t->waits[slot]);
	else
		slot = waits_claim(t, from->key);
	if (slot >= 0)
		(void)waits_fill(t, (uint32_t)slot, from);
	return slot; /* -1: the table is full, and the end of this wait counts as unpaired */
}

void wait_begin(uint64_t java_thread, uint64_t key, enum wire_wait how, uint8_t flags,
		const struct wait_lock *lock)
{
	struct wait w = {
		.java_thread = java_thread,
		.key = key,
		.lock = *lock,
		.how = (uint8_t)how,
		.flags = flags,
	};
	struct wait_table *t = table;

	if (!events_on(WIRE_EVENT_LOCK) || !t || !key)
		return;
	w.number = virtual_number(java_thread);
	if (waits_enter(t, &w) < 0)
		(void)unknown_owner_end(lock->owner_tid);
}

static void waits_send(uint64_t java_thread, const struct wait *w, uint64_t duration_ns,
		       uint32_t slot)
{
	struct ring_sample head = {
		.mono_ns = w->begin_ns,
		.weight = duration_ns,
		.class_handle = w->lock.class_handle,
		.identity = w->lock.identity,
		.owner_tid = unknown_owner_end(w->lock.owner_tid),
		.event = WIRE_EVENT_LOCK,
		.wait = w->how,
		.flags = w->flags,
		.slot = slot,
	};

	(void)push_event(&head, java_thread);
}

/* One event for all idle waits of the thread since its last one. */
static void waits_send_sum(uint64_t java_thread, const struct wait *w, const struct wait_here *here)
{
	uint64_t now_ns = here->begin_ns + here->duration_ns;
	struct ring_sample head = {
		.mono_ns = now_ns > here->idle.ns ? now_ns - here->idle.ns : 1,
		.weight = here->idle.ns,
		.size = here->idle.waits,
		.class_handle = w->lock.class_handle,
		.identity = w->lock.identity,
		.event = WIRE_EVENT_LOCK,
		.wait = w->how,
		.flags = w->flags | WIRE_LOCK_SUM,
		.slot = here->slot,
	};

	(void)push_event(&head, java_thread);
}

static void waits_count_short(struct wait *w, uint64_t duration_ns)
{
	/* only the slot's holder adds; the agent's thread reads */
	__atomic_store_n(&w->short_waits, w->short_waits + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&w->short_ns, w->short_ns + duration_ns, __ATOMIC_RELAXED);
	if (!w->number)
		idle_waits_add_short(w->java_thread, w->how, duration_ns,
				     w->begin_ns + duration_ns);
}

void wait_end(uint64_t java_thread, uint64_t key, enum wire_wait how,
	      void (*describe)(void *context, struct wait_lock *lock), void *context)
{
	struct wait_table *t = table;
	struct wait_here here;
	const struct wait *w;
	int32_t slot;

	if (!events_on(WIRE_EVENT_LOCK) || !t || !key)
		return;
	slot = waits_find_entry(t, key);
	w = slot >= 0 ? &t->waits[slot] : NULL;
	if (!w || !w->begin_ns || w->how != how) {
		waits_count_unpaired();
		if (w)
			waits_release(t, (uint32_t)slot);
		return;
	}
	here = (struct wait_here){ .begin_ns = w->begin_ns, .slot = (uint32_t)slot };
	if (!wait_was_short(java_thread, &here))
		wait_report_here(java_thread, &here, describe, context);
}

bool wait_claim_slot(uint64_t java_thread, struct wait_here *ret)
{
	struct wait_table *t = table;
	int32_t slot = -1;

	if (!events_on(WIRE_EVENT_LOCK) || !t)
		return false;
	/* this thread's park, which was in progress when sampling began, is over */
	if (__atomic_load_n(&n_in_progress, __ATOMIC_RELAXED))
		slot = waits_find_entry(t, java_thread);
	if (slot >= 0)
		waits_is_over(&t->waits[slot]);
	else
		slot = waits_claim(t, java_thread);
	if (slot < 0)
		waits_count_unpaired();
	ret->slot = (uint32_t)slot;
	return slot >= 0;
}

void wait_give_back(const struct wait_here *here)
{
	waits_release(table, here->slot);
}

void wait_begin_here(struct wait_here *here, uint64_t java_thread, uint32_t number, uint8_t flags,
		     const struct wait_lock *lock)
{
	const struct wait from = {
		.java_thread = java_thread,
		.key = java_thread,
		.lock = *lock,
		.number = number,
		.how = WIRE_WAIT_PARK,
		.flags = flags,
	};

	here->begin_ns = waits_fill(table, here->slot, &from);
}

/* To enter a monitor that another thread holds is never idle. */
static bool wait_may_be_idle(const struct wait *w)
{
	return events.idle_apart && w->how != WIRE_WAIT_ENTER;
}

static void waits_count_idle(uint64_t java_thread, const struct wait *w, struct wait_here *here)
{
	here->is_idle = true;
	here->is_reported = idle_wait_count(w->number ? 0 : java_thread, here->duration_ns,
					    here->begin_ns + here->duration_ns, &here->idle);
}

bool wait_was_short(uint64_t java_thread, struct wait_here *here)
{
	struct wait_table *t = table;
	struct wait *w = &t->waits[here->slot];
	bool idle = false;

	here->duration_ns = mono_ns() - here->begin_ns;
	here->is_idle = here->is_reported = false;
	if (here->duration_ns >= events.lock_min_ns)
		return false;
	if (w->begin_ns != here->begin_ns)
		return true;
	if (wait_may_be_idle(w) && !idle_wait_known(java_thread, &idle))
		return false;
	if (idle)
		waits_count_idle(java_thread, w, here);
	else
		waits_count_short(w, here->duration_ns);
	if (!here->is_reported)
		waits_release(t, here->slot);
	return !here->is_reported;
}

static void waits_report(uint64_t java_thread, struct wait *w, struct wait_here *here,
			 void (*describe)(void *context, struct wait_lock *lock), void *context)
{
	bool alone = here->duration_ns >= IDLE_ALONE_NS;

	/* a long wait is classified anew each time, so that no remembered answer hides a
	 * contention */
	if (!here->is_idle && wait_may_be_idle(w) && idle_wait_classify(java_thread))
		waits_count_idle(java_thread, w, here);
	if (here->is_idle && !here->is_reported)
		return;
	if (!here->is_idle && here->duration_ns < events.lock_min_ns) {
		waits_count_short(&table->waits[here->slot], here->duration_ns);
		return;
	}
	if (describe)
		describe(context, &w->lock);
	if (here->is_idle && !alone)
		waits_send_sum(java_thread, w, here);
	else
		waits_send(java_thread, w, here->duration_ns, here->slot);
}

void wait_report_here(uint64_t java_thread, struct wait_here *here,
		      void (*describe)(void *context, struct wait_lock *lock), void *context)
{
	struct wait_table *t = table;
	struct wait w = t->waits[here->slot];

	if (w.begin_ns != here->begin_ns || !events_enter(WIRE_EVENT_LOCK))
		return;
	waits_report(java_thread, &w, here, describe, context);
	waits_release(t, here->slot); /* last: until then the wait counts as going on, see open.c */
	events_leave();
}

/* ---- the agent's thread ---- */

void waits_counts(uint64_t *ret_short, uint64_t *ret_short_ns, uint64_t *ret_unpaired)
{
	uint32_t n = waits_used();

	*ret_short = counts.short_waits;
	*ret_short_ns = counts.short_ns;
	*ret_unpaired = __atomic_load_n(&counts.unpaired, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++) {
		*ret_short += __atomic_load_n(&table->waits[i].short_waits, __ATOMIC_RELAXED);
		*ret_short_ns += __atomic_load_n(&table->waits[i].short_ns, __ATOMIC_RELAXED);
	}
}

bool waits_copy(uint32_t i, struct wait *ret)
{
	const struct wait *w = waits_at(i);

	if (!w)
		return false;
	ret->begin_ns = __atomic_load_n(&w->begin_ns, __ATOMIC_ACQUIRE);
	if (!ret->begin_ns)
		return false;
	*ret = *w;
	return __atomic_load_n(&table->keys[i], __ATOMIC_ACQUIRE) == ret->key &&
	       waits_is_same(i, ret);
}

bool waits_is_same(uint32_t i, const struct wait *copy)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&table->waits[i].begin_ns, __ATOMIC_ACQUIRE) == copy->begin_ns;
}

int32_t waits_find(uint64_t key)
{
	return table ? waits_find_entry(table, key) : -1;
}

int32_t waits_add(uint64_t java_thread, uint64_t key, enum wire_wait how,
		  const struct wait_lock *lock)
{
	struct wait w = {
		.java_thread = java_thread,
		.key = key,
		.lock = *lock,
		.how = (uint8_t)how,
	};

	int32_t slot = table && waits_find_entry(table, key) < 0 ? waits_enter(table, &w) : -1;

	/* for other kinds the end event also finds this entry; only parks need the flag */
	if (slot >= 0 && how == WIRE_WAIT_PARK) {
		__atomic_store_n(&table->waits[slot].was_in_progress, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&n_in_progress, 1, __ATOMIC_RELAXED);
	}
	return slot;
}

void waits_remove(uint32_t i, uint64_t begin_ns)
{
	struct wait *w = &table->waits[i];

	if (!__atomic_compare_exchange_n(&w->begin_ns, &begin_ns, 0, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	waits_no_longer_in_progress(w);
	__atomic_store_n(&table->keys[i], 0, __ATOMIC_RELEASE);
}

struct wait *waits_at(uint32_t i)
{
	return table ? &table->waits[i] : NULL;
}

struct wait_reported *waits_reported_at(uint32_t i)
{
	return &table->reported[i];
}

bool waits_are_beginning(void)
{
	uint32_t n = waits_used();

	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&table->keys[i], __ATOMIC_SEQ_CST) &&
		    !__atomic_load_n(&table->waits[i].begin_ns, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

uint32_t waits_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_ACQUIRE);
}

uint64_t waits_bytes(void)
{
	return (uint64_t)used * (sizeof(struct wait) + sizeof(uint64_t)) + idle_waits_bytes();
}

static void waits_empty(void)
{
	uint64_t unpaired;

	open_waits_forget();
	waits_counts(&counts.short_waits, &counts.short_ns, &unpaired);
	__atomic_store_n(&used, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&n_in_progress, 0, __ATOMIC_RELAXED);
	idle_waits_end();
	(void)syscall(SYS_madvise, table, sizeof(*table), MADV_DONTNEED);
}

static int waits_begin(const struct wire_start *start, const char **note)
{
	void *p;

	(void)start;
	if (table)
		return 0;
	(void)idle_waits_begin(); /* if that fails, idle waits are reported like others */
	p = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		*note = "no memory for the table of waits";
		return -ENOMEM;
	}
	__atomic_store_n(&table, p, __ATOMIC_RELEASE);
	return 0;
}

static void waits_end(void)
{
	waits_empty();
}

const struct events_source waits_source = {
	.step = "waits",
	.event = WIRE_EVENT_LOCK,
	.begin = waits_begin,
	.end = waits_end,
	.tick = open_waits_scan,
	.due = open_waits_are_due,
};

/*
 * Parks that were in progress when park_start() put our native method in. They return through the
 * old native method, so that their end is not reported. They are added to the table of waits and
 * checked until they are over: first parks for a lock that another thread owns (a deadlock may be
 * among them), then the others as long as there is room, most of which belong to idle pools.
 */
#include <stdbool.h>
#include "agent/base/agent.h"
#include "agent/events/park.h"
#include "agent/events/park_priv.h"
#include "agent/events/waits.h"

/* Shorter than the time after which open.c reports a wait, so that a park that was just ending is
 * removed before it is reported. */
#define RESCAN_NS	(500 * NS_PER_MS)
#define SCAN_GAP_MAX_NS (4 * NS_PER_S) /* between two scans while no park ends */
#define SCAN_SHARE	1000 /* scans take at most 1/1000 of the time */
#define PARKS_MAX	1024u

static struct park {
	uint64_t java_thread, begin_ns;
	uint32_t slot, identity;
	bool seen; /* this scan found it still parked */
} parks[PARKS_MAX];
static uint32_t n_parks;
static uint32_t
	next_park; /* where the next thread most likely is: the JVM lists them in a stable order */
static bool added; /* the parks were added since the start */
static uint64_t steady_ns; /* time between two scans */

static void park_in_progress_add(uint64_t java_thread, const struct wait_lock *lock, uint8_t flags)
{
	int32_t slot = n_parks < PARKS_MAX
			       ? waits_add(java_thread, java_thread, WIRE_WAIT_PARK, lock)
			       : -1;
	struct wait *w = slot >= 0 ? waits_at((uint32_t)slot) : NULL;

	if (!w)
		return;
	w->flags = flags;
	parks[n_parks++] = (struct park){
		.java_thread = java_thread,
		.begin_ns = __atomic_load_n(&w->begin_ns, __ATOMIC_ACQUIRE),
		.slot = (uint32_t)slot,
		.identity = lock->identity,
	};
}

static void park_in_progress_add_owned(uint64_t java_thread, const struct wait_lock *lock,
				       uint8_t flags)
{
	if (lock->owner_tid)
		park_in_progress_add(java_thread, lock, flags);
}

static void park_in_progress_seen(uint64_t java_thread, const struct wait_lock *lock, uint8_t flags)
{
	(void)flags;
	for (uint32_t i = 0; i < n_parks; i++) {
		uint32_t at = (next_park + i) % n_parks;

		if (parks[at].java_thread != java_thread)
			continue;
		parks[at].seen |= parks[at].identity == lock->identity;
		next_park = at + 1;
		return;
	}
}

/* A park that the scan did not find is over. If its slot has another begin, a later park, through
 * our method, has the slot. */
static void park_in_progress_remove_ended(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n_parks; i++) {
		struct park *o = &parks[i];
		const struct wait *w = waits_at(o->slot);

		if (!w || __atomic_load_n(&w->begin_ns, __ATOMIC_ACQUIRE) != o->begin_ns)
			continue;
		if (!o->seen) {
			waits_remove(o->slot, o->begin_ns);
			continue;
		}
		o->seen = false;
		parks[kept++] = *o;
	}
	n_parks = kept;
}

static uint64_t park_in_progress_tick(uint64_t now_ns)
{
	uint32_t n = n_parks;
	uint64_t pause_ns;

	if (!added) {
		added = true;
		park_blocked_each(park_in_progress_add_owned);
		park_blocked_each(
			park_in_progress_add); /* threads that have a slot are not added again */
	} else {
		park_blocked_each(park_in_progress_seen);
		park_in_progress_remove_ended();
	}
	/* with thousands of threads scans are rarer */
	pause_ns = SCAN_SHARE * (mono_ns() - now_ns);
	steady_ns = n != n_parks		  ? RESCAN_NS
		    : steady_ns < SCAN_GAP_MAX_NS ? 2 * steady_ns
						  : SCAN_GAP_MAX_NS;
	return n_parks ? now_ns + (pause_ns > steady_ns ? pause_ns : steady_ns) : UINT64_MAX;
}

static int park_in_progress_begin(const struct wire_start *start, const char **note)
{
	(void)start;
	(void)note;
	return 0;
}

static void park_in_progress_end(void)
{
	n_parks = 0;
	added = false;
}

const struct events_source park_in_progress_source = {
	.step = "park",
	.event = WIRE_EVENT_LOCK,
	.begin = park_in_progress_begin,
	.end = park_in_progress_end,
	.tick = park_in_progress_tick,
};

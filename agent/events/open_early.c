/* See open_early.h. */
#include "agent/events/open_early.h"

#include <string.h>
#include "agent/base/agent.h"
#include "agent/events/unknown_owner.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/owner.h"

/* a wait is checked once it has lasted this long, and the threshold */
#define DUE_NS	    (10 * NS_PER_MS)
#define GAP_NS	    (40 * NS_PER_MS) /* between two scans, while scans find waits to report */
#define GAP_MAX_NS  (400 * NS_PER_MS) /* largest gap, while scans find none */
#define IN_VAIN_MAX 4 /* scans that find none before the gap grows */
#define SLOTS_EACH  1024u /* slots in use for which the gap grows by GAP_NS */
#define SHARE	    250 /* scans may take 1/250 of the time */
#define SAVED_NS    (5 * NS_PER_MS) /* scans may take this much at once after a pause */

static uint32_t armed = 1; /* 1 = the next wait for an owner wakes the agent's thread */

static struct {
	uint64_t now_ns, gap_ns, least_gap_ns;
	bool seen; /* this scan found an unreported wait for an owner */
	uint32_t reported; /* waits reported in this scan */
	uint32_t in_vain; /* scans in a row that reported none */
	int64_t credit_ns;
	uint64_t credit_at_ns;
} scan;

bool open_early_begins(void)
{
	return __atomic_load_n(&armed, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&armed, 0, __ATOMIC_SEQ_CST);
}

void open_early_forget(void)
{
	memset(&scan, 0, sizeof(scan));
	__atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
}

static void open_early_add_credit(void)
{
	scan.credit_ns += (int64_t)((scan.now_ns - scan.credit_at_ns) / SHARE);
	scan.credit_at_ns = scan.now_ns;
	if (scan.credit_ns > (int64_t)SAVED_NS)
		scan.credit_ns = SAVED_NS;
}

void open_early_scan_begins(uint64_t now_ns, uint32_t n_slots)
{
	__atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
	scan.now_ns = now_ns;
	scan.least_gap_ns = GAP_NS + GAP_NS * (n_slots / SLOTS_EACH);
	scan.seen = false;
	scan.reported = 0;
	open_early_add_credit();
}

bool open_early_is_due(const struct wait *w, uint64_t begin_ns)
{
	uint64_t age_ns = scan.now_ns > begin_ns ? scan.now_ns - begin_ns : 0;

	if (!unknown_owner_answer(w->lock.owner_tid))
		return false;
	scan.seen = true;
	return age_ns >= DUE_NS && age_ns >= events.lock_min_ns;
}

bool open_early_may_report(void)
{
	return scan.credit_ns > 0;
}

void open_early_reported(void)
{
	scan.reported++;
}

uint64_t open_early_next(uint64_t cpu_ns)
{
	if (scan.seen)
		scan.credit_ns -= (int64_t)cpu_ns;
	if (scan.credit_ns <= 0)
		return scan.now_ns + GAP_MAX_NS;
	if (scan.reported || scan.gap_ns < scan.least_gap_ns) {
		scan.gap_ns = scan.least_gap_ns;
		scan.in_vain = 0;
	} else if (scan.seen && ++scan.in_vain > IN_VAIN_MAX) {
		scan.gap_ns = 2 * scan.gap_ns < GAP_MAX_NS ? 2 * scan.gap_ns : GAP_MAX_NS;
	}
	if (scan.seen)
		return scan.now_ns + scan.gap_ns;
	__atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
	return UINT64_MAX;
}

bool open_early_sleeps(uint32_t number)
{
	uint64_t thread = owner_thread(number), cpu_ns;
	uint32_t tid = thread ? java_thread_tid_sig(thread) : 0;

	if (!tid)
		return false;
	cpu_ns = thread_cpu_ns(tid);
	return cpu_ns != UINT64_MAX && thread_cpu_ns(tid) == cpu_ns;
}

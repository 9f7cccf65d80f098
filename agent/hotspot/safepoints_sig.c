/* See safepoints.h. */
#include "agent/hotspot/safepoints.h"

#include <stddef.h>
#include "agent/base/guard.h"
#include "agent/hotspot/safepoint_timers.h"

/* A longer safepoint is implausible: the variables must be other ones than expected. */
#define LENGTH_NS_MAX 3600000000000ull

struct safepoints_at safepoints_at_sig;
struct safepoint_timers safepoint_timers_sig;

/* The last safepoint of safepoint_timers.h that was read. */
static struct {
	uint64_t number, reaching;
} timers_last;

static bool safepoints_traced_sig(struct safepoint *ret)
{
	const struct safepoints_at *at = &safepoints_at_sig;
	uint64_t counter;

	if (!at->end_ns)
		return false;
	/* end_ns is read first, and once more after all others: a safepoint that begins meanwhile
	 * sets it to 0 */
	ret->end_ns = __atomic_load_n(at->end_ns, __ATOMIC_ACQUIRE);
	ret->reached_ns = __atomic_load_n(at->reached_ns, __ATOMIC_ACQUIRE);
	ret->begin_ns = __atomic_load_n(at->begin_ns, __ATOMIC_ACQUIRE);
	ret->operation = __atomic_load_n(at->operation, __ATOMIC_ACQUIRE);
	counter = __atomic_load_n(at->counter, __ATOMIC_ACQUIRE);
	ret->number = counter / 2;
	return ret->end_ns && counter && counter % 2 == 0 && ret->begin_ns &&
	       ret->begin_ns <= ret->reached_ns && ret->reached_ns <= ret->end_ns &&
	       ret->end_ns - ret->begin_ns < LENGTH_NS_MAX &&
	       __atomic_load_n(at->end_ns, __ATOMIC_ACQUIRE) == ret->end_ns;
}

/* What collected between those times: the collector that began last. @ret_first: the begin of the
 * first one. */
static int32_t safepoints_collector_sig(uint64_t begin, uint64_t end, uint64_t *ret_first)
{
	const struct safepoint_timers *t = &safepoint_timers_sig;
	int32_t ret = SAFEPOINT_OPERATION_UNKNOWN;
	uint64_t last = 0;

	for (uint32_t i = 0; i < t->n_collectors; i++) {
		uint64_t at = guard_word_sig(t->collected_at[i]);

		if (at < begin || at > end)
			continue;
		if (!last || at < *ret_first)
			*ret_first = at;
		if (at >= last) {
			last = at;
			ret = (int32_t)i;
		}
	}
	return ret;
}

/* As safepoints_traced_sig(), by the earlier form. When the last thread had stopped follows from a
 * sum, if no safepoint was missed; otherwise it was at the latest when the collection began, and
 * for others nobody asks. */
static bool safepoints_timed_sig(struct safepoint *ret)
{
	const struct safepoint_timers *t = &safepoint_timers_sig;
	uint64_t end = __atomic_load_n(t->end, __ATOMIC_ACQUIRE);
	uint64_t begin = __atomic_load_n(t->begin, __ATOMIC_ACQUIRE), reached = begin, reaching;

	/* the counters are gone when the JVM ends; they are in one block of memory */
	if (!begin || begin > end || end - begin >= LENGTH_NS_MAX ||
	    !guard_readable_sig(t->number_at))
		return false;
	ret->number = guard_word_sig(t->number_at);
	reaching = guard_word_sig(t->reaching_at);
	ret->operation = safepoints_collector_sig(begin, end, &reached);
	if (__atomic_load_n(t->begin, __ATOMIC_ACQUIRE) != begin ||
	    __atomic_load_n(t->end, __ATOMIC_ACQUIRE) != end)
		return false; /* the next one has begun */
	if (ret->number == timers_last.number + 1 && reaching - timers_last.reaching <= end - begin)
		reached = begin + (reaching - timers_last.reaching);
	timers_last.number = ret->number;
	timers_last.reaching = reaching;
	ret->begin_ns = t->started_ns + begin;
	ret->reached_ns = t->started_ns + reached;
	ret->end_ns = t->started_ns + end;
	return ret->number != 0;
}

bool safepoints_last_sig(struct safepoint *ret)
{
	return safepoint_timers_sig.end ? safepoints_timed_sig(ret) : safepoints_traced_sig(ret);
}

uint64_t safepoints_end_sig(void)
{
	const struct safepoint_timers *t = &safepoint_timers_sig;
	uint64_t end;

	if (!t->end)
		return __atomic_load_n(safepoints_at_sig.end_ns, __ATOMIC_ACQUIRE);
	end = __atomic_load_n(t->end, __ATOMIC_ACQUIRE);
	return __atomic_load_n(t->begin, __ATOMIC_ACQUIRE) <= end ? t->started_ns + end : 0;
}

uint64_t safepoints_number_sig(void)
{
	const struct safepoint_timers *t = &safepoint_timers_sig;
	uint64_t number;

	if (!t->end)
		return __atomic_load_n(safepoints_at_sig.counter, __ATOMIC_ACQUIRE) / 2;
	if (!guard_readable_sig(t->number_at))
		return 0;
	number = guard_word_sig(t->number_at);
	return safepoints_end_sig() || !number ? number : number - 1;
}

/* See safepoints.h. */
#include "agent/hotspot/safepoints.h"

#include <stddef.h>

/* A longer safepoint is implausible: the variables must be other ones than expected. */
#define LENGTH_NS_MAX 3600000000000ull

struct safepoints_at safepoints_at_sig;

bool safepoints_last_sig(struct safepoint *ret)
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

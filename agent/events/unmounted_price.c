/* See unmounted_price.h. */
#include "agent/events/unmounted_price.h"

#include "agent/base/clock.h"

#define WAIT_NS	 150 /* an unmount and a mount, measured: docs/decisions/0041 */
#define FLOOR_NS (10 * NS_PER_MS) /* a second, which may always be used, as for locks */
/* The agent's thread spends about as much on sending a wait as its own thread on recording it. */
#define SENDING 2

uint64_t unmounted_price_min_ns(const struct unmounted_use *then, const struct unmounted_use *now,
				uint64_t permille, uint64_t asked_ns, uint64_t is_ns)
{
	uint64_t allowed = (now->process_ns - then->process_ns) * permille / 1000;
	uint64_t floor_ns = (now->at_ns - then->at_ns) / (NS_PER_S / FLOOR_NS);
	uint64_t hearing = (now->waits - then->waits) * WAIT_NS;
	uint64_t recorded = (now->recorded_ns - then->recorded_ns) * SENDING;

	if (allowed < floor_ns)
		allowed = floor_ns;
	/* hearing of waits cannot be had for less, so it may use all of the budget, and the records
	 * as much once more */
	if (hearing > allowed)
		return 0;
	if (recorded > allowed)
		return is_ns < UNMOUNTED_MIN_NS_MAX / 2 ? is_ns * 2 : UNMOUNTED_MIN_NS_MAX;
	if (recorded < allowed / 4 && is_ns > asked_ns)
		return is_ns / 2 > asked_ns ? is_ns / 2 : asked_ns;
	return is_ns;
}

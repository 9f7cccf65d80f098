/* See continuation.h. */
#include "agent/hotspot/continuation.h"

#include "agent/base/guard.h"
#include "agent/hotspot/code.h"

struct continuation_layout continuation_sig;

bool continuation_is_barrier_sig(uint64_t pc)
{
	return pc >= code_places_sig.cont_low && pc < code_places_sig.cont_high;
}

uint64_t continuation_on_sig(uint64_t java_thread)
{
	int32_t at = continuation_sig.entry_in_thread;
	uint64_t entry = at >= 0 ? load64_sig(java_thread + (uint32_t)at) : 0;
	uint64_t continuation = entry ? load64_sig(entry + ENTRY_CONT) : 0;

	return continuation < GUARD_LOW || continuation % 8 ? 0 : continuation;
}

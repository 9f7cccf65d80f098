/* What pauses.c and pauses_sig.c share. */
#pragma once

#include "agent/engine/pauses.h"

#define PAUSES_KEPT 64u /* a power of two */

struct pauses {
	uint32_t on;
	uint32_t busy; /* somebody notes one down; nobody waits for that */
	uint64_t seen_ns; /* end of the last one */
	uint64_t number; /* and its number */
	uint64_t skipped; /* numbers that were never seen, all in all */
	uint64_t head, tail; /* of the ring; only the agent's thread moves tail */
	struct safepoint ring[PAUSES_KEPT];
};
extern struct pauses pauses_sig;

/* Shared by pauses.c, for the agent's thread, and pauses_sig.c, for handlers. */
#pragma once

#include "agent/engine/pauses.h"

#define PAUSES_KEPT 64u /* a power of two */

struct pauses {
	uint32_t on;
	uint32_t busy; /* a thread is recording a safepoint; other threads do not wait for it */
	uint64_t seen_ns; /* end of the last recorded safepoint */
	uint64_t number; /* its number */
	uint64_t skipped; /* number of safepoints that were missed */
	uint64_t head, tail; /* positions in ring[]; only the agent's thread moves tail */
	struct safepoint ring[PAUSES_KEPT];
};
extern struct pauses pauses_sig;

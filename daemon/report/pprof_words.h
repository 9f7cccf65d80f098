/* Words that pprof.c writes and read_pprof.c recognises. */
#pragma once

#include "proto/wire.h"

/* The prefix of comments with JSON that the format has no field for: an event's counters, its
 * processes. `go tool pprof` does not show comments that begin with "#". */
#define PPROF_COMMENT "#kindling "

struct pprof_words {
	const char *samples, *weight; /* types of values: number of events, weight */
};
extern const struct pprof_words pprof_words[WIRE_EVENT_COUNT];

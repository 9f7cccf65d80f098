/* What pprof.c writes and read_pprof.c looks for. */
#pragma once

#include "proto/wire.h"

/* Goes before JSON that holds what the format has no place for: an event's books, its processes.
 * `go tool pprof` does not show comments with "#". */
#define PPROF_COMMENT "#kindling "

struct pprof_words {
	const char *samples, *weight; /* types of values: how often, how much */
};
extern const struct pprof_words pprof_words[WIRE_EVENT_COUNT];

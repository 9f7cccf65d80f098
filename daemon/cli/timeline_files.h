/* Makes files of an answer of /v1/timeline: a page, or a trace for Perfetto. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

/* The columns of an event in the answer (docs/api.md); a moment has only the first five. */
enum timeline_column {
	COLUMN_THREAD,
	COLUMN_AT,
	COLUMN_LENGTH,
	COLUMN_STACK,
	COLUMN_TRACE,
	COLUMN_REASON,
	COLUMN_FLAGS,
	COLUMN_LOCK,
	COLUMN_OWNER,
	COLUMN_OWNER_STACK,
	COLUMN_WAKER,
	COLUMN_COUNT,
	COLUMN_RUNQUEUE,
	COLUMN_SYSCALL,
	COLUMNS_OF_TIMELINE
};

/* The page, which contains the answer's text; malloc'ed, NULL = no memory. */
char *timeline_page(const char *answer, size_t len, size_t *ret_len);
/* A trace in Perfetto's protobuf (proto/perfetto.proto): for each thread a track of each kind of
 * event, and from each wait for a lock an arrow to its owner. malloc'ed; NULL = no memory, or
 * @answer is no timeline. */
char *timeline_pftrace(const cJSON *answer, size_t *ret_len);

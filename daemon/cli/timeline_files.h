/* Files of `kindling timeline`, out of the answer of /v1/timeline: a page, or a trace for Perfetto.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

/* Columns of an event in the answer (docs/api.md); moments have the first five. */
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

/* The page with the answer's text in it. malloc'ed, NULL = no memory. */
char *timeline_page(const char *answer, size_t len, size_t *ret_len);
/* Perfetto's protobuf (proto/perfetto.proto): a track for each thread and kind of event, lock waits
 * with an arrow to their owner. malloc'ed, NULL = no memory, or it is no timeline. */
char *timeline_pftrace(const cJSON *answer, size_t *ret_len);

/* Makes the SQL queries for a report. Their answers have all columns of the tables; those that are
 * not needed are empty. */
#pragma once

#include "daemon/clickhouse/schema.h"

enum clickhouse_selector {
	CLICKHOUSE_NAMESPACE,
	CLICKHOUSE_SERVICE,
	CLICKHOUSE_VERSION,
	CLICKHOUSE_IMAGE,
	CLICKHOUSE_POD,
	CLICKHOUSE_CONTAINER,
	CLICKHOUSE_NODE,
	CLICKHOUSE_SELECTORS
};
/* The names of columns, which are also the names of options. */
extern const char *const clickhouse_selector_names[CLICKHOUSE_SELECTORS + 1]; /* NULL-terminated */

struct clickhouse_question {
	const char *database;
	uint64_t from_ns, to_ns;
	const char *selectors[CLICKHOUSE_SELECTORS]; /* the values to select; NULL = any */
	unsigned events; /* bits 1 << enum wire_event */
};

/* Appends @s, quoted for a statement. */
void clickhouse_put_quoted(struct text_out *t, const char *s);
/* Appends the query for one table. */
void clickhouse_put_question(struct text_out *t, const struct clickhouse_question *q,
			     enum clickhouse_table table);
/* Appends the query for the @rows classes of locks with the most waiting time. The answer has a
 * tab-separated line for each: class, kind of wait, processes, waits, ns. @idle: include idle
 * waits. */
void clickhouse_put_locks_question(struct text_out *t, const struct clickhouse_question *q,
				   bool idle, unsigned rows);

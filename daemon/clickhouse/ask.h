/* Queries to ClickHouse for a report: SQL, whose answers have the columns of the tables; columns
 * that are not needed are empty. */
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
/* The names of columns, which are also those of options. */
extern const char *const clickhouse_selector_names[CLICKHOUSE_SELECTORS];

struct clickhouse_question {
	const char *database;
	uint64_t from_ns, to_ns;
	const char *selectors[CLICKHOUSE_SELECTORS]; /* equal to; NULL = any */
	unsigned events; /* bits 1 << enum wire_event */
};

/* A string quoted for a statement. */
void clickhouse_put_quoted(struct text_out *t, const char *s);
void clickhouse_put_question(struct text_out *t, const struct clickhouse_question *q,
			     enum clickhouse_table table);
/* The first @rows classes of locks by waiting time: one line each, tab-separated: class, kind of
 * wait, processes, waits, ns. */
void clickhouse_put_locks_question(struct text_out *t, const struct clickhouse_question *q,
				   bool idle, unsigned rows);

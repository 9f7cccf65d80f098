/*
 * Converts the profile of an interval to rows of ClickHouse's tables: samples by process, thread
 * and stack; stacks; and processes with their labels. The same profile always becomes the same
 * rows, so that a delivery can be repeated; only rows of stacks that the server has may be missing.
 * Pure.
 */
#pragma once

#include "daemon/clickhouse/schema.h"
#include "daemon/clickhouse/sent.h"
#include "daemon/profile/profile.h"

struct clickhouse_rows {
	struct text_out tables[CLICKHOUSE_TABLES]; /* RowBinary */
	uint64_t rows[CLICKHOUSE_TABLES];
	uint64_t samples; /* samples in the rows, of all events */
};

/* The event of the row that `sink test` inserts: no report and no sum over events counts it. */
#define CLICKHOUSE_TEST_EVENT "test"

/* @node: the node of the rows; NULL = from the labels. @sent: stacks in it get no row, others are
 * added to it; NULL = all stacks get rows. 0 or -ENOMEM; freed by clickhouse_rows_deinit() in
 * either case. */
int clickhouse_rows_make(const struct profile *p, const char *node, struct clickhouse_sent *sent,
			 struct clickhouse_rows *ret);
/* The same for `sink test`: the event of the samples is CLICKHOUSE_TEST_EVENT. */
int clickhouse_rows_test(const struct profile *p, const char *node, struct clickhouse_rows *ret);
void clickhouse_rows_deinit(struct clickhouse_rows *r);

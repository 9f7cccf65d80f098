/*
 * The tables of kindling in ClickHouse: their columns in the order in which rows.c writes them and
 * answer.c reads them, and the statements that create them (docs/clickhouse.md,
 * docs/decisions/0019).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/report/text_out.h"

enum clickhouse_table {
	CLICKHOUSE_STACKS,
	CLICKHOUSE_SAMPLES,
	CLICKHOUSE_PROCESSES,
	CLICKHOUSE_TABLES
};

extern const char *const clickhouse_table_names[CLICKHOUSE_TABLES];

struct clickhouse_schema {
	const char *database;
	const char *cluster; /* Distributed tables over its servers; NULL = a single server */
	bool replicated; /* Replicated tables, which need ZooKeeper or Keeper */
	unsigned ttl_days; /* rows are deleted after this many days; 0 = never */
};

/* Does @name consist of letters, digits and _ and begin with no digit, so that statements need not
 * quote it? */
bool clickhouse_name_is_fine(const char *name);
/* Appends the names of the columns, "time, until, ...". */
void clickhouse_put_columns(struct text_out *t, enum clickhouse_table table);
/* Appends statement @i that creates the tables, without a semicolon; false = there are no more. */
bool clickhouse_put_statement(struct text_out *t, const struct clickhouse_schema *s, unsigned i);
struct rowbinary;
/* Skips one row of @table in RowBinary; sets `bad` if it is none. Returns its number of samples,
 * for the table of samples; else 0. */
uint64_t clickhouse_skip_row(struct rowbinary *in, enum clickhouse_table table);
/* Appends "INSERT INTO ... FORMAT RowBinary". */
void clickhouse_put_insert(struct text_out *t, const char *database, enum clickhouse_table table);

/*
 * Converts ClickHouse's answers to a profile, from which a report is made as on one node. The bytes
 * come from a server, and their content from any container: nothing is trusted (fuzzed by
 * tests/fuzz/fuzz_clickhouse.c).
 */
#pragma once

#include "daemon/clickhouse/schema.h"
#include "daemon/profile/profile.h"

/* Answers to clickhouse_put_question(); all columns of each table, RowBinary. */
struct clickhouse_answers {
	const void *bytes[CLICKHOUSE_TABLES];
	size_t len[CLICKHOUSE_TABLES];
};

struct clickhouse_answered {
	uint64_t rows[CLICKHOUSE_TABLES];
	uint64_t without_stack; /* samples whose stack is not in the answer */
	enum clickhouse_table bad; /* for -EBADMSG: which answer, and which row */
	uint64_t bad_row;
};

/* 0, -EBADMSG or -ENOMEM. */
int clickhouse_profile(const struct clickhouse_answers *a, struct clickhouse_answered *ret_what,
		       struct profile **ret);

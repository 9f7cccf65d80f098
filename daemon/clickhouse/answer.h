/*
 * Converts ClickHouse's answers to a profile, from which a report is made as on one node. The bytes
 * come from a server, and their content from containers, so nothing is trusted. Fuzzed by
 * tests/fuzz/fuzz_clickhouse.c.
 */
#pragma once

#include "daemon/clickhouse/schema.h"
#include "daemon/profile/profile.h"

/* The answers to clickhouse_put_question(), one for each table, as RowBinary; borrowed. */
struct clickhouse_answers {
	const void *bytes[CLICKHOUSE_TABLES];
	size_t len[CLICKHOUSE_TABLES];
};

struct clickhouse_answered {
	uint64_t rows[CLICKHOUSE_TABLES];
	uint64_t without_stack; /* samples whose stack is not in the answer */
	enum clickhouse_table bad; /* after -EBADMSG: the answer and the row that are malformed */
	uint64_t bad_row;
};

/* 0, -EBADMSG or -ENOMEM. The caller frees *ret with profile_free(). */
int clickhouse_profile(const struct clickhouse_answers *a, struct clickhouse_answered *ret_what,
		       struct profile **ret);

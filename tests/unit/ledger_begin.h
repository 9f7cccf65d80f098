/* A time ledger for each test. */
#pragma once

#include "tests/unit/unit.h"
#include "daemon/timeline/time_ledger.h"

#define S  1000000000ull
#define MS 1000000ull

static struct time_ledger *ledger;
static const uint64_t t0 = 7000 * S + 123456;

static inline int begin(void **state)
{
	(void)state;
	return time_ledger_new(&ledger);
}

static inline int end(void **state)
{
	(void)state;
	ledger = time_ledger_free(ledger);
	return 0;
}

static inline uint64_t sum_of(const struct time_row *r)
{
	uint64_t sum = r->cpu_ns + r->runqueue_ns + r->unseen_ns;

	for (unsigned i = 0; i < TIME_LEDGER_REASONS; i++)
		sum += r->off_ns[i];
	return sum;
}

#include "tests/unit/unit.h"
#include "daemon/ground/clock.h"
#include "daemon/target/decode_budget.h"
#include "daemon/target/target_priv.h"

static uint64_t sum_at(const uint64_t *asked, unsigned n, uint64_t level)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += asked[i] < level ? asked[i] : level;
	return sum;
}

static void all_get_what_they_ask_for_while_there_is_enough(void **state)
{
	const uint64_t asked[] = { 30, 0, 70 };

	(void)state;
	assert_int_equal(decode_level(asked, 3, 100), UINT64_MAX);
	assert_int_equal(decode_level(asked, 0, 100), UINT64_MAX);
	assert_int_equal(decode_level(asked, 3, UINT64_MAX), UINT64_MAX);
}

static void a_small_demand_is_met_beside_a_large_one(void **state)
{
	const uint64_t asked[] = { 1000000, 10, 500, 20, 1000000 };

	(void)state;
	/* two tenants use 10 and 20 of 100, the other three share the rest equally */
	assert_int_equal(decode_level(asked, 5, 100), 23);
	assert_int_equal(decode_level(asked, 5, 0), 0);
}

static void no_level_gives_more_than_there_is(void **state)
{
	uint64_t asked[1024];

	(void)state;
	srandom(1);
	for (int round = 0; round < 200; round++) {
		unsigned n = 1 + (unsigned)random() % 1024;
		uint64_t bound = (uint64_t)random() % 100000000, level;

		for (unsigned i = 0; i < n; i++)
			asked[i] = (uint64_t)random() >> random() % 31;
		level = decode_level(asked, n, bound);
		assert_true(sum_at(asked, n, level) <= (level == UINT64_MAX ? UINT64_MAX : bound));
		if (level == UINT64_MAX)
			assert_true(sum_at(asked, n, level) <= bound);
		else if (bound > n) /* nor much less */
			assert_true(sum_at(asked, n, level) + n >= bound - bound / 100);
	}
}

static void newcomers_spend_from_the_reserve(void **state)
{
	int64_t own = 0, shared = 100;

	(void)state;
	decode_spend(&own, &shared, 30);
	assert_int_equal(own, 0);
	assert_int_equal(shared, 70);
	decode_earn(&own, 50, 40);
	assert_int_equal(own, 40);
	decode_spend(&own, &shared, 60);
	assert_int_equal(own, 0);
	assert_int_equal(shared, 50);
	decode_spend(&own, &shared, 80);
	assert_int_equal(own, -30);
	assert_int_equal(shared, 0);
	decode_earn(&own, 20, 40);
	assert_int_equal(own, -10);
}

static void no_debt_is_paid_off_for_ever(void **state)
{
	int64_t own = 0, shared = -5;

	(void)state;
	decode_spend(&own, &shared, UINT64_MAX);
	decode_spend(&own, &shared, 3600 * NS_PER_S);
	assert_in_range(-own, NS_PER_S, 5 * NS_PER_S);
	assert_int_equal(shared, -5);
}

static void more_than_may_be_kept_stays_but_does_not_grow(void **state)
{
	int64_t own = 100;

	(void)state;
	decode_earn(&own, 50, 40);
	assert_int_equal(own, 100);
}

/* The cost of windows counts against the tenant whose flood fills them, not against others. */
static void work_for_all_is_paid_by_the_bytes_of_each(void **state)
{
	static const struct config config; /* the cost is counted even without a limit */
	struct target all[3] = { 0 };
	struct target_priv priv[3] = { 0 };
	struct targets table = { .first = &all[0], .config = &config };

	(void)state;
	for (int i = 0; i < 3; i++) {
		all[i].priv = &priv[i];
		all[i].stream = (void *)&all[i]; /* only whether this pointer is NULL matters */
		priv[i].table = &table;
		priv[i].next = i < 2 ? &all[i + 1] : NULL;
	}
	targets_charge(&table, NS_PER_MS);
	assert_int_equal(target_decode_ns(&all[0]), 0);
	priv[0].decoding.uncharged = 3000;
	priv[1].decoding.uncharged = 1000;
	targets_charge(&table, 4 * NS_PER_MS);
	assert_int_equal(target_decode_ns(&all[0]), 3 * NS_PER_MS);
	assert_int_equal(target_decode_ns(&all[1]), NS_PER_MS);
	assert_int_equal(target_decode_ns(&all[2]), 0);
	targets_charge(&table, NS_PER_MS); /* nothing came since */
	assert_int_equal(target_decode_ns(&all[0]), 3 * NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_get_what_they_ask_for_while_there_is_enough),
		cmocka_unit_test(a_small_demand_is_met_beside_a_large_one),
		cmocka_unit_test(no_level_gives_more_than_there_is),
		cmocka_unit_test(newcomers_spend_from_the_reserve),
		cmocka_unit_test(no_debt_is_paid_off_for_ever),
		cmocka_unit_test(more_than_may_be_kept_stays_but_does_not_grow),
		cmocka_unit_test(work_for_all_is_paid_by_the_bytes_of_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

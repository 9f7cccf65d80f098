#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/target/target_priv.h"

static void gone_is_the_end_and_can_be_reached_from_everywhere(void **state)
{
	(void)state;
	for (int from = 0; from < TARGET_STATE_COUNT; from++) {
		assert_int_equal(target_step_allowed(from, TARGET_GONE), from != TARGET_GONE);
		assert_false(target_step_allowed(TARGET_GONE, from));
		assert_false(target_step_allowed(from, from));
		assert_non_null(target_state_names[from]);
	}
	assert_false(target_step_allowed(TARGET_STREAMING, TARGET_INJECTING));
	assert_true(target_step_allowed(TARGET_FAILED, TARGET_INJECTING));
}

static void attempts_back_off_and_end_where_only_the_owner_can_help(void **state)
{
	struct fault plain = { .code = 1 }, soon = { .code = 1, .flags = FAULT_RETRY_SOON };
	struct fault never = { .code = 1, .flags = FAULT_PERMANENT };

	(void)state;
	assert_int_equal(target_backoff_ns(1, &plain), 1 * NS_PER_S);
	assert_int_equal(target_backoff_ns(2, &plain), 5 * NS_PER_S);
	assert_int_equal(target_backoff_ns(99, &plain), 300 * NS_PER_S);
	assert_int_equal(target_backoff_ns(1, &soon), 10 * NS_PER_MS);
	assert_int_equal(target_backoff_ns(8, &soon), 1 * NS_PER_S);
	assert_int_equal(target_backoff_ns(99, &soon), 30 * NS_PER_S);
	assert_int_equal(target_backoff_ns(1, &never), 0);
}

/* Four targets that the table links, called by these names. */
static struct target four[4];

static struct targets *table_of(const char *const names[4], const enum target_state states[4])
{
	static struct target_priv privates[4];
	static struct targets table;

	memset(four, 0, sizeof(four));
	memset(privates, 0, sizeof(privates));
	for (int i = 0; i < 4; i++) {
		four[i].jvm.pid = 100 + i;
		snprintf(four[i].jvm.name, sizeof(four[i].jvm.name), "%s", names[i]);
		four[i].state = states[i];
		four[i].priv = &privates[i];
		privates[i].next = i < 3 ? &four[i + 1] : NULL;
	}
	table = (struct targets){ .first = four };
	return &table;
}

static struct target *named[NAMED_MAX];

static void exact_names_and_the_living_come_first(void **state)
{
	static const char *const names[4] = { "shop", "shop", "shop-2", "shop-3" };
	enum target_state states[4] = { TARGET_GONE, TARGET_STREAMING, TARGET_STREAMING,
					TARGET_FAILED };
	struct targets *table = table_of(names, states);

	(void)state;
	assert_int_equal(targets_named(table, "shop", false, named), 1);
	assert_ptr_equal(named[0], &four[1]);
	assert_int_equal(targets_named(table, "hop", false, named), 3); /* parts, alive */
	assert_int_equal(targets_named(table, "100", false, named), 1); /* ended: by its pid */
	assert_int_equal(targets_named(table, "else", false, named), 0);
	four[1].state = TARGET_GONE;
	assert_int_equal(targets_named(table, "shop", false, named), 2); /* not shop-2 */
	assert_ptr_equal(named[0], &four[0]);
}

static void one_that_is_only_remembered_is_known_to_who_asks_for_it(void **state)
{
	static const char *const names[4] = { "old", "a", "b", "c" };
	const enum target_state states[4] = { TARGET_GONE, TARGET_GONE, TARGET_FOUND,
					      TARGET_FOUND };
	struct targets *table = table_of(names, states);

	(void)state;
	four[0].priv->remembered = true;
	assert_ptr_equal(targets_next(table, NULL), &four[1]);
	assert_ptr_equal(targets_next_known(table, NULL), &four[0]);
	assert_int_equal(targets_named(table, "old", false, named), 0);
	assert_int_equal(targets_named(table, "old", true, named), 1);
}

static void the_cost_of_an_agent_is_that_of_the_last_minute(void **state)
{
	struct target_recent r = { 0 };
	uint64_t s, ms = NS_PER_MS;

	(void)state;
	assert_true(recent_cpus(&r, NS_PER_S, 5 * ms) < 0);
	recent_add(&r, 100 * NS_PER_S, 500 * ms); /* half a second at first */
	assert_true(recent_cpus(&r, 100 * NS_PER_S, 500 * ms) < 0); /* too early */
	for (s = 101; s <= 300; s++) /* then 1 ms a second */
		recent_add(&r, s * NS_PER_S, (400 + s) * ms);
	assert_float_equal(recent_cpus(&r, 300 * NS_PER_S, 700 * ms), 0.001, 1e-6);
	/* a quiet agent sends nothing and costs nothing: three minutes later, with 2 ms more */
	assert_float_equal(recent_cpus(&r, 480 * NS_PER_S, 702 * ms), 2.0 / 180000, 1e-6);
	/* old costs no longer count */
	for (; s <= 400; s++)
		recent_add(&r, s * NS_PER_S, 800 * ms);
	assert_float_equal(recent_cpus(&r, 400 * NS_PER_S, 800 * ms), 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gone_is_the_end_and_can_be_reached_from_everywhere),
		cmocka_unit_test(attempts_back_off_and_end_where_only_the_owner_can_help),
		cmocka_unit_test(exact_names_and_the_living_come_first),
		cmocka_unit_test(one_that_is_only_remembered_is_known_to_who_asks_for_it),
		cmocka_unit_test(the_cost_of_an_agent_is_that_of_the_last_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

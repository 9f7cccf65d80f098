#include "tests/unit/unit.h"
#include "daemon/core/clock.h"
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
	assert_int_equal(target_backoff_ns(1, &never), 0);
}

static void a_target_is_named_by_what_status_shows(void **state)
{
	struct target_priv private = { 0 };
	struct target t = { .priv = &private };
	struct targets table = { .first = &t };

	(void)state;
	t.jvm.pid = 4711;
	strcpy(t.jvm.container_id, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	strcpy(t.jvm.pod, "shop/cart-7d9");
	strcpy(t.jvm.container, "cart");
	strcpy(t.jvm.name, "org.shop.CartMain");
	assert_ptr_equal(targets_match(&table, "4711", NULL), &t);
	assert_null(targets_match(&table, "471", NULL));
	assert_ptr_equal(targets_match(&table, "0123456789ab", NULL), &t);
	assert_null(targets_match(&table, "0123456789a", NULL)); /* too short to be one */
	assert_ptr_equal(targets_match(&table, "shop/cart-7d9", NULL), &t);
	assert_ptr_equal(targets_match(&table, "cart-7d9", NULL), &t);
	assert_ptr_equal(targets_match(&table, "cart", NULL), &t);
	assert_ptr_equal(targets_match(&table, "CartMain", NULL), &t);
	assert_null(targets_match(&table, "", NULL));
	assert_null(targets_match(&table, "4711", &t)); /* no second one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gone_is_the_end_and_can_be_reached_from_everywhere),
		cmocka_unit_test(attempts_back_off_and_end_where_only_the_owner_can_help),
		cmocka_unit_test(a_target_is_named_by_what_status_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

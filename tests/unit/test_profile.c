#include "tests/unit/made_profile.h"
#include "daemon/profile/profile_priv.h"

static void a_process_learns_its_names_later(void **state)
{
	struct profile_process q = { .pid = 7, .start_time = 70 };
	struct profile *p = example(7);

	(void)state;
	q.name = profile_string(p, "other");
	q.jdk = profile_string(p, "Debian 17");
	assert_int_equal(profile_process(p, &q), 0);
	assert_string_equal(p->strings[p->processes[0].jdk], "Debian 17");
	assert_string_equal(p->strings[p->processes[0].name], "app");
	profile_free(p);
}

/* Also tenants whose hints are at one place. */
static void each_tenant_has_an_account(void **state)
{
	uint32_t accounts[3 * PROFILE_ACCOUNT_HINTS];
	struct profile *p = example(7);

	(void)state;
	for (uint64_t i = 0; i < ARRAY_SIZE(accounts); i++) {
		accounts[i] = profile_account(p, 1000 + i);
		for (uint64_t k = 0; k < i; k++)
			assert_int_not_equal(accounts[i], accounts[k]);
	}
	for (unsigned round = 0; round < 2; round++)
		for (uint64_t i = 0; i < ARRAY_SIZE(accounts); i++)
			assert_int_equal(profile_account(p, 1000 + i), accounts[i]);
	profile_free(p);
}

static void weights_stay_at_the_end_of_their_numbers(void **state)
{
	struct profile *p = example(7);

	(void)state;
	profile_add(p, 0, 2, UINT64_MAX, UINT64_MAX);
	assert_true(p->rows[0].weight == UINT64_MAX);
	assert_true(p->rows[0].samples == UINT64_MAX);
	profile_free(p);
}

static void events_of_one_stack_stay_apart(void **state)
{
	struct profile *p = mixed();

	(void)state;
	assert_int_equal(p->n_rows, 2 + 3);
	assert_int_equal(p->n_nodes, 3);
	assert_int_equal(profile_events(p), 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_one_stack_stay_apart),
		cmocka_unit_test(a_process_learns_its_names_later),
		cmocka_unit_test(each_tenant_has_an_account),
		cmocka_unit_test(weights_stay_at_the_end_of_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

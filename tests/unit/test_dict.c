#include <string.h>
#include "agent/base/dict.h"
#include "tests/unit/unit.h"

#define BUDGET (1u << 20)

static void key_keeps_its_id_while_the_table_grows(void **state)
{
	struct dict d = { 0 };
	bool is_new;

	(void)state;
	dict_budget(4 * BUDGET);
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(dict_id(&d, i, i * 7, &is_new), i + 1);
		assert_true(is_new);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(dict_id(&d, i, i * 7, &is_new), i + 1);
		assert_false(is_new);
	}
	dict_clear(&d);
}

static void keys_that_differ_in_one_word_are_two(void **state)
{
	struct dict d = { 0 };
	bool is_new;

	(void)state;
	dict_budget(BUDGET);
	assert_int_equal(dict_id(&d, 5, 6, &is_new), 1);
	assert_int_equal(dict_id(&d, 6, 5, &is_new), 2);
	assert_int_equal(dict_id(&d, 5, 5, &is_new), 3);
	assert_int_equal(dict_id(&d, 0, 0, &is_new), 4);
	assert_int_equal(dict_id(&d, 0, 0, &is_new), 4);
	dict_clear(&d);
}

static void full_table_refuses_and_still_knows_the_old(void **state)
{
	struct dict d = { 0 };
	uint32_t n = 0;
	bool is_new;

	(void)state;
	dict_budget(BUDGET);
	while (dict_id(&d, n, 0, &is_new))
		n++;
	assert_true(n > 1000);
	assert_true(dict_bytes(&d) <= BUDGET);
	assert_false(is_new);
	assert_int_equal(dict_id(&d, n - 1, 0, &is_new), n);
	dict_clear(&d);
}

static void tables_share_one_budget(void **state)
{
	struct dict a = { 0 }, b = { 0 };
	uint32_t n_alone = 0, n_shared = 0;
	bool is_new;

	(void)state;
	dict_budget(BUDGET);
	while (dict_id(&a, n_alone, 0, &is_new))
		n_alone++;
	dict_clear(&a);
	/* memory that one table returns is available to the other */
	while (dict_id(&b, n_shared, 0, &is_new))
		n_shared++;
	assert_int_equal(n_alone, n_shared);
	for (n_shared = 0; dict_id(&a, n_shared, 0, &is_new); n_shared++)
		;
	assert_true(n_shared <= n_alone);
	assert_true(dict_bytes(&a) + dict_bytes(&b) <= BUDGET);
	dict_clear(&a);
	dict_clear(&b);
	assert_int_equal(dict_bytes(&b), 0);
}

static void cleared_table_counts_from_one(void **state)
{
	struct dict d = { 0 };
	bool is_new;

	(void)state;
	dict_budget(BUDGET);
	assert_int_equal(dict_id(&d, 1, 1, &is_new), 1);
	dict_clear(&d);
	assert_int_equal(dict_id(&d, 2, 2, &is_new), 1);
	assert_true(is_new);
	dict_clear(&d);
}

static void hash_depends_on_each_byte(void **state)
{
	const char *words[] = { "", "a", "b", "ab", "ba", "java/lang/String", "java/lang/string" };

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(dict_hash(words[i], (uint32_t)strlen(words[i])),
					     dict_hash(words[j], (uint32_t)strlen(words[j])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_keeps_its_id_while_the_table_grows),
		cmocka_unit_test(keys_that_differ_in_one_word_are_two),
		cmocka_unit_test(full_table_refuses_and_still_knows_the_old),
		cmocka_unit_test(tables_share_one_budget),
		cmocka_unit_test(cleared_table_counts_from_one),
		cmocka_unit_test(hash_depends_on_each_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

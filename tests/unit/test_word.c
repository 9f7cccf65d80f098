#include "tests/unit/unit.h"
#include "daemon/ground/mem.h"
#include "daemon/discovery/word.h"

static const struct jvm shop = {
	.pid = 4711,
	.name = "org.shop.Main",
	.container_id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.container = "web",
	.pod = "prod/shop-7d9f",
};

static void an_exact_name_names_it(void **state)
{
	static const char *const words[] = { "4711", "org.shop.Main",  "0123456789ab",
					     "web",  "prod/shop-7d9f", "shop-7d9f" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(word_names(&shop, words[i]), WORD_EXACT);
	assert_int_equal(word_names(&shop, "shop.Main"), WORD_PART);
}

static void another_name_does_not_name_it(void **state)
{
	static const char *const words[] = {
		"471", "47110", "we", "webs", "0123456789a", "prod", ""
	};
	static const struct jvm bare = { .pid = 1, .name = "Main" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(word_names(&shop, words[i]), WORD_NO);
	assert_int_equal(word_names(&bare, ""), WORD_NO); /* it has no container */
}

static void a_typing_error_resembles_and_another_name_does_not(void **state)
{
	(void)state;
	assert_int_equal(word_resembles(&shop, "org.shpo.Main"), 6); /* "o.Main" or "org.sh" */
	assert_int_equal(word_resembles(&shop, "ORG.SHOP.MAIN"), 13);
	assert_int_equal(word_resembles(&shop, "471"), 3);
	assert_int_equal(word_resembles(&shop, "shop-8e00"), 5);
	assert_int_equal(word_resembles(&shop, "com.acme.Billing"), 0);
	assert_int_equal(word_resembles(&shop, "sh"), 0); /* too little for a match */
	assert_int_equal(word_resembles(&shop, ""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exact_name_names_it),
		cmocka_unit_test(another_name_does_not_name_it),
		cmocka_unit_test(a_typing_error_resembles_and_another_name_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

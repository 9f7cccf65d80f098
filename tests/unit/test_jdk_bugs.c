/* The table of JDK bugs: each row has all its texts, and versions are matched correctly. */
#include "tests/unit/unit.h"
#include "proto/jdk_bugs.h"

#define affects(bug, feature, update) jdk_bug_affects(bug, (struct jdk_version){ feature, update })

static void every_row_has_a_source_and_an_answer(void **state)
{
	(void)state;
	for (int i = 0; i < JDK_BUG_COUNT; i++) {
		const struct jdk_bug *b = &jdk_bugs[i];

		assert_int_equal(strncmp(b->source, "JDK-8", 5), 0);
		assert_true(b->harm && *b->harm);
		assert_true(b->answer && *b->answer);
		assert_true(b->good_from > 8);
		for (int k = 0; k < JDK_FIXES_MAX && b->fixes[k].feature; k++) {
			assert_true(b->fixes[k].feature < b->good_from);
			assert_true(b->fixes[k].update > 0);
		}
	}
}

static void the_first_good_update_is_good_and_the_one_before_is_not(void **state)
{
	(void)state;
	for (int i = 0; i < JDK_BUG_COUNT; i++) {
		const struct jdk_bug *b = &jdk_bugs[i];

		for (int k = 0; k < JDK_FIXES_MAX && b->fixes[k].feature; k++) {
			assert_false(affects(i, b->fixes[k].feature, b->fixes[k].update));
			assert_true(affects(i, b->fixes[k].feature, b->fixes[k].update - 1));
		}
		if (b->good_from == INT32_MAX)
			continue;
		assert_false(affects(i, b->good_from, 0));
	}
}

static void known_versions_are_judged_as_their_release_notes_say(void **state)
{
	(void)state;
	assert_true(affects(JDK_BUG_SOCKET, 8, 292));
	assert_true(affects(JDK_BUG_SOCKET, 13, 0)); /* a feature without any fix */
	assert_int_equal(jdk_bug_fixed_in(JDK_BUG_SOCKET, (struct jdk_version){ 13, 0 }).feature,
			 14);
	assert_int_equal(jdk_bug_fixed_in(JDK_BUG_SOCKET, (struct jdk_version){ 8, 1 }).update,
			 352);
	assert_false(affects(JDK_BUG_SOCKET, 11, 13));
	assert_false(affects(JDK_BUG_SOCKET, 17, 0));
	assert_true(affects(JDK_BUG_TRACE, 17, 4));
	assert_false(affects(JDK_BUG_TRACE, 21, 0));
	assert_true(affects(JDK_BUG_COMPILED, 8, 372));
	assert_false(affects(JDK_BUG_COMPILED, 11, 0));
	assert_true(affects(JDK_BUG_STUBS, 11, 33));
	assert_false(affects(JDK_BUG_STUBS, 17, 0));
	assert_true(affects(JDK_BUG_TWO_TRACES, 28, 0));
}

static void an_unknown_version_has_no_known_bug(void **state)
{
	(void)state;
	for (int i = 0; i < JDK_BUG_COUNT; i++)
		assert_false(affects(i, 0, 0));
}

static void eight_calls_itself_twenty_five(void **state)
{
	struct jdk_version v = jdk_version_of(25, 352, NULL);
	int32_t security = 3;

	(void)state;
	assert_int_equal(v.feature, 8);
	assert_int_equal(v.update, 352);
	v = jdk_version_of(25, 0, &security);
	assert_int_equal(v.feature, 25);
	assert_int_equal(v.update, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_a_source_and_an_answer),
		cmocka_unit_test(the_first_good_update_is_good_and_the_one_before_is_not),
		cmocka_unit_test(known_versions_are_judged_as_their_release_notes_say),
		cmocka_unit_test(an_unknown_version_has_no_known_bug),
		cmocka_unit_test(eight_calls_itself_twenty_five),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

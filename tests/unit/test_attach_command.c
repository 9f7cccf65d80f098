/* Requests of the attach protocol 1 and 2. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <string.h>
#include "injector/inject.h"

static char word_of_1024[1025], word_of_1025[1026];

static void protocol_1_has_a_number_and_four_words(void **state)
{
	const char *words[4] = { "jcmd", "VM.version", NULL, NULL };
	static const char wanted[] = "1\0jcmd\0VM.version\0\0";
	char buf[128];

	(void)state;
	assert_int_equal(attach_protocol_for(words), 1);
	assert_int_equal(attach_request(1, words, buf, sizeof(buf)), sizeof(wanted));
	assert_memory_equal(buf, wanted, sizeof(wanted));
}

static void protocol_2_also_says_how_long_the_words_are(void **state)
{
	const char *words[4] = { "load", "/x.so", "true", "a=b" };
	static const char wanted[] = "2\0"
				     "20\0load\0/x.so\0true\0a=b";
	char buf[128];

	(void)state;
	assert_int_equal(attach_request(2, words, buf, sizeof(buf)), sizeof(wanted));
	assert_memory_equal(buf, wanted, sizeof(wanted));
}

static void only_a_long_word_wants_protocol_2(void **state)
{
	const char *words[4] = { "jcmd", word_of_1024, NULL, NULL };

	(void)state;
	assert_int_equal(attach_protocol_for(words), 1);
	words[3] = word_of_1025;
	assert_int_equal(attach_protocol_for(words), 2);
}

static void answers_to_getversion_are_parsed(void **state)
{
	(void)state;
	assert_int_equal(attach_protocol_of("0\n2"), 2);
	assert_int_equal(attach_protocol_of("0\n2 options"), 2);
	assert_int_equal(attach_protocol_of("0\n"), 0);
	assert_int_equal(attach_protocol_of("-1\nOperation getversion not recognized!"), 1);
	assert_int_equal(attach_protocol_of("101\n"), 1);
	assert_int_equal(attach_protocol_of(""), 1);
}

static void a_request_never_goes_beyond_its_buffer(void **state)
{
	const char *words[4] = { "jcmd", word_of_1025, NULL, NULL };
	char buf[2048];

	(void)state;
	for (size_t size = 0; size < 1033 + 32; size++)
		assert_int_equal(attach_request(2, words, buf, size), -E2BIG);
	assert_true(attach_request(2, words, buf, 1033 + 32) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protocol_1_has_a_number_and_four_words),
		cmocka_unit_test(protocol_2_also_says_how_long_the_words_are),
		cmocka_unit_test(only_a_long_word_wants_protocol_2),
		cmocka_unit_test(answers_to_getversion_are_parsed),
		cmocka_unit_test(a_request_never_goes_beyond_its_buffer),
	};

	memset(word_of_1024, 'x', sizeof(word_of_1024) - 1);
	memset(word_of_1025, 'x', sizeof(word_of_1025) - 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

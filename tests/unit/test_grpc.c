#include "tests/unit/unit.h"
#include "daemon/ground/clock.h"
#include "daemon/upload/grpc.h"

static const char *decoded(const char *s)
{
	static char buf[24];

	grpc_decode_text(s, buf, sizeof(buf));
	return buf;
}

static void a_servers_words_are_decoded_and_made_safe(void **state)
{
	(void)state;
	assert_string_equal(decoded("a%20b"), "a b");
	assert_string_equal(decoded("ni%C3%B1o"), "ni\xc3\xb1o");
	assert_string_equal(decoded("100%"), "100%");
	assert_string_equal(decoded("%4"), "%4");
	assert_string_equal(decoded("%zz"), "%zz");
	assert_string_equal(decoded("a%00b%1b%ff"), "a?b??");
	assert_string_equal(decoded("0123456789012345678901234567890"), "01234567890123456789012");
}

static void a_pause_is_found_among_the_details(void **state)
{
	/* Status{14, details: [Any{RetryInfo, RetryInfo{1.5 s}}]}, without and with padding */
	const char *pause =
		"CA4aNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ";

	(void)state;
	assert_int_equal(grpc_retry_after(pause), 3 * NS_PER_S / 2);
	assert_int_equal(grpc_retry_after("CA4aNgoodHlw"), 0);
	assert_int_equal(grpc_retry_after(""), 0);
	assert_int_equal(grpc_retry_after("!!!!"), 0);
}

static void http_codes_become_those_of_grpc(void **state)
{
	(void)state;
	assert_int_equal(grpc_status_of_http(404), GRPC_UNIMPLEMENTED);
	assert_int_equal(grpc_status_of_http(401), GRPC_UNAUTHENTICATED);
	assert_int_equal(grpc_status_of_http(503), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_status_of_http(200), GRPC_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_servers_words_are_decoded_and_made_safe),
		cmocka_unit_test(a_pause_is_found_among_the_details),
		cmocka_unit_test(http_codes_become_those_of_grpc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Parses the credentials that services of AWS return. tests/e2e/test_uploads.py tests which
 * service is asked, and when. */
#include "tests/unit/unit.h"
#include "daemon/ground/clock.h"
#include "daemon/upload/aws_keys.h"

static struct aws_keys keys;

static bool parse(const char *text)
{
	return aws_keys_parse(text, strlen(text), &keys);
}

static void keys_are_read(void **state)
{
	(void)state;
	assert_true(parse(
		"{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA1\",\"SecretAccessKey\":"
		"\"se/c+ret=\",\"Token\":\"to//ken==\",\"Expiration\":\"2026-11-23T07:00:00Z\"}"));
	assert_string_equal(keys.access_key, "ASIA1");
	assert_string_equal(keys.secret_key, "se/c+ret=");
	assert_string_equal(keys.session_token, "to//ken==");
	assert_int_equal(keys.end_real_ns, 1795417200 * NS_PER_S);
	assert_true(parse("{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\"}"));
	assert_int_equal(keys.end_real_ns, 0);
	assert_string_equal(keys.session_token, "");
}

static void invalid_keys_are_refused(void **state)
{
	static const char *const texts[] = {
		"", "[]", "{}", "{\"AccessKeyId\":\"A\"}",
		"{\"AccessKeyId\":\"A\",\"SecretAccessKey\":[1]}",
		/* a line break that would begin another header */
		"{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Token\":\"a\\r\\nX: b\"}",
		"{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Token\":\"a\\u00e9\"}",
		"{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Expiration\":\"soon\"}"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (parse(texts[i]))
			fail_msg("%s", texts[i]);
}

static void a_token_is_told_to_services_of_this_host_alone(void **state)
{
	(void)state;
	assert_true(aws_keys_url_is_near("http://169.254.170.23/v1/credentials"));
	assert_true(aws_keys_url_is_near("http://[fd00:ec2::23]/v1/credentials"));
	assert_true(aws_keys_url_is_near("http://127.0.0.1:51679/x"));
	assert_false(aws_keys_url_is_near("http://127.0.0.1.example.com/"));
	assert_false(aws_keys_url_is_near("http://127.0.0.1@example.com/"));
	assert_false(aws_keys_url_is_near("http://10.0.0.1/"));
	assert_false(aws_keys_url_is_near("https://127.0.0.1/"));
	assert_false(aws_keys_url_is_near(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read),
		cmocka_unit_test(invalid_keys_are_refused),
		cmocka_unit_test(a_token_is_told_to_services_of_this_host_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Signatures against the examples that AWS and the standards give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/upload/sigv4.h"

static void expect_hash(const uint8_t hash[SHA256_SIZE], const char *expected)
{
	char hex[2 * SHA256_SIZE + 1];

	sha256_hex(hash, hex);
	assert_string_equal(hex, expected);
}

/* FIPS 180-4 */
static void hashes_are_those_of_the_standard(void **state)
{
	char text[1000000];
	uint8_t hash[SHA256_SIZE];
	FILE *file = tmpfile();

	(void)state;
	assert_int_equal(sha256_of("abc", 3, hash), 0);
	expect_hash(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	memset(text, 'a', sizeof(text));
	assert_int_equal(fwrite("head", 1, 4, file), 4);
	assert_int_equal(fwrite(text, 1, sizeof(text), file), sizeof(text));
	fflush(file);
	assert_int_equal(lseek(fileno(file), 4, SEEK_SET), 4);
	assert_int_equal(sha256_of_file(fileno(file), sizeof(text), hash), 0);
	expect_hash(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	assert_int_equal(sha256_of_file(fileno(file), 0, hash), 0);
	expect_hash(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_int_equal(sha256_of_file(fileno(file), sizeof(text) + 1, hash), -EBADMSG);
	fclose(file);
}

/* RFC 4231, cases 2 and 6 */
static void hmacs_are_those_of_the_standard(void **state)
{
	uint8_t hash[SHA256_SIZE], key[131];

	(void)state;
	assert_int_equal(sha256_hmac("Jefe", 4, "what do ya want for nothing?", 28, hash), 0);
	expect_hash(hash, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	assert_int_equal(sha256_hmac(key, sizeof(key),
				     "Test Using Larger Than Block-Size Key - Hash Key First", 54,
				     hash),
			 0);
	expect_hash(hash, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/* "post-vanilla" of AWS's test suite */
static void a_request_is_signed_as_aws_signs_it(void **state)
{
	const struct sigv4 r = {
		.method = "POST",
		.host = "example.amazonaws.com",
		.path = "/",
		.region = "us-east-1",
		.service = "service",
		.access_key = "AKIDEXAMPLE",
		.secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
		.session_token = "",
		.date = "20150830T123600Z",
		.body_hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	};
	char buf[600], small[20];

	(void)state;
	assert_int_equal(sigv4_sign(&r, buf, sizeof(buf)), 0);
	assert_string_equal(
		buf,
		"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
		"SignedHeaders=host;x-amz-date, "
		"Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
	assert_true(sigv4_sign(&r, small, sizeof(small)) < 0);
}

static void paths_are_escaped(void **state)
{
	char buf[64];

	(void)state;
	assert_true(sigv4_escape("/b/a b:c+d\xc3\xa9~", buf, sizeof(buf)));
	assert_string_equal(buf, "/b/a%20b%3Ac%2Bd%C3%A9~");
	assert_false(sigv4_escape("/0123456789", buf, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_those_of_the_standard),
		cmocka_unit_test(hmacs_are_those_of_the_standard),
		cmocka_unit_test(a_request_is_signed_as_aws_signs_it),
		cmocka_unit_test(paths_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

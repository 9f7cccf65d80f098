#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/ground/utf8.h"

static const char *clean(const char *src, size_t len)
{
	static char buf[64];

	size_t n = utf8_copy(buf, sizeof(buf), src, len);

	assert_int_equal(n, strlen(buf));
	return buf;
}

static void good_text_stays_as_it_is(void **state)
{
	const char *text = "com.Größe \xe2\x82\xac \xf0\x9f\x94\xa5";

	(void)state;
	assert_string_equal(clean(text, strlen(text)), text);
}

static void invalid_utf8_becomes_question_marks(void **state)
{
	(void)state;
	assert_string_equal(clean("a\xff"
				  "b",
				  3),
			    "a?b");
	assert_string_equal(clean("\xc0\x80", 2), "??"); /* overlong NUL */
	assert_string_equal(clean("\xed\xa0\x80", 3), "???"); /* surrogate */
	assert_string_equal(clean("\xf4\x90\x80\x80", 4), "????"); /* above U+10FFFF */
	assert_string_equal(clean("x\xe2\x82", 3), "x??"); /* cut */
}

static void control_characters_become_question_marks(void **state)
{
	(void)state;
	assert_string_equal(clean("a\x1b[31m\n\0z", 8), "a?[31m??");
	assert_string_equal(clean("\x7f\xc2\x9b", 3), "???"); /* C1 CSI, terminals obey it */
	assert_string_equal(clean("\xc2\xa0", 2), "\xc2\xa0");
}

static void a_copy_is_never_cut_inside_a_character(void **state)
{
	char buf[4];

	(void)state;
	assert_int_equal(utf8_copy(buf, sizeof(buf), "ab\xc3\xa4", 4), 2);
	assert_string_equal(buf, "ab");
	assert_int_equal(utf8_copy(buf, 1, "abc", 3), 0);
	assert_string_equal(buf, "");
}

static void text_of_a_jvm_becomes_utf8_of_any_length(void **state)
{
	char dst[64];

	(void)state;
	utf8_clean(dst, "gr\xc3\xbc\xc3\x9f\n", 7);
	assert_string_equal(dst, "gr\xc3\xbc\xc3\x9f?");
	utf8_clean(dst, "a\xc0\x80z\xff", 5);
	assert_string_equal(dst, "a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd");
	utf8_clean(dst, "\xed\xa0\x80", 3); /* a lone surrogate */
	assert_string_equal(dst, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	utf8_clean(dst, "\xe2\x82", 2); /* cut in the middle */
	assert_string_equal(dst, "\xef\xbf\xbd\xef\xbf\xbd");
	utf8_clean(dst, "a\xc2\x9bz", 4); /* C1 CSI */
	assert_string_equal(dst, "a?z");
}

static char *mended(const char *text)
{
	static char buf[64];
	size_t n;

	snprintf(buf, sizeof(buf), "%s", text);
	n = utf8_mend(buf);
	assert_int_equal(n, strlen(buf));
	return buf;
}

static void half_a_character_at_the_end_is_cut(void **state)
{
	(void)state;
	assert_string_equal(mended("gr\xc3\xbc\xc3\x9f\n"), "gr\xc3\xbc\xc3\x9f\n");
	assert_string_equal(mended("ab\xc3"), "ab");
	assert_string_equal(mended("org.shop.Main.main"), "org.shop.Main.main");
	assert_string_equal(mended("org.shop.M\xc3in.ma\xbcin"), "org.shop.Min.main");
	assert_string_equal(mended("\xf0\x9f\x98"), "");
	assert_string_equal(mended("\xbc\xe2\x82\xac: \xe2\x82 \""), "\xe2\x82\xac:  \"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_text_stays_as_it_is),
		cmocka_unit_test(invalid_utf8_becomes_question_marks),
		cmocka_unit_test(control_characters_become_question_marks),
		cmocka_unit_test(a_copy_is_never_cut_inside_a_character),
		cmocka_unit_test(text_of_a_jvm_becomes_utf8_of_any_length),
		cmocka_unit_test(half_a_character_at_the_end_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* daemon/report/json_out.c: cJSON can read the output, with the same values. */
#include "tests/unit/unit.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include "daemon/report/json_out.h"

/* Compares the output with @text, and frees it. */
static void is(struct text_out *t, const char *text)
{
	size_t len;
	char *out;

	assert_int_equal(text_take(t, &out, &len), 0);
	assert_string_equal(out, text);
	assert_int_equal(len, strlen(text));
	free(out);
	*t = (struct text_out){ 0 };
}

static void put_nested(struct text_out *t)
{
	json_begin_object(t, NULL);
	json_begin_object(t, "none");
	json_end_object(t);
	json_begin_list(t, "list");
	json_add_u64(t, NULL, 1);
	json_begin_list(t, NULL);
	json_end_list(t);
	json_begin_object(t, NULL);
	json_add_bool(t, "yes", true);
	json_add_bool(t, "no", false);
	json_end_object(t);
	json_add_null(t, NULL);
	json_end_list(t);
	json_add_string(t, "s", "text");
	json_end_object(t);
}

static void the_writer_puts_the_commas(void **state)
{
	struct text_out t = { 0 };

	(void)state;
	put_nested(&t);
	is(&t, "{\"none\":{},\"list\":[1,[],{\"yes\":true,\"no\":false},null],\"s\":\"text\"}");
}

/* As cJSON_Print() does it. */
static void each_value_can_have_its_line(void **state)
{
	struct text_out t = { 0 };
	cJSON *json;
	char *lines;

	(void)state;
	put_nested(&t);
	json = cJSON_ParseWithLength(t.p, t.len);
	assert_non_null(json);
	lines = cJSON_Print(json);
	free(t.p);
	t = (struct text_out){ 0 };
	json_put_on_lines(&t);
	put_nested(&t);
	is(&t, lines);
	cJSON_Delete(json);
	free(lines);
}

static void lines_of_json_have_no_comma_between_them(void **state)
{
	struct text_out t = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 2; i++) {
		json_begin_object(&t, NULL);
		json_add_u64(&t, "n", i);
		json_end_object(&t);
		json_end_line(&t);
	}
	is(&t, "{\"n\":0}\n{\"n\":1}\n");
	json_begin_list(&t, NULL);
	json_add_u64(&t, NULL, 1);
	json_break_line(&t);
	json_add_u64(&t, NULL, 2);
	json_end_list(&t);
	is(&t, "[1,\n2]");
}

static void strings_are_escaped_and_keys_too(void **state)
{
	struct text_out t = { 0 };

	(void)state;
	json_begin_object(&t, NULL);
	json_add_string(&t, "a\"b", "\\ \n\t\x01\x7f </script>");
	json_add_string_or_null(&t, "empty", "");
	json_add_string_or_null(&t, "none", NULL);
	json_add_string(&t, "blank", "");
	json_end_object(&t);
	is(&t, "{\"a\\\"b\":\"\\\\ \\u000a\\u0009\\u0001\\u007f \\u003c/script>\",\"empty\":null,"
	       "\"none\":null,\"blank\":\"\"}");
}

static void text_cut_inside_a_character_is_valid_json(void **state)
{
	struct text_out t = { 0 };

	(void)state;
	json_add_string(&t, NULL, "gr\xc3\xbc\xc3\x9f \xe2\x82\"<\xf0\x9f\x98");
	is(&t, "\"gr\xc3\xbc\xc3\x9f \\\"\\u003c\"");
}

static void whole_numbers_are_exact(void **state)
{
	struct text_out t = { 0 };

	(void)state;
	json_begin_list(&t, NULL);
	json_add_u64(&t, NULL, 0);
	json_add_u64(&t, NULL, UINT64_MAX);
	json_add_u64(&t, NULL, (1ull << 53) + 1);
	json_add_i64(&t, NULL, -1);
	json_add_i64(&t, NULL, INT64_MIN);
	json_add_i64(&t, NULL, INT64_MAX);
	json_end_list(&t);
	is(&t,
	   "[0,18446744073709551615,9007199254740993,-1,-9223372036854775808,9223372036854775807]");
}

/* Numbers must look the same as cJSON prints them, because other programs read them. */
static void fractions_look_as_cjson_prints_them(void **state)
{
	static const double some[] = { 0,
				       1,
				       -1,
				       0.1,
				       1.0 / 3,
				       1e-9,
				       123456789.125,
				       1e15,
				       2147483648.0,
				       5.5e9,
				       1764025435.3430252,
				       0.30000000000000004,
				       1e300,
				       -2.5e-300,
				       4.35,
				       1791017.0 / 1e6 };
	struct text_out t = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		cJSON *n = cJSON_CreateNumber(some[i]);
		char *text = cJSON_PrintUnformatted(n);

		json_add_double(&t, NULL, some[i]);
		is(&t, text);
		free(text);
		cJSON_Delete(n);
	}
	json_begin_list(&t, NULL);
	json_add_double(&t, NULL, NAN);
	json_add_fixed(&t, NULL, INFINITY, 1);
	json_add_fixed(&t, NULL, 2.0 / 3, 4);
	json_add_fixed(&t, NULL, 2.5, 0);
	json_add_rounded(&t, NULL, 2.0 / 3, 9);
	json_add_rounded(&t, NULL, 2, 9);
	json_end_list(&t);
	is(&t, "[null,null,0.6667,2,0.666666667,2]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_writer_puts_the_commas),
		cmocka_unit_test(each_value_can_have_its_line),
		cmocka_unit_test(lines_of_json_have_no_comma_between_them),
		cmocka_unit_test(strings_are_escaped_and_keys_too),
		cmocka_unit_test(text_cut_inside_a_character_is_valid_json),
		cmocka_unit_test(whole_numbers_are_exact),
		cmocka_unit_test(fractions_look_as_cjson_prints_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* daemon/cli/hide.c: what remains of an answer in a report for strangers. */
#include "tests/unit/unit.h"
#include "daemon/cli/hide.h"

static const char answer[] =
	"{\"version\":\"1.2\",\"targets\":[{\"pid\":4711,\"name\":\"org.shop.Main\",\"pod\":null,"
	"\"labels\":{\"team\":\"secret\"},\"annotations\":{\"a\":\"b\"},\"state\":\"failed\","
	"\"reason\":\"org.shop.Main said \\\"no\\\"\",\"events\":[\"cpu\",\"lock\"],\"filters\":[\"x\"],"
	"\"share\":0.25,\"none\":[],\"empty\":{},\"ok\":true}]}";

static void only_known_texts_are_left_and_names_are_numbers(void **state)
{
	static struct hide h;
	struct text_out t = { 0 };
	cJSON *json = cJSON_Parse(answer);
	size_t len;
	char *text;

	(void)state;
	assert_non_null(json);
	hide_learn(&h, cJSON_GetObjectItem(json, "targets"));
	json_put_on_lines(&t);
	hide_json(&h, &t, json);
	assert_int_equal(text_take(&t, &text, &len), 0);
	assert_string_equal(text, "{\n"
				  "\t\"version\":\t\"1.2\",\n"
				  "\t\"targets\":\t[{\n"
				  "\t\t\t\"pid\":\t4711,\n"
				  "\t\t\t\"name\":\t\"name-1\",\n"
				  "\t\t\t\"pod\":\tnull,\n"
				  "\t\t\t\"annotations\":\t{\n"
				  "\t\t\t\t\"a\":\t\"(left out)\"\n"
				  "\t\t\t},\n"
				  "\t\t\t\"state\":\t\"failed\",\n"
				  "\t\t\t\"reason\":\t\"name-1 said \\\"...\\\"\",\n"
				  "\t\t\t\"events\":\t[\"cpu\", \"lock\"],\n"
				  "\t\t\t\"filters\":\t[\"(left out)\"],\n"
				  "\t\t\t\"share\":\t0.25,\n"
				  "\t\t\t\"none\":\t[],\n"
				  "\t\t\t\"empty\":\t{\n"
				  "\t\t\t},\n"
				  "\t\t\t\"ok\":\ttrue\n"
				  "\t\t}]\n"
				  "}");
	free(text);
	cJSON_Delete(json);
	hide_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_known_texts_are_left_and_names_are_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

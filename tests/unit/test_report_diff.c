/* The difference between two profiles: both numbers of a method are right, whatever the ids,
 * threads and kinds of its frames. */
#include "tests/unit/unit.h"
#include <cjson/cJSON.h>
#include "daemon/report/diff.h"

#define S 1000000000ull

/* @methods: for each a stack "run" > method, with its seconds. */
static struct profile *profile_of(uint32_t pid, uint64_t begin_s, uint64_t seconds, uint8_t kind,
				  const char *const *methods, const uint64_t *weights)
{
	struct profile_process q = { .pid = pid, .start_time = pid };
	struct profile_thread t = { .tid = pid + 1 };
	struct profile_frame f = { .kind = kind, .line = (int)pid };
	struct profile *p;
	uint32_t run;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = begin_s * S;
	p->end_real_ns = (begin_s + seconds) * S;
	q.name = profile_string(p, "Main");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "main");
	f.class_name = profile_string(p, "Cart");
	f.method = profile_string(p, "run");
	run = profile_node(p, 0, profile_intern_frame(p, &f));
	for (size_t i = 0; methods[i]; i++) {
		f.method = profile_string(p, methods[i]);
		profile_add(p, profile_thread(p, &t),
			    profile_node(p, run, profile_intern_frame(p, &f)), weights[i],
			    weights[i] * S);
	}
	profile_book_rows(p);
	return p;
}

static char *diff(enum report_format format, enum report_diff_by by, uint64_t base_begin_s)
{
	static const char *const before[] = { "gone", "same", "faster", NULL };
	static const char *const after[] = { "same", "faster", "new", NULL };
	static const uint64_t before_s[] = { 1, 2, 6 }, after_s[] = { 4, 2, 7 };
	struct profile *base = profile_of(7, base_begin_s, base_begin_s ? 10 : 0,
					  WIRE_KIND_INTERPRETED, before, before_s);
	struct profile *now = profile_of(9, 100, 20, WIRE_KIND_C2, after, after_s);
	const struct report_options o = { .events = 1u << WIRE_EVENT_CPU };
	size_t len;
	char *out;

	assert_int_equal(report_diff(base, now, format, &o, by, &out, &len), 0);
	profile_free(base);
	profile_free(now);
	return out;
}

static double number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	assert_non_null(v);
	return v->valuedouble;
}

static void check_method(const cJSON *of, int i, const char *name, double now_s, double base_s)
{
	const cJSON *m = cJSON_GetArrayItem(cJSON_GetObjectItem(of, "methods"), i);

	assert_string_equal(cJSON_GetObjectItem(m, "name")->valuestring, name);
	assert_int_equal(number(m, "self_ns"), now_s * (double)S);
	assert_int_equal(number(m, "baseline_self_ns"), base_s * (double)S);
}

static void json_has_both_numbers_and_methods_by_difference(void **state)
{
	char *out = diff(REPORT_JSON, REPORT_DIFF_TIME, 10);
	cJSON *json = cJSON_Parse(out), *of = cJSON_GetObjectItem(json, "diff"), *row;
	double now = 0, base = 0;

	(void)state;
	assert_string_equal(cJSON_GetObjectItem(of, "by")->valuestring, "time");
	assert_int_equal(number(of, "factor"), 2);
	check_method(of, 0, "Cart.faster", 2, 6); /* 2 - 2 x 6 */
	check_method(of, 1, "Cart.new", 7, 0);
	check_method(of, 2, "Cart.gone", 0, 1);
	check_method(of, 3, "Cart.run", 0, 0); /* by total: 13 - 2 x 9 */
	check_method(of, 4, "Cart.same", 4, 2);
	cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "rows"))
	{
		now += cJSON_GetArrayItem(row, 3)->valuedouble;
		base += cJSON_GetArrayItem(row, 5)->valuedouble;
	}
	assert_int_equal(now, 13 * S);
	assert_int_equal(base, 9 * S);
	assert_int_equal(number(cJSON_GetObjectItem(of, "baseline"), "weight_ns"), 9 * S);
	assert_int_equal(number(cJSON_GetObjectItem(json, "view"), "weight_ns"), 13 * S);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "frames")), 5);
	cJSON_Delete(json);
	free(out);
}

static void by_total_both_are_as_much(void **state)
{
	/* because the option asks for it; and because a baseline without times has no length */
	char *outs[] = { diff(REPORT_JSON, REPORT_DIFF_TOTAL, 10),
			 diff(REPORT_JSON, REPORT_DIFF_TIME, 0) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(outs); i++) {
		cJSON *json = cJSON_Parse(outs[i]), *of = cJSON_GetObjectItem(json, "diff");

		assert_string_equal(cJSON_GetObjectItem(of, "by")->valuestring, "total");
		assert_true(number(of, "factor") > 1.4444 && number(of, "factor") < 1.4445);
		cJSON_Delete(json);
		free(outs[i]);
	}
}

static void says(const char *out, const char *text)
{
	if (!strstr(out, text))
		fail_msg("\"%s\" is not in: %s", text, out);
}

static void txt_and_html_show_it_other_formats_refuse(void **state)
{
	char *out = diff(REPORT_TXT, REPORT_DIFF_TIME, 10), why[128];

	(void)state;
	says(out, "9 Main, against 7 Main\n");
	says(out, "9.000 s of CPU, 9 samples\n");
	says(out, "multiplied by 2, so that both are of the same length\n");
	says(out, "-5.000 s in all, -27.78% of the baseline\n");
	says(out,
	     "   -10.000      2.000     12.000    -10.000      2.000     12.000  Cart.faster\n");
	says(out, "    +7.000      7.000      0.000     +7.000      7.000      0.000  Cart.new\n");
	free(out);
	out = diff(REPORT_HTML, REPORT_DIFF_TIME, 10);
	says(out, "\"diff\":{\"by\":\"time\",\"factor\":2,");
	free(out);
	assert_false(report_diffs(REPORT_PPROF, why, sizeof(why)));
	assert_string_equal(why, "html, txt and json can show what changed; pb.gz cannot");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_both_numbers_and_methods_by_difference),
		cmocka_unit_test(by_total_both_are_as_much),
		cmocka_unit_test(txt_and_html_show_it_other_formats_refuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

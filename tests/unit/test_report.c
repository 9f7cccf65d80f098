#include "tests/unit/unit.h"
#include <errno.h>
#include "daemon/report/report.h"
#include "proto/wire.h"

static struct profile *example(void)
{
	struct profile_process q = { .pid = 7, .start_time = 1 };
	struct profile_thread t = { .tid = 8 };
	struct profile_frame f = { .kind = WIRE_KIND_JAVA, .line = 12 };
	struct profile *p;
	uint32_t run, work, native;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1000000000;
	p->end_real_ns = 2000000000;
	p->interval_ns = 10000000;
	p->losses = (struct profile_losses){ 5, 50, 4, 40, 1, 10 };
	q.name = profile_string(p, "</script><img src=x onerror=alert(1)>");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "main; \"x\"");
	f.class_name = profile_string(p, "java.lang.Thread");
	f.method = profile_string(p, "run");
	f.signature = profile_string(p, "()V");
	run = profile_node(p, 0, profile_intern_frame(p, &f));
	f.method = profile_string(p, "a;b");
	work = profile_node(p, run, profile_intern_frame(p, &f));
	f = (struct profile_frame){ .kind = WIRE_KIND_NATIVE, .line = -1, .offset = 0x10 };
	f.module = profile_string(p, "/lib/libc.so.6");
	native = profile_node(p, work, profile_intern_frame(p, &f));
	profile_add(p, profile_thread(p, &t), native, 1, 10000000);
	profile_add(p, profile_thread(p, &t), run, 2, 20000000);
	return p;
}

static char *written(enum report_format format, bool threads, size_t *len)
{
	const struct report_options o = { .threads = threads };
	struct profile *p = example();
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, len), 0);
	profile_free(p);
	return out;
}

static void collapsed_is_root_first_with_the_weight_last(void **state)
{
	size_t len;
	char *out = written(REPORT_COLLAPSED, false, &len);

	(void)state;
	assert_string_equal(out, "java.lang.Thread.run 20000000\n"
				 "java.lang.Thread.run;java.lang.Thread.a:b;[libc.so.6+0x10] 10000000\n");
	free(out);
	out = written(REPORT_COLLAPSED, true, &len);
	assert_non_null(strstr(out, "[main: \"x\" tid=8];java.lang.Thread.run 20000000\n"));
	free(out);
}

static void names_cannot_leave_the_script_element(void **state)
{
	size_t len;
	char *out = written(REPORT_HTML, false, &len);

	(void)state;
	assert_null(strstr(out, "<img src=x"));
	assert_non_null(strstr(out, "\\u003c/script>\\u003cimg src=x"));
	assert_null(strstr(out, "@PROFILE@"));
	free(out);
}

static void a_method_counts_once_a_stack(void **state)
{
	size_t len;
	char *out = written(REPORT_TXT, false, &len);

	(void)state;
	assert_non_null(strstr(out, "         3  100.00%      0.020   66.67%  java.lang.Thread.run"));
	assert_non_null(strstr(out, "5 taken = 4 delivered + 1 dropped"));
	free(out);
}

static void pprof_is_gzip(void **state)
{
	size_t len;
	char *out = written(REPORT_PPROF, false, &len);

	(void)state;
	assert_true(len > 20);
	assert_memory_equal(out, "\x1f\x8b", 2);
	free(out);
}

static void an_empty_profile_can_be_written(void **state)
{
	struct profile *p;
	size_t len;
	char *out;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
		assert_int_equal(report_write(p, (enum report_format)i, NULL, &out, &len), 0);
		free(out);
	}
	profile_free(p);
}

static void formats_are_known_by_name_and_suffix(void **state)
{
	(void)state;
	assert_int_equal(report_format_by_path("x/y.pb.gz"), REPORT_PPROF);
	assert_int_equal(report_format_by_path("y.html"), REPORT_HTML);
	assert_int_equal(report_format_by_path(".html"), -EINVAL);
	assert_int_equal(report_format_by_name("pprof"), REPORT_PPROF);
	assert_int_equal(report_format_by_name("jpeg"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collapsed_is_root_first_with_the_weight_last),
		cmocka_unit_test(names_cannot_leave_the_script_element),
		cmocka_unit_test(a_method_counts_once_a_stack),
		cmocka_unit_test(pprof_is_gzip),
		cmocka_unit_test(an_empty_profile_can_be_written),
		cmocka_unit_test(formats_are_known_by_name_and_suffix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

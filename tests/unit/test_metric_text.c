#include "tests/unit/unit.h"

#include <stdio.h>

#include "daemon/serve/metric_text.h"

static char *written(bool openmetrics)
{
	struct metric_text m = { .openmetrics = openmetrics };
	char label[64], labels[96];
	size_t len;
	char *text;

	metric_family(&m, METRIC_COUNTER, "x_cpu_seconds", "seconds", "Time.");
	snprintf(labels, sizeof(labels), "name=\"%s\"",
		 metric_label("a\"b\\c\nd\xff\xc3", label, sizeof(label)));
	metric_seconds(&m, labels, 1500000001);
	metric_family(&m, METRIC_GAUGE, "x_now", NULL, "Now.");
	metric_count(&m, NULL, UINT64_MAX);
	metric_family(&m, METRIC_INFO, "x_build", NULL, "Build.");
	metric_number(&m, "version=\"1\"", 1);
	assert_int_equal(metric_take(&m, &text, &len), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static void both_formats_are_written(void **state)
{
	char *text = written(false);

	(void)state;
	assert_string_equal(text, "# HELP x_cpu_seconds_total Time.\n"
				  "# TYPE x_cpu_seconds_total counter\n"
				  "x_cpu_seconds_total{name=\"a\\\"b\\\\c d\"} 1.500000001\n"
				  "# HELP x_now Now.\n"
				  "# TYPE x_now gauge\n"
				  "x_now 18446744073709551615\n"
				  "# HELP x_build_info Build.\n"
				  "# TYPE x_build_info gauge\n"
				  "x_build_info{version=\"1\"} 1\n");
	free(text);
	text = written(true);
	assert_string_equal(text, "# HELP x_cpu_seconds Time.\n"
				  "# TYPE x_cpu_seconds counter\n"
				  "# UNIT x_cpu_seconds seconds\n"
				  "x_cpu_seconds_total{name=\"a\\\"b\\\\c d\"} 1.500000001\n"
				  "# HELP x_now Now.\n"
				  "# TYPE x_now gauge\n"
				  "x_now 18446744073709551615\n"
				  "# HELP x_build Build.\n"
				  "# TYPE x_build info\n"
				  "x_build_info{version=\"1\"} 1\n"
				  "# EOF\n");
	free(text);
}

static void a_client_gets_the_format_that_it_prefers(void **state)
{
	(void)state;
	assert_false(metric_wants_openmetrics(NULL));
	assert_false(metric_wants_openmetrics("*/*"));
	assert_false(metric_wants_openmetrics("text/html,text/plain;q=0.9"));
	assert_true(metric_wants_openmetrics("application/openmetrics-text"));
	/* Prometheus 2.42 */
	assert_true(metric_wants_openmetrics(
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
	assert_false(metric_wants_openmetrics(
		"application/openmetrics-text;q=0.2, text/plain;version=0.0.4;q=0.5"));
	assert_false(metric_wants_openmetrics("application/openmetrics-text;q=0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_formats_are_written),
		cmocka_unit_test(a_client_gets_the_format_that_it_prefers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

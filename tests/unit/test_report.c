#include "tests/unit/unit.h"
#include "tests/unit/jfr_packed.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include "daemon/ground/clock.h"
#include "daemon/report/patterns.h"
#include "daemon/ground/mem.h"
#include "daemon/report/formats.h"
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
	p->interval[WIRE_EVENT_CPU] = 10000000;
	p->accounts.of[WIRE_EVENT_CPU] = (struct profile_losses){ 5, 50, 4, 40, 1, 10, 0 };
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

static void virtual_threads_have_ids_and_no_tid(void **state)
{
	static const struct {
		uint32_t tid;
		const char *words;
	} threads[] = { { 8, " tid=8" },
			{ WIRE_VIRTUAL_TID + 53, " virtual #53" },
			{ WIRE_VIRTUAL_TID, "" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		const struct profile_thread t = { .tid = threads[i].tid };
		char number[THREAD_NUMBER_MAX];

		assert_string_equal(thread_number(&t, number), threads[i].words);
	}
}

static void collapsed_is_root_first_with_the_weight_last(void **state)
{
	size_t len;
	char *out = written(REPORT_COLLAPSED, false, &len);

	(void)state;
	assert_string_equal(out,
			    "java.lang.Thread.run 20000000\n"
			    "java.lang.Thread.run;java.lang.Thread.a:b;[libc.so.6] 10000000\n");
	free(out);
	out = written(REPORT_COLLAPSED, true, &len);
	assert_non_null(strstr(out, "[main: \"x\" tid=8];java.lang.Thread.run 20000000\n"));
	free(out);
}

/* Writes @o to a file and returns its content; "" if there is nothing to write. */
static char *with_options(enum report_format format, struct report_options o)
{
	struct profile *p = example();
	size_t len;
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, &len), 0);
	profile_free(p);
	return out;
}

#define RUN    "java.lang.Thread.run"
#define NATIVE "[libc.so.6]"

static void patterns_choose_stacks_and_what_they_leave_out_is_said(void **state)
{
	struct report_options o = { .include = "^java\\.lang\\.Thread\\.a;b$|nothing" };
	struct profile *p;
	char *out;

	(void)state;
	out = with_options(REPORT_COLLAPSED, o);
	assert_string_equal(out, RUN ";java.lang.Thread.a:b;" NATIVE " 10000000\n");
	free(out);
	out = with_options(REPORT_TXT, o);
	assert_non_null(strstr(out, "0.010 s of CPU"));
	assert_non_null(
		strstr(out, "2 samples, 0.020 s in all, left out by --include or --exclude"));
	free(out);
	p = example();
	assert_int_equal(report_samples(p, &o), 1);
	profile_free(p);
	o = (struct report_options){ .exclude = "libc" };
	out = with_options(REPORT_COLLAPSED, o);
	assert_string_equal(out, RUN " 20000000\n");
	free(out);
	out = with_options(REPORT_JSON, o);
	assert_non_null(strstr(out, "1 sample, 0.010 s in all, left out by"));
	assert_null(strstr(out, "libc"));
	free(out);
	o.include = "libc";
	out = with_options(REPORT_COLLAPSED, o);
	assert_string_equal(out, "");
	free(out);
	o = (struct report_options){ .exclude = "no stack" };
	p = example();
	profile_add(p, 0, 0, 4, 5);
	assert_int_equal(report_samples(p, &o), 3);
	o.exclude = "a(";
	assert_int_equal(report_write(p, REPORT_TXT, &o, &out, &(size_t){ 0 }), -EINVAL);
	profile_free(p);
}

static void refused_pattern(const char *pattern, const char *sentence)
{
	char why[300] = "";

	assert_false(report_pattern_is_fine(pattern, why, sizeof(why)));
	assert_string_equal(why, sentence);
}

static void a_wrong_pattern_is_said_with_the_place(void **state)
{
	static const char *const fine[] = { "a",   "^(java|javax)\\.", "a{2,3}b{50}",
					    "\\(", "x\\{9999",	       "[{]" };
	char why[300], longest[PATTERN_BYTES_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (!report_pattern_is_fine(fine[i], why, sizeof(why)))
			fail_msg("%s", why);
	refused_pattern("(a)b(c",
			"\"(a)b(c\" is not a regular expression: Unmatched ( or \\(, at \"(c\"");
	refused_pattern("Cart[a-",
			"\"Cart[a-\" is not a regular expression: Unmatched [, [^, [:, [., or [=, "
			"at "
			"\"[a-\"");
	refused_pattern("", "\"\" is empty");
	refused_pattern("(a)\\1", "\"(a)\\1\" has a back-reference, which is not allowed");
	refused_pattern("((a{30}){30}){30}", "\"((a{30}){30}){30}\" has too many repetitions");
	refused_pattern("a+++++++++++", "\"a+++++++++++\" has too many repetitions");
	refused_pattern("((((((((((a+)+)+)+)+)+)+)+)+)+)+",
			"\"((((((((((a+)+)+)+)+)+)+)+)+)+)+\" has too many repetitions");
	refused_pattern("a{1,30000}", "\"a{1,30000}\" has too many repetitions");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_false(report_pattern_is_fine(longest, why, sizeof(why)));
	longest[PATTERN_BYTES_MAX] = '\0';
	assert_true(report_pattern_is_fine(longest, why, sizeof(why)));
}

/* Each of these patterns costs the matcher a tenth of a second or more, and some MiB. */
static void a_pattern_that_takes_too_long_is_given_up(void **state)
{
	const struct report_options o = { .exclude = "(a|b)*a(a|b){100}c" };
	struct profile_frame f = { .kind = WIRE_KIND_JAVA };
	struct profile *p = example();
	char name[1000];
	unsigned random = 1;
	size_t len;
	char *out;

	(void)state;
	f.class_name = profile_string(p, "C");
	for (int i = 0; i < 300; i++) {
		for (size_t k = 0; k < sizeof(name) - 1; k++) {
			random = random * 1103515245 + 12345;
			name[k] = random >> 16 & 1 ? 'a' : 'b';
		}
		name[sizeof(name) - 1] = '\0';
		f.method = profile_string(p, name);
		profile_add(p, 0, profile_node(p, 0, profile_intern_frame(p, &f)), 1, 1);
	}
	assert_int_equal(report_write(p, REPORT_TXT, &o, &out, &len), -ETIME);
	profile_free(p);
}

static void reversed_stacks_begin_with_the_leaf(void **state)
{
	const struct report_options o = { .reverse = true, .threads = true };
	char *out = with_options(REPORT_COLLAPSED, o), why[100];

	(void)state;
	assert_string_equal(out,
			    "[main: \"x\" tid=8];" NATIVE ";java.lang.Thread.a:b;" RUN " 10000000\n"
			    "[main: \"x\" tid=8];" RUN " 20000000\n");
	free(out);
	out = with_options(REPORT_HTML, o);
	assert_non_null(strstr(out, "\"reverse\":true"));
	free(out);
	assert_true(report_reverses(REPORT_JSON, why, sizeof(why)));
	assert_false(report_reverses(REPORT_TXT, why, sizeof(why)));
	assert_string_equal(why, "html, collapsed and json can be reversed; txt cannot");
}

static void of_several_jvms_each_has_a_level_of_its_own(void **state)
{
	struct profile_process q = { .pid = 9, .start_time = 2 };
	struct profile_thread t = { .tid = 9 };
	const struct report_options o = { .threads = true };
	struct profile *p = example();
	size_t len;
	char *out;

	(void)state;
	q.name = profile_string(p, "other;jvm");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "t");
	profile_add(p, profile_thread(p, &t), p->rows[1].node, 1, 7);
	assert_int_equal(report_write(p, REPORT_COLLAPSED, NULL, &out, &len), 0);
	assert_non_null(strstr(out, "[other:jvm pid=9];" RUN " 7\n"));
	assert_non_null(strstr(out, " pid=7];" RUN " 20000000\n"));
	free(out);
	assert_int_equal(report_write(p, REPORT_COLLAPSED, &o, &out, &len), 0);
	assert_non_null(strstr(out, "[other:jvm pid=9];[t tid=9];" RUN " 7\n"));
	free(out);
	profile_free(p);
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
	assert_non_null(strstr(
		out, "     0.020   66.67%      0.030  100.00%          3  java.lang.Thread.run"));
	assert_non_null(strstr(out, "5 taken = 4 delivered + 1 dropped"));
	free(out);
}

static void the_method_with_most_time_of_its_own_comes_first(void **state)
{
	struct profile_frame caller = { .kind = WIRE_KIND_NATIVE, .line = -1 }, leaf = caller;
	struct profile *p = example();
	uint32_t node;
	size_t len;
	char *out;

	(void)state;
	caller.method = profile_string(p, "calls_most");
	leaf.method = profile_string(p, "runs_most");
	node = profile_node(p, 0, profile_intern_frame(p, &caller));
	profile_add(p, 0, node, 1, 10000000);
	profile_add(p, 0, profile_node(p, node, profile_intern_frame(p, &leaf)), 5, 500000000);
	assert_int_equal(report_write(p, REPORT_TXT, NULL, &out, &len), 0);
	assert_true(strstr(out, "%          5  runs_most") <
		    strstr(out, "%          6  calls_most"));
	assert_non_null(strstr(out, "%          5  runs_most"));
	free(out);
	profile_free(p);
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

/* Sums of the output of `go tool pprof -raw`: lines "  samples  nanoseconds: location ..." */
static bool go_sums(const char *path, uint64_t *ret_samples, uint64_t *ret_ns)
{
	char command[200], line[4096];
	bool in_samples = false;
	uint64_t n, ns;
	FILE *f;

	snprintf(command, sizeof(command), "go tool pprof -raw %s 2>/dev/null", path);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strcmp(line, "Locations\n") == 0)
			in_samples = false;
		if (in_samples && sscanf(line, " %" SCNu64 " %" SCNu64 ":", &n, &ns) == 2) {
			*ret_samples += n;
			*ret_ns += ns;
		}
		if (strncmp(line, "samples/count cpu/nanoseconds", 29) == 0)
			in_samples = true;
	}
	return f && pclose(f) == 0;
}

static void go_reads_back_the_same_sums(void **state)
{
	char path[] = "/tmp/kindling-pprof-XXXXXX";
	uint64_t samples = 0, ns = 0;
	struct profile *p = example();
	size_t len;
	char *out;
	bool ok;
	int fd;

	(void)state;
	if (system("go version >/dev/null 2>&1") != 0) {
		profile_free(p);
		skip();
	}
	profile_add(p, 0, 0, 4, 40000001); /* no stack */
	assert_int_equal(report_write(p, REPORT_PPROF, NULL, &out, &len), 0);
	profile_free(p);
	fd = mkstemp(path);
	assert_int_equal(write(fd, out, len), len);
	close(fd);
	free(out);
	ok = go_sums(path, &samples, &ns);
	unlink(path);
	assert_true(ok);
	assert_int_equal(samples, 7);
	assert_int_equal(ns, 70000001);
}

/* ---- JFR: every byte of the chunk belongs to an event ---- */

static uint64_t big_endian(const char *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | (uint8_t)p[i];
	return v;
}

struct jfr_sums {
	uint64_t events, samples, rows, row_samples, row_ns, pools_at, types_at, accounts;
};

static struct jfr_sums jfr_walk(const char *out, size_t len)
{
	struct jfr_sums s = { 0 };

	assert_true(len > 68);
	assert_memory_equal(out, "FLR\0\0\2\0\0", 8);
	assert_int_equal(big_endian(out + 8), len);
	for (size_t at = 68; at < len;) {
		const char *p = out + at;
		uint64_t size = packed(&p), type = packed(&p);

		assert_in_range(size, 6, len - at);
		s.events++;
		s.samples += type == 101;
		s.accounts += type == 111;
		if (type == 0)
			s.types_at = at;
		if (type == 1)
			s.pools_at = at;
		if (type == 110) {
			s.rows++;
			for (int i = 0; i < 3; i++)
				(void)packed(&p); /* moment, thread, stack */
			s.row_samples += packed(&p);
			s.row_ns += packed(&p);
			/* neither trace nor span */
			assert_ptr_equal(p + 2, out + at + size);
			assert_memory_equal(p, "\0\0", 2);
		}
		at += size;
	}
	assert_int_equal(big_endian(out + 16), s.pools_at);
	assert_int_equal(big_endian(out + 24), s.types_at);
	return s;
}

static void a_jfr_file_is_made_of_events_that_add_up(void **state)
{
	struct profile *p = example();
	struct jfr_sums s;
	size_t len;
	char *out;

	(void)state;
	profile_add(p, 0, 0, 4, 40000001); /* no stack */
	assert_int_equal(report_write(p, REPORT_JFR, NULL, &out, &len), 0);
	s = jfr_walk(out, len);
	assert_int_equal(big_endian(out + 32), 1000000000); /* begin */
	assert_int_equal(big_endian(out + 40), 1000000000); /* length */
	assert_int_equal(s.rows, 3);
	assert_int_equal(s.row_samples, 7);
	assert_int_equal(s.row_ns, 70000001);
	assert_int_equal(s.samples, 7);
	assert_int_equal(s.accounts, 1);
	assert_non_null(memmem(out, len, "java/lang/Thread", 16));
	assert_non_null(memmem(out, len, "[libc.so.6]", 11));
	assert_non_null(memmem(out, len, "[no stack]", 10));
	free(out);
	profile_free(p);
}

/* The JDK's tools fail at a descriptor that is none, and at a class with the name of half an array.
 */
static void jfr_has_no_descriptor_or_array_that_readers_fail_at(void **state)
{
	static const char *const broken[] = { "Q1",	  "(Q2",     "(JJJ)", "(Q4)V",	"(I)VQ5",
					      "(Lq/Q6)V", "(L;)VQ7", "([)Q8", "Q9(I)V", "(SSS)[" };
	static const char *const good[] = { "()V", "(I[[JLa/B;)[Lc/D;", "(Ljava/lang/Object;Z)I" };
	struct profile *p = example();
	struct profile_thread t = { .tid = 7 };
	struct profile_frame f = { .kind = WIRE_KIND_JAVA };
	size_t len;
	char *out;

	(void)state;
	f.class_name = profile_string(p, "[[QClass");
	for (size_t i = 0; i < ARRAY_SIZE(broken) + ARRAY_SIZE(good); i++) {
		const char *text =
			i < ARRAY_SIZE(broken) ? broken[i] : good[i - ARRAY_SIZE(broken)];

		f.method = profile_string(p, "m");
		f.signature = profile_string(p, text);
		profile_add(p, profile_thread(p, &t),
			    profile_node(p, 0, profile_intern_frame(p, &f)), 1, 10000000);
	}
	assert_int_equal(report_write(p, REPORT_JFR, NULL, &out, &len), 0);
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		assert_null(memmem(out, len, broken[i], strlen(broken[i])));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_non_null(memmem(out, len, good[i], strlen(good[i])));
	assert_non_null(memmem(out, len, "QClass", 6));
	assert_null(memmem(out, len, "[QClass", 7));
	free(out);
	profile_free(p);
}

static void jfr_samples_are_shared_out_by_weight(void **state)
{
	struct profile *p = example();
	struct jfr_sums s;
	size_t len;
	char *out;

	(void)state;
	/* three samples of 10 ms, and many with almost no weight */
	profile_add(p, 0, 0, 97, 97);
	assert_int_equal(report_write(p, REPORT_JFR, NULL, &out, &len), 0);
	s = jfr_walk(out, len);
	assert_in_range(s.samples, 99, 101);
	assert_int_equal(s.row_samples, 100);
	assert_non_null(memmem(out, len, "300000 ns", 9));
	free(out);
	profile_free(p);
}

static void annotated_names_end_with_their_kind(void **state)
{
	const struct report_options o = { .annotate = true };
	struct profile_frame f = { .kind = WIRE_KIND_INLINED, .line = 1 };
	struct profile *p = example();
	size_t len;
	char *out;

	(void)state;
	f.class_name = profile_string(p, "org.shop.Cart");
	f.method = profile_string(p, "total");
	profile_add(p, 0, profile_node(p, 0, profile_intern_frame(p, &f)), 1, 5);
	assert_int_equal(report_write(p, REPORT_COLLAPSED, &o, &out, &len), 0);
	assert_non_null(strstr(out, "org.shop.Cart.total_[i] 5\n"));
	assert_non_null(strstr(out, "java.lang.Thread.run 20000000\n"));
	free(out);
	profile_free(p);
}

static void samples_without_a_stack_are_in_the_text(void **state)
{
	struct profile *p = example();
	size_t len;
	char *out;

	(void)state;
	profile_add(p, 0, 0, 3, 30000000);
	assert_int_equal(report_write(p, REPORT_TXT, NULL, &out, &len), 0);
	assert_non_null(
		strstr(out, "     0.030   50.00%      0.030   50.00%          3  [no stack]"));
	free(out);
	profile_free(p);
}

/* CPU time of this thread, because a busy machine takes longer */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void a_large_profile_is_written_within_a_second_a_format(void **state)
{
	struct profile *p = example();
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = 1 };
	uint32_t random = 1;

	(void)state;
	f.class_name = profile_string(p, "org.shop.Cart");
	while (p->n_nodes < 100000) {
		uint32_t node = 0;
		char name[16];

		for (int depth = 0; depth < 40; depth++) {
			random = random * 1103515245 + 12345;
			snprintf(name, sizeof(name), "m%u", depth * 7 + (random >> 16) % 5);
			f.method = profile_string(p, name);
			node = profile_node(p, node, profile_intern_frame(p, &f));
		}
		profile_add(p, 0, node, 1, 10000000);
	}
	for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
		uint64_t begin = cpu_ns();
		size_t len;
		char *out;

		assert_int_equal(report_write(p, (enum report_format)i, NULL, &out, &len), 0);
		assert_true(cpu_ns() - begin < NS_PER_S);
		free(out);
	}
	profile_free(p);
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
	assert_int_equal(report_format_by_path("y.jfr"), REPORT_JFR);
	assert_int_equal(report_format_by_name("jpeg"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collapsed_is_root_first_with_the_weight_last),
		cmocka_unit_test(virtual_threads_have_ids_and_no_tid),
		cmocka_unit_test(patterns_choose_stacks_and_what_they_leave_out_is_said),
		cmocka_unit_test(a_wrong_pattern_is_said_with_the_place),
		cmocka_unit_test(a_pattern_that_takes_too_long_is_given_up),
		cmocka_unit_test(reversed_stacks_begin_with_the_leaf),
		cmocka_unit_test(of_several_jvms_each_has_a_level_of_its_own),
		cmocka_unit_test(names_cannot_leave_the_script_element),
		cmocka_unit_test(a_method_counts_once_a_stack),
		cmocka_unit_test(the_method_with_most_time_of_its_own_comes_first),
		cmocka_unit_test(pprof_is_gzip),
		cmocka_unit_test(go_reads_back_the_same_sums),
		cmocka_unit_test(a_jfr_file_is_made_of_events_that_add_up),
		cmocka_unit_test(jfr_has_no_descriptor_or_array_that_readers_fail_at),
		cmocka_unit_test(jfr_samples_are_shared_out_by_weight),
		cmocka_unit_test(annotated_names_end_with_their_kind),
		cmocka_unit_test(samples_without_a_stack_are_in_the_text),
		cmocka_unit_test(a_large_profile_is_written_within_a_second_a_format),
		cmocka_unit_test(an_empty_profile_can_be_written),
		cmocka_unit_test(formats_are_known_by_name_and_suffix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

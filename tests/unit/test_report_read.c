/* Files that are read back: nothing is lost, and an error in a file is reported with its
 * position. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/report/formats.h"
#include "daemon/report/read.h"

#define CPU  (1u << WIRE_EVENT_CPU)
#define LOCK (1u << WIRE_EVENT_LOCK)

static uint32_t method(struct profile *p, uint32_t parent, const char *name, uint8_t kind)
{
	struct profile_frame f = { .kind = kind, .line = 12 };

	f.class_name = profile_string(p, "org.shop.Cart$$Lambda/0x1f");
	f.method = profile_string(p, name);
	f.signature = profile_string(p, "([Ljava/lang/String;)V");
	f.file = profile_string(p, "Cart.java");
	return profile_node(p, parent, profile_intern_frame(p, &f));
}

static uint32_t plain(struct profile *p, uint32_t parent, const char *name, uint8_t kind,
		      const char *module)
{
	struct profile_frame f = { .kind = kind, .line = -1 };

	f.method = profile_string(p, name);
	f.module = profile_string(p, module);
	f.offset = *name ? 0 : 0x1234;
	return profile_node(p, parent, profile_intern_frame(p, &f));
}

static uint32_t thread_of(struct profile *p, uint32_t pid, uint32_t tid, const char *name)
{
	struct profile_process q = { .pid = pid, .ns_pid = 1, .start_time = 1ull << 40 };
	struct profile_accounts accounts = { .of = { { 9, 90, 8, 80, 1, 10, 0 },
						     { 7, 70, 7, 70, 0, 0, 0 } },
					     .short_waits = 3,
					     .short_waits_ns = 30 };
	struct profile_thread t = { .tid = tid };
	uint32_t known = p->n_processes;

	q.name = profile_string(p, pid == 7 ? "org.shop.Main" : "a \"b\" \\ <c>");
	q.pod = profile_string(p, "shop/cart-1");
	q.jdk = profile_string(p, "17.0.15");
	q.labels = profile_string(p, "service=shop\nteam=a \"b\" =c\n");
	q.note = profile_string(p, pid == 7 ? "a note" : "");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, name);
	if (p->n_processes > known) {
		profile_add_accounts(p, t.process, &accounts);
		profile_add_cpu(p, t.process, 1000000);
	}
	return profile_thread(p, &t);
}

static void wait_for(struct profile *p, uint32_t thread, uint32_t node, uint8_t wait, bool idle)
{
	const struct profile_row row = { .event = WIRE_EVENT_LOCK,
					 .wait = wait,
					 .idle = idle,
					 .thread = thread,
					 .node = node,
					 .samples = 2 + wait,
					 .weight = 1000001ull + wait + 10u * idle };

	profile_add_row(p, &row);
}

/* Two JVMs, every kind of frame, every kind of thread, CPU time and waits. */
static struct profile *example(void)
{
	struct profile *p;
	uint32_t one, two, run, libc;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1700000000123456789ull; /* more than a double holds */
	p->end_real_ns = p->begin_real_ns + 60000000000ull;
	p->interval[WIRE_EVENT_CPU] = 10000000;
	p->interval[WIRE_EVENT_LOCK] = 1000000;
	p->interval[WIRE_EVENT_OFFCPU] = 16000000;
	p->threads_left_out[WIRE_EVENT_CPU] = (struct profile_left_out){ 5, 50000000 };
	one = thread_of(p, 7, 8, "main; \"x\" <é>");
	two = thread_of(p, 9, WIRE_VIRTUAL_TID + 53, "");
	run = method(p, 0, "run", WIRE_KIND_C2);
	libc = plain(p, run, "", WIRE_KIND_NATIVE, "/lib/x86_64/libc.so.6");
	profile_add(p, one, run, 3, 1ull << 60);
	profile_add(p, one, libc, 1, 11);
	profile_add(p, one, plain(p, run, "malloc(unsigned long)", WIRE_KIND_NATIVE, "/lib/a.so"),
		    1, 12);
	profile_add(p, one, plain(p, libc, "do_syscall_64", WIRE_KIND_KERNEL, ""), 1, 13);
	profile_add(p, two, plain(p, run, "[exited between ticks]", WIRE_KIND_SYNTHETIC, ""), 1,
		    14);
	profile_add(p, two, plain(p, 0, "", WIRE_KIND_UNKNOWN, ""), 1, 15);
	profile_add(p, two, plain(p, 0, "vtable stub", WIRE_KIND_STUB, ""), 1, 16);
	for (uint8_t k = WIRE_KIND_JAVA; k <= WIRE_KIND_NATIVE_METHOD; k++)
		profile_add(p, thread_of(p, 9, WIRE_VIRTUAL_TID, ""), method(p, run, "sum", k), 1,
			    20u + k);
	profile_add(p, two, 0, 4, 17);
	wait_for(p, one, run, WIRE_WAIT_PARK, false);
	wait_for(p, one, run, WIRE_WAIT_ENTER, false);
	wait_for(p, two, plain(p, run, "org.shop.Stock", WIRE_KIND_CLASS, ""), WIRE_WAIT_WAIT,
		 true);
	return p;
}

static char *written(const struct profile *p, enum report_format format, unsigned events,
		     size_t *len)
{
	const struct report_options o = {
		.events = events, .idle = true, .threads = true, .annotate = true
	};
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, len), 0);
	return out;
}

static struct profile *read_back(enum report_format format, const char *bytes, size_t len)
{
	struct report_reading r = { .event = -1 };
	struct profile *p = NULL;

	if (report_read(format, bytes, len, &r, &p) < 0)
		fail_msg("%s", r.why);
	assert_string_equal(r.note, "");
	return p;
}

/* The profile as a collapsed file with threads and kinds, and the part of a json file before its
 * tables. */
static void assert_same(const struct profile *a, const struct profile *b, unsigned event)
{
	const struct report_options o = { .events = event, .idle = true };
	struct text_out x = { 0 }, y = { 0 };
	struct profile *parts[2];
	size_t len;
	char *s = written(a, REPORT_COLLAPSED, event, &len);
	char *t = written(b, REPORT_COLLAPSED, event, &len);

	assert_string_equal(s, t);
	free(s);
	free(t);
	for (int i = 0; i < 2; i++) {
		const struct profile_filter filter = { .events = event };

		assert_int_equal(profile_new(&parts[i]), 0);
		assert_int_equal(profile_merge(parts[i], i ? b : a, &filter), 0);
		write_json_head(i ? &y : &x, parts[i], &o);
		profile_free(parts[i]);
	}
	assert_string_equal(x.p, y.p);
	free(x.p);
	free(y.p);
}

static void json_is_read_to_the_last_byte(void **state)
{
	struct profile *p = example(), *q;
	unsigned events[] = { CPU, LOCK, 1u << WIRE_EVENT_OFFCPU };
	size_t len, again;
	char *out, *twice;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		out = written(p, REPORT_JSON, events[i], &len);
		q = read_back(REPORT_JSON, out, len);
		twice = written(q, REPORT_JSON, events[i], &again);
		assert_string_equal(out, twice);
		free(out);
		free(twice);
		profile_free(q);
	}
	profile_free(p);
}

static void pprof_holds_stacks_labels_and_accounts_of_all_events(void **state)
{
	struct profile *p = example(), *q;
	size_t len;
	char *out = written(p, REPORT_PPROF, CPU | LOCK, &len);

	(void)state;
	q = read_back(REPORT_PPROF, out, len);
	assert_int_equal(profile_events(q), CPU | LOCK);
	assert_same(p, q, CPU);
	assert_same(p, q, LOCK);
	free(out);
	profile_free(p);
	profile_free(q);
}

static void json_to_pprof_to_json_is_the_same(void **state)
{
	struct profile *p = example(), *q, *last;
	size_t len;
	char *out = written(p, REPORT_JSON, CPU, &len);

	(void)state;
	q = read_back(REPORT_JSON, out, len);
	free(out);
	out = written(q, REPORT_PPROF, CPU, &len);
	last = read_back(REPORT_PPROF, out, len);
	assert_same(p, last, CPU);
	free(out);
	profile_free(p);
	profile_free(q);
	profile_free(last);
}

static void collapsed_stacks_are_read_with_threads_and_kinds(void **state)
{
	struct profile *p = example(), *q;
	size_t len;
	char *out = written(p, REPORT_COLLAPSED, CPU, &len), *again;

	(void)state;
	q = read_back(REPORT_COLLAPSED, out, len);
	again = written(q, REPORT_COLLAPSED, CPU, &len);
	assert_string_equal(out, again);
	free(out);
	free(again);
	profile_free(p);
	profile_free(q);
}

static void collapsed_numbers_can_be_counts(void **state)
{
	static const char in[] = "[main tid=5];a/B.c_[j];malloc 3\r\n\nx 1";
	struct report_reading r = { .event = WIRE_EVENT_WALL, .interval = 10000000 };
	struct profile *p;

	(void)state;
	assert_int_equal(report_read(REPORT_COLLAPSED, in, strlen(in), &r, &p), 0);
	assert_int_equal(p->n_rows, 2);
	assert_int_equal(p->rows[0].samples, 3);
	assert_int_equal(p->rows[0].weight, 30000000);
	assert_int_equal(p->rows[0].event, WIRE_EVENT_WALL);
	assert_int_equal(p->threads[p->rows[0].thread].tid, 5);
	assert_int_equal(p->accounts.of[WIRE_EVENT_WALL].delivered_weight, 40000000);
	assert_int_equal(p->frames[p->nodes[1].frame].kind, WIRE_KIND_C2);
	profile_free(p);
}

static void is_refused(enum report_format format, const char *bytes, size_t len, const char *why)
{
	struct report_reading r = { .event = -1 };
	struct profile *p;

	assert_int_equal(report_read(format, bytes, len, &r, &p), -EBADMSG);
	assert_string_equal(r.why, why);
}

static void errors_name_their_position(void **state)
{
	static const struct {
		enum report_format format;
		const char *in, *why;
	} wrong[] = {
		{ REPORT_COLLAPSED, "a;b 1\na;b\n", "line 2: no number after the stack" },
		{ REPORT_COLLAPSED, "a -1\n",
		  "line 1: not a whole number after the stack: \"-1\"" },
		{ REPORT_COLLAPSED, "a 1.5\n",
		  "line 1: not a whole number after the stack: \"1.5\"" },
		{ REPORT_JSON, "", "no object at byte 0" },
		{ REPORT_JSON, "{}", "no \"event\": it is not a profile of kindling" },
		{ REPORT_JSON, "{\"event\":\"off\"}",
		  "event: not cpu, lock, alloc, wall or offcpu at byte 14" },
		{ REPORT_JSON, "{\"begin_ns\":-1}", "begin_ns: not a whole number at byte 12" },
		{ REPORT_JSON, "{\"begin_ns\":99999999999999999999}",
		  "begin_ns: a number that is too large at byte 31" },
		{ REPORT_JSON, "{\"event\":\"cpu\",\"rows\":[[0,0,1]]}",
		  "rows: a row without its four numbers at byte 30" },
		{ REPORT_JSON, "{\"event\":\"cpu\",\"rows\":[[0,0,1,2]]}",
		  "rows: number 0 refers to thread 0 or node 0, which does not exist" },
		{ REPORT_JSON, "{\"event\":\"cpu\",\"nodes\":[[0,-1],[1,0]]}",
		  "nodes: a parent that does not precede its child, or an unknown frame at byte 36" },
		{ REPORT_JSON, "{\"event\":\"cpu\",\"nodes\":[[0,-1],[0,0]]}",
		  "nodes: number 1 refers to frame 0, which does not exist" },
		{ REPORT_JSON, "{\"title\":\"a", "title: a string that does not end at byte 11" },
		{ REPORT_PPROF, "x", "it is not a pprof profile, or has too many entries" },
		{ REPORT_PPROF, "\x1f\x8b\x08",
		  "its compression is broken or cut off, 3 bytes in" },
		{ REPORT_PPROF, "\x32\x01x",
		  "it is not a pprof profile: its first string is not empty" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		is_refused(wrong[i].format, wrong[i].in, strlen(wrong[i].in), wrong[i].why);
}

static void json_cut_anywhere_is_refused(void **state)
{
	struct profile *p = example(), *q;
	size_t len;
	char *out = written(p, REPORT_JSON, LOCK, &len);

	(void)state;
	for (size_t n = 0; n < len - 2; n++) {
		struct report_reading r = { .event = -1 };

		assert_int_equal(report_read(REPORT_JSON, out, n, &r, &q), -EBADMSG);
		assert_string_not_equal(r.why, "");
	}
	free(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_read_to_the_last_byte),
		cmocka_unit_test(pprof_holds_stacks_labels_and_accounts_of_all_events),
		cmocka_unit_test(json_to_pprof_to_json_is_the_same),
		cmocka_unit_test(collapsed_stacks_are_read_with_threads_and_kinds),
		cmocka_unit_test(collapsed_numbers_can_be_counts),
		cmocka_unit_test(errors_name_their_position),
		cmocka_unit_test(json_cut_anywhere_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

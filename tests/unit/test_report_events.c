/* Reports of waits, allocations and wall-clock samples; test_report.c tests those of CPU time. */
#include "tests/unit/unit.h"
#include "tests/unit/jfr_packed.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include "daemon/report/event_names.h"
#include "daemon/report/report.h"

#define CPU   (1u << WIRE_EVENT_CPU)
#define LOCK  (1u << WIRE_EVENT_LOCK)
#define ALLOC (1u << WIRE_EVENT_ALLOC)
#define OFFCPU (1u << WIRE_EVENT_OFFCPU)
#define WALL  (1u << WIRE_EVENT_WALL)

static uint32_t on_stack(struct profile *p, uint32_t node, uint8_t kind, const char *class_name,
			 const char *method)
{
	struct profile_frame f = { .kind = kind, .line = -1 };

	f.class_name = profile_string(p, class_name);
	f.method = profile_string(p, method);
	return profile_node(p, node, profile_intern_frame(p, &f));
}

static void add(struct profile *p, enum wire_event event, uint32_t node, bool idle,
		uint64_t samples, uint64_t weight)
{
	const struct profile_row row = { .node = node,
					 .event = (uint8_t)event,
					 .wait = WIRE_WAIT_PARK,
					 .idle = idle,
					 .samples = samples,
					 .weight = weight };

	profile_add_row(p, &row);
}

/* 20 ms of CPU, 3 waits of 30 ms for a ReentrantLock, an idle one of 7 s, 1 MiB of byte[], 0.5 s of
 * wall-clock time. */
static struct profile *example(void)
{
	struct profile_process q = { .pid = 7, .start_time = 1 };
	struct profile_thread t = { .tid = 8 };
	struct profile *p;
	uint32_t run, node;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1000000000;
	p->end_real_ns = 2000000000;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		p->interval[e] = e == WIRE_EVENT_ALLOC ? 524288 : 1000000;
		p->accounts.of[e] = (struct profile_losses){ 5, 50, 4, 40, 1, 10, 0 };
	}
	p->accounts.short_waits = 12;
	p->accounts.short_waits_ns = 3000000;
	q.name = profile_string(p, "app");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "main");
	(void)profile_thread(p, &t);
	run = on_stack(p, 0, WIRE_KIND_C2, "org.shop.Cart", "run");
	add(p, WIRE_EVENT_CPU, run, false, 2, 20000000);
	node = on_stack(p, run, WIRE_KIND_CLASS, "", "java.util.concurrent.locks.ReentrantLock");
	add(p, WIRE_EVENT_LOCK, node, false, 3, 30000000);
	add(p, WIRE_EVENT_LOCK, run, true, 1, 7000000000);
	add(p, WIRE_EVENT_ALLOC, on_stack(p, run, WIRE_KIND_CLASS, "", "byte[]"), false, 2,
	    1048576);
	add(p, WIRE_EVENT_WALL, run, false, 10, 500000000);
	p->interval[WIRE_EVENT_OFFCPU] = 16000000;
	add(p, WIRE_EVENT_OFFCPU, run, false, 2, 40000000);
	return p;
}

static char *written(enum report_format format, unsigned events, bool idle, size_t *len)
{
	const struct report_options o = { .events = events, .idle = idle };
	struct profile *p = example();
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, len), 0);
	profile_free(p);
	return out;
}

static void contains(enum report_format format, unsigned events, bool idle, const char *text)
{
	size_t len;
	char *out = written(format, events, idle, &len);

	if (!strstr(out, text))
		fail_msg("\"%s\" is not in: %s", text, out);
	free(out);
}

static void collapsed_has_one_event_and_the_class_on_top(void **state)
{
	size_t len;
	char *out = written(REPORT_COLLAPSED, LOCK, false, &len);

	(void)state;
	assert_string_equal(
		out, "org.shop.Cart.run;java.util.concurrent.locks.ReentrantLock 30000000\n");
	free(out);
	out = written(REPORT_COLLAPSED, ALLOC, false, &len);
	assert_string_equal(out, "org.shop.Cart.run;byte[] 1048576\n");
	free(out);
	out = written(REPORT_COLLAPSED, 0, false, &len);
	assert_string_equal(out, "org.shop.Cart.run 20000000\n");
	free(out);
}

static void idle_waits_are_left_out_and_said_or_shown(void **state)
{
	(void)state;
	contains(REPORT_TXT, LOCK, false,
		 "0.030 s of waiting, 3 waits of 1 ms and more, mean wait 10 ms\n");
	contains(
		REPORT_TXT, LOCK, false,
		"waits: 5 taken = 4 delivered + 1 dropped (0.000 s dropped)\n"
		"12 waits below 1 ms, 0.003 s in all, not shown\n"
		"1 wait of threads that were idle, 7.000 s in all, not shown; --idle shows them\n");
	contains(REPORT_TXT, LOCK, true, "7.030 s of waiting");
	contains(REPORT_COLLAPSED, LOCK, true, "org.shop.Cart.run 7000000000\n");
}

static void weights_are_in_the_unit_of_their_event(void **state)
{
	(void)state;
	contains(REPORT_TXT, ALLOC, false,
		 "1.000 MiB of allocation, 2 samples, mean interval 512 KiB\n");
	contains(REPORT_TXT, ALLOC, false,
		 "     1.000  100.00%      1.000  100.00%          2  byte[]\n");
	contains(REPORT_TXT, WALL, false,
		 "0.500 s of wall-clock time, 10 samples, mean interval 50 ms\n");
	contains(REPORT_JSON, ALLOC, false, "\"event\":\"alloc\",\"unit\":\"bytes\"");
	contains(REPORT_JSON, ALLOC, false, "\"taken_bytes\":50");
	contains(REPORT_JSON, LOCK, false, "\"min_wait_ns\":1000000");
	contains(REPORT_JSON, LOCK, false, "\"short_waits\":12");
	contains(REPORT_HTML, ALLOC, false, "\"unit\":\"bytes\"");
}

static void shorter_times_off_the_cpu_may_be_missing(void **state)
{
	(void)state;
	contains(REPORT_TXT, OFFCPU, false,
		 "0.040 s of time off the CPU, 2 intervals, mean interval 20 ms\n");
	contains(REPORT_TXT, OFFCPU, false,
		 "times off the CPU below 16 ms may be missing; kindling threads adds them up\n");
	contains(REPORT_JSON, OFFCPU, false, "\"min_ns\":16000000");
}

static void a_format_says_what_it_cannot_hold(void **state)
{
	const struct report_options two = { .events = CPU | LOCK }, wall = { .events = WALL };
	struct profile *p = example();
	char why[128], *out;
	size_t len;

	(void)state;
	assert_true(report_takes(REPORT_PPROF, CPU | LOCK | ALLOC | WALL, why, sizeof(why)));
	assert_true(report_takes(REPORT_JFR, CPU | LOCK | ALLOC, why, sizeof(why)));
	assert_false(report_takes(REPORT_HTML, CPU | LOCK, why, sizeof(why)));
	assert_string_equal(why, "html holds one type of event; "
				 "pb.gz, jfr, speedscope, otlp and otlp.json hold several");
	assert_false(report_takes(REPORT_JFR, WALL, why, sizeof(why)));
	assert_int_equal(report_write(p, REPORT_TXT, &two, &out, &len), -EINVAL);
	assert_int_equal(report_write(p, REPORT_JFR, &wall, &out, &len), -EINVAL);
	profile_free(p);
}

static void events_have_names(void **state)
{
	unsigned events;
	char buf[40];

	(void)state;
	assert_true(report_events_by_name("alloc", &events));
	assert_int_equal(events, ALLOC);
	assert_true(report_events_by_name("cpu,lock", &events));
	assert_int_equal(events, CPU | LOCK);
	assert_string_equal(report_events_list(events, buf, sizeof(buf)), "cpu,lock");
	assert_false(report_events_by_name("", &events));
	assert_false(report_events_by_name("cpu,", &events));
	assert_false(report_events_by_name("locks", &events));
	assert_int_equal(report_event_of(LOCK | WALL), WIRE_EVENT_LOCK);
	assert_int_equal(report_event_of(0), WIRE_EVENT_CPU);
}

static void check_counts(const struct report_counts *c, uint64_t samples, uint64_t dropped,
			 uint64_t filtered, uint64_t idle)
{
	assert_int_equal(c->samples, samples);
	assert_int_equal(c->dropped, dropped);
	assert_int_equal(c->filtered, filtered);
	assert_int_equal(c->idle, idle);
}

static void samples_and_drops_are_those_that_were_asked_for(void **state)
{
	const struct report_options lock = { .events = LOCK },
				    all = { .events = CPU | LOCK, .idle = true },
				    none = { .events = CPU | LOCK, .include = "no.such.method" };
	struct profile *p = example();
	struct report_counts c;

	(void)state;
	report_count(p, &lock, &c);
	check_counts(&c, 3, 1, 0, 1);
	report_count(p, &all, &c);
	check_counts(&c, 6, 2, 0, 0);
	report_count(p, &none, &c);
	check_counts(&c, 0, 2, 5, 1);
	p->threads_left_out[WIRE_EVENT_LOCK].samples = 4;
	p->idle_left_out[WIRE_EVENT_LOCK].samples = 5;
	report_count(p, &lock, &c);
	check_counts(&c, 3, 1, 4, 6);
	profile_free(p);
}

/* ---- pprof ----------------------------------------------------------------------------------- */

#define TYPES                                                                      \
	"samples/count cpu/nanoseconds[dflt] contentions/count delay/nanoseconds " \
	"alloc_objects/count alloc_space/bytes wall_samples/count wall/nanoseconds"

/* Sums of the eight value columns of `go tool pprof -raw`. */
static bool go_sums(const char *path, uint64_t sums[8])
{
	char command[200], line[4096];
	bool in_samples = false;
	uint64_t n[8];
	FILE *f;

	snprintf(command, sizeof(command), "go tool pprof -raw %s 2>/dev/null", path);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strcmp(line, "Locations\n") == 0)
			in_samples = false;
		if (in_samples &&
		    sscanf(line,
			   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 ":",
			   &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]) == 8)
			for (int i = 0; i < 8; i++)
				sums[i] += n[i];
		if (strncmp(line, TYPES, strlen(TYPES)) == 0)
			in_samples = true;
	}
	return f && pclose(f) == 0;
}

static void go_reads_every_event_with_its_unit(void **state)
{
	static const uint64_t expected[8] = { 2, 20000000, 3, 30000000, 2, 1048576, 10, 500000000 };
	char path[] = "/tmp/kindling-pprof-XXXXXX";
	uint64_t sums[8] = { 0 };
	size_t len;
	char *out;
	bool ok;
	int fd;

	(void)state;
	if (system("go version >/dev/null 2>&1") != 0)
		skip();
	out = written(REPORT_PPROF, CPU | LOCK | ALLOC | WALL, false, &len);
	fd = mkstemp(path);
	assert_int_equal(write(fd, out, len), len);
	close(fd);
	free(out);
	ok = go_sums(path, sums);
	unlink(path);
	assert_true(ok);
	assert_memory_equal(sums, expected, sizeof(expected));
}

/* ---- JFR ------------------------------------------------------------------------------------- */

/* Numbers of jfr_priv.h. */
enum { JFR_THREAD_PARK = 105, JFR_ALLOCATION };

static void jfr_has_an_event_for_each_wait_and_allocation(void **state)
{
	uint64_t parks = 0, park_ns = 0, samples = 0, bytes = 0, park_class = 0;
	size_t len;
	char *out = written(REPORT_JFR, CPU | LOCK | ALLOC, false, &len);

	(void)state;
	for (const char *at = out + 68, *next; at < out + len; at = next) {
		const char *p = at;
		uint64_t values[8];

		next = at + packed(&p);
		/* the event's type, its start, and the first of its fields */
		for (int i = 0; i < 8; i++)
			values[i] = p < next ? packed(&p) : 0;
		if (values[0] == JFR_THREAD_PARK) {
			parks++;
			park_ns += values[2];
			park_class = values[5];
		}
		if (values[0] == JFR_ALLOCATION) {
			samples++;
			bytes += values[5];
		}
	}
	assert_int_equal(parks, 3);
	assert_int_equal(park_ns, 30000000);
	assert_int_not_equal(park_class, 0);
	assert_int_equal(samples, 2);
	assert_int_equal(bytes, 1048576);
	assert_non_null(memmem(out, len, "java/util/concurrent/locks/ReentrantLock", 40));
	assert_non_null(memmem(out, len, "jdk.ObjectAllocationSample", 26));
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collapsed_has_one_event_and_the_class_on_top),
		cmocka_unit_test(idle_waits_are_left_out_and_said_or_shown),
		cmocka_unit_test(weights_are_in_the_unit_of_their_event),
		cmocka_unit_test(shorter_times_off_the_cpu_may_be_missing),
		cmocka_unit_test(a_format_says_what_it_cannot_hold),
		cmocka_unit_test(events_have_names),
		cmocka_unit_test(samples_and_drops_are_those_that_were_asked_for),
		cmocka_unit_test(go_reads_every_event_with_its_unit),
		cmocka_unit_test(jfr_has_an_event_for_each_wait_and_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

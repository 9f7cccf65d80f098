#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/clickhouse/answer.h"
#include "daemon/clickhouse/ask.h"
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/clickhouse/rows.h"
#include "daemon/clickhouse/sent.h"
#include "daemon/clickhouse/siphash.h"
#include "daemon/ground/mem.h"
#include "daemon/report/report.h"
#include "proto/wire.h"

static uint32_t frame(struct profile *p, uint8_t kind, const char *class_name, const char *method,
		      const char *module, uint64_t offset)
{
	const struct profile_frame f = {
		.kind = kind,
		.line = wire_kind_is_method(kind) ? 12 : -1,
		.class_name = profile_string(p, class_name),
		.method = profile_string(p, method),
		.module = profile_string(p, module),
		.signature = profile_string(p, wire_kind_is_method(kind) ? "()V" : ""),
		.file = profile_string(p, wire_kind_is_method(kind) ? "Shop.java" : ""),
		.offset = offset,
	};

	return profile_intern_frame(p, &f);
}

/* A JVM with a method, a wait for a lock, a library function with a name and one without, an
 * idle wait, and a sample without a stack. */
static void add_process(struct profile *p, uint32_t pid)
{
	struct profile_process q = { .pid = pid, .ns_pid = 1, .start_time = 100 + pid };
	struct profile_accounts accounts = { .short_waits = 3, .short_waits_ns = 30 };
	struct profile_thread t = { .tid = pid + 1 };
	uint32_t run, wait, native;

	q.name = profile_string(p, "org.shop.Main");
	q.pod = profile_string(p, "shop/cart-1");
	q.container = profile_string(p, "cart");
	q.container_id = profile_string(p, "0123456789ab");
	q.jdk = profile_string(p, "21.0.8");
	q.labels = profile_string(p, "namespace=prod\nservice=shop\nteam=checkout\n");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "main; \"x\"\t'");
	accounts.of[WIRE_EVENT_CPU] = (struct profile_losses){ 5, 50, 4, 40, 1, 10, 0 };
	profile_add_accounts(p, t.process, &accounts);
	profile_add_cpu(p, t.process, 12345);
	run = profile_node(p, 0, frame(p, WIRE_KIND_C2, "java.lang.Thread", "run", "", 0));
	run = profile_node(p, run, frame(p, WIRE_KIND_INLINED, "org.shop.Main", "a.b'c\\", "", 0));
	native = profile_node(p, run, frame(p, WIRE_KIND_NATIVE, "", "", "/lib/libc.so.6", 0x10));
	profile_add(p, profile_thread(p, &t), native, 1, 10000000);
	native = profile_node(p, run,
			      frame(p, WIRE_KIND_NATIVE, "", "read", "/lib/libc.so.6", 0x20));
	profile_add(p, profile_thread(p, &t), native, 2, 20000000);
	native = profile_node(p, run,
			      frame(p, WIRE_KIND_NATIVE, "", "read", "/lib/libc.so.6", 0x24));
	profile_add(p, profile_thread(p, &t), native, 3, 30000000);
	profile_add(p, profile_thread(p, &t), 0, 1, 7);
	wait = profile_node(p, run, frame(p, WIRE_KIND_CLASS, "", "org.shop.Lock", "", 0));
	profile_add_row(p, &(struct profile_row){ .thread = profile_thread(p, &t),
						  .node = wait,
						  .event = WIRE_EVENT_LOCK,
						  .wait = WIRE_WAIT_PARK,
						  .samples = 2,
						  .weight = 99 });
	profile_add_row(p, &(struct profile_row){ .thread = profile_thread(p, &t),
						  .node = wait,
						  .event = WIRE_EVENT_LOCK,
						  .wait = WIRE_WAIT_PARK,
						  .idle = true,
						  .samples = 4,
						  .weight = 77 });
}

static struct profile *example(void)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1700000000ull * 1000000000;
	p->end_real_ns = 1700000010ull * 1000000000;
	p->interval[WIRE_EVENT_CPU] = 10000000;
	p->interval[WIRE_EVENT_LOCK] = 1000000;
	add_process(p, 7);
	add_process(p, 8);
	return p;
}

static const char node[] = "node-1";

static struct clickhouse_answers answers_of(const struct clickhouse_rows *rows)
{
	struct clickhouse_answers a;

	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++) {
		a.bytes[i] = rows->tables[i].p;
		a.len[i] = rows->tables[i].len;
	}
	return a;
}

static struct profile *there_and_back(const struct profile *p, struct clickhouse_answered *what)
{
	struct clickhouse_answers answers;
	struct clickhouse_rows rows;
	struct profile *back;

	assert_int_equal(clickhouse_rows_make(p, node, NULL, &rows), 0);
	answers = answers_of(&rows);
	assert_int_equal(clickhouse_profile(&answers, what, &back), 0);
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++)
		assert_int_equal(what->rows[i], rows.rows[i]);
	clickhouse_rows_deinit(&rows);
	return back;
}

static void rows_are_read_back_as_they_were_written(void **state)
{
	struct profile *p = example(), *back;
	struct clickhouse_answered what;

	(void)state;
	back = there_and_back(p, &what);
	assert_int_equal(what.without_stack, 0);
	for (unsigned e = WIRE_EVENT_CPU; e <= WIRE_EVENT_LOCK; e++) {
		const struct report_options o = {
			.events = 1u << e, .annotate = true, .threads = true, .idle = true
		};
		char *a, *b;
		size_t n;

		assert_int_equal(report_write(p, REPORT_COLLAPSED, &o, &a, &n), 0);
		assert_int_equal(report_write(back, REPORT_COLLAPSED, &o, &b, &n), 0);
		assert_string_equal(a, b);
		free(a);
		free(b);
	}
	assert_string_equal(back->strings[back->processes[0].labels],
			    "namespace=prod\nservice=shop\nteam=checkout\n");
	assert_string_equal(back->strings[back->processes[0].pod], "shop/cart-1");
	assert_int_equal(back->processes[0].start_time, p->processes[0].start_time);
	assert_int_equal(profile_cpu_ns(back), profile_cpu_ns(p));
	assert_memory_equal(&back->accounts, &p->accounts, sizeof(p->accounts));
	assert_memory_equal(back->interval, p->interval, sizeof(p->interval));
	assert_int_equal(back->n_threads, p->n_threads);
	profile_free(back);
	profile_free(p);
}

/* The server keeps one of several rows with the same key. */
static void no_two_rows_have_the_same_key(void **state)
{
	struct profile *p = example();
	struct clickhouse_rows rows;
	uint32_t deep[2];

	(void)state;
	/* the frames near the leaf, which are kept, are the same */
	for (unsigned i = 0; i < 2; i++) {
		uint32_t recurse = frame(p, WIRE_KIND_JAVA, "A", "recurse", "", 0);

		deep[i] = profile_node(p, 0, frame(p, WIRE_KIND_JAVA, "A", i ? "b" : "a", "", 0));
		for (unsigned n = 0; n < 5000; n++)
			deep[i] = profile_node(p, deep[i], recurse);
		profile_add_row(
			p, &(struct profile_row){ .node = deep[i], .samples = 1, .weight = 1 });
	}
	assert_int_equal(clickhouse_rows_make(p, node, NULL, &rows), 0);
	assert_int_equal(rows.rows[CLICKHOUSE_SAMPLES], 2 * 6 + 1);
	assert_int_equal(rows.rows[CLICKHOUSE_PROCESSES], 2);
	assert_int_equal(rows.samples, profile_samples(p));
	clickhouse_rows_deinit(&rows);
	profile_free(p);
}

static void the_same_profile_is_the_same_rows(void **state)
{
	struct profile *p = example();
	struct clickhouse_rows a, b;

	(void)state;
	assert_int_equal(clickhouse_rows_make(p, node, NULL, &a), 0);
	assert_int_equal(clickhouse_rows_make(p, node, NULL, &b), 0);
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++) {
		assert_int_equal(a.tables[i].len, b.tables[i].len);
		assert_memory_equal(a.tables[i].p, b.tables[i].p, a.tables[i].len);
	}
	clickhouse_rows_deinit(&a);
	clickhouse_rows_deinit(&b);
	profile_free(p);
}

/* So that no report and no query of docs/clickhouse.md counts what `sink test` inserts. */
static void rows_of_a_test_have_an_event_of_their_own(void **state)
{
	struct profile *p = example();
	const struct text_out *samples;
	struct clickhouse_rows rows;

	(void)state;
	assert_int_equal(clickhouse_rows_test(p, node, &rows), 0);
	samples = &rows.tables[CLICKHOUSE_SAMPLES];
	assert_int_equal(rows.samples, profile_samples(p));
	assert_non_null(memmem(samples->p, samples->len, "\4test", 5));
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
		char word[32];
		int n = snprintf(word, sizeof(word), "%c%s", (int)strlen(wire_event_names[e]),
				 wire_event_names[e]);

		assert_null(memmem(samples->p, samples->len, word, (size_t)n));
	}
	clickhouse_rows_deinit(&rows);
	profile_free(p);
}

static void processes_of_two_nodes_are_two(void **state)
{
	struct clickhouse_answered what;
	struct profile *p = example(), *back;
	struct clickhouse_rows one, other;
	struct clickhouse_answers a;

	(void)state;
	assert_int_equal(clickhouse_rows_make(p, node, NULL, &one), 0);
	assert_int_equal(clickhouse_rows_make(p, "node-2", NULL, &other), 0);
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++)
		text_bytes(&one.tables[i], other.tables[i].p, other.tables[i].len);
	a = answers_of(&one);
	assert_int_equal(clickhouse_profile(&a, &what, &back), 0);
	assert_int_equal(back->n_processes, 4);
	assert_int_equal(profile_samples(back), 2 * profile_samples(p));
	profile_free(back);
	clickhouse_rows_deinit(&one);
	clickhouse_rows_deinit(&other);
	profile_free(p);
}

/* An answer that is cut anywhere is an error that names the row, or it contains only whole rows. */
static void an_answer_that_is_cut_is_refused(void **state)
{
	struct clickhouse_answered what;
	struct profile *p = example(), *back;
	struct clickhouse_rows rows;
	struct clickhouse_answers a;
	unsigned whole = 0;

	(void)state;
	assert_int_equal(clickhouse_rows_make(p, node, NULL, &rows), 0);
	a = answers_of(&rows);
	for (size_t n = 0; n < rows.tables[CLICKHOUSE_STACKS].len; n++) {
		int r;

		a.len[CLICKHOUSE_STACKS] = n;
		r = clickhouse_profile(&a, &what, &back);
		if (r == 0) {
			assert_true(n > 0 || what.without_stack > 0);
			profile_free(back);
			whole++;
		} else {
			assert_int_equal(r, -EBADMSG);
			assert_int_equal(what.bad, CLICKHOUSE_STACKS);
			assert_int_equal(what.bad_row, whole);
		}
	}
	assert_int_equal(whole, rows.rows[CLICKHOUSE_STACKS]);
	clickhouse_rows_deinit(&rows);
	profile_free(p);
}

static void statements_quote_what_they_are_given(void **state)
{
	const struct clickhouse_question q = { .database = "d",
					       .from_ns = 1700000000ull * 1000000000,
					       .to_ns = 1700000060ull * 1000000000,
					       .selectors = { [CLICKHOUSE_SERVICE] =
								      "a' OR 1=1 \\" },
					       .events = 1u << WIRE_EVENT_LOCK };
	struct text_out t = { 0 };

	(void)state;
	clickhouse_put_question(&t, &q, CLICKHOUSE_SAMPLES);
	assert_non_null(strstr(t.p, "AND service = 'a\\' OR 1=1 \\\\' AND event IN ('lock')"));
	free(t.p);
}

/* The authors' test vectors, for the inputs 00, 00 01, ... */
static void stacks_are_numbered_by_siphash(void **state)
{
	static const uint8_t in[15] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

	(void)state;
	assert_true(siphash(in, 0) == 0x726fdb47dd0e0e31ull);
	assert_true(siphash(in, 15) == 0xa129ca6149be45e5ull);
}

static void names_of_databases_are_checked(void **state)
{
	(void)state;
	assert_true(clickhouse_name_is_fine("kindling_2"));
	assert_false(clickhouse_name_is_fine(""));
	assert_false(clickhouse_name_is_fine("2x"));
	assert_false(clickhouse_name_is_fine("a;DROP"));
}

/* ---- stacks that the server has -------------------------------------------------------------- */

/* The rows of stacks made from @p; all other rows must be the same as without @sent. */
static uint64_t stacks_made(const struct profile *p, struct clickhouse_sent *sent)
{
	struct clickhouse_rows all, rows;
	uint64_t stacks;

	assert_int_equal(clickhouse_rows_make(p, node, NULL, &all), 0);
	assert_int_equal(clickhouse_rows_make(p, node, sent, &rows), 0);
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++) {
		if (i == CLICKHOUSE_STACKS)
			continue;
		assert_int_equal(rows.tables[i].len, all.tables[i].len);
		assert_memory_equal(rows.tables[i].p, all.tables[i].p, all.tables[i].len);
	}
	stacks = rows.rows[CLICKHOUSE_STACKS];
	clickhouse_rows_deinit(&rows);
	clickhouse_rows_deinit(&all);
	return stacks;
}

static void a_stack_is_left_out_when_the_server_has_it(void **state)
{
	CLEANUP(clickhouse_sent_freep) struct clickhouse_sent *sent = NULL;
	struct profile *p = example();
	struct profile_process *q = (struct profile_process *)(uintptr_t)p->processes;
	uint64_t all = stacks_made(p, NULL);

	(void)state;
	assert_int_equal(clickhouse_sent_new(&sent), 0);
	assert_int_equal(stacks_made(p, sent), all);
	assert_int_equal(stacks_made(p, sent), all); /* not confirmed */
	clickhouse_sent_confirm(sent);
	assert_int_equal(stacks_made(p, sent), 0);
	profile_add(p, 0, profile_node(p, 0, frame(p, WIRE_KIND_C2, "New", "run", "", 0)), 1, 1);
	assert_int_equal(stacks_made(p, sent), 1);
	clickhouse_sent_confirm(sent);
	assert_int_equal(stacks_made(p, sent), 0);
	q[0].labels = profile_string(p, "namespace=prod\nservice=other\n");
	assert_in_range(stacks_made(p, sent), 1, all);
	clickhouse_sent_confirm(sent);
	assert_int_equal(stacks_made(p, sent), 0);
	p->begin_real_ns += 86400ull * 1000000000; /* each day's table is complete */
	assert_in_range(stacks_made(p, sent), all + 1, UINT64_MAX);
	clickhouse_sent_forget(sent);
	clickhouse_sent_confirm(sent);
	assert_in_range(stacks_made(p, sent), all + 1, UINT64_MAX);
	profile_free(p);
}

static void stacks_without_room_are_sent_each_time(void **state)
{
	CLEANUP(clickhouse_sent_freep) struct clickhouse_sent *sent = NULL;
	uint64_t number;

	(void)state;
	assert_int_equal(clickhouse_sent_new(&sent), 0);
	assert_false(clickhouse_sent_find(sent, 1, &number));
	for (uint64_t i = 0; i < 2 * SENT_MAX; i++)
		clickhouse_sent_add(sent, i * 0x9e3779b97f4a7c15ull, i);
	assert_false(clickhouse_sent_find(sent, 0, &number));
	clickhouse_sent_confirm(sent);
	for (uint64_t i = 0; i < 2 * SENT_MAX; i++) {
		bool is_there = clickhouse_sent_find(sent, i * 0x9e3779b97f4a7c15ull, &number);

		assert_int_equal(is_there, i < SENT_MAX);
		if (is_there)
			assert_int_equal(number, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_back_as_they_were_written),
		cmocka_unit_test(no_two_rows_have_the_same_key),
		cmocka_unit_test(the_same_profile_is_the_same_rows),
		cmocka_unit_test(rows_of_a_test_have_an_event_of_their_own),
		cmocka_unit_test(processes_of_two_nodes_are_two),
		cmocka_unit_test(an_answer_that_is_cut_is_refused),
		cmocka_unit_test(statements_quote_what_they_are_given),
		cmocka_unit_test(stacks_are_numbered_by_siphash),
		cmocka_unit_test(names_of_databases_are_checked),
		cmocka_unit_test(a_stack_is_left_out_when_the_server_has_it),
		cmocka_unit_test(stacks_without_room_are_sent_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

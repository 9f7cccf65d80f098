/* Which times off the CPU the history keeps with their stacks. */
#include "tests/unit/made_profile.h"
#include <stdio.h>
#include "daemon/profile/offcpu_history.h"

static uint32_t class_frame(struct profile *p, const char *text)
{
	struct profile_frame f = { .kind = WIRE_KIND_CLASS, .line = -1 };

	f.method = profile_string(p, text);
	return profile_intern_frame(p, &f);
}

/* A time off the CPU in method number @place, for @reason. */
static void off(struct profile *p, uint32_t thread, unsigned place, const char *reason, bool idle,
		uint64_t weight)
{
	struct profile_row row = {
		.thread = thread,
		.event = WIRE_EVENT_OFFCPU,
		.idle = idle,
		.samples = 1,
		.weight = weight,
	};
	char method[32];

	snprintf(method, sizeof(method), "m%u", place);
	row.node = profile_node(p, 0, frame(p, "T", "run"));
	row.node = profile_node(p, row.node, frame(p, "T", method));
	row.node = profile_node(p, row.node, class_frame(p, reason));
	profile_book_row(p, &row);
	profile_add_row(p, &row);
}

static unsigned depth_of(const struct profile *p, const struct profile_row *r)
{
	unsigned n = 0;

	for (uint32_t at = r->node; at; at = p->nodes[at].parent)
		n++;
	return n;
}

static const char *leaf_of(const struct profile *p, const struct profile_row *r)
{
	return p->strings[p->frames[p->nodes[r->node].frame].method];
}

/* The weight of the rows of @reason; *ret_deep: the number of rows with a whole stack. */
static uint64_t time_of(const struct profile *p, const char *reason, unsigned *ret_rows,
			unsigned *ret_deep)
{
	uint64_t sum = 0;

	*ret_rows = *ret_deep = 0;
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (r->event != WIRE_EVENT_OFFCPU || strcmp(leaf_of(p, r), reason) != 0)
			continue;
		sum += r->weight;
		++*ret_rows;
		*ret_deep += depth_of(p, r) == 3;
	}
	return sum;
}

static struct profile *keep(const struct profile *p, uint64_t stacks)
{
	struct profile *kept;

	assert_int_equal(offcpu_history_copy(p, stacks, &kept), 0);
	assert_int_equal(weight_of(kept), weight_of(p));
	assert_int_equal(profile_samples(kept), profile_samples(p));
	assert_memory_equal(&kept->accounts, &p->accounts, sizeof(p->accounts));
	return kept;
}

static void the_longest_stacks_stay_and_the_others_time_by_thread_and_reason(void **state)
{
	CLEANUP(profile_freep) struct profile *p = example(7), *kept = NULL;
	uint32_t one = thread(p, 7, "one"), two = thread(p, 7, "two");
	unsigned n, deep;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		off(p, one, i, "socket", false, 100 + i);
		off(p, two, i, "lock T", false, 200 + i);
	}
	kept = keep(p, 12);
	assert_int_equal(time_of(kept, "lock T", &n, &deep), 2045);
	assert_int_equal(n, 10);
	assert_int_equal(deep, 10);
	assert_int_equal(time_of(kept, "socket", &n, &deep), 1045);
	assert_int_equal(n, 3); /* rows of 109, of 108, and the sum of the others */
	assert_int_equal(deep, 2);
	/* the CPU samples are unchanged */
	assert_int_equal(kept->n_rows, 2 + 10 + 3);
}

static void each_process_has_stacks_of_its_own(void **state)
{
	CLEANUP(profile_freep) struct profile *p = example(7), *kept = NULL;
	uint32_t one = thread(p, 7, "one"), other = thread(p, 8, "one");
	unsigned n, deep;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		off(p, one, i, "socket", false, 1000);
		off(p, other, i, "file", false, 1);
	}
	kept = keep(p, 4);
	(void)time_of(kept, "socket", &n, &deep);
	assert_int_equal(deep, 4);
	(void)time_of(kept, "file", &n, &deep);
	assert_int_equal(deep, 4);
	assert_int_equal(n, 5);
}

static void waits_for_work_and_for_a_cpu_have_no_stack(void **state)
{
	CLEANUP(profile_freep) struct profile *p = example(7), *kept = NULL;
	uint32_t one = thread(p, 7, "one");
	unsigned n, deep;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		off(p, one, i, "park", true, 10);
		off(p, one, i, "park", false, 10);
		off(p, one, i, "runqueue", false, 10);
		off(p, one, i, "throttled", false, 10);
	}
	kept = keep(p, 100);
	assert_int_equal(time_of(kept, "runqueue", &n, &deep), 30);
	assert_true(n == 1 && deep == 0);
	assert_int_equal(time_of(kept, "throttled", &n, &deep), 30);
	assert_true(n == 1 && deep == 0);
	assert_int_equal(time_of(kept, "park", &n, &deep), 60);
	assert_true(n == 4 && deep == 3);
}

static void further_threads_are_one(void **state)
{
	CLEANUP(profile_freep) struct profile *p = example(7), *kept = NULL;
	unsigned n, deep, others = 0;

	(void)state;
	for (unsigned i = 0; i < OFFCPU_HISTORY_THREADS + 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), "t%u", i);
		off(p, thread(p, 7, name), i, "runqueue", false, 1000 + i);
		off(p, thread(p, 7, name), i, "wait", true, 1000000 - i);
	}
	kept = keep(p, 100);
	(void)time_of(kept, "runqueue", &n, &deep);
	assert_int_equal(n, OFFCPU_HISTORY_THREADS + 1);
	(void)time_of(kept, "wait", &n, &deep);
	assert_int_equal(n, OFFCPU_HISTORY_THREADS + 1);
	for (uint32_t i = 0; i < kept->n_rows; i++) {
		const struct profile_thread *t = &kept->threads[kept->rows[i].thread];

		if (strcmp(kept->strings[t->name], OFFCPU_HISTORY_OTHER_THREADS) != 0 ||
		    kept->rows[i].idle)
			continue;
		others++;
		assert_int_equal(kept->rows[i].samples, 40);
		assert_int_equal(kept->rows[i].weight, 40 * 1000 + 39 * 40 / 2);
	}
	assert_int_equal(others, 1);
	/* two have CPU samples */
	assert_int_equal(kept->n_threads, 2 + OFFCPU_HISTORY_THREADS + 1);
}

static void trace_ids_stay(void **state)
{
	CLEANUP(profile_freep) struct profile *p = example(7), *kept = NULL;
	uint32_t one = thread(p, 7, "one"), with = 0;

	(void)state;
	off(p, one, 1, "socket", false, 10);
	ROWS(p)[p->n_rows - 1].span = profile_span(p, "trace", "span");
	kept = keep(p, 0);
	for (uint32_t i = 0; i < kept->n_rows; i++)
		with += kept->rows[i].span != 0;
	assert_int_equal(with, 1);
	assert_string_equal(kept->strings[kept->spans[0].trace_id], "trace");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_stacks_stay_and_the_others_time_by_thread_and_reason),
		cmocka_unit_test(each_process_has_stacks_of_its_own),
		cmocka_unit_test(waits_for_work_and_for_a_cpu_have_no_stack),
		cmocka_unit_test(further_threads_are_one),
		cmocka_unit_test(trace_ids_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/made_profile.h"

static void merging_keeps_every_weight_and_filters_by_process(void **state)
{
	struct profile *a = example(7), *b = example(8), *sum;
	const uint32_t pid = 8;
	const struct profile_filter only_8 = { .pids = &pid, .n_pids = 1 };
	const struct profile_filter two = { .thread = "tw" };
	uint64_t weight = 0;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, a, NULL), 0);
	assert_int_equal(profile_merge(sum, b, NULL), 0);
	for (uint32_t i = 0; i < sum->n_rows; i++)
		weight += sum->rows[i].weight;
	assert_int_equal(weight, 80);
	assert_int_equal(sum->n_nodes, 3); /* the same stacks */
	assert_int_equal(sum->accounts.of[WIRE_EVENT_CPU].taken, 10);
	sum = profile_free(sum);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, a, &only_8), 0);
	assert_int_equal(sum->n_rows, 0);
	assert_int_equal(profile_merge(sum, b, &only_8), 0);
	assert_int_equal(sum->n_rows, 2);
	sum = profile_free(sum);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, a, &two), 0);
	assert_int_equal(sum->n_rows, 1);
	assert_int_equal(sum->rows[0].weight, 20);
	profile_free(sum);
	profile_free(a);
	profile_free(b);
}

static void losses_go_with_their_process(void **state)
{
	const struct profile_accounts mine = { .of = { { 10, 100, 8, 80, 2, 20, 0 } } },
				      others = { .of = { { 5, 50, 5, 50, 0, 0, 0 } } };
	struct profile *p = example(7), *sum, *q;
	struct profile_process process = { .pid = 8, .start_time = 80 };
	const uint32_t pid = 8;
	const struct profile_filter only_8 = { .pids = &pid, .n_pids = 1 };
	uint8_t *bytes;
	size_t len;

	(void)state;
	p->accounts.of[WIRE_EVENT_CPU] = (struct profile_losses){ 0 };
	profile_add_accounts(p, 0, &others);
	profile_add_accounts(p, profile_process(p, &process), &mine);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 15);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, &only_8), 0);
	assert_memory_equal(&sum->accounts, &mine, sizeof(mine));
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	assert_int_equal(sum->accounts.of[WIRE_EVENT_CPU].taken, 25);
	assert_int_equal(sum->accounts.of[WIRE_EVENT_CPU].dropped, 4);
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

static void a_very_deep_stack_is_merged_whole(void **state)
{
	struct profile *p, *sum;
	uint32_t node = 0, t;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	t = thread(p, 1, "main");
	for (int i = 0; i < 20000; i++)
		node = profile_node(p, node, frame(p, "C", "recurse"));
	profile_add(p, t, node, 1, 10);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(sum->n_nodes, 20001);
	profile_free(sum);
	profile_free(p);
}

static void a_filter_by_event_takes_its_accounts_alone(void **state)
{
	const struct profile_filter lock = { .events = 1u << WIRE_EVENT_LOCK, .no_idle = true };
	const struct profile_filter cpu = { .events = 1u << WIRE_EVENT_CPU };
	struct profile *p = mixed(), *part;

	(void)state;
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &lock), 0);
	assert_int_equal(weight_of(part), 3000);
	assert_int_equal(profile_events(part), 1u << WIRE_EVENT_LOCK);
	assert_int_equal(part->accounts.of[WIRE_EVENT_CPU].taken, 0);
	assert_int_equal(part->interval[WIRE_EVENT_CPU], 0);
	assert_int_equal(part->accounts.short_waits, 9);
	/* all delivered samples are in it, or are reported as left out */
	assert_int_equal(part->idle_left_out[WIRE_EVENT_LOCK].samples, 1);
	assert_int_equal(profile_samples(part) + 1, part->accounts.of[WIRE_EVENT_LOCK].delivered);
	part = profile_free(part);
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &cpu), 0);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples, 0);
	assert_int_equal(weight_of(part), 40);
	assert_int_equal(part->accounts.of[WIRE_EVENT_LOCK].taken, 0);
	assert_int_equal(part->accounts.short_waits, 0);
	assert_int_equal(part->idle_left_out[WIRE_EVENT_LOCK].samples, 0);
	profile_free(part);
	profile_free(p);
}

static void left_out_threads_are_counted(void **state)
{
	const uint32_t pid = 7;
	const struct profile_filter one = { .thread = "one", .no_idle = true },
				    of_7 = { .thread = "nobody", .pids = &pid, .n_pids = 1 };
	struct profile *p = mixed(), *part;
	uint64_t others;

	(void)state;
	/* another thread's, another process's */
	add_wait(p, thread(p, 7, "two"), 2, WIRE_WAIT_PARK, true);
	add_wait(p, thread(p, 8, "two"), 2, WIRE_WAIT_PARK, false);
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &one), 0);
	assert_int_equal(part->idle_left_out[WIRE_EVENT_LOCK].samples, 1);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples, 2);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].weight, 2000);
	others = profile_samples(p) - profile_samples(part) - 1;
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples +
				 part->threads_left_out[WIRE_EVENT_CPU].samples,
			 others);
	part = profile_free(part);
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &of_7), 0);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples, 5);
	profile_free(part);
	profile_free(p);
}

#define ALIKE	    9u /* methods, which have few names among them */
#define ALIKE_DEPTH 3u
#define ALIKE_ALL   (ALIKE * ALIKE * ALIKE)

static uint32_t alike_frame(struct profile *p, uint32_t number)
{
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = 1 };

	f.class_name = profile_string(p, number % 3 == 0 ? "a.A" : number % 3 == 1 ? "a.B" : "a.C");
	f.method = profile_string(p, number / 3 == 0 ? "x" : number / 3 == 1 ? "y" : "z");
	f.file = profile_string(p, "A.java");
	return profile_intern_frame(p, &f);
}

/* Which stack of alike_frame() it is. */
static uint32_t alike_stack(const struct profile *p, uint32_t node)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < ALIKE_DEPTH; i++, node = p->nodes[node].parent) {
		const struct profile_frame *f = &p->frames[p->nodes[node].frame];

		number = number * ALIKE + (uint32_t)(p->strings[f->class_name][2] - 'A') +
			 3 * (uint32_t)(p->strings[f->method][0] - 'x');
	}
	assert_int_equal(node, 0);
	return number;
}

/* Frames differ by one name, and come in another order each time. */
static void stacks_that_look_alike_stay_apart(void **state)
{
	static uint64_t expected[ALIKE_ALL], got[ALIKE_ALL];
	struct profile *sum;
	uint32_t drawn = 1;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	for (int round = 0; round < 20; round++) {
		struct profile *p;

		assert_int_equal(profile_new(&p), 0);
		for (uint32_t i = 0; i < 40; i++) {
			uint32_t node = 0;

			for (uint32_t k = 0; k < ALIKE_DEPTH; k++) {
				drawn = drawn * 1664525 + 1013904223;
				node = profile_node(p, node, alike_frame(p, (drawn >> 16) % ALIKE));
			}
			profile_add(p, thread(p, 7, "one"), node, 1, 1 + i);
			expected[alike_stack(p, node)] += 1 + i;
		}
		assert_int_equal(profile_merge(sum, p, NULL), 0);
		profile_free(p);
	}
	for (uint32_t i = 0; i < sum->n_rows; i++)
		got[alike_stack(sum, sum->rows[i].node)] += sum->rows[i].weight;
	assert_memory_equal(got, expected, sizeof(got));
	assert_int_equal(sum->n_frames, ALIKE);
	profile_free(sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merging_keeps_every_weight_and_filters_by_process),
		cmocka_unit_test(losses_go_with_their_process),
		cmocka_unit_test(a_filter_by_event_takes_its_accounts_alone),
		cmocka_unit_test(left_out_threads_are_counted),
		cmocka_unit_test(a_very_deep_stack_is_merged_whole),
		cmocka_unit_test(stacks_that_look_alike_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

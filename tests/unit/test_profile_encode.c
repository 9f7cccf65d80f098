#include "tests/unit/made_profile.h"
#include <errno.h>

static void bytes_give_the_same_profile_back(void **state)
{
	struct profile *p = example(7), *q;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(q->n_rows, p->n_rows);
	assert_memory_equal(q->rows, p->rows, p->n_rows * sizeof(*p->rows));
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	assert_string_equal(q->strings[q->frames[1].method], "work");
	profile_free(q);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(profile_decode(bytes, cut, &q), -EBADMSG);
	free(bytes);
	profile_free(p);
}

static void decoded_entries_are_found_again(void **state)
{
	struct profile *p = example(7), *q;
	uint8_t *bytes;
	uint32_t node;
	size_t len;

	(void)state;
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	node = profile_node(q, 0, frame(q, "T", "run"));
	node = profile_node(q, node, frame(q, "T", "work"));
	profile_add(q, thread(q, 7, "one"), node, 1, 10);
	assert_int_equal(q->n_strings, p->n_strings);
	assert_int_equal(q->n_frames, p->n_frames);
	assert_int_equal(q->n_processes, p->n_processes);
	assert_int_equal(q->n_threads, p->n_threads);
	assert_int_equal(q->n_nodes, p->n_nodes);
	assert_int_equal(q->n_rows, p->n_rows);
	assert_int_equal(q->rows[0].weight, 30);
	/* and has room for more */
	profile_add(q, thread(q, 8, "three"), profile_node(q, node, frame(q, "U", "new")), 1, 5);
	assert_int_equal(q->n_rows, p->n_rows + 1);
	assert_string_equal(q->strings[q->frames[2].class_name], "U");
	profile_free(q);
	profile_free(p);
}

static void a_table_at_its_own_limit_can_be_read_back(void **state)
{
	struct profile *p, *q;
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1 };
	uint32_t t;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit(p, SIZE_MAX, 0);
	t = thread(p, 1, "main");
	for (uint32_t i = 0; i < PROFILE_NODES_MAX + 5; i++) {
		f.offset = i;
		profile_add(p, t, profile_node(p, 0, profile_intern_frame(p, &f)), 1, 1);
	}
	assert_int_equal(weight_of(p), PROFILE_NODES_MAX + 5);
	/* the root, the spare ones and the five; the root takes up a node too */
	assert_in_range(p->overflow, PROFILE_SPARE + 5, PROFILE_SPARE + 6);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(q->n_nodes, p->n_nodes);
	assert_int_equal(weight_of(q), PROFILE_NODES_MAX + 5);
	free(bytes);
	profile_free(q);
	profile_free(p);
}

static void any_changed_byte_is_refused_or_harmless(void **state)
{
	struct profile *p = example(7), *q, *sum;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	for (size_t at = 0; at < len; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[at] ^= (uint8_t)(1u << bit);
			if (profile_decode(bytes, len, &q) == 0) {
				assert_int_equal(profile_merge(sum, q, NULL), 0);
				profile_free(q);
			}
			bytes[at] ^= (uint8_t)(1u << bit);
		}
	free(bytes);
	profile_free(sum);
	profile_free(p);
}

static void cpu_time_and_note_of_a_process_are_kept(void **state)
{
	struct profile_process process = { .pid = 8, .start_time = 80 };
	struct profile *p = example(7), *q, *sum;
	const uint32_t pid = 8;
	const struct profile_filter only_8 = { .pids = &pid, .n_pids = 1 };
	uint8_t *bytes;
	size_t len;

	(void)state;
	process.note = profile_string(p, "counted by hand");
	profile_add_cpu(p, profile_process(p, &process), 30);
	profile_add_cpu(p, 0, 4);
	profile_add_cpu(p, UINT32_MAX, 1);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	assert_int_equal(profile_cpu_ns(q), 34);
	assert_false(q->cpu_unknown);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, &only_8), 0);
	assert_int_equal(profile_merge(sum, q, &only_8), 0);
	assert_int_equal(sum->n_processes, 1); /* even without rows and losses */
	assert_int_equal(profile_cpu_ns(sum), 60);
	assert_string_equal(sum->strings[sum->processes[0].note], "counted by hand");
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

static void labels_of_a_process_are_kept(void **state)
{
	struct profile_process process = { .pid = 8, .start_time = 80 };
	struct profile *p = example(7), *q, *sum;
	uint8_t *bytes;
	size_t len;

	(void)state;
	process.labels = profile_string(p, "service=shop\n");
	profile_add_cpu(p, profile_process(p, &process), 30);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	process.labels = 0;
	assert_string_equal(sum->strings[sum->processes[profile_process(sum, &process)].labels],
			    "service=shop\n");
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

static void events_survive_being_written(void **state)
{
	struct profile *p = mixed(), *q;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(q->n_rows, p->n_rows);
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	assert_memory_equal(q->interval, p->interval, sizeof(p->interval));
	for (uint32_t i = 0; i < p->n_rows; i++) {
		assert_int_equal(q->rows[i].event, p->rows[i].event);
		assert_int_equal(q->rows[i].wait, p->rows[i].wait);
		assert_int_equal(q->rows[i].idle, p->rows[i].idle);
		assert_int_equal(q->rows[i].weight, p->rows[i].weight);
	}
	free(bytes);
	profile_free(q);
	profile_free(p);
}

/* As an earlier release wrote it: one process, one thread, one stack with CPU time. Its losses
 * are in another second than its row. */
static void a_segment_without_events_is_cpu_time(void **state)
{
	static const uint8_t old[] = {
		'K', 'P', 'R', 'F', 2,	 10, 20, 5, 0, 0, /* version; begin, end, interval, budget,
							     overflow */
		9,   90,  8,   80,  1,	 10, /* losses */
		3,   1,	  'C', 1,   'm', /* strings "", "C", "m" */
		1,   1,	  4,   1,   2,	 0,  0,	 0, 0, /* one frame */
		1,   7,	  7,   9,   0,	 0,  0,	 0, 0, 9, 90, 8, 80, 1, 10, /* one process */
		1,   0,	  8,   0, /* one thread */
		2,   0,	  0, /* the root and one node */
		1,   0,	  1,   2,   20, /* one row */
	};
	struct profile *p;

	(void)state;
	assert_int_equal(profile_decode(old, sizeof(old), &p), 0);
	assert_int_equal(p->n_rows, 1);
	assert_int_equal(p->rows[0].event, WIRE_EVENT_CPU);
	assert_int_equal(p->rows[0].weight, 20);
	assert_int_equal(p->interval[WIRE_EVENT_CPU], 5);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 3);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].delivered_weight, 20);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].delivered, 2);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].dropped_weight, 10);
	assert_true(p->cpu_unknown);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_give_the_same_profile_back),
		cmocka_unit_test(decoded_entries_are_found_again),
		cmocka_unit_test(a_table_at_its_own_limit_can_be_read_back),
		cmocka_unit_test(cpu_time_and_note_of_a_process_are_kept),
		cmocka_unit_test(labels_of_a_process_are_kept),
		cmocka_unit_test(events_survive_being_written),
		cmocka_unit_test(a_segment_without_events_is_cpu_time),
		cmocka_unit_test(any_changed_byte_is_refused_or_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "agent/base/ring.h"
#include "tests/unit/unit.h"

#define WRITERS 3
#define PUSHES	20000

static struct walk_frame frames[WALK_FRAMES_MAX];

static bool push(struct ring *r, uint32_t tid, uint64_t number, uint32_t n)
{
	struct ring_sample head = {
		.mono_ns = number,
		.weight = number * 3,
		.tid = tid,
		.n_frames = n,
	};

	return ring_push_sig(r, &head, frames);
}

static void fill_frames(void)
{
	for (uint32_t i = 0; i < WALK_FRAMES_MAX; i++)
		frames[i] = (struct walk_frame){ .where = 1000 + i, .bci = (int32_t)i };
}

static void order_is_kept_over_many_rounds(void **state)
{
	struct ring r = { 0 };

	(void)state;
	fill_frames();
	assert_int_equal(ring_init(&r, RING_BYTES_MIN), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		uint32_t n = (uint32_t)(i * 7 % 200);
		const struct ring_sample *s;

		assert_true(push(&r, 7, i, n));
		s = ring_peek(&r, UINT64_MAX);
		assert_non_null(s);
		assert_int_equal(s->mono_ns, i);
		assert_int_equal(s->weight, i * 3);
		assert_int_equal(s->n_frames, n);
		assert_memory_equal(s->frames, frames, n * sizeof(frames[0]));
		ring_pop(&r);
		assert_null(ring_peek(&r, UINT64_MAX));
	}
	ring_deinit(&r);
}

static void full_ring_refuses_and_loses_nothing(void **state)
{
	struct ring r = { 0 };
	uint64_t in = 0, out = 0;
	const struct ring_sample *s;

	(void)state;
	assert_int_equal(ring_init(&r, RING_BYTES_MIN), 0);
	while (push(&r, 1, in, 10))
		in++;
	assert_int_equal(in, RING_BYTES_MIN / (RING_HDR_BYTES + sizeof(struct ring_sample) +
					       10 * sizeof(struct walk_frame)));
	while ((s = ring_peek(&r, UINT64_MAX))) {
		assert_int_equal(s->mono_ns, out++);
		ring_pop(&r);
	}
	assert_int_equal(in, out);
	assert_true(push(&r, 1, in, 10));
	ring_deinit(&r);
}

static void record_longer_than_the_ring_is_refused(void **state)
{
	struct ring r = { 0 };

	(void)state;
	assert_int_equal(ring_init(&r, RING_BYTES_MIN), 0);
	assert_false(push(&r, 1, 1, WALK_FRAMES_MAX));
	assert_null(ring_peek(&r, UINT64_MAX));
	ring_deinit(&r);
}

static void reader_stops_at_the_position_it_was_given(void **state)
{
	struct ring r = { 0 };
	uint64_t end;

	(void)state;
	assert_int_equal(ring_init(&r, RING_BYTES_MIN), 0);
	assert_true(push(&r, 1, 1, 3));
	end = ring_head_sig(&r);
	assert_true(push(&r, 1, 2, 3));
	assert_non_null(ring_peek(&r, end));
	ring_pop(&r);
	assert_null(ring_peek(&r, end));
	assert_int_equal(ring_peek(&r, UINT64_MAX)->mono_ns, 2);
	ring_deinit(&r);
}

static void size_is_a_power_of_two_within_bounds(void **state)
{
	const struct {
		uint32_t asked, got;
	} cases[] = {
		{ 0, RING_BYTES_MIN },
		{ RING_BYTES_MIN + 1, 2 * RING_BYTES_MIN },
		{ RING_BYTES_DEFAULT, RING_BYTES_DEFAULT },
		{ UINT32_MAX, RING_BYTES_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ring r = { 0 };

		assert_int_equal(ring_init(&r, cases[i].asked), 0);
		assert_int_equal(r.size, cases[i].got);
		ring_deinit(&r);
	}
}

struct writer {
	pthread_t thread;
	struct ring *ring;
	uint32_t tid;
	uint64_t pushed, refused;
	bool done;
};

static void *write_many(void *p)
{
	struct writer *w = p;

	for (uint64_t i = 0; i < PUSHES; i++) {
		if (push(w->ring, w->tid, i, (uint32_t)((i + w->tid) % 60)))
			w->pushed++;
		else
			w->refused++;
	}
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void writers_in_many_threads_never_tear_a_record(void **state)
{
	uint64_t seen[WRITERS] = { 0 }, last[WRITERS] = { 0 };
	struct writer writers[WRITERS] = { 0 };
	struct ring r = { 0 };
	uint64_t pushed = 0, out = 0;
	bool alive = true;

	(void)state;
	fill_frames();
	assert_int_equal(ring_init(&r, RING_BYTES_MIN), 0);
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i].ring = &r;
		writers[i].tid = i;
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]),
				 0);
	}
	while (alive) {
		const struct ring_sample *s;

		alive = false;
		for (uint32_t i = 0; i < WRITERS; i++)
			alive |= !__atomic_load_n(&writers[i].done, __ATOMIC_ACQUIRE);
		while ((s = ring_peek(&r, UINT64_MAX))) {
			assert_true(s->tid < WRITERS);
			assert_true(!seen[s->tid] || s->mono_ns > last[s->tid]);
			assert_int_equal(s->n_frames, (s->mono_ns + s->tid) % 60);
			assert_memory_equal(s->frames, frames, s->n_frames * sizeof(frames[0]));
			last[s->tid] = s->mono_ns;
			seen[s->tid]++;
			out++;
			ring_pop(&r);
		}
		sched_yield();
	}
	for (uint32_t i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_int_equal(writers[i].pushed + writers[i].refused, PUSHES);
		assert_int_equal(writers[i].pushed, seen[i]);
		pushed += writers[i].pushed;
	}
	assert_int_equal(pushed, out);
	assert_int_equal(r.head, r.tail);
	ring_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_is_kept_over_many_rounds),
		cmocka_unit_test(full_ring_refuses_and_loses_nothing),
		cmocka_unit_test(record_longer_than_the_ring_is_refused),
		cmocka_unit_test(reader_stops_at_the_position_it_was_given),
		cmocka_unit_test(size_is_a_power_of_two_within_bounds),
		cmocka_unit_test(writers_in_many_threads_never_tear_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

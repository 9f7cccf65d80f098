#include "tests/unit/fed_stream.h"
#include <errno.h>

static void the_accounts_hold_before_and_after_every_ledger(void **state)
{
	struct stream *s = greeted_stream();
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_sample(s, 0, &f), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 1);
	assert_int_equal(put_ledger(s, 4, 1, 3, &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 5);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 2);
	assert_int_equal(c.of[WIRE_EVENT_CPU].dropped[WIRE_DROP_RING_FULL].n, 3);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 0);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken_weight,
			 c.of[WIRE_EVENT_CPU].delivered_weight +
				 c.of[WIRE_EVENT_CPU].dropped[WIRE_DROP_RING_FULL].weight);
	stream_free(s);
}

/* This many samples that the agent dropped, each under its cause. */
static void assert_full(const struct stream *s, uint64_t quota, uint64_t ring, uint64_t pipe)
{
	const struct stream_accounts *b;
	struct stream_counts c;
	uint64_t dropped = 0, weight = 0;

	stream_counts(s, &c);
	b = &c.of[WIRE_EVENT_CPU];
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		dropped += b->dropped[i].n;
		weight += b->dropped[i].weight;
	}
	assert_int_equal(b->dropped[WIRE_DROP_QUOTA].n, quota);
	assert_int_equal(b->dropped[WIRE_DROP_QUOTA].weight, 100 * quota);
	assert_int_equal(b->dropped[WIRE_DROP_RING_FULL].n, ring);
	assert_int_equal(b->dropped[WIRE_DROP_PIPE_FULL].n, pipe);
	assert_int_equal(b->dropped[WIRE_DROP_PIPE_FULL].weight, 100 * pipe);
	assert_int_equal(b->taken, b->delivered + dropped + b->lost);
	assert_int_equal(b->taken_weight, b->delivered_weight + weight + b->lost_weight);
}

static void say_full(struct stream *s, uint64_t ring, uint64_t pipe)
{
	struct wire_accounts *b;
	struct wire_ledger l = { 0 };
	struct wire_writer w;
	struct fault f = { 0 };

	b = &l.accounts[WIRE_EVENT_CPU];
	b->taken = ring + pipe;
	b->taken_weight = 100 * (ring + pipe);
	b->drop[WIRE_DROP_RING_FULL].n = ring;
	b->drop[WIRE_DROP_RING_FULL].weight = 100 * ring;
	b->drop[WIRE_DROP_PIPE_FULL].n = pipe;
	b->drop[WIRE_DROP_PIPE_FULL].weight = 100 * pipe;
	wire_begin(&w, buf, WIRE_LEDGER);
	assert_true(wire_put_ledger(&w, &l));
	assert_int_equal(feed(s, &w, &f), 0);
}

static void drops_of_a_held_back_agent_count_as_quota(void **state)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct stream *s = greeted_stream();
	struct wire_writer w;
	struct fault f = { 0 };

	(void)state;
	say_full(s, 1, 2);
	assert_full(s, 0, 1, 2);
	stream_hold_back(s, true);
	say_full(s, 3, 20);
	assert_full(s, 20, 1, 2);
	stream_hold_back(s, false);
	say_full(s, 4, 21);
	assert_full(s, 20, 2, 3);
	/* another session of the same stream */
	sequence = 0;
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_full(s, 20, 2, 3);
	stream_hold_back(s, true);
	say_full(s, 1, 1);
	assert_full(s, 22, 2, 3);
	stream_free(s);
}

static void samples_lost_on_the_wire_are_found(void **state)
{
	struct stream *s = greeted_stream();
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(put_ledger(s, 3, 3, 0, &f), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 2);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken,
			 c.of[WIRE_EVENT_CPU].delivered + c.of[WIRE_EVENT_CPU].lost);
	stream_free(s);
}

static void accounts_that_do_not_add_up_end_the_stream(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_ledger(s, 5, 1, 3, &f), -EBADMSG);
	assert_int_equal(f.step, FAULT_STREAM);
	s = stream_free(s);
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(put_ledger(s, 0, 0, 0, &f), -EBADMSG);
	stream_free(s);
}

static void a_counter_that_goes_backwards_ends_the_stream(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_ledger(s, 5, 0, 5, &f), 0);
	assert_int_equal(put_ledger(s, 4, 0, 4, &f), -EBADMSG);
	s = stream_free(s);
	/* two frames were lost; they cannot arrive later */
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	assert_int_equal(put_ledger(s, 2, 2, 0, &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(put_ledger(s, 2, 2, 0, &f), -EBADMSG);
	stream_free(s);
}

static void no_weight_makes_the_accounts_overflow(void **state)
{
	struct stream *s = greeted_stream();
	struct wire_ledger l = { 0 };
	struct wire_sample huge = { 1, 1, 0, UINT64_MAX / 2, 0 };
	struct stream_counts c;
	struct wire_writer w;
	struct fault f = { 0 };

	(void)state;
	wire_begin(&w, buf, WIRE_CPU);
	assert_true(wire_put_sample(&w, &huge));
	assert_int_equal(feed(s, &w, &f), -EBADMSG);
	s = stream_free(s);
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	/* sums that are equal only modulo 2^64 */
	l.accounts[WIRE_EVENT_CPU].drop[0].n = UINT64_MAX;
	l.accounts[WIRE_EVENT_CPU].drop[1].n = 1;
	wire_begin(&w, buf, WIRE_LEDGER);
	assert_true(wire_put_ledger(&w, &l));
	assert_int_equal(feed(s, &w, &f), -EBADMSG);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 0);
	stream_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_accounts_hold_before_and_after_every_ledger),
		cmocka_unit_test(drops_of_a_held_back_agent_count_as_quota),
		cmocka_unit_test(samples_lost_on_the_wire_are_found),
		cmocka_unit_test(accounts_that_do_not_add_up_end_the_stream),
		cmocka_unit_test(a_counter_that_goes_backwards_ends_the_stream),
		cmocka_unit_test(no_weight_makes_the_accounts_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

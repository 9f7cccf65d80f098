#include "tests/unit/fed_stream.h"
#include <errno.h>

static struct stream_limits possible;
static unsigned asked;

static void limits(void *userdata, struct stream_limits *ret)
{
	(void)userdata;
	*ret = possible;
	asked++;
}

static struct stream *doubting_stream(void)
{
	struct stream_ops doubting = ops;
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct wire_writer w;
	struct fault f = { 0 };
	struct stream *s;

	doubting.limits = limits;
	sequence = 0;
	samples = 0;
	asked = 0;
	possible = (struct stream_limits){ 0 };
	assert_int_equal(stream_new(&doubting, NULL, &s), 0);
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	assert_int_equal(feed(s, &w, &f), 0);
	return s;
}

static int put_weight(struct stream *s, enum wire_type type, uint64_t weight)
{
	struct wire_sample record = { 1000, 7, 0, weight, 0 };
	struct wire_writer w;
	struct fault f = { 0 };

	wire_begin(&w, buf, type);
	assert_true(wire_put_sample(&w, &record));
	return feed(s, &w, &f);
}

#define SECONDS(n) ((n)*1000000000ull)

static void no_more_cpu_time_is_believed_than_the_process_used(void **state)
{
	struct stream *s = doubting_stream();
	struct stream_counts c;
	const struct stream_accounts *b = &c.of[WIRE_EVENT_CPU];

	(void)state;
	assert_int_equal(put_weight(s, WIRE_CPU, 1ull << 60), 0);
	assert_int_equal(samples, 0);
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(4)), 0);
	assert_int_equal(samples, 1); /* two clocks may differ that much */
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(4)), 0);
	assert_int_equal(samples, 1);
	possible.cpu_ns = possible.cpu_total_ns = SECONDS(8);
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(4)), 0);
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(4)), 0);
	assert_int_equal(samples, 3);
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(4)), 0);
	assert_int_equal(samples, 3);
	stream_counts(s, &c);
	assert_int_equal(b->delivered, 3);
	assert_int_equal(b->delivered_weight, SECONDS(12));
	assert_int_equal(b->dropped[WIRE_DROP_IMPLAUSIBLE].n, 3);
	assert_int_equal(b->taken, 6);
	assert_int_equal(b->taken_weight, SECONDS(12) + b->dropped[WIRE_DROP_IMPLAUSIBLE].weight);
	stream_free(s);
}

static void implausible_samples_stay_in_the_accounts(void **state)
{
	struct stream *s = doubting_stream();
	struct wire_ledger l = { 0 };
	struct wire_accounts *b = &l.accounts[WIRE_EVENT_CPU];
	struct stream_counts c;
	struct wire_writer w;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_weight(s, WIRE_CPU, 10), 0);
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(20)), 0);
	b->taken = b->written = 2;
	b->taken_weight = b->written_weight = SECONDS(20) + 10;
	wire_begin(&w, buf, WIRE_LEDGER);
	assert_true(wire_put_ledger(&w, &l));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_weight(s, WIRE_CPU, SECONDS(20)), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 3);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].dropped[WIRE_DROP_IMPLAUSIBLE].n, 2);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 0);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost_weight, 0);
	stream_free(s);
}

static void no_wait_is_longer_than_the_life_of_the_process(void **state)
{
	struct stream *s = doubting_stream();
	struct stream_counts c;

	(void)state;
	possible.age_ns = SECONDS(100);
	for (int i = 0; i < 5; i++) /* of so many threads */
		assert_int_equal(put_weight(s, WIRE_WALL, SECONDS(100)), 0);
	assert_int_equal(put_weight(s, WIRE_WALL, SECONDS(106)), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_WALL].delivered, 5);
	assert_int_equal(c.of[WIRE_EVENT_WALL].dropped[WIRE_DROP_IMPLAUSIBLE].n, 1);
	stream_free(s);
}

static void accounts_beyond_all_reason_end_the_stream(void **state)
{
	struct stream *s = doubting_stream();
	struct fault f = { 0 };

	(void)state;
	possible.cpu_total_ns = SECONDS(1); /* 10,000,000 events, and a million */
	assert_int_equal(put_ledger(s, 11000000, 0, 11000000, &f), 0);
	assert_int_equal(put_ledger(s, 11000001, 0, 11000001, &f), -EBADMSG);
	stream_free(s);
}

/* One frame of them counts as one reading of the clock. */
static void clocks_are_read_once_for_what_is_fed_together(void **state)
{
	struct stream *s = doubting_stream();
	struct wire_sample record = { 1000, 7, 0, 1ull << 50, 0 };
	struct wire_writer w;
	struct fault f = { 0 };
	uint32_t len;

	(void)state;
	wire_begin(&w, buf, WIRE_CPU);
	for (int i = 0; i < 100; i++)
		assert_true(wire_put_sample(&w, &record));
	len = wire_end(&w, ++sequence);
	asked = 0;
	assert_int_equal(stream_feed(s, buf, len, &f), 0);
	assert_int_equal(asked, 1);
	stream_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_cpu_time_is_believed_than_the_process_used),
		cmocka_unit_test(implausible_samples_stay_in_the_accounts),
		cmocka_unit_test(no_wait_is_longer_than_the_life_of_the_process),
		cmocka_unit_test(accounts_beyond_all_reason_end_the_stream),
		cmocka_unit_test(clocks_are_read_once_for_what_is_fed_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

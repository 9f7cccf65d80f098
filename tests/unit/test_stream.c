#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/stream/stream.h"

static uint8_t buf[WIRE_FRAME_MAX];
static uint64_t sequence;
static int samples, hellos, byes;
static struct stream_sample last;

static void on_hello(void *userdata, const struct wire_hello *h)
{
	(void)userdata;
	(void)h;
	hellos++;
}

static void on_sample(void *userdata, const struct stream_sample *s)
{
	(void)userdata;
	samples++;
	last = *s;
}

static void on_bye(void *userdata, const struct fault *why)
{
	(void)userdata;
	(void)why;
	byes++;
}

static struct stream_virtual last_virtual;
static char last_state_thread[64];

static void on_state(void *userdata, const struct wire_state *w, const char *thread)
{
	(void)userdata;
	assert_int_equal(w->state, WIRE_STATE_BLOCKED);
	snprintf(last_state_thread, sizeof(last_state_thread), "%s", thread);
}

static void on_virtual(void *userdata, const struct stream_virtual *v)
{
	(void)userdata;
	last_virtual = *v;
}

static const struct stream_ops ops = {
	.on_hello = on_hello,
	.on_sample = on_sample,
	.on_bye = on_bye,
	.on_state = on_state,
	.on_virtual = on_virtual,
};

static struct wire_str str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

/* Feed in pieces of 7 bytes: every frame arrives torn. */
static int feed(struct stream *s, struct wire_writer *w, struct fault *f)
{
	uint32_t len = wire_end(w, ++sequence);

	for (uint32_t at = 0; at < len; at += 7) {
		int r = stream_feed(s, buf + at, len - at < 7 ? len - at : 7, f);

		if (r < 0)
			return r;
	}
	return 0;
}

static struct stream *greeted_stream(void)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct wire_writer w;
	struct fault f = { 0 };
	struct stream *s;

	sequence = 0;
	samples = hellos = byes = 0;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(hellos, 1);
	return s;
}

static int put_string(struct stream *s, uint32_t id, const char *text, struct fault *f)
{
	struct wire_string record = { id, str(text) };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &record));
	return feed(s, &w, f);
}

static int put_node(struct stream *s, struct wire_node node, struct fault *f)
{
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_NODE);
	assert_true(wire_put_node(&w, &node));
	return feed(s, &w, f);
}

static int put_sample(struct stream *s, uint32_t node, struct fault *f)
{
	struct wire_sample record = { 1000, 7, node, 10, 0 };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_CPU);
	assert_true(wire_put_sample(&w, &record));
	return feed(s, &w, f);
}

static int put_ledger(struct stream *s, uint64_t taken, uint64_t written, uint64_t dropped,
		      struct fault *f)
{
	struct wire_ledger l = { 0 };
	struct wire_writer w;

	l.accounts[WIRE_EVENT_CPU].taken = taken;
	l.accounts[WIRE_EVENT_CPU].taken_weight = 10 * taken;
	l.accounts[WIRE_EVENT_CPU].written = written;
	l.accounts[WIRE_EVENT_CPU].written_weight = 10 * written;
	l.accounts[WIRE_EVENT_CPU].drop[WIRE_DROP_RING_FULL].n = dropped;
	l.accounts[WIRE_EVENT_CPU].drop[WIRE_DROP_RING_FULL].weight = 10 * dropped;
	wire_begin(&w, buf, WIRE_LEDGER);
	assert_true(wire_put_ledger(&w, &l));
	return feed(s, &w, f);
}

static void a_stack_can_be_walked_to_its_root(void **state)
{
	struct wire_method m = { 1, 1, 2, 3, 0 };
	struct stream *s = greeted_stream();
	struct stream_frame frame;
	struct fault f = { 0 };
	struct wire_writer w;
	uint32_t parent;

	(void)state;
	assert_int_equal(put_string(s, 1, "java/lang/Thread", &f), 0);
	assert_int_equal(put_string(s, 2, "run", &f), 0);
	assert_int_equal(put_string(s, 3, "()V", &f), 0);
	wire_begin(&w, buf, WIRE_METHOD);
	assert_true(wire_put_method(&w, &m));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_C2, 1, 42, 0 }, &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 2, 1, WIRE_KIND_STUB, 2, -1, 0 }, &f), 0);
	assert_int_equal(put_sample(s, 2, &f), 0);
	assert_int_equal(samples, 1);
	assert_true(stream_node(s, last.node, &frame, &parent));
	assert_string_equal(frame.method, "run");
	assert_int_equal(parent, 1);
	assert_true(stream_node(s, parent, &frame, &parent));
	assert_string_equal(frame.class_name, "java.lang.Thread");
	assert_int_equal(frame.line, 42);
	assert_int_equal(parent, 0);
	stream_free(s);
}

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

/* So many samples that the agent had no room for, by what they are booked as. */
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

static void what_an_agent_drops_while_it_is_held_back_is_its_quota(void **state)
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

/* ---- secrets ---- */

static int greet(struct stream *s, const char *secret, uint32_t len, struct fault *f)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL, .secret = { secret, len } };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	return feed(s, &w, f);
}

static void a_hello_without_the_secret_ends_the_stream(void **state)
{
	static const char secret[] = "0123456789abcdef", wrong[] = "0123456789abcdeF";
	static const struct {
		const char *said;
		uint32_t len;
		int expect;
	} cases[] = { { secret, 16, 0 },
		      { wrong, 16, -EPERM },
		      { secret, 15, -EPERM },
		      { secret, 17, -EPERM },
		      { "", 0, -EPERM } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault f = { 0 };
		struct stream *s;

		sequence = 0;
		samples = 0;
		assert_int_equal(stream_new(&ops, NULL, &s), 0);
		stream_expect(s, (const uint8_t *)secret);
		assert_int_equal(put_sample(s, 0, &f), 0); /* of an older session */
		assert_int_equal(greet(s, cases[i].said, cases[i].len, &f), cases[i].expect);
		assert_int_equal(samples, 0);
		stream_free(s);
	}
}

/* ---- claims ---- */

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
	assert_int_equal(samples, 1); /* clocks may be that far apart */
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

static void what_was_not_believed_stays_in_the_accounts(void **state)
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

/* A frame of them is one reading of the clock. */
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

static void what_is_not_defined_cannot_be_used(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_sample(s, 1, &f), -EBADMSG);
	s = stream_free(s);
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	assert_int_equal(put_string(s, 1, "x", &f), 0);
	/* frames of the kernel are the daemon's to add: no agent knows any */
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_KERNEL, 1, -1, 0 }, &f),
			 -EBADMSG);
	s = stream_free(s);
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	assert_int_equal(put_string(s, 1, "x", &f), 0);
	/* its own parent: a circle */
	assert_int_equal(put_node(s, (struct wire_node){ 1, 1, WIRE_KIND_STUB, 1, -1, 0 }, &f),
			 -EBADMSG);
	s = stream_free(s);
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	assert_int_equal(put_string(s, 1, "x", &f), 0);
	assert_int_equal(put_string(s, 1, "y", &f), -EBADMSG);
	stream_free(s);
}

static void a_stream_has_a_memory_bound(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };
	char text[WIRE_STRING_MAX + 1];
	uint32_t id = 1;
	int r;

	(void)state;
	memset(text, 'x', WIRE_STRING_MAX);
	text[WIRE_STRING_MAX] = '\0';
	do {
		r = put_string(s, id++, text, &f);
	} while (r == 0 && id < 200000);
	assert_int_equal(r, -ENOMEM);
	assert_true(id < 40000);
	stream_free(s);
}

static void a_missing_frame_ends_the_stream(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	sequence++;
	assert_int_equal(put_sample(s, 0, &f), -EBADMSG);
	stream_free(s);
}

static void frames_of_an_older_session_are_skipped(void **state)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct wire_writer w;
	struct fault f = { 0 };
	struct stream *s;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	sequence = 77;
	samples = 0;
	assert_int_equal(put_sample(s, 12345, &f), 0);
	assert_int_equal(samples, 0);
	sequence = 0;
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(samples, 1);
	stream_free(s);
}

static int put_thread_flags(struct stream *s, uint32_t tid, uint32_t flags, const char *name,
			    struct fault *f)
{
	struct wire_thread record = { tid, flags, 0, str(name) };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &record));
	return feed(s, &w, f);
}

static int put_thread(struct stream *s, uint32_t tid, const char *name, struct fault *f)
{
	return put_thread_flags(s, tid, WIRE_THREAD_JAVA, name, f);
}

static int put_hello(struct stream *s, struct fault *f)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	return feed(s, &w, f);
}

static void a_later_hello_begins_anew_and_keeps_the_accounts(void **state)
{
	struct stream *s = greeted_stream();
	struct stream_counts c;
	struct fault f = { 0 };
	uint32_t parent;
	struct stream_frame frame;

	(void)state;
	assert_int_equal(put_string(s, 1, "old", &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_STUB, 1, -1, 0 }, &f), 0);
	assert_int_equal(put_sample(s, 1, &f), 0);
	assert_int_equal(put_ledger(s, 4, 1, 3, &f), 0);
	sequence = 0;
	assert_int_equal(put_hello(s, &f), 0);
	assert_int_equal(hellos, 2);
	assert_false(stream_node(s, 1, &frame, &parent));
	assert_int_equal(put_string(s, 1, "new", &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(put_ledger(s, 3, 1, 2, &f), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 7);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 2);
	assert_int_equal(c.of[WIRE_EVENT_CPU].dropped[WIRE_DROP_RING_FULL].n, 5);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 0);
	assert_int_equal(put_hello(s, &f), 0);
	assert_int_equal(put_hello(s, &f), -EBADMSG); /* no end of it */
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
	/* two were lost; that they come after all cannot be */
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
	/* sums that agree only modulo 2^64 */
	l.accounts[WIRE_EVENT_CPU].drop[0].n = UINT64_MAX;
	l.accounts[WIRE_EVENT_CPU].drop[1].n = 1;
	wire_begin(&w, buf, WIRE_LEDGER);
	assert_true(wire_put_ledger(&w, &l));
	assert_int_equal(feed(s, &w, &f), -EBADMSG);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 0);
	stream_free(s);
}

static void names_of_threads_have_a_memory_bound_and_the_last_one_is_known(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };
	char name[WIRE_STRING_MAX + 1];
	uint32_t known = 0;

	(void)state;
	memset(name, 0xff, WIRE_STRING_MAX); /* three bytes each when clean */
	name[WIRE_STRING_MAX] = '\0';
	for (uint32_t tid = 1; tid <= 4000; tid++) {
		assert_int_equal(put_thread(s, tid << 17, name, &f), 0);
		assert_int_equal(strlen(stream_thread_name(s, tid << 17)), 3 * WIRE_STRING_MAX);
	}
	for (uint32_t tid = 1; tid <= 4000; tid++)
		known += *stream_thread_name(s, tid << 17) != '\0';
	assert_in_range(known, 1, (8 << 20) / (3 * WIRE_STRING_MAX));
	assert_int_equal(put_thread(s, 1, "a", &f), 0);
	assert_int_equal(put_thread(s, 1, "renamed", &f), 0);
	assert_string_equal(stream_thread_name(s, 1), "renamed");
	/* samples of its last moments come after the word of its end */
	assert_int_equal(put_thread_flags(s, 1, WIRE_THREAD_ENDED, "", &f), 0);
	assert_string_equal(stream_thread_name(s, 1), "renamed");
	assert_int_equal(put_thread(s, 1, "the next of that tid", &f), 0);
	assert_string_equal(stream_thread_name(s, 1), "the next of that tid");
	assert_string_equal(stream_thread_name(s, 77), "");
	stream_free(s);
}

static void ids_far_apart_cost_their_sender_and_not_the_daemon(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_string(s, 1, "x", &f), 0);
	assert_int_equal(
		put_node(s, (struct wire_node){ WIRE_ID_MAX - 1, 0, WIRE_KIND_STUB, 1, -1, 0 }, &f),
		-ENOMEM);
	assert_non_null(strstr(f.what, "more than"));
	stream_free(s);
}

static void states_of_threads_are_told_with_names_and_stand_beside_the_accounts(void **state)
{
	struct wire_thread thread = { 7, WIRE_THREAD_JAVA, 1, str("main") };
	struct wire_state record = { 5, 7, WIRE_STATE_BLOCKED, 9 };
	struct wire_virtual group = { 6, 2, 1, WIRE_STATE_WAITING, 100, 1 };
	struct stream *s = greeted_stream();
	struct stream_counts c;
	struct fault f = { 0 };
	struct wire_writer w;

	(void)state;
	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &thread));
	assert_int_equal(feed(s, &w, &f), 0);
	wire_begin(&w, buf, WIRE_STATE);
	assert_true(wire_put_state(&w, &record));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_string_equal(last_state_thread, "main");
	assert_int_equal(put_string(s, 1, "java/lang/Object", &f), 0);
	assert_int_equal(put_string(s, 2, "pool/1", &f), 0);
	wire_begin(&w, buf, WIRE_VIRTUAL);
	assert_true(wire_put_virtual(&w, &group));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_string_equal(last_virtual.class_name, "java.lang.Object");
	assert_string_equal(last_virtual.container, "pool/1");
	assert_int_equal(last_virtual.count, 100);
	stream_counts(s, &c);
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		assert_int_equal(c.of[e].taken, 0);
	group.container_id = 3; /* which nobody defined */
	wire_begin(&w, buf, WIRE_VIRTUAL);
	assert_true(wire_put_virtual(&w, &group));
	assert_int_equal(feed(s, &w, &f), -EBADMSG);
	stream_free(s);
}

static void frames_of_unknown_types_are_skipped(void **state)
{
	struct stream *s = greeted_stream();
	struct wire_writer w;
	struct fault f = { 0 };

	(void)state;
	for (int type = WIRE_LOCK; type <= WIRE_CONTEXT; type++) {
		wire_begin(&w, buf, (enum wire_type)type);
		assert_int_equal(feed(s, &w, &f), 0);
	}
	wire_begin(&w, buf, (enum wire_type)200);
	memset(buf + w.len, 0xff, 100);
	w.len += 100;
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(samples, 1);
	stream_free(s);
}

static void a_reset_forgets_every_id(void **state)
{
	struct stream *s = greeted_stream();
	struct wire_writer w;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_string(s, 1, "x", &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_STUB, 1, -1, 0 }, &f), 0);
	wire_begin(&w, buf, WIRE_RESET);
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_string(s, 1, "y", &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_STUB, 1, -1, 0 }, &f), 0);
	assert_int_equal(put_sample(s, 1, &f), 0);
	stream_free(s);
}

static void strange_names_end_no_stream(void **state)
{
	struct wire_method m = { 1, 1, 2, 3, 0 };
	struct stream *s = greeted_stream();
	struct stream_frame frame;
	struct fault f = { 0 };
	struct wire_writer w;
	uint32_t parent;

	(void)state;
	/* the JVM's own encoding: NUL as C0 80, U+1F600 as two surrogates of three bytes each */
	assert_int_equal(put_string(s, 1, "a/\xc0\x80$\xed\xa0\xbd\xed\xb8\x80", &f), 0);
	assert_int_equal(put_string(s, 2, "<init>\n", &f), 0);
	assert_int_equal(put_string(s, 3, "(La/b;)V", &f), 0);
	wire_begin(&w, buf, WIRE_METHOD);
	assert_true(wire_put_method(&w, &m));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_C1, 1, -1, 0 }, &f), 0);
	assert_true(stream_node(s, 1, &frame, &parent));
	assert_memory_equal(frame.class_name, "a.\xef\xbf\xbd", 5);
	assert_string_equal(frame.method, "<init>?");
	assert_string_equal(frame.signature, "(La/b;)V");
	stream_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_can_be_walked_to_its_root),
		cmocka_unit_test(the_accounts_hold_before_and_after_every_ledger),
		cmocka_unit_test(what_an_agent_drops_while_it_is_held_back_is_its_quota),
		cmocka_unit_test(samples_lost_on_the_wire_are_found),
		cmocka_unit_test(accounts_that_do_not_add_up_end_the_stream),
		cmocka_unit_test(a_hello_without_the_secret_ends_the_stream),
		cmocka_unit_test(no_more_cpu_time_is_believed_than_the_process_used),
		cmocka_unit_test(what_was_not_believed_stays_in_the_accounts),
		cmocka_unit_test(no_wait_is_longer_than_the_life_of_the_process),
		cmocka_unit_test(accounts_beyond_all_reason_end_the_stream),
		cmocka_unit_test(clocks_are_read_once_for_what_is_fed_together),
		cmocka_unit_test(what_is_not_defined_cannot_be_used),
		cmocka_unit_test(a_stream_has_a_memory_bound),
		cmocka_unit_test(a_missing_frame_ends_the_stream),
		cmocka_unit_test(frames_of_an_older_session_are_skipped),
		cmocka_unit_test(a_later_hello_begins_anew_and_keeps_the_accounts),
		cmocka_unit_test(a_counter_that_goes_backwards_ends_the_stream),
		cmocka_unit_test(no_weight_makes_the_accounts_overflow),
		cmocka_unit_test(names_of_threads_have_a_memory_bound_and_the_last_one_is_known),
		cmocka_unit_test(ids_far_apart_cost_their_sender_and_not_the_daemon),
		cmocka_unit_test(
			states_of_threads_are_told_with_names_and_stand_beside_the_accounts),
		cmocka_unit_test(frames_of_unknown_types_are_skipped),
		cmocka_unit_test(a_reset_forgets_every_id),
		cmocka_unit_test(strange_names_end_no_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

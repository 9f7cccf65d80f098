/* The newest part of the history, for tests: windows are added up when they close. */
#pragma once

#include "tests/unit/unit.h"
#include "daemon/profile/live.h"

#define T0 (1000 * LIVE_WINDOW_NS)

static uint64_t window_weight;
static int windows;

static inline uint64_t weight_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		sum += p->rows[i].weight;
	return sum;
}

static inline void on_window(void *userdata, const struct profile *w)
{
	(void)userdata;
	windows++;
	window_weight += weight_of(w);
}

static const struct live_process app = { .pid = 5, .name = "app" };

static inline void add(struct live_source *s, struct stream *stream, uint64_t real_ns)
{
	struct stream_sample sample = { .tid = 9, .thread = "main", .weight_ns = 10 };

	live_add(s, stream, &sample, NULL, real_ns, 10);
}

struct setup {
	struct live *live;
	struct live_source *source;
	struct stream *stream;
};

static inline struct setup opened(void)
{
	const struct stream_ops ops = { 0 };
	struct setup u;

	windows = 0;
	window_weight = 0;
	assert_int_equal(stream_new(&ops, NULL, &u.stream), 0);
	assert_int_equal(live_new(on_window, NULL, &u.live), 0);
	assert_int_equal(live_source_new(u.live, &app, &u.source), 0);
	return u;
}

static inline void closed(struct setup *u)
{
	live_source_free(u->source);
	live_free(u->live);
	stream_free(u->stream);
}

static inline void put(struct stream *stream, struct wire_writer *w, uint64_t sequence)
{
	struct fault f = { 0 };
	uint32_t len = wire_end(w, sequence);

	assert_int_equal(stream_feed(stream, w->buf, len, &f), 0);
}

static inline void greet(struct stream *stream, uint64_t *sequence)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	put(stream, &w, ++*sequence);
}

/* Defines a stub frame called @label as node 1 of the stream, and @depth more of them below it. */
static inline void define(struct stream *stream, const char *label, uint32_t depth,
			  uint64_t *sequence)
{
	struct wire_string string = { 1, { label, (uint32_t)strlen(label) } };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &string));
	put(stream, &w, ++*sequence);
	for (uint32_t i = 1; i <= depth; i++) {
		struct wire_node node = { i, i - 1, WIRE_KIND_STUB, 1, -1, 0 };

		wire_begin(&w, buf, WIRE_NODE);
		assert_true(wire_put_node(&w, &node));
		put(stream, &w, ++*sequence);
	}
}

static inline void add_event(struct setup *u, enum wire_event event, const char *class_name,
			     uint64_t weight)
{
	const struct live_event e = {
		.event = event,
		.tid = 9,
		.thread = "main",
		.class_name = class_name,
		.weight = weight,
		.interval = 1000000,
	};

	live_add_event(u->source, u->stream, &e, NULL, T0);
}

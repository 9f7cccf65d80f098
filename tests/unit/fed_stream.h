/* A stream that tests feed with frames, and what it passes on to the daemon. */
#pragma once

#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/stream/stream.h"

static uint8_t buf[WIRE_FRAME_MAX];
static uint64_t sequence;
static int samples, hellos, byes;
static struct stream_sample last;

static inline void on_hello(void *userdata, const struct wire_hello *h)
{
	(void)userdata;
	(void)h;
	hellos++;
}

static inline void on_sample(void *userdata, const struct stream_sample *s)
{
	(void)userdata;
	samples++;
	last = *s;
}

static inline void on_bye(void *userdata, const struct fault *why)
{
	(void)userdata;
	(void)why;
	byes++;
}

static struct stream_virtual last_virtual;
static char last_state_thread[64];

static inline void on_state(void *userdata, const struct wire_state *w, const char *thread)
{
	(void)userdata;
	assert_int_equal(w->state, WIRE_STATE_BLOCKED);
	snprintf(last_state_thread, sizeof(last_state_thread), "%s", thread);
}

static inline void on_virtual(void *userdata, const struct stream_virtual *v)
{
	(void)userdata;
	last_virtual = *v;
}

static struct wire_pause last_pause;
static char last_operation[64];

static inline void on_pause(void *userdata, const struct wire_pause *w, const char *operation)
{
	(void)userdata;
	last_pause = *w;
	snprintf(last_operation, sizeof(last_operation), "%s", operation);
}

static const struct stream_ops ops = {
	.on_hello = on_hello,
	.on_sample = on_sample,
	.on_bye = on_bye,
	.on_state = on_state,
	.on_virtual = on_virtual,
	.on_pause = on_pause,
};

static inline struct wire_str str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

/* Feeds the bytes in pieces of 7, so that every frame arrives in parts. */
static inline int feed(struct stream *s, struct wire_writer *w, struct fault *f)
{
	uint32_t len = wire_end(w, ++sequence);

	for (uint32_t at = 0; at < len; at += 7) {
		int r = stream_feed(s, buf + at, len - at < 7 ? len - at : 7, f);

		if (r < 0)
			return r;
	}
	return 0;
}

static inline struct stream *greeted_stream(void)
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

static inline int put_string(struct stream *s, uint32_t id, const char *text, struct fault *f)
{
	struct wire_string record = { id, str(text) };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &record));
	return feed(s, &w, f);
}

static inline int put_node(struct stream *s, struct wire_node node, struct fault *f)
{
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_NODE);
	assert_true(wire_put_node(&w, &node));
	return feed(s, &w, f);
}

static inline int put_sample(struct stream *s, uint32_t node, struct fault *f)
{
	struct wire_sample record = { 1000, 7, node, 10, 0 };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_CPU);
	assert_true(wire_put_sample(&w, &record));
	return feed(s, &w, f);
}

static inline int put_ledger(struct stream *s, uint64_t taken, uint64_t written, uint64_t dropped,
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

/* Stacks for tests, put into a stream by the frames on the wire that define them. */
#pragma once

#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/stream/stream.h"

static uint8_t stacks_buf[WIRE_FRAME_MAX];
static uint64_t stacks_sequence;
static uint32_t stacks_next_id;

static struct wire_str stacks_str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static void stacks_feed(struct stream *s, struct wire_writer *w)
{
	struct fault f = { 0 };
	uint32_t len = wire_end(w, ++stacks_sequence);

	assert_int_equal(stream_feed(s, stacks_buf, len, &f), 0);
}

static uint32_t stacks_string(struct stream *s, const char *text)
{
	struct wire_string record = { ++stacks_next_id, stacks_str(text) };
	struct wire_writer w;

	wire_begin(&w, stacks_buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &record));
	stacks_feed(s, &w);
	return stacks_next_id;
}

/* Defines a frame from a text such as "java/lang/Thread.run"; without a dot it is a label. */
static uint32_t stacks_frame(struct stream *s, uint32_t parent, const char *name)
{
	struct wire_node node = { .parent = parent, .kind = WIRE_KIND_STUB, .line = -1 };
	const char *dot = strrchr(name, '.');
	struct wire_writer w;

	if (dot) {
		char class_name[200];
		struct wire_method m;

		snprintf(class_name, sizeof(class_name), "%.*s", (int)(dot - name), name);
		m.class_id = stacks_string(s, class_name);
		m.name_id = stacks_string(s, dot + 1);
		m.sig_id = stacks_string(s, "()V");
		m.file_id = 0;
		m.id = node.ref = ++stacks_next_id;
		wire_begin(&w, stacks_buf, WIRE_METHOD);
		assert_true(wire_put_method(&w, &m));
		stacks_feed(s, &w);
		node.kind = WIRE_KIND_C2;
	} else {
		node.ref = stacks_string(s, name);
	}
	node.id = ++stacks_next_id;
	wire_begin(&w, stacks_buf, WIRE_NODE);
	assert_true(wire_put_node(&w, &node));
	stacks_feed(s, &w);
	return node.id;
}

/* A stream with one stack: @frames from the root on, NULL last. The caller frees it; *ret_leaf
 * is the stack's node, 0 without frames. */
static struct stream *stacks_stream(const char *const *frames, uint32_t *ret_leaf)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct stream_ops ops = { 0 };
	struct wire_writer w;
	struct stream *s;

	stacks_sequence = stacks_next_id = *ret_leaf = 0;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	wire_begin(&w, stacks_buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	stacks_feed(s, &w);
	for (; *frames; frames++)
		*ret_leaf = stacks_frame(s, *ret_leaf, *frames);
	return s;
}

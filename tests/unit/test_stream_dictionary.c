#include "tests/unit/fed_stream.h"
#include <errno.h>

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

static void undefined_ids_are_refused(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(put_sample(s, 1, &f), -EBADMSG);
	s = stream_free(s);
	s = greeted_stream();
	memset(&f, 0, sizeof(f));
	assert_int_equal(put_string(s, 1, "x", &f), 0);
	/* only the daemon adds kernel frames: an agent cannot know any */
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

static void names_of_threads_have_a_memory_bound_and_the_last_one_is_known(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };
	char name[WIRE_STRING_MAX + 1];
	uint32_t known = 0;

	(void)state;
	memset(name, 0xff, WIRE_STRING_MAX); /* invalid bytes, which become three bytes each */
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
	/* samples of a thread's last moments arrive after the report of its end */
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
	/* modified UTF-8 of the JVM: NUL as C0 80, U+1F600 as two surrogates of three bytes each */
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

static void native_frames_keep_their_offsets(void **state)
{
	const struct wire_mapping m = { .id = 1, .start = 4096, .end = 8192, .path_id = 1 };
	const uint64_t offsets[] = { 0, 0x1234, 0x80000000, 0xfedcba9876, UINT64_MAX };
	struct stream *s = greeted_stream();
	struct stream_frame frame;
	struct fault f = { 0 };
	struct wire_writer w;
	uint32_t parent;

	(void)state;
	assert_int_equal(put_string(s, 1, "/lib/libx.so", &f), 0);
	wire_begin(&w, buf, WIRE_MAPPING);
	assert_true(wire_put_mapping(&w, &m));
	assert_int_equal(feed(s, &w, &f), 0);
	for (uint32_t i = 0; i < 5; i++) {
		const struct wire_node n = {
			i + 1, i, WIRE_KIND_NATIVE, 1, -1, offsets[i],
		};

		assert_int_equal(put_node(s, n, &f), 0);
		stream_mark_node(s, i + 1, (uint8_t)(250 + i));
	}
	for (uint32_t i = 0; i < 5; i++) {
		assert_true(stream_node(s, i + 1, &frame, &parent));
		assert_int_equal(parent, i);
		assert_int_equal(frame.kind, WIRE_KIND_NATIVE);
		assert_int_equal(frame.line, -1);
		assert_string_equal(frame.module, "/lib/libx.so");
		/* no file is larger than 2^40 bytes */
		assert_true(frame.offset == (i < 4 ? offsets[i] : (1ull << 40) - 1));
		assert_int_equal(stream_node_mark(s, i + 1), 250 + i);
	}
	stream_free(s);
}

#define FRAMES 5000

/* Node @i of FRAMES + 1 and more has the frame of an earlier one, below another parent. */
static void a_frame_in_many_stacks_is_kept_once(void **state)
{
	struct stream *s = greeted_stream();
	struct stream_frame frame;
	struct fault f = { 0 };
	struct wire_writer w;
	uint32_t parent, i = 1;
	size_t before, after;

	(void)state;
	assert_int_equal(put_string(s, 1, "stub", &f), 0);
	assert_int_equal(put_string(s, 2, "other", &f), 0);
	wire_begin(&w, buf, WIRE_METHOD);
	assert_true(wire_put_method(&w, &(struct wire_method){ 1, 1, 1, 1, 0 }));
	assert_true(wire_put_method(&w, &(struct wire_method){ 2, 1, 2, 1, 0 }));
	assert_int_equal(feed(s, &w, &f), 0);
	for (; i <= FRAMES; i++)
		assert_int_equal(put_node(s,
					  (struct wire_node){ i, 0, WIRE_KIND_C2, 1 + i % 2,
							      1 + (int32_t)(i / 2), 0 },
					  &f),
				 0);
	before = stream_bytes(s);
	for (; i <= 4 * FRAMES; i++)
		assert_int_equal(put_node(s,
					  (struct wire_node){ i, i - FRAMES, WIRE_KIND_C2,
							      1 + i % FRAMES % 2,
							      1 + (int32_t)(i % FRAMES / 2), 0 },
					  &f),
				 0);
	after = stream_bytes(s);
	/* 8 bytes a node, of which up to twice as many have room */
	assert_in_range(after - before, 1, 2 * 4 * FRAMES * 8ul);
	for (i = 1; i <= 4 * FRAMES; i++) {
		assert_true(stream_node(s, i, &frame, &parent));
		assert_int_equal(parent, i > FRAMES ? i - FRAMES : 0);
		assert_string_equal(frame.method, i % FRAMES % 2 ? "other" : "stub");
		assert_int_equal(frame.line, 1 + (i == FRAMES ? FRAMES : i % FRAMES) / 2);
	}
	stream_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_can_be_walked_to_its_root),
		cmocka_unit_test(undefined_ids_are_refused),
		cmocka_unit_test(a_stream_has_a_memory_bound),
		cmocka_unit_test(names_of_threads_have_a_memory_bound_and_the_last_one_is_known),
		cmocka_unit_test(ids_far_apart_cost_their_sender_and_not_the_daemon),
		cmocka_unit_test(a_reset_forgets_every_id),
		cmocka_unit_test(strange_names_end_no_stream),
		cmocka_unit_test(native_frames_keep_their_offsets),
		cmocka_unit_test(a_frame_in_many_stacks_is_kept_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

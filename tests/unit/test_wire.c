#include "tests/unit/unit.h"
#include <errno.h>
#include "proto/wire.h"

static uint8_t buf[WIRE_FRAME_MAX];

static struct wire_str str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static struct wire_frame finish(struct wire_writer *w)
{
	struct wire_frame f;
	uint32_t len = wire_end(w, 7);

	assert_int_equal(wire_peek(buf, len, &f), len);
	assert_int_equal(wire_peek(buf, len - 1, &f), 0);
	assert_int_equal(f.sequence, 7);
	return f;
}

static void samples_come_back_as_they_went_also_out_of_order(void **state)
{
	const struct wire_sample in[] = {
		{ 5000000000ull, 17, 3, 10000000, 0 },
		{ 4999999000ull, 18, 0, 20000000, 1 },
		{ 5000000001ull, UINT32_MAX, WIRE_ID_MAX - 1, WIRE_WEIGHT_MAX,
		  WIRE_CONTEXT_MAX - 1 },
	};
	struct wire_sample out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_CPU);
	for (size_t i = 0; i < 3; i++)
		assert_true(wire_put_sample(&w, &in[i]));
	f = finish(&w);
	assert_int_equal(f.type, WIRE_CPU);
	wire_read(&r, &f);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(wire_next_sample(&r, &out), 1);
		assert_int_equal(out.mono_ns, in[i].mono_ns);
		assert_int_equal(out.tid, in[i].tid);
		assert_int_equal(out.node, in[i].node);
		assert_true(out.weight_ns == in[i].weight_ns);
		assert_int_equal(out.context, in[i].context);
	}
	assert_int_equal(wire_next_sample(&r, &out), 0);
}

static void contexts_come_back_and_impossible_ones_are_refused(void **state)
{
	static char text[WIRE_TRACE_MAX + 1];
	const struct wire_context in[] = {
		{ 1, str("4bf92f3577b34da6a3ce929d0e0e4736"), str("00f067aa0ba902b7") },
		{ WIRE_CONTEXT_MAX - 1, { text, WIRE_TRACE_MAX }, str("") },
	};
	const struct wire_context wrong[] = { { 0, str("a"), str("") },
					      { WIRE_CONTEXT_MAX, str("a"), str("") } };
	const struct wire_context unsent[] = { { 1, str(""), str("b") },
					       { 1, { text, WIRE_TRACE_MAX + 1 }, str("") },
					       { 1, str("a"), { text, WIRE_TRACE_MAX + 1 } } };
	const struct wire_sample late = { .mono_ns = 1, .context = WIRE_CONTEXT_MAX };
	struct wire_context out;
	struct wire_sample sample;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	memset(text, 'x', sizeof(text));
	wire_begin(&w, buf, WIRE_CONTEXT);
	for (int i = 0; i < 2; i++)
		assert_true(wire_put_context(&w, &in[i]));
	for (int i = 0; i < 3; i++)
		assert_false(wire_put_context(&w, &unsent[i]));
	f = finish(&w);
	wire_read(&r, &f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wire_next_context(&r, &out), 1);
		assert_int_equal(out.id, in[i].id);
		assert_int_equal(out.trace_id.len, in[i].trace_id.len);
		assert_memory_equal(out.trace_id.p, in[i].trace_id.p, in[i].trace_id.len);
		assert_int_equal(out.span_id.len, in[i].span_id.len);
	}
	assert_int_equal(wire_next_context(&r, &out), 0);
	for (int i = 0; i < 2; i++) {
		wire_begin(&w, buf, WIRE_CONTEXT);
		assert_true(wire_put_context(&w, &wrong[i]));
		f = finish(&w);
		wire_read(&r, &f);
		assert_int_equal(wire_next_context(&r, &out), -EBADMSG);
	}
	wire_begin(&w, buf, WIRE_CPU);
	assert_true(wire_put_sample(&w, &late));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_sample(&r, &sample), -EBADMSG);
}

static uint32_t bytes_of_samples(uint32_t context)
{
	const struct wire_sample s = { 5000000000ull, 17, 3, 10000000, context };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_CPU);
	for (int i = 0; i < 2; i++)
		assert_true(wire_put_sample(&w, &s));
	return w.len;
}

static void a_context_takes_bytes_only_where_there_is_one(void **state)
{
	static const uint8_t none[] = { 0 /* base time */, 0, 1, 1, 3, 0 };
	const struct wire_sample huge = { .mono_ns = 1, .weight_ns = UINT64_MAX };
	struct wire_sample out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	assert_int_equal(bytes_of_samples(1), bytes_of_samples(0) + 2);
	/* 5 bytes of the base time; delta, tid, node, and four of the weight */
	assert_int_equal(bytes_of_samples(0), WIRE_HDR_SIZE + 5 + 2 * 7);
	wire_begin(&w, buf, WIRE_CPU);
	assert_true(wire_put_sample(&w, &huge));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_sample(&r, &out), 1);
	assert_true(out.weight_ns == WIRE_WEIGHT_MAX);
	/* the bit is set, but the context is 0 */
	wire_begin(&w, buf, WIRE_CPU);
	memcpy(buf + w.len, none, sizeof(none));
	w.len += sizeof(none);
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_sample(&r, &out), -EBADMSG);
}

static void a_record_that_does_not_fit_leaves_the_frame_as_it_was(void **state)
{
	char text[2000];
	struct wire_string s = { 1, { text, sizeof(text) } }, out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;
	unsigned n = 0;

	(void)state;
	memset(text, 'a', sizeof(text));
	wire_begin(&w, buf, WIRE_STRING);
	while (wire_put_string(&w, &s)) {
		n++;
		s.id++;
	}
	assert_int_equal(n, 2);
	f = finish(&w);
	wire_read(&r, &f);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(wire_next_string(&r, &out), 1);
		assert_int_equal(out.str.len, sizeof(text));
	}
	assert_int_equal(wire_next_string(&r, &out), 0);
}

static void nodes_and_mappings_come_back(void **state)
{
	const struct wire_node in[] = {
		{ 1, 0, WIRE_KIND_C2, 9, -1, 0 },
		{ 2, 1, WIRE_KIND_INTERPRETED, 9, 77, 0 },
		{ 3, 2, WIRE_KIND_NATIVE, 4, -1, 0xdeadbeefcafe },
		{ 4, 0, WIRE_KIND_SYNTHETIC, 5, -1, 0 },
	};
	struct wire_mapping m = {
		.id = 4, .start = 4096, .end = 8192, .path_id = 5, .build_id_len = 20
	};
	struct wire_mapping m_out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;
	struct wire_node out;

	(void)state;
	wire_begin(&w, buf, WIRE_NODE);
	for (size_t i = 0; i < 4; i++)
		assert_true(wire_put_node(&w, &in[i]));
	f = finish(&w);
	wire_read(&r, &f);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(wire_next_node(&r, &out), 1);
		assert_memory_equal(&out.id, &in[i].id, 4);
		assert_int_equal(out.parent, in[i].parent);
		assert_int_equal(out.kind, in[i].kind);
		assert_int_equal(out.line, in[i].line);
		assert_true(out.offset == in[i].offset);
	}
	memset(m.build_id, 0xab, 20);
	wire_begin(&w, buf, WIRE_MAPPING);
	assert_true(wire_put_mapping(&w, &m));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_mapping(&r, &m_out), 1);
	assert_int_equal(m_out.build_id_len, 20);
	assert_memory_equal(m_out.build_id, m.build_id, 20);
	assert_int_equal(m_out.end, 8192);
}

static void hello_start_ledger_and_fault_come_back(void **state)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL, .ns_pid = 1, .interval_ns = 10000000 },
			  h_out;
	struct wire_start s = { .protocol = WIRE_PROTOCOL,
				.flags = WIRE_START_NO_BUDGET | WIRE_START_HOST,
				.events = 1u << WIRE_EVENT_LOCK,
				.wall_threads = str("http-"),
				.secret = { "0123456789abcde", WIRE_SECRET_BYTES } },
			  s_out;
	struct wire_ledger l = { 0 }, l_out;
	struct wire_fault fault = { EPERM, str("engine"), str("no timers") }, fault_out;
	struct wire_writer w;
	struct wire_frame f;

	(void)state;
	h.jvm_version = str("17.0.15");
	h.secret = s.secret;
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	f = finish(&w);
	assert_int_equal(wire_get_hello(&f, &h_out), 0);
	assert_int_equal(h_out.interval_ns, h.interval_ns);
	assert_memory_equal(h_out.jvm_version.p, "17.0.15", 7);
	assert_int_equal(h_out.secret.len, WIRE_SECRET_BYTES);
	assert_memory_equal(h_out.secret.p, s.secret.p, WIRE_SECRET_BYTES);

	wire_begin(&w, buf, WIRE_START);
	assert_true(wire_put_start(&w, &s));
	f = finish(&w);
	assert_int_equal(wire_get_start(&f, &s_out), 0);
	assert_int_equal(s_out.flags, WIRE_START_NO_BUDGET | WIRE_START_HOST);
	assert_int_equal(s_out.events, 1u << WIRE_EVENT_LOCK);
	assert_memory_equal(s_out.wall_threads.p, "http-", 5);
	assert_int_equal(s_out.secret.len, WIRE_SECRET_BYTES);
	assert_memory_equal(s_out.secret.p, s.secret.p, WIRE_SECRET_BYTES);

	for (int i = 0; i < WIRE_COUNTER_COUNT; i++)
		l.counter[i] = 1000u + (unsigned)i;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		l.accounts[e].taken = 7u + (unsigned)e;
		l.accounts[e].written_weight = UINT64_MAX - (unsigned)e;
		for (int i = 0; i < WIRE_DROP_COUNT; i++) {
			l.accounts[e].drop[i].n = (unsigned)(e * i);
			l.accounts[e].drop[i].weight = UINT64_MAX - (unsigned)i;
		}
	}
	for (int i = 0; i < WIRE_PART_COUNT; i++)
		l.part[i] = (unsigned)i << 20;
	for (int i = 0; i < WIRE_TIME_COUNT; i++)
		l.time[i] = (unsigned)i;
	wire_begin(&w, buf, WIRE_LEDGER);
	assert_true(wire_put_ledger(&w, &l));
	f = finish(&w);
	assert_int_equal(wire_get_ledger(&f, &l_out), 0);
	assert_memory_equal(&l, &l_out, sizeof(l));

	wire_begin(&w, buf, WIRE_FAULT);
	assert_true(wire_put_fault(&w, &fault));
	f = finish(&w);
	assert_int_equal(wire_get_fault(&f, &fault_out), 0);
	assert_int_equal(fault_out.code, EPERM);
	assert_int_equal(fault_out.what.len, 9);
}

static void times_fall_into_the_bucket_that_holds_them(void **state)
{
	(void)state;
	assert_int_equal(wire_time_bucket(0), 0);
	assert_int_equal(wire_time_bucket(UINT64_MAX), WIRE_TIME_COUNT - 1);
	for (unsigned b = 1; b < WIRE_TIME_COUNT; b++) {
		assert_int_equal(wire_time_bucket(wire_time_floor(b)), b);
		assert_int_equal(wire_time_bucket(wire_time_floor(b) - 1), b - 1);
	}
	assert_int_equal(wire_time_floor(0), 512);
	assert_int_equal(wire_time_floor(4), 1024);
}

static void intervals_off_the_cpu_come_back(void **state)
{
	const struct wire_offcpu in = {
		.mono_ns = UINT64_MAX,
		.tid = UINT32_MAX,
		.virtual_tid = WIRE_VIRTUAL_TID | 7,
		.node = WIRE_ID_MAX - 1,
		.weight_ns = UINT64_MAX,
		.status = WIRE_OFFCPU_GC,
		.context = WIRE_CONTEXT_MAX - 1,
	};
	const struct wire_offcpu unmounted = {
		.mono_ns = 2,
		.tid = WIRE_VIRTUAL_TID | 7,
		.virtual_tid = WIRE_VIRTUAL_TID | 7,
		.status = WIRE_OFFCPU_UNMOUNTED,
		.class_id = WIRE_ID_MAX - 1,
		.identity = UINT32_MAX,
	};
	const struct wire_offcpu unknown = { .mono_ns = 1, .status = WIRE_OFFCPU_STATUS_COUNT };
	struct wire_offcpu out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_OFFCPU);
	assert_true(wire_put_offcpu(&w, &in));
	assert_true(wire_put_offcpu(&w, &unmounted));
	assert_true(wire_put_offcpu(&w, &unknown));
	assert_int_equal(wire_peek(buf, wire_end(&w, 1), &f), w.len);
	wire_read(&r, &f);
	assert_int_equal(wire_next_offcpu(&r, &out), 1);
	assert_int_equal(out.mono_ns, in.mono_ns);
	assert_int_equal(out.tid, in.tid);
	assert_int_equal(out.virtual_tid, in.virtual_tid);
	assert_int_equal(out.node, in.node);
	assert_int_equal(out.weight_ns, in.weight_ns);
	assert_int_equal(out.status, in.status);
	assert_int_equal(out.context, in.context);
	assert_int_equal(out.class_id, 0);
	assert_int_equal(wire_next_offcpu(&r, &out), 1);
	assert_int_equal(out.status, WIRE_OFFCPU_UNMOUNTED);
	assert_int_equal(out.context, 0);
	assert_int_equal(out.class_id, WIRE_ID_MAX - 1);
	assert_int_equal(out.identity, UINT32_MAX);
	assert_int_equal(wire_next_offcpu(&r, &out), -EBADMSG); /* no such status */
}

static void methods_and_threads_come_back(void **state)
{
	const struct wire_method in = { WIRE_ID_MAX - 1, 1, 2, 3, 0 };
	const struct wire_thread t_in = { UINT32_MAX, WIRE_THREAD_JAVA, UINT64_MAX, str("main") };
	struct wire_method out;
	struct wire_thread t_out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_METHOD);
	assert_true(wire_put_method(&w, &in));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_method(&r, &out), 1);
	assert_memory_equal(&out, &in, sizeof(in));
	assert_int_equal(wire_next_method(&r, &out), 0);

	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &t_in));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_thread(&r, &t_out), 1);
	assert_int_equal(t_out.tid, UINT32_MAX);
	assert_int_equal(t_out.flags, WIRE_THREAD_JAVA);
	assert_true(t_out.java_id == UINT64_MAX);
	assert_int_equal(t_out.name.len, 4);
	assert_memory_equal(t_out.name.p, "main", 4);
	assert_int_equal(wire_next_thread(&r, &t_out), 0);
}

/* Fills a frame of @type until it is full; afterwards it must contain exactly the records that
 * were accepted. */
#define FILL(type, put, next, record)                       \
	do {                                                \
		__typeof__(record) out_;                    \
		uint32_t n_ = 0, len_;                      \
		uint64_t last_ns_;                          \
                                                            \
		wire_begin(&w, buf, type);                  \
		do {                                        \
			len_ = w.len;                       \
			last_ns_ = w.last_ns;               \
		} while (put(&w, &(record)) && ++n_);       \
		assert_int_equal(w.len, len_);              \
		assert_int_equal(w.records, n_);            \
		assert_true(w.last_ns == last_ns_);         \
		assert_true(WIRE_FRAME_MAX - w.len < 2200); \
		f = finish(&w);                             \
		wire_read(&r, &f);                          \
		while (next(&r, &out_) > 0)                 \
			n_--;                               \
		assert_int_equal(n_, 0);                    \
		assert_true(r.p == r.end);                  \
	} while (0)

static void a_full_frame_holds_what_was_said_to_fit_whatever_its_type(void **state)
{
	char text[2048];
	struct wire_string s = { 1, { text, 100 } };
	struct wire_method m = { 1, 1, 2, 3, 4 };
	struct wire_mapping map = { .id = 1, .end = UINT64_MAX, .path_id = 1, .build_id_len = 32 };
	struct wire_node n = { 1, 0, WIRE_KIND_NATIVE, 1, -1, UINT64_MAX };
	struct wire_thread t = { 1, 0, UINT64_MAX, { text, 700 } };
	struct wire_sample sample = { UINT64_MAX, UINT32_MAX, 1, UINT64_MAX, 1 };
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	memset(text, 'a', sizeof(text));
	FILL(WIRE_STRING, wire_put_string, wire_next_string, s);
	FILL(WIRE_METHOD, wire_put_method, wire_next_method, m);
	FILL(WIRE_MAPPING, wire_put_mapping, wire_next_mapping, map);
	FILL(WIRE_NODE, wire_put_node, wire_next_node, n);
	FILL(WIRE_THREAD, wire_put_thread, wire_next_thread, t);
	FILL(WIRE_CPU, wire_put_sample, wire_next_sample, sample);
}

static void hello_and_fault_fit_their_frame_however_long_their_words_are(void **state)
{
	static char text[100000];
	const struct wire_str all = { text, sizeof(text) };
	const struct wire_hello h = {
		UINT64_MAX, all,	all,	    all,	all,	    all,
		all,	    all,	all,	    all,	UINT64_MAX, UINT64_MAX,
		UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, all,
	};
	const struct wire_fault fault = { UINT32_MAX, all, all };
	struct wire_fault fault_out;
	struct wire_hello out;
	struct wire_writer w;
	struct wire_frame f;

	(void)state;
	memset(text, 'x', sizeof(text));
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	f = finish(&w);
	assert_int_equal(wire_get_hello(&f, &out), 0);
	assert_int_equal(out.note.len, WIRE_HELLO_MAX);
	assert_true(out.session == UINT64_MAX && out.tick_ns == UINT64_MAX);
	wire_begin(&w, buf, WIRE_BYE);
	assert_true(wire_put_fault(&w, &fault));
	f = finish(&w);
	assert_int_equal(wire_get_fault(&f, &fault_out), 0);
	assert_int_equal(fault_out.step.len, WIRE_STEP_MAX);
	assert_int_equal(fault_out.what.len, WIRE_STRING_MAX);
}

static void a_line_that_cannot_be_is_sent_as_unknown(void **state)
{
	static const int32_t lines[] = { INT32_MIN, -2, WIRE_LINE_MAX + 1, INT32_MAX };
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;
	struct wire_node out;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct wire_node n = { 1, 0, WIRE_KIND_JAVA, 1, lines[i], 0 };

		wire_begin(&w, buf, WIRE_NODE);
		assert_true(wire_put_node(&w, &n));
		f = finish(&w);
		wire_read(&r, &f);
		assert_int_equal(wire_next_node(&r, &out), 1);
		assert_int_equal(out.line, -1);
	}
}

static void waits_and_allocations_come_back(void **state)
{
	struct wire_lock in[3] = {
		{ 5000, UINT64_MAX, UINT32_MAX, WIRE_WAIT_PARK, WIRE_LOCK_OPEN, 1, UINT32_MAX, 7, 9,
		  10, 1, 0 },
		{ 4000, 1, 2, WIRE_WAIT_ENTER, 0, 0, 0, 0, 0, 0, 1, 77 },
		{ 4500, 99, 2, WIRE_WAIT_PARK, WIRE_LOCK_SUM, 0, 0, 0, 0, 0, UINT32_MAX, 78 },
	};
	struct wire_alloc alloc = { 77, 3, 4, 5, UINT64_MAX, 1, 4095 }, alloc_out;
	struct wire_lock out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_LOCK);
	for (int i = 0; i < 3; i++)
		assert_true(wire_put_lock(&w, &in[i]));
	f = finish(&w);
	wire_read(&r, &f);
	for (int i = 0; i < 3; i++) {
		memset(&out, 0, sizeof(out));
		assert_int_equal(wire_next_lock(&r, &out), 1);
		assert_int_equal(out.begin_ns, in[i].begin_ns);
		assert_int_equal(out.duration_ns, in[i].duration_ns);
		assert_int_equal(out.tid, in[i].tid);
		assert_int_equal(out.wait, in[i].wait);
		assert_int_equal(out.flags, in[i].flags);
		assert_int_equal(out.identity, in[i].identity);
		assert_int_equal(out.waits, in[i].waits);
		assert_int_equal(out.context, in[i].context);
		assert_memory_equal(&out.owner_tid, &in[i].owner_tid, 3 * sizeof(uint32_t));
	}
	assert_int_equal(wire_next_lock(&r, &out), 0);
	wire_begin(&w, buf, WIRE_ALLOC);
	assert_true(wire_put_alloc(&w, &alloc));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_alloc(&r, &alloc_out), 1);
	assert_int_equal(alloc_out.class_id, 5);
	assert_int_equal(alloc_out.size, UINT64_MAX);
	assert_int_equal(alloc_out.weight, 1);
	assert_int_equal(alloc_out.context, 4095);
}

static void a_record_that_stands_for_no_wait_is_refused(void **state)
{
	struct wire_lock l = { .begin_ns = 1, .flags = WIRE_LOCK_SUM, .waits = 0 };
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_LOCK);
	assert_true(wire_put_lock(&w, &l));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_lock(&r, &l), -EBADMSG);
}

static void a_wait_of_an_unknown_kind_is_refused(void **state)
{
	struct wire_lock l = { .begin_ns = 1, .wait = WIRE_WAIT_COUNT };
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_LOCK);
	assert_true(wire_put_lock(&w, &l));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_lock(&r, &l), -EBADMSG);
}

static void states_of_threads_come_back(void **state)
{
	struct wire_state in[2] = {
		{ 5000, UINT32_MAX, WIRE_STATE_TIMED_WAITING, WIRE_OFFCPU_SLEEP, UINT64_MAX, UINT32_MAX, { 1, 0, UINT32_MAX } },
		{ 5000, 1, WIRE_STATE_UNKNOWN, 0, 0, 0, { 0 } },
	};
	struct wire_virtual group = { 9, 3, 4, WIRE_STATE_WAITING, UINT32_MAX, 7 }, group_out;
	struct wire_state out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_STATE);
	for (int i = 0; i < 2; i++)
		assert_true(wire_put_state(&w, &in[i]));
	f = finish(&w);
	wire_read(&r, &f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wire_next_state(&r, &out), 1);
		assert_int_equal(out.mono_ns, 5000);
		assert_int_equal(out.tid, in[i].tid);
		assert_int_equal(out.state, in[i].state);
		assert_int_equal(out.status, in[i].status);
		assert_true(out.cpu_ns == in[i].cpu_ns);
		assert_int_equal(out.span_us, in[i].span_us);
		assert_memory_equal(out.short_us, in[i].short_us, sizeof(out.short_us));
	}
	assert_int_equal(wire_next_state(&r, &out), 0);
	wire_begin(&w, buf, WIRE_VIRTUAL);
	assert_true(wire_put_virtual(&w, &group));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_virtual(&r, &group_out), 1);
	assert_int_equal(group_out.container_id, 3);
	assert_int_equal(group_out.class_id, 4);
	assert_int_equal(group_out.state, WIRE_STATE_WAITING);
	assert_int_equal(group_out.count, UINT32_MAX);
	assert_int_equal(group_out.mounted, 7);
}

static void pauses_come_back(void **state)
{
	const struct wire_pause in[2] = {
		{ 5000, 0, 0, 41, WIRE_PAUSE_NONE, 0 },
		{ UINT64_MAX - 7, 3, UINT64_MAX, UINT64_MAX, WIRE_PAUSE_GC, WIRE_ID_MAX - 1 },
	};
	const struct wire_pause wrong[2] = {
		{ .kind = WIRE_PAUSE_KIND_COUNT },
		{ .reach_ns = 2, .length_ns = 1, .kind = WIRE_PAUSE_GC },
	};
	struct wire_pause out;
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_PAUSE);
	for (int i = 0; i < 2; i++)
		assert_true(wire_put_pause(&w, &in[i]));
	f = finish(&w);
	wire_read(&r, &f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wire_next_pause(&r, &out), 1);
		assert_true(out.begin_ns == in[i].begin_ns && out.reach_ns == in[i].reach_ns);
		assert_true(out.length_ns == in[i].length_ns && out.number == in[i].number);
		assert_int_equal(out.kind, in[i].kind);
		assert_int_equal(out.operation_id, in[i].operation_id);
	}
	assert_int_equal(wire_next_pause(&r, &out), 0);
	for (int i = 0; i < 2; i++) {
		wire_begin(&w, buf, WIRE_PAUSE);
		assert_true(wire_put_pause(&w, &wrong[i]));
		f = finish(&w);
		wire_read(&r, &f);
		assert_int_equal(wire_next_pause(&r, &out), -EBADMSG);
	}
}

static void states_that_cannot_be_are_refused(void **state)
{
	struct wire_state thread = { .tid = 1, .state = WIRE_STATE_COUNT };
	struct wire_virtual group = { .count = 1, .mounted = 2 };
	struct wire_writer w;
	struct wire_reader r;
	struct wire_frame f;

	(void)state;
	wire_begin(&w, buf, WIRE_STATE);
	assert_true(wire_put_state(&w, &thread));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_state(&r, &thread), -EBADMSG);
	thread = (struct wire_state){ .tid = 1, .status = WIRE_OFFCPU_STATUS_COUNT };
	wire_begin(&w, buf, WIRE_STATE);
	assert_true(wire_put_state(&w, &thread));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_state(&r, &thread), -EBADMSG);
	wire_begin(&w, buf, WIRE_VIRTUAL);
	assert_true(wire_put_virtual(&w, &group));
	f = finish(&w);
	wire_read(&r, &f);
	assert_int_equal(wire_next_virtual(&r, &group), -EBADMSG);
}

static void keys_of_a_newer_agent_are_skipped(void **state)
{
	static const uint8_t hello[] = {
		99, 3, 'n', 'e', 'w', 1, 1, 7
	}; /* key 99, then protocol 7 */
	/* counter 63, CPU's taken (256) 9, its word 63 */
	static const uint8_t ledger[] = { 63, 5, 0x80, 2, 9, 0xbf, 2, 5 };
	struct wire_frame f = { .type = WIRE_HELLO, .body = hello, .body_len = sizeof(hello) };
	struct wire_ledger l;
	struct wire_hello h;

	(void)state;
	assert_int_equal(wire_get_hello(&f, &h), 0);
	assert_int_equal(h.protocol, 7);
	f = (struct wire_frame){ .type = WIRE_LEDGER, .body = ledger, .body_len = sizeof(ledger) };
	assert_int_equal(wire_get_ledger(&f, &l), 0);
	assert_int_equal(l.accounts[WIRE_EVENT_CPU].taken, 9);
}

static void bytes_that_are_no_frame_are_refused(void **state)
{
	struct wire_frame f;
	uint8_t small[WIRE_HDR_SIZE] = { 15, 0, 0, 0, 1 }; /* shorter than its own header */
	uint8_t large[WIRE_HDR_SIZE] = { 1, 0x10, 0, 0, 1 }; /* 4,097 bytes */
	uint8_t reserved[WIRE_HDR_SIZE] = { 16, 0, 0, 0, 1, 0, 1 };

	(void)state;
	assert_int_equal(wire_peek(small, sizeof(small), &f), -EBADMSG);
	assert_int_equal(wire_peek(large, sizeof(large), &f), -EBADMSG);
	assert_int_equal(wire_peek(reserved, sizeof(reserved), &f), -EBADMSG);
	assert_int_equal(wire_peek(small, 3, &f), 0);
}

static void a_body_is_range_checked(void **state)
{
	static const uint8_t id_too_large[] = { 0x80, 0x80, 0x80, 0x08, 0 }; /* id 1 << 24 */
	static const uint8_t id_zero[] = { 0, 0 };
	static const uint8_t string_too_long[] = { 1, 5, 'a' };
	static const uint8_t kind_unknown[] = { 1, 0, WIRE_KIND_COUNT, 0 };
	static const uint8_t varint_endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
						  0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t varint_too_large[] = { 0xff, 0xff, 0xff, 0xff, 0xff,
						    0xff, 0xff, 0xff, 0xff, 2 }; /* 65 bits */
	static const uint8_t line_too_large[] = { 1, 0, WIRE_KIND_C2, 1, 0x80, 0x80, 0x80, 0x10 };
	static const uint8_t mapping_empty[] = { 1, 5, 5, 0, 1, 0 };
	static const uint8_t build_id_too_long[40] = { 1, 1, 2, 0, 1, 33 };
	static const uint8_t sample_cut[] = { 5, 0, 1, 1 };
	struct wire_sample sample;
	struct wire_mapping m;
	struct wire_string s;
	struct wire_node n;
	struct wire_reader r;
	struct wire_frame f = { .type = WIRE_STRING };

	(void)state;
#define REFUSED(bytes, next, out)                           \
	do {                                                \
		f.body = bytes;                             \
		f.body_len = sizeof(bytes);                 \
		wire_read(&r, &f);                          \
		assert_int_equal(next(&r, &out), -EBADMSG); \
	} while (0)
	REFUSED(id_too_large, wire_next_string, s);
	REFUSED(id_zero, wire_next_string, s);
	REFUSED(string_too_long, wire_next_string, s);
	REFUSED(kind_unknown, wire_next_node, n);
	REFUSED(varint_endless, wire_next_node, n);
	REFUSED(varint_too_large, wire_next_sample, sample);
	REFUSED(line_too_large, wire_next_node, n);
	REFUSED(mapping_empty, wire_next_mapping, m);
	REFUSED(build_id_too_long, wire_next_mapping, m);
	REFUSED(sample_cut, wire_next_sample, sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_back_as_they_went_also_out_of_order),
		cmocka_unit_test(contexts_come_back_and_impossible_ones_are_refused),
		cmocka_unit_test(a_context_takes_bytes_only_where_there_is_one),
		cmocka_unit_test(a_record_that_does_not_fit_leaves_the_frame_as_it_was),
		cmocka_unit_test(nodes_and_mappings_come_back),
		cmocka_unit_test(hello_start_ledger_and_fault_come_back),
		cmocka_unit_test(times_fall_into_the_bucket_that_holds_them),
		cmocka_unit_test(intervals_off_the_cpu_come_back),
		cmocka_unit_test(methods_and_threads_come_back),
		cmocka_unit_test(a_full_frame_holds_what_was_said_to_fit_whatever_its_type),
		cmocka_unit_test(hello_and_fault_fit_their_frame_however_long_their_words_are),
		cmocka_unit_test(a_line_that_cannot_be_is_sent_as_unknown),
		cmocka_unit_test(waits_and_allocations_come_back),
		cmocka_unit_test(a_wait_of_an_unknown_kind_is_refused),
		cmocka_unit_test(a_record_that_stands_for_no_wait_is_refused),
		cmocka_unit_test(states_of_threads_come_back),
		cmocka_unit_test(pauses_come_back),
		cmocka_unit_test(states_that_cannot_be_are_refused),
		cmocka_unit_test(keys_of_a_newer_agent_are_skipped),
		cmocka_unit_test(bytes_that_are_no_frame_are_refused),
		cmocka_unit_test(a_body_is_range_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

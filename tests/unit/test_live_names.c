/* Names that windows share: even if samples come late, or a dictionary is reset, ends or grows,
 * each window has its own samples under the right names. */
#include "tests/unit/live_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/profile/live_priv.h"

#define STACKS	200u
#define WINDOWS 24u
#define SOURCES 3

static uint64_t expected[WINDOWS][STACKS], found[WINDOWS][STACKS];
static uint64_t drawn = 88172645463325252ull;
static uint32_t names_before; /* number of strings in the last window's names */
static int begun; /* how often the shared names were started anew */

static uint32_t draw(uint32_t below)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	return (uint32_t)(drawn >> 11) % below;
}

/* The number in the name of a row's leaf, "stack 17". */
static uint32_t stack_of(const struct profile *p, const struct profile_row *r)
{
	const char *name = p->strings[p->frames[p->nodes[r->node].frame].method];
	unsigned number = STACKS;

	assert_int_equal(sscanf(name, "stack %u", &number), 1);
	assert_true(number < STACKS);
	return number;
}

static void count(const struct profile *w, uint64_t to[WINDOWS][STACKS])
{
	uint64_t window = (w->begin_real_ns - T0) / LIVE_WINDOW_NS;

	for (uint32_t i = 0; i < w->n_rows; i++)
		to[window % WINDOWS][stack_of(w, &w->rows[i])] += w->rows[i].weight;
}

static void on_named_window(void *userdata, const struct profile *w)
{
	(void)userdata;
	count(w, found);
	begun += w->n_strings < names_before;
	names_before = w->n_strings;
}

/* A stream whose node 1 + i is a stack of one frame, "stack N"; N depends on @turn. */
static struct stream *named_stream(uint32_t turn)
{
	const struct stream_ops ops = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	uint64_t sequence = 0;
	struct stream *stream;
	struct wire_writer w;

	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	greet(stream, &sequence);
	for (uint32_t i = 0; i < STACKS; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "stack %u", (i + turn) % STACKS);
		struct wire_string string = { 1 + i, { text, (uint32_t)n } };
		struct wire_node node = { 1 + i, 0, WIRE_KIND_STUB, 1 + i, -1, 0 };

		wire_begin(&w, buf, WIRE_STRING);
		assert_true(wire_put_string(&w, &string));
		put(stream, &w, ++sequence);
		wire_begin(&w, buf, WIRE_NODE);
		assert_true(wire_put_node(&w, &node));
		put(stream, &w, ++sequence);
	}
	return stream;
}

struct jvm {
	struct live_source *source;
	struct stream *stream;
	uint32_t pid, turn;
};

static void jvm_begin_of(struct live *l, struct jvm *j, uint32_t pid, uint64_t tenant)
{
	const struct live_process info = { .pid = pid, .name = "app", .tenant = tenant };

	j->pid = pid;
	j->turn = draw(STACKS);
	j->stream = named_stream(j->turn);
	assert_int_equal(live_source_new(l, &info, &j->source), 0);
}

static void jvm_begin(struct live *l, struct jvm *j, uint32_t pid)
{
	jvm_begin_of(l, j, pid, pid % 2);
}

static void jvm_end(struct jvm *j)
{
	live_source_end(j->source);
	live_source_free(j->source);
	stream_free(j->stream);
}

static void jvm_reset(struct jvm *j)
{
	live_source_reset(j->source);
	stream_free(j->stream);
	j->turn = draw(STACKS);
	j->stream = named_stream(j->turn);
}

/* Samples of the last two seconds, so sometimes of the window before. Each window needs more
 * names than the one before, until the names are started anew. */
static void jvm_sample(struct jvm *j, uint64_t now)
{
	uint64_t real_ns = now - draw(1900) * (LIVE_SLICE_NS / 1000);
	uint32_t node = draw(4 + (uint32_t)((now - T0) / LIVE_WINDOW_NS) * 8 % STACKS);
	struct stream_sample sample = { .tid = 1 + draw(5), .thread = "t", .node = 1 + node };

	sample.weight_ns = 1 + draw(1000);
	real_ns = real_ns < T0 ? T0 : real_ns;
	live_add(j->source, j->stream, &sample, NULL, real_ns, 10);
	expected[(real_ns - T0) / LIVE_WINDOW_NS][(node + j->turn) % STACKS] += sample.weight_ns;
}

static void assert_query(struct live *l, uint64_t now)
{
	static uint64_t of_query[WINDOWS][STACKS];
	uint64_t window = (now - T0) / LIVE_WINDOW_NS;
	struct profile *p;

	memset(of_query, 0, sizeof(of_query));
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(l, T0 + window * LIVE_WINDOW_NS,
				    T0 + (window + 1) * LIVE_WINDOW_NS, NULL, p),
			 0);
	count(p, of_query);
	assert_memory_equal(of_query[window], expected[window], sizeof(expected[window]));
	profile_free(p);
}

static void each_window_has_its_samples_under_their_names(void **state)
{
	struct jvm jvms[SOURCES];
	uint32_t pids = 0;
	struct live *l;

	(void)state;
	begun = 0;
	assert_int_equal(live_new(on_named_window, NULL, &l), 0);
	for (int i = 0; i < SOURCES; i++)
		jvm_begin(l, &jvms[i], ++pids);
	for (uint64_t now = T0; now < T0 + WINDOWS * LIVE_WINDOW_NS; now += LIVE_SLICE_NS / 10) {
		struct jvm *j = &jvms[1 + draw(SOURCES - 1)]; /* the first stays */

		live_tick(l, now);
		for (uint32_t n = draw(8); n > 0; n--)
			jvm_sample(&jvms[draw(SOURCES)], now);
		if (draw(100) == 0)
			jvm_reset(j);
		if (draw(20) == 0) {
			jvm_end(j);
			jvm_begin(l, j, ++pids);
		}
		if (draw(20) == 0)
			assert_query(l, now);
	}
	for (int i = 0; i < SOURCES; i++)
		jvm_end(&jvms[i]);
	live_free(l);
	assert_memory_equal(found, expected, sizeof(found));
	assert_in_range(begun, 2, WINDOWS / 2);
}

/* A steady program's next window adds no name, and costs memory only for its rows. */
static void steady_windows_share_their_names(void **state)
{
	const struct profile *names = NULL;
	struct jvm jvm;
	struct live *l;

	(void)state;
	assert_int_equal(live_new(on_window, NULL, &l), 0);
	jvm_begin(l, &jvm, 1);
	for (uint64_t w = 0; w < 5; w++) {
		struct stream_sample sample = { .tid = 1, .thread = "t", .weight_ns = 1 };

		for (sample.node = 1; sample.node <= STACKS; sample.node++)
			live_add(jvm.source, jvm.stream, &sample, NULL, T0 + w * LIVE_WINDOW_NS,
				 10);
		assert_true(w == 0 || names == l->names);
		names = l->names;
		live_tick(l, T0 + (w + 1) * LIVE_WINDOW_NS + 2 * LIVE_SLICE_NS);
	}
	assert_int_equal(names->n_nodes, STACKS + 1);
	jvm_end(&jvm);
	live_free(l);
}

/* Rows are a window's own: that it has no room for more of them is no reason for new names. */
static void windows_without_room_for_rows_share_their_names(void **state)
{
	const struct profile *names = NULL;
	struct jvm jvm;
	struct live *l;

	(void)state;
	assert_int_equal(live_new(on_window, NULL, &l), 0);
	live_limit(l, 0);
	jvm_begin(l, &jvm, 1);
	for (uint64_t w = 0; w < 3; w++) {
		struct stream_sample sample = { .thread = "t", .weight_ns = 1 };

		for (sample.tid = 1; sample.tid <= 400; sample.tid++)
			for (sample.node = 1; sample.node <= STACKS; sample.node++)
				live_add(jvm.source, jvm.stream, &sample, NULL,
					 T0 + w * LIVE_WINDOW_NS, 10);
		assert_true(l->names->index->full_name != 0);
		assert_true(w == 0 || names == l->names);
		names = l->names;
		live_tick(l, T0 + (w + 1) * LIVE_WINDOW_NS + 2 * LIVE_SLICE_NS);
	}
	jvm_end(&jvm);
	live_free(l);
}

#define MANY	  200u
#define MANY_ROWS 800u /* of a window and JVM; with 1,000 samples, it has 100 a second */

static uint64_t overflow, rows;

static void on_full_window(void *userdata, const struct profile *w)
{
	(void)userdata;
	overflow += w->overflow;
	rows = w->n_rows;
}

/* With the memory that is the default, and an owner each. */
static void two_hundred_busy_jvms_have_room(void **state)
{
	static struct jvm jvms[MANY];
	struct live *l;

	(void)state;
	overflow = 0;
	assert_int_equal(live_new(on_full_window, NULL, &l), 0);
	live_limit(l, LIVE_BYTES - (16ul << 20)); /* for names, of which there are few here */
	for (uint32_t i = 0; i < MANY; i++)
		jvm_begin_of(l, &jvms[i], 1 + i, 1 + i);
	for (uint64_t at = 0; at < 40; at++) { /* seconds */
		for (uint32_t i = 0; i < MANY * 100; i++) {
			uint32_t row = (i / MANY + (uint32_t)at * 100) % MANY_ROWS;
			struct stream_sample sample = { .tid = 1 + row % 40,
							.thread = "t",
							.node = 1 + (row / 40 * 7 + row % 40) % STACKS,
							.weight_ns = 1 };

			live_add(jvms[i % MANY].source, jvms[i % MANY].stream, &sample, NULL,
				 T0 + at * LIVE_SLICE_NS, 10);
		}
		live_tick(l, T0 + at * LIVE_SLICE_NS);
	}
	assert_int_equal(rows, MANY * MANY_ROWS);
	assert_int_equal(overflow, 0);
	assert_in_range(live_bytes(l), 0, LIVE_BYTES / 4);
	for (uint32_t i = 0; i < MANY; i++)
		jvm_end(&jvms[i]);
	live_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_window_has_its_samples_under_their_names),
		cmocka_unit_test(steady_windows_share_their_names),
		cmocka_unit_test(windows_without_room_for_rows_share_their_names),
		cmocka_unit_test(two_hundred_busy_jvms_have_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

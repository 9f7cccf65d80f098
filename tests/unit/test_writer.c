/*
 * The writer, its dictionary and the ledger over a real pipe: whatever the pipe refuses, every
 * ledger is exact, and no frame refers to an id that was not defined in its epoch. The walker is a
 * stand-in here.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/events.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/handler_cost.h"
#include "agent/engine/wall.h"
#include "agent/events/open.h"
#include "agent/events/sources.h"
#include "agent/events/unmounted.h"
#include "agent/events/waits.h"
#include "agent/output/budget.h"
#include "agent/output/ledger.h"
#include "agent/output/thread_states.h"
#include "agent/output/threads.h"
#include "agent/output/writer.h"
#include "agent/output/writer_priv.h"
#include "tests/unit/unit.h"

#define IDS 65536u

struct agent agent = { .wake_fd = -1 };
struct engine engine;

/* ---- stand-ins ---------------------------------------------------------------------------- */

static uint64_t walker_holds; /* a large frame leaves the dictionary its minimum */

uint64_t mono_ns(void)
{
	return 1;
}

uint64_t thread_cpu_ns(uint32_t tid)
{
	(void)tid;
	return 1;
}

uint64_t process_cpu_ns(void)
{
	return 1;
}

uint64_t walker_bytes(void)
{
	return walker_holds;
}

static const char *walker = "hotspot";

const char *walker_name(void)
{
	return walker;
}

void walker_parts(uint64_t *part)
{
	part[WIRE_PART_NAMES] = 7;
}

uint64_t engine_bytes(void)
{
	return 0;
}

uint32_t engine_threads(void)
{
	return 1;
}

uint64_t threads_bytes(void)
{
	return 0;
}

void threads_seen(uint32_t tid, const char *name)
{
	(void)tid;
	(void)name;
}

static struct {
	uint32_t tid;
	uint64_t java_id;
	char name[32];
} named;

void threads_named(uint32_t tid, uint64_t java_id, const char *name)
{
	named.tid = tid;
	named.java_id = java_id;
	snprintf(named.name, sizeof(named.name), "%s", name);
}

void threads_owner(uint32_t tid)
{
	(void)tid;
}

void thread_states_forget(void)
{
}

uint64_t thread_states_bytes(void)
{
	return 0;
}

void threads_written(void)
{
}

void threads_lost(void)
{
}

void threads_forget(void)
{
}

uint32_t threads_virtual(uint64_t id, const char *name)
{
	(void)name;
	return WIRE_VIRTUAL_TID | (uint32_t)id;
}

struct events events;

uint64_t sources_bytes(void)
{
	return 0;
}

void waits_counts(uint64_t *ret_short, uint64_t *ret_short_ns, uint64_t *ret_unpaired)
{
	*ret_short = *ret_short_ns = *ret_unpaired = 0;
}

uint64_t unmounted_min_ns(void)
{
	return 0;
}

void handler_cost_account(void)
{
}

void idle_waits_counts(uint64_t *ret_waits, uint64_t *ret_ns)
{
	*ret_waits = *ret_ns = 0;
}

void budget_wait(uint64_t duration_ns)
{
	(void)duration_ns;
}

void open_wait_ended(const struct ring_sample *s)
{
	(void)s;
}

void open_waits_sent(void)
{
}

void wall_written(uint32_t slot, const struct wire_sample *record, uint32_t epoch,
		  uint32_t generation)
{
	(void)slot;
	(void)record;
	(void)epoch;
	(void)generation;
}

void open_waits_lost(void)
{
}

static uint32_t told_again;

void open_waits_again(void)
{
	told_again++;
}

const char *walker_resolve_class(uint64_t class_handle)
{
	static char name[32];

	if (!class_handle)
		return NULL;
	snprintf(name, sizeof(name), "a/Lock%llu", (unsigned long long)class_handle);
	return name;
}

bool walker_names_full(void)
{
	return false;
}

void walker_forget_names(void)
{
}

bool walker_resolve_method(uint64_t where, struct walk_method *ret)
{
	static char class_name[32], name[32];

	snprintf(class_name, sizeof(class_name), "a/Class%llu", (unsigned long long)where / 10);
	snprintf(name, sizeof(name), "method%llu", (unsigned long long)where);
	*ret = (struct walk_method){ class_name, name, "()V", "Class.java" };
	return true;
}

int32_t walker_resolve_line(uint64_t where, int32_t bci)
{
	(void)where;
	return bci;
}

bool walker_resolve_pc(uint64_t pc, struct walk_mapping *ret)
{
	*ret = (struct walk_mapping){ .start = pc & ~0xfffull,
				      .end = (pc & ~0xfffull) + 4096,
				      .path = "/lib/libx.so" };
	return true;
}

/* ---- the daemon's end ---------------------------------------------------------------------- */

static struct {
	int fd[2];
	uint64_t sequence, samples, weight_ns, ledgers, resets;
	uint8_t strings[IDS], methods[IDS], mappings[IDS], nodes[IDS];
	char contexts[WIRE_CONTEXT_MAX][32];
	uint64_t with_context;
	struct wire_ledger ledger;
} in;

static void forget(void)
{
	memset(in.strings, 0, sizeof(in.strings));
	memset(in.methods, 0, sizeof(in.methods));
	memset(in.mappings, 0, sizeof(in.mappings));
	memset(in.nodes, 0, sizeof(in.nodes));
	memset(in.contexts, 0, sizeof(in.contexts));
	in.resets++;
}

static void define(uint8_t *table, uint32_t id)
{
	assert_in_range(id, 1, IDS - 1);
	assert_int_equal(table[id], 0);
	table[id] = 1;
}

static void read_strings(struct wire_reader *r)
{
	struct wire_string s;

	while (wire_next_string(r, &s) > 0)
		define(in.strings, s.id);
}

static void read_methods(struct wire_reader *r)
{
	struct wire_method m;

	while (wire_next_method(r, &m) > 0) {
		define(in.methods, m.id);
		assert_true(in.strings[m.class_id] && in.strings[m.name_id] &&
			    in.strings[m.sig_id] && in.strings[m.file_id]);
	}
}

static void read_mappings(struct wire_reader *r)
{
	struct wire_mapping m;

	while (wire_next_mapping(r, &m) > 0) {
		define(in.mappings, m.id);
		assert_true(in.strings[m.path_id]);
	}
}

static void read_nodes(struct wire_reader *r)
{
	struct wire_node n;

	while (wire_next_node(r, &n) > 0) {
		define(in.nodes, n.id);
		assert_true(n.parent == 0 || in.nodes[n.parent]);
		if (wire_kind_is_method(n.kind))
			assert_true(in.methods[n.ref]);
		else
			assert_true((n.kind == WIRE_KIND_NATIVE ? in.mappings : in.strings)[n.ref]);
	}
}

static void read_contexts(struct wire_reader *r)
{
	struct wire_context c;

	while (wire_next_context(r, &c) > 0)
		snprintf(in.contexts[c.id], sizeof(in.contexts[0]), "%.*s %.*s",
			 (int)c.trace_id.len, c.trace_id.p, (int)c.span_id.len, c.span_id.p);
}

/* One sample in three belongs to a trace; its ids contain the time. */
static bool context_of(uint64_t mono_ns, char *text, size_t room)
{
	snprintf(text, room, "t%llu s%llu", (unsigned long long)mono_ns,
		 (unsigned long long)mono_ns % 7);
	return mono_ns / 1000 % 3 == 0;
}

static void check_context(const struct wire_sample *s)
{
	char want[32];

	assert_int_equal(s->context != 0, context_of(s->mono_ns, want, sizeof(want)));
	if (s->context)
		assert_string_equal(in.contexts[s->context], want);
	in.with_context += s->context != 0;
}

static void read_samples(struct wire_reader *r)
{
	struct wire_sample s;

	while (wire_next_sample(r, &s) > 0) {
		assert_true(in.nodes[s.node]);
		check_context(&s);
		in.samples++;
		in.weight_ns += s.weight_ns;
	}
}

static void read_ledger(const struct wire_frame *f)
{
	uint64_t dropped = 0, dropped_ns = 0;
	const struct wire_accounts *b = &in.ledger.accounts[WIRE_EVENT_CPU];

	assert_int_equal(wire_get_ledger(f, &in.ledger), 0);
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		dropped += in.ledger.accounts[WIRE_EVENT_CPU].drop[i].n;
		dropped_ns += in.ledger.accounts[WIRE_EVENT_CPU].drop[i].weight;
	}
	assert_int_equal(b->taken, b->written + dropped);
	assert_int_equal(b->taken_weight, b->written_weight + dropped_ns);
	assert_int_equal(b->written, in.samples);
	assert_int_equal(b->written_weight, in.weight_ns);
	in.ledgers++;
}

static void read_all(void)
{
	static uint8_t buf[1 << 20];
	ssize_t n = read(in.fd[0], buf, sizeof(buf));
	struct wire_frame f;
	struct wire_reader r;
	int size;

	for (ssize_t at = 0; at < n; at += size) {
		size = wire_peek(buf + at, (size_t)(n - at), &f);
		assert_true(size > 0); /* frames are written whole */
		assert_int_equal(f.sequence, ++in.sequence);
		wire_read(&r, &f);
		switch (f.type) {
		case WIRE_RESET:
			forget();
			break;
		case WIRE_STRING:
			read_strings(&r);
			break;
		case WIRE_METHOD:
			read_methods(&r);
			break;
		case WIRE_MAPPING:
			read_mappings(&r);
			break;
		case WIRE_NODE:
			read_nodes(&r);
			break;
		case WIRE_CONTEXT:
			read_contexts(&r);
			break;
		case WIRE_CPU:
			read_samples(&r);
			break;
		case WIRE_LEDGER:
			read_ledger(&f);
			break;
		default:
			fail_msg("frame type %d", f.type);
		}
	}
}

/* ---- the handlers' end ---------------------------------------------------------------------- */

static void take(uint64_t seed, uint32_t depth, const char *broken)
{
	static struct walk_frame frames[WALK_FRAMES_MAX];
	struct ring_sample head = {
		.mono_ns = 1000 * seed,
		.weight = 10 + seed % 7,
		.tid = 1 + (uint32_t)(seed % 3),
		.n_frames = depth,
		.broken = broken,
	};
	char context[32];

	if (context_of(head.mono_ns, context, sizeof(context))) {
		head.context = context;
		head.context_bytes = (uint16_t)(strlen(context) + 1);
		*strchr(context, ' ') = '\0';
	}
	for (uint32_t i = 0; i < depth; i++)
		frames[i] = (struct walk_frame){
			.where = 4096 + (seed * (i + 1)) % 5000,
			.bci = (int32_t)(i % 50),
			.kind = i % 5 == 4 ? WIRE_KIND_NATIVE : WIRE_KIND_C2,
		};
	agent.counters.of[WIRE_EVENT_CPU].taken++;
	agent.counters.of[WIRE_EVENT_CPU].taken_weight += head.weight;
	if (ring_push_sig(&agent.ring, &head, frames)) {
		agent.counters.of[WIRE_EVENT_CPU].pushed++;
		agent.counters.of[WIRE_EVENT_CPU].pushed_weight += head.weight;
	} else {
		agent.counters.of[WIRE_EVENT_CPU].drop[WIRE_DROP_RING_FULL].n++;
		agent.counters.of[WIRE_EVENT_CPU].drop[WIRE_DROP_RING_FULL].weight += head.weight;
	}
}

static void begin(void)
{
	ledger_begin();
	writer_begin(in.fd[1]);
	memset(in.strings, 0, sizeof(in) - offsetof(__typeof__(in), strings));
	in.sequence = in.samples = in.weight_ns = in.ledgers = in.resets = 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&in, 0, sizeof(in));
	memset(&agent.counters, 0, sizeof(agent.counters));
	memset(&ledger, 0, sizeof(ledger));
	walker_holds = 0;
	if (pipe2(in.fd, O_NONBLOCK) < 0 || fcntl(in.fd[1], F_SETPIPE_SZ, 1 << 16) < 0 ||
	    ring_init(&agent.ring, 1 << 20) < 0)
		return -1;
	begin();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	writer_free();
	ring_deinit(&agent.ring);
	close(in.fd[0]);
	return close(in.fd[1]);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* More contexts than there are ids, and later the same contexts again: each sample arrives with
 * its own context. */
static void ids_of_contexts_are_given_out_again(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 40000; i++) {
		take(i % 9 ? i : i / 2, 1 + i % 3, NULL);
		if (i % 97 == 0)
			assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
		if (i % 1009 == 0)
			assert_int_equal(writer_flush(), WRITER_OK);
		read_all();
	}
	assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_int_equal(in.samples, 40000);
	assert_in_range(in.with_context, 10000, 15000);
}

static void a_repeated_sample_loses_a_context_whose_id_means_another(void **state)
{
	const char text[] = "t3000\0s4";
	struct wire_sample again = { .tid = 1, .node = 1, .weight_ns = 1 };
	uint32_t generation;

	(void)state;
	again.context = writer_context_id(text, sizeof(text));
	generation = writer_context_generation();
	assert_true(again.context);
	assert_true(writer_context_is_current(again.context, generation));
	assert_false(writer_context_is_current(0, generation));
	assert_int_equal(writer_context_id(text, sizeof(text)), again.context);
	for (uint64_t i = 0; i < 40000 && writer_context_is_current(again.context, generation);
	     i++) {
		char other[32];
		int n = snprintf(other, sizeof(other), "o%llu_s", (unsigned long long)i);

		other[n - 2] = '\0';
		(void)writer_context_id(other, (uint32_t)n + 1);
		read_all();
	}
	assert_false(writer_context_is_current(again.context, generation));
}

static void an_empty_context_gets_no_id(void **state)
{
	char text[RING_CONTEXT_BYTES + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[WIRE_TRACE_MAX] = text[RING_CONTEXT_BYTES - 1] = '\0';
	assert_true(writer_context_id(text, RING_CONTEXT_BYTES));
	text[WIRE_TRACE_MAX] = 'a';
	text[WIRE_TRACE_MAX + 1] = '\0';
	assert_int_equal(writer_context_id(text, RING_CONTEXT_BYTES), 0); /* a trace id too long */
	assert_int_equal(writer_context_id("a\0b", 3), 0);
	assert_int_equal(writer_context_id("\0b", 3), 0);
	assert_int_equal(writer_context_id("a b\0c", 6), 0);
	assert_int_equal(writer_context_id("a\0\xc3\xa4", 5), 0);
	assert_int_equal(writer_context_id("a\0b\0c", 6), 0);
	assert_true(writer_context_id("a\0", 3));
}

static void every_sample_taken_is_decoded(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		take(i % 37, 5 + i % 20, i % 10 ? NULL : "no_java_frame");
		if (i % 11 == 0) {
			assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
			assert_int_equal(writer_flush(), WRITER_OK);
			read_all();
		}
	}
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_int_equal(in.samples, 2000);
	assert_int_equal(in.ledger.accounts[WIRE_EVENT_CPU].taken, 2000);
	assert_int_equal(in.resets, 0);
}

/* A reader that waits is woken by each write: once for a batch, though it has frames of several
 * types. A pipe in packet mode keeps the bytes of two writes apart. */
static void frames_of_a_batch_are_written_at_once(void **state)
{
	uint8_t packet[2 * WIRE_FRAME_MAX];
	struct wire_frame frame;
	ssize_t len;
	int frames = 0;

	(void)state;
	assert_true(fcntl(in.fd[1], F_SETFL, O_NONBLOCK | O_DIRECT) == 0);
	take(1, 3, NULL);
	take(2, 5, NULL);
	assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
	assert_int_equal(writer_flush(), WRITER_OK);
	len = read(in.fd[0], packet, sizeof(packet));
	assert_in_range(len, WIRE_HDR_SIZE, WIRE_FRAME_MAX);
	assert_int_equal(read(in.fd[0], packet + len, sizeof(packet) - (size_t)len), -1);
	for (int at = 0, n; at < len; at += n, frames++) {
		n = wire_peek(packet + at, (size_t)(len - at), &frame);
		assert_true(n > 0);
		assert_int_equal(frame.sequence, frames + 1);
	}
	assert_true(frames >= 4); /* strings, methods, nodes, samples */
}

static void push_name(void)
{
	static const union {
		char text[40];
		struct walk_frame frames[3];
	} name = { "a thread's name of more than one frame" };
	const struct ring_sample head = {
		.tid = 7, .virtual_id = 31, .event = RING_NAME, .n_frames = 3
	};

	assert_true(ring_push_sig(&agent.ring, &head, name.frames));
}

static void name_that_comes_through_the_ring_is_in_no_accounts(void **state)
{
	(void)state;
	take(1, 5, NULL);
	push_name();
	take(2, 5, NULL);
	assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
	assert_int_equal(named.tid, 7);
	assert_int_equal(named.java_id, 31);
	assert_string_equal(named.name, "a thread's name of more than on");
	push_name(); /* and is lost together with the reader */
	writer_discard();
	begin();
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_int_equal(in.ledger.accounts[WIRE_EVENT_CPU].drop[WIRE_DROP_NO_READER].n, 2);
}

static void reader_that_is_slow_costs_samples_but_never_the_accounts(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		take(i * 2654435761u, 1 + i % 40, NULL);
		if (i % 16 == 0)
			(void)writer_drain(UINT64_MAX);
		if (i % 64 == 0)
			(void)writer_flush();
		if (i % 700 == 0)
			(void)writer_ledger();
		if (i % 900 == 0)
			read_all();
	}
	read_all();
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_true(in.ledgers > 1);
	assert_true(in.ledger.accounts[WIRE_EVENT_CPU].drop[WIRE_DROP_PIPE_FULL].n > 0);
	assert_true(in.samples > 0);
	assert_true(in.resets > 0);
	assert_int_equal(in.ledger.accounts[WIRE_EVENT_CPU].taken, i);
}

static void full_dictionary_begins_a_new_epoch(void **state)
{
	(void)state;
	walker_holds = 1u << 30; /* no room beyond the minimum */
	told_again = 0;
	begin();
	for (uint64_t i = 0; i < 20000; i++) {
		take(i * 2654435761u, 20, NULL);
		assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
		read_all();
	}
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_true(in.resets > 0);
	assert_int_equal(told_again, in.resets); /* waits that go on have new stacks then */
	assert_int_equal(in.samples, 20000);
}

static void samples_without_a_reader_are_the_next_session_s(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		take(i, 3, NULL);
	assert_int_equal(writer_ledger(), WRITER_OK);
	for (uint64_t i = 0; i < 7; i++)
		take(i, 3, NULL);
	writer_discard();
	read_all();
	begin();
	for (uint64_t i = 0; i < 5; i++)
		take(i, 3, NULL);
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_int_equal(in.ledger.accounts[WIRE_EVENT_CPU].taken, 12);
	assert_int_equal(in.ledger.accounts[WIRE_EVENT_CPU].drop[WIRE_DROP_NO_READER].n, 7);
	assert_int_equal(in.samples, 5);
}

/* A session that fails at its first step has no ring. */
static void a_session_without_a_ring_ends(void **state)
{
	(void)state;
	take(1, 5, NULL);
	ring_deinit(&agent.ring);
	writer_discard();
}

static void samples_that_the_fallback_walked_are_counted(void **state)
{
	(void)state;
	take(1, 3, NULL);
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_int_equal(in.ledger.counter[WIRE_COUNTER_FALLBACK], 0);
	walker = "asgct";
	take(2, 3, NULL);
	assert_int_equal(writer_ledger(), WRITER_OK);
	walker = "hotspot";
	read_all();
	assert_int_equal(in.ledger.counter[WIRE_COUNTER_FALLBACK], 2);
}

static void reader_s_end_is_told(void **state)
{
	(void)state;
	take(1, 3, NULL);
	close(in.fd[0]);
	assert_int_equal(writer_drain(UINT64_MAX), WRITER_OK);
	assert_int_equal(writer_flush(), WRITER_GONE);
	assert_int_equal(writer_ledger(), WRITER_GONE);
	in.fd[0] = dup(in.fd[1]);
}

static void number_that_became_another_file_is_not_written_to(void **state)
{
	int other[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(other, O_NONBLOCK), 0);
	assert_true(dup2(other[1], in.fd[1]) >=
		    /* the application closed our descriptor and got the same number for a file
		     * of its own */
		    0);
	take(1, 3, NULL);
	assert_int_equal(writer_ledger(), WRITER_GONE);
	assert_int_equal(read(other[0], &byte, 1), -1);
	close(other[0]);
	close(other[1]);
}

static void ring_that_is_full_is_counted_too(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3000; i++)
		take(i, 60, NULL);
	for (int i = 0; i < 100 && writer_drain(UINT64_MAX) != WRITER_OK; i++)
		read_all();
	read_all();
	assert_int_equal(writer_ledger(), WRITER_OK);
	read_all();
	assert_true(in.ledger.accounts[WIRE_EVENT_CPU].drop[WIRE_DROP_RING_FULL].n > 0);
	assert_int_equal(in.ledger.accounts[WIRE_EVENT_CPU].taken, 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_sample_taken_is_decoded, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_of_a_batch_are_written_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(ids_of_contexts_are_given_out_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_repeated_sample_loses_a_context_whose_id_means_another, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_context_gets_no_id, setup, teardown),
		cmocka_unit_test_setup_teardown(name_that_comes_through_the_ring_is_in_no_accounts,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			reader_that_is_slow_costs_samples_but_never_the_accounts, setup, teardown),
		cmocka_unit_test_setup_teardown(full_dictionary_begins_a_new_epoch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(samples_without_a_reader_are_the_next_session_s,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_session_without_a_ring_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_that_the_fallback_walked_are_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(reader_s_end_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(number_that_became_another_file_is_not_written_to,
						setup, teardown),
		cmocka_unit_test_setup_teardown(ring_that_is_full_is_counted_too, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

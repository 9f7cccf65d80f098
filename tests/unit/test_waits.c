/*
 * Waits from their begin to their end, through the ring to a writer that is a stand-in, and those
 * that go on. What is held: every wait is counted once, in one place, whatever is full; what was
 * told as OPEN has an end, its own or CLOSED.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "agent/agent.h"
#include "agent/events/open.h"
#include "agent/events/owner.h"
#include "agent/events/park.h"
#include "agent/events/thread_name.h"
#include "agent/events/virtual_name.h"
#include "agent/events/unknown_owner.h"
#include "agent/events/waits.h"
#include "agent/walker/java_thread.h"
#include "agent/writer.h"
#include "tests/unit/unit.h"

#define MIN   NS_PER_MS
#define CLASS 4711u

struct agent agent = { .wake_fd = -1 };
struct events events;

/* ---- stand-ins ---------------------------------------------------------------------------- */

static uint64_t clock_ns; /* stands still */
static uint32_t carrier_number; /* of the virtual thread that calls; 0 = none */
static struct owner_monitor blocked_on;
static enum writer_result writer_says;
static struct ring_sample told[64];
static uint32_t n_told;

uint64_t mono_ns(void)
{
	return __atomic_add_fetch(&clock_ns, 1, __ATOMIC_RELAXED);
}

/* What a thread has used of a CPU: of the agent's own nothing, of an owner that runs more each time. */
static bool owner_sleeps;
static uint64_t cpu_ns, tell_cost_ns;

uint64_t thread_cpu_ns(uint32_t tid)
{
	cpu_ns += tid == 0 ? tell_cost_ns : !owner_sleeps;
	return cpu_ns;
}

uint32_t thread_id(void)
{
	return 77;
}

uint32_t java_thread_tid_sig(uint64_t java_thread)
{
	(void)java_thread;
	return 77;
}

void walk_anchor_sig(struct walk *w, uint64_t java_thread)
{
	w->frames[0] = (struct walk_frame){ .where = java_thread, .kind = WIRE_KIND_C2 };
	w->n = 1;
	w->broken = NULL;
	w->virtual_id = 0;
	w->virtual_name[0] = '\0';
}

/* A frame that says nothing, then what the test says, which the thread's anchor leads to. */
static enum idle_sight sight; /* of the second frame */
static uint8_t frame_kind = WIRE_KIND_C2;
static uint64_t anchor_sp, return_address;
static uint32_t looks;

void walk_anchor_until_sig(struct walk *w, uint64_t java_thread, walk_enough_fn *enough)
{
	walk_anchor_sig(w, java_thread);
	w->frames[0].where = IDLE_UNDECIDED;
	w->frames[0].kind = frame_kind;
	looks++;
	if (enough(w, anchor_sp + 64))
		return;
	w->frames[w->n++] = (struct walk_frame){ .where = sight, .kind = WIRE_KIND_C2 };
	(void)enough(w, anchor_sp + 96);
}

enum idle_sight walker_method_idle(uint64_t where)
{
	return (enum idle_sight)where;
}

uint64_t walk_anchor_sp_sig(uint64_t java_thread)
{
	(void)java_thread;
	return anchor_sp;
}

uint64_t walk_mark_hash_sig(const struct walk_mark *mark, uint64_t java_thread)
{
	(void)java_thread;
	assert_int_equal(mark->slots[0], 7); /* right below the caller's frame */
	assert_int_equal(mark->slots[1], 0);
	return return_address;
}

void virtual_identity(struct ring_sample *head)
{
	head->virtual_id = 0;
	head->name[0] = '\0';
}

static uint32_t named; /* the last thread that said its name */

void thread_name_self(uint64_t java_thread, uint32_t number)
{
	(void)java_thread;
	named = number;
}

void virtual_mend(void)
{
}

uint32_t virtual_number(uint64_t java_thread)
{
	(void)java_thread;
	return carrier_number;
}

void owner_blocked_on(uint64_t java_thread, struct owner_monitor *ret)
{
	(void)java_thread;
	*ret = blocked_on;
}

/* The owners that the JVM does not know: marks from 1 << 30 on, found by the test. */
static uint32_t found_owner, ended_marks;

uint32_t unknown_owner_answer(uint32_t owner)
{
	return owner >> 30 == 1 ? found_owner : owner;
}

uint32_t unknown_owner_end(uint32_t owner)
{
	ended_marks += owner >> 30 == 1;
	return unknown_owner_answer(owner);
}

uint32_t owner_number(uint64_t java_thread)
{
	return (uint32_t)java_thread;
}

uint64_t owner_thread(uint32_t number)
{
	return number;
}

void park_look_now(struct park_ask *asks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		asks[i].lock = (struct wait_lock){ .class_handle = CLASS, .identity = 5 };
}

static int n_wakes;

void agent_wake(void)
{
	n_wakes++;
}

enum writer_result writer_beside_books(const struct ring_sample *s)
{
	if (writer_says == WRITER_OK && n_told < sizeof(told) / sizeof(told[0]))
		told[n_told++] = *s;
	return writer_says;
}

/* ---- the writer's part ---- */

static struct {
	uint64_t n, ns;
	struct ring_sample last;
} read_;

static void drain(void)
{
	const struct ring_sample *s;

	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		read_.n++;
		read_.ns += s->weight;
		read_.last = *s;
		open_wait_ended(s);
		ring_pop(&agent.ring);
	}
}

/* As once every 250 ms: what has come, then a look, then the pipe. */
static void round_trip(void)
{
	drain();
	(void)open_waits_look(clock_ns);
	open_waits_sent();
	clock_ns += 250 * NS_PER_MS;
}

static const struct event_books *books(void)
{
	return &agent.books.of[WIRE_EVENT_LOCK];
}

static void books_are_exact(void)
{
	uint64_t n = books()->pushed, ns = books()->pushed_weight;

	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		n += books()->drop[i].n;
		ns += books()->drop[i].weight;
	}
	assert_int_equal(books()->taken, n);
	assert_int_equal(books()->taken_weight, ns);
}

static void counts_are(uint64_t too_short, uint64_t unpaired)
{
	uint64_t n, ns, ends;

	waits_counts(&n, &ns, &ends);
	assert_int_equal(n, too_short);
	assert_int_equal(ends, unpaired);
}

static uint64_t short_before, unpaired_before, idle_before, idle_ns_before;

static void idle_are(uint64_t waits, uint64_t ns)
{
	uint64_t n, sum;

	idle_waits_counts(&n, &sum);
	assert_int_equal(n - idle_before, waits);
	assert_int_equal(sum - idle_ns_before, ns);
}

static void begin(uint64_t thread, uint64_t key, enum wire_wait how)
{
	static const struct wait_lock lock = { .identity = 9, .owner_tid = 3 };

	wait_begin(thread, key, how, 0, &lock);
}

static void look(void *context, struct wait_lock *lock)
{
	(void)context;
	lock->class_handle = CLASS;
}

static void end(uint64_t thread, uint64_t key, enum wire_wait how)
{
	wait_end(thread, key, how, look, NULL);
}

static int setup(void **state)
{
	struct wire_start start = { .events = 1u << WIRE_EVENT_LOCK };
	const char *note = "";
	uint64_t ns;

	(void)state;
	memset(&agent.books, 0, sizeof(agent.books));
	memset(&read_, 0, sizeof(read_));
	memset(&blocked_on, 0, sizeof(blocked_on));
	carrier_number = n_told = 0;
	owner_sleeps = false;
	tell_cost_ns = 0;
	writer_says = WRITER_OK;
	clock_ns = 10 * NS_PER_S;
	events = (struct events){ .on = 1u << WIRE_EVENT_LOCK,
				  .lock_min_ns = MIN,
				  .idle_apart = true };
	sight = IDLE_NO;
	frame_kind = WIRE_KIND_C2;
	anchor_sp = 4096;
	return_address = 5;
	looks = 0;
	idle_waits_counts(&idle_before, &idle_ns_before);
	waits_counts(&short_before, &ns, &unpaired_before);
	if (ring_init(&agent.ring, 64 << 10) < 0 || events_push_init() < 0)
		return -1;
	return waits_source.begin(&start, &note);
}

static int teardown(void **state)
{
	(void)state;
	waits_source.end();
	events_push_free();
	ring_deinit(&agent.ring);
	return 0;
}

/* ---- ended waits ---- */

static void long_wait_comes_with_all_that_is_known_of_it(void **state)
{
	uint64_t began;

	(void)state;
	begin(64, 64, WIRE_WAIT_ENTER);
	began = clock_ns;
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER);
	drain();
	assert_int_equal(read_.n, 1);
	assert_int_equal(read_.last.mono_ns, began);
	assert_int_equal(read_.last.weight, 5 * MIN + 1);
	assert_int_equal(read_.last.wait, WIRE_WAIT_ENTER);
	assert_int_equal(named, read_.last.tid); /* before: it may be gone when the event is read */
	assert_int_equal(read_.last.class_handle, CLASS);
	assert_int_equal(read_.last.identity, 9);
	assert_int_equal(read_.last.owner_tid, 3);
	assert_int_equal(read_.last.tid, 77);
	assert_int_equal(read_.last.n_frames, 1);
	assert_int_equal(books()->taken, 1);
	books_are_exact();
	counts_are(short_before, unpaired_before);
}

static void owner_that_is_found_meanwhile_is_in_the_place_of_its_mark(void **state)
{
	const struct wait_lock lock = { .identity = 9, .owner_tid = 1u << 30 | 5 };

	(void)state;
	found_owner = ended_marks = 0;
	wait_begin(64, 64, WIRE_WAIT_ENTER, 0, &lock);
	found_owner = 4712;
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER);
	drain();
	assert_int_equal(read_.last.owner_tid, 4712);
	assert_true(ended_marks > 0);
	ended_marks = 0;
	wait_begin(64, 64, WIRE_WAIT_ENTER, 0, &lock);
	end(64, 64, WIRE_WAIT_ENTER); /* too short to be told: given back as well */
	assert_true(ended_marks > 0);
	found_owner = 0;
	wait_begin(64, 64, WIRE_WAIT_ENTER, 0, &lock);
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER);
	drain();
	assert_int_equal(read_.last.owner_tid, 0); /* never the mark */
}

static void short_wait_is_only_counted(void **state)
{
	(void)state;
	begin(64, 64, WIRE_WAIT_PARK);
	clock_ns += MIN / 2;
	end(64, 64, WIRE_WAIT_PARK);
	drain();
	assert_int_equal(read_.n, 0);
	assert_int_equal(books()->taken, 0);
	counts_are(short_before + 1, unpaired_before);
}

/* ---- for want of work ---- */

static void wait_for_work(uint64_t thread, uint64_t ns)
{
	begin(thread, thread, WIRE_WAIT_PARK);
	clock_ns += ns - 1;
	end(thread, thread, WIRE_WAIT_PARK);
}

static void idle_waits_are_told_in_sums(void **state)
{
	(void)state;
	sight = IDLE_YES;
	wait_for_work(64, 5 * MIN); /* a thread's first is told at once */
	drain();
	assert_int_equal(read_.n, 1);
	assert_int_equal(read_.last.flags & WIRE_LOCK_SUM, WIRE_LOCK_SUM);
	assert_int_equal(read_.last.size, 1);
	for (int i = 0; i < 100; i++)
		wait_for_work(64, i % 2 ? MIN / 2 : 5 * MIN); /* short ones, too */
	drain();
	assert_int_equal(read_.n, 1);
	clock_ns += NS_PER_S;
	wait_for_work(64, 2 * MIN);
	drain();
	assert_int_equal(read_.n, 2);
	assert_int_equal(read_.last.size, 101);
	assert_int_equal(read_.last.weight, 50 * (MIN / 2 + 5 * MIN) + 2 * MIN);
	assert_int_equal(read_.last.class_handle, CLASS);
	assert_in_range(read_.last.mono_ns + read_.last.weight, clock_ns - 9,
			clock_ns); /* ends now */
	idle_are(102, 50 * (MIN / 2 + 5 * MIN) + 7 * MIN);
	counts_are(short_before, unpaired_before);
	assert_int_equal(books()->taken, 2);
	books_are_exact();
}

static void task_that_waits_is_told_whatever_its_worker_did_before(void **state)
{
	(void)state;
	sight = IDLE_YES;
	wait_for_work(64, 5 * MIN);
	wait_for_work(64, 5 * MIN);
	drain();
	read_.n = 0;
	sight = IDLE_NO; /* at the same place, as far as a mark can tell: a long wait is looked at
			  */
	wait_for_work(64, 5 * MIN);
	drain();
	assert_int_equal(read_.n, 1);
	assert_int_equal(read_.last.flags & WIRE_LOCK_SUM, 0);
	assert_int_equal(read_.last.owner_tid, 3);
	idle_are(2, 10 * MIN);
}

static void short_waits_at_a_known_place_need_no_look(void **state)
{
	(void)state;
	sight = IDLE_YES;
	wait_for_work(64, MIN / 2);
	assert_int_equal(looks, 1);
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(looks, 1);
	idle_are(11, 11 * MIN / 2);
	sight = IDLE_NO;
	return_address++; /* compiled anew, or called from elsewhere */
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(looks, 2);
	return_address--; /* two places are known */
	wait_for_work(64, MIN / 2);
	assert_int_equal(looks, 2);
	idle_are(12, 6 * MIN);
	counts_are(short_before + 10, unpaired_before);
}

static void interpreted_frames_are_looked_at_each_time(void **state)
{
	(void)state;
	sight = IDLE_YES;
	frame_kind = WIRE_KIND_INTERPRETED; /* another method may have the same return address */
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(looks, 10);
	idle_are(10, 5 * MIN);
}

static void monitors_are_never_idle_and_old_readers_know_no_sums(void **state)
{
	(void)state;
	sight = IDLE_YES;
	begin(64, 64, WIRE_WAIT_ENTER);
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER);
	events.idle_apart = false;
	wait_for_work(64, 5 * MIN);
	wait_for_work(64, MIN / 2);
	drain();
	assert_int_equal(read_.n, 2);
	assert_int_equal(looks, 0);
	idle_are(0, 0);
	counts_are(short_before + 1, unpaired_before);
}

/* However many threads a pool has. */
static void idle_threads_tell_fifty_times_a_second_in_all(void **state)
{
	uint64_t told_waits = 0, told_ns = 0, began = clock_ns, took;

	(void)state;
	sight = IDLE_YES;
	for (int i = 0; i < 20000; i++) {
		wait_for_work(64 + 16u * (uint64_t)(i % 400), MIN);
		clock_ns += MIN / 10;
		for (const struct ring_sample *s; (s = ring_peek(&agent.ring, UINT64_MAX));) {
			told_waits += s->size;
			told_ns += s->weight;
			ring_pop(&agent.ring);
		}
	}
	took = clock_ns - began;
	assert_true(books()->taken >= took / NS_PER_S * 45);
	assert_true(books()->taken <= took / NS_PER_S * 50 + 50);
	idle_are(20000, 20000 * MIN);
	assert_true(told_waits <= 20000);
	assert_true(told_waits > 10000); /* of the others their threads will tell */
	assert_int_equal(told_ns, told_waits * MIN);
	books_are_exact();
}

/* The agent's thread told of it while it went on: then its own end closes it. */
static void long_idle_wait_is_told_alone(void **state)
{
	(void)state;
	sight = IDLE_YES;
	wait_for_work(64, 5 * MIN);
	wait_for_work(64, 5 * MIN);
	clock_ns += NS_PER_S;
	drain();
	begin(64, 64, WIRE_WAIT_PARK);
	clock_ns += 2 * NS_PER_S;
	round_trip();
	assert_int_equal(n_told, 1);
	end(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 4; i++)
		round_trip();
	assert_int_equal(read_.last.mono_ns, told[0].mono_ns);
	assert_int_equal(read_.last.flags, 0);
	assert_int_equal(n_told, 1); /* no CLOSED */
	idle_are(3, 10 * MIN + read_.last.weight);
}

static void end_without_its_begin_is_counted(void **state)
{
	(void)state;
	end(64, 64, WIRE_WAIT_WAIT);
	begin(64, 64, WIRE_WAIT_WAIT);
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER); /* of another kind */
	end(64, 64, WIRE_WAIT_WAIT); /* the place is free again */
	drain();
	assert_int_equal(read_.n, 0);
	counts_are(short_before, unpaired_before + 3);
}

static void virtual_thread_s_wait_ends_on_another_carrier(void **state)
{
	(void)state;
	begin(64, 31, WIRE_WAIT_WAIT);
	begin(64, 32, WIRE_WAIT_WAIT); /* the next one on the same carrier */
	clock_ns += 5 * MIN;
	end(128, 31, WIRE_WAIT_WAIT);
	end(192, 32, WIRE_WAIT_WAIT);
	drain();
	assert_int_equal(read_.n, 2);
	counts_are(short_before, unpaired_before);
}

static void begin_whose_end_was_not_told_is_forgotten_at_the_next(void **state)
{
	(void)state;
	begin(64, 64, WIRE_WAIT_ENTER);
	clock_ns += 50 * MIN;
	begin(64, 64, WIRE_WAIT_PARK);
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_PARK);
	drain();
	assert_int_equal(read_.n, 1);
	assert_in_range(read_.ns, 5 * MIN, 5 * MIN + 10);
}

static void nothing_happens_while_waits_are_off(void **state)
{
	(void)state;
	events.on = 0;
	begin(64, 64, WIRE_WAIT_ENTER);
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER);
	drain();
	assert_int_equal(read_.n, 0);
	assert_int_equal(waits_used(), 0);
	counts_are(short_before, unpaired_before);
}

static void full_ring_costs_waits_but_not_the_books(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		begin(64, 64, WIRE_WAIT_ENTER);
		clock_ns += 2 * MIN;
		end(64, 64, WIRE_WAIT_ENTER);
	}
	drain();
	assert_true(books()->drop[WIRE_DROP_RING_FULL].n > 0);
	assert_int_equal(books()->taken, 2000);
	assert_int_equal(read_.n, books()->pushed);
	assert_int_equal(read_.ns, books()->pushed_weight);
	books_are_exact();
}

static void few_threads_keep_to_a_small_part_of_the_table(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 20000; i++) {
		begin(64 * (i % 20 + 1), 64 * (i % 20 + 1), WIRE_WAIT_PARK);
		end(64 * (i % 20 + 1), 64 * (i % 20 + 1), WIRE_WAIT_PARK);
	}
	assert_in_range(waits_used(), 1, WAITS_MAX / 16);
	counts_are(short_before + 20000, unpaired_before);
}

static void many_wait_at_once(void **state)
{
	const uint64_t n = 8000;

	(void)state;
	for (uint64_t i = 1; i <= n; i++)
		begin(0x7f0000000000 + 4096 * i, 0x7f0000000000 + 4096 * i, WIRE_WAIT_PARK);
	for (uint64_t i = 1; i <= n; i++)
		end(0x7f0000000000 + 4096 * i, 0x7f0000000000 + 4096 * i, WIRE_WAIT_PARK);
	counts_are(short_before + n, unpaired_before);
}

static void more_than_the_table_holds_are_counted_as_unpaired(void **state)
{
	const uint64_t n = 3 * WAITS_MAX;
	uint64_t too_short, ns, unpaired;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 1; i <= n; i++)
			begin(64 * i, 64 * i, WIRE_WAIT_PARK);
		for (uint64_t i = 1; i <= n; i++)
			end(64 * i, 64 * i, WIRE_WAIT_PARK);
	}
	waits_counts(&too_short, &ns, &unpaired);
	too_short -= short_before;
	unpaired -= unpaired_before;
	assert_int_equal(too_short + unpaired, 2 * n);
	assert_in_range(too_short, WAITS_MAX, 2 * WAITS_MAX);
}

#define THREADS 6
#define ROUNDS	20000

static void *wait_often(void *number)
{
	uint64_t me = 64 * (1 + (uint64_t)(uintptr_t)number);

	for (int i = 0; i < ROUNDS; i++) {
		begin(me, me, WIRE_WAIT_ENTER);
		end(me, me, WIRE_WAIT_ENTER);
	}
	return NULL;
}

static void many_threads_at_once_lose_nothing(void **state)
{
	pthread_t threads[THREADS];
	struct wait copy;

	(void)state;
	events.lock_min_ns = 0;
	for (uint64_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, wait_often, (void *)(uintptr_t)i), 0);
	while (__atomic_load_n(&books()->taken, __ATOMIC_RELAXED) < THREADS * ROUNDS) {
		drain();
		for (uint32_t i = 0; i < waits_used(); i++)
			if (waits_copy(i, &copy))
				assert_int_equal(copy.key, copy.java_thread);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drain();
	assert_int_equal(books()->taken, THREADS * ROUNDS);
	assert_int_equal(read_.n, books()->pushed);
	books_are_exact();
	counts_are(short_before, unpaired_before);
}

/* ---- waits that go on ---- */

static void long_wait_is_told_once_while_it_goes_on(void **state)
{
	(void)state;
	blocked_on = (struct owner_monitor){
		.address = 8, .class_handle = CLASS, .identity = 1, .owner = 12
	};
	begin(64, 64, WIRE_WAIT_ENTER);
	for (int i = 0; i < 3; i++)
		round_trip();
	assert_int_equal(n_told, 0);
	for (int i = 0; i < 10; i++)
		round_trip();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].flags, WIRE_LOCK_OPEN);
	assert_int_equal(told[0].tid, 64);
	assert_int_equal(told[0].class_handle, CLASS);
	assert_int_equal(told[0].owner_tid, 12);
	assert_in_range(told[0].weight, NS_PER_S, NS_PER_S + NS_PER_S / 2);
	end(64, 64, WIRE_WAIT_ENTER);
	for (int i = 0; i < 10; i++)
		round_trip();
	assert_int_equal(n_told, 1);
	assert_int_equal(read_.last.mono_ns, told[0].mono_ns);
	assert_int_equal(books()->taken, 1);
}

static void lock_of_a_park_is_asked_of_the_jvm(void **state)
{
	(void)state;
	begin(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 6; i++)
		round_trip();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].class_handle, CLASS);
	assert_int_equal(told[0].identity, 5);
}

static void wait_that_the_thread_does_not_know_of_is_not_told(void **state)
{
	(void)state;
	begin(64, 64, WIRE_WAIT_ENTER);
	for (int i = 0; i < 10; i++)
		round_trip();
	assert_int_equal(n_told, 0);
}

static void owner_that_waits_itself_has_a_stack(void **state)
{
	(void)state;
	blocked_on = (struct owner_monitor){ .address = 8, .owner = 128 };
	begin(64, 64, WIRE_WAIT_ENTER);
	clock_ns += 900 * NS_PER_MS;
	begin(128, 128, WIRE_WAIT_ENTER);
	for (int i = 0; i < 3; i++)
		round_trip();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].n_frames, 1);
	assert_int_equal(told[0].n_owner_frames, 1);
}

/* Looks as they are asked for, for so long. */
static void look_for(uint64_t ns)
{
	uint64_t until_ns = clock_ns + ns, next_ns;

	while (clock_ns < until_ns) {
		drain();
		next_ns = open_waits_look(clock_ns);
		open_waits_sent();
		clock_ns = next_ns < until_ns ? next_ns : until_ns;
	}
}

static void owner_that_sleeps_has_a_stack_soon(void **state)
{
	int wakes;

	(void)state;
	owner_sleeps = true;
	blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	look_for(NS_PER_S); /* nobody waits */
	wakes = n_wakes;
	begin(64, 64, WIRE_WAIT_ENTER);
	assert_int_equal(n_wakes, wakes + 1);
	look_for(9 * NS_PER_MS);
	assert_int_equal(n_told, 0);
	look_for(60 * NS_PER_MS);
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].flags, WIRE_LOCK_OPEN);
	assert_int_equal(told[0].owner_tid, 12);
	assert_int_equal(told[0].n_frames, 1);
	assert_int_equal(told[0].n_owner_frames, 1);
	look_for(3 * NS_PER_S); /* once */
	end(64, 64, WIRE_WAIT_ENTER);
	look_for(NS_PER_S);
	assert_int_equal(n_told, 1);
	assert_int_equal(read_.last.mono_ns, told[0].mono_ns);
	books_are_exact();
}

static void owner_that_runs_is_left_to_its_samples(void **state)
{
	(void)state;
	blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	begin(64, 64, WIRE_WAIT_ENTER);
	look_for(900 * NS_PER_MS);
	assert_int_equal(n_told, 0);
	look_for(2 * NS_PER_S); /* it is a long one by now */
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].n_owner_frames, 0);
}

/* The end of one below the threshold is not told. */
static void wait_below_the_threshold_is_not_told_early(void **state)
{
	(void)state;
	owner_sleeps = true;
	events.lock_min_ns = 200 * NS_PER_MS;
	blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	begin(64, 64, WIRE_WAIT_ENTER);
	look_for(190 * NS_PER_MS);
	assert_int_equal(n_told, 0);
	look_for(500 * NS_PER_MS);
	assert_int_equal(n_told, 1);
}

static uint32_t told_of_sleepers(int waits)
{
	n_told = 0;
	for (int i = 0; i < waits; i++) {
		begin(64, 64, WIRE_WAIT_ENTER);
		look_for(100 * NS_PER_MS);
		end(64, 64, WIRE_WAIT_ENTER);
	}
	return n_told;
}

static void owners_that_sleep_have_a_budget(void **state)
{
	(void)state;
	owner_sleeps = true;
	blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	assert_in_range(told_of_sleepers(60), 59, 60);
	tell_cost_ns = NS_PER_MS; /* of each look: 5 of what was saved up, then one in 400 ms */
	assert_in_range(told_of_sleepers(60), 2, 20);
}

/* A lock that is held for a moment only, by one after the other: there is nothing to tell. */
static void short_waits_are_looked_at_seldom(void **state)
{
	uint64_t end_ns, next_ns = 0;
	int n = 0;

	(void)state;
	owner_sleeps = true;
	blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	look_for(NS_PER_S);
	for (end_ns = clock_ns + 10 * NS_PER_S; clock_ns < end_ns;) {
		begin(64, 64, WIRE_WAIT_ENTER);
		for (int i = 0; i < 4; i++) {
			clock_ns += NS_PER_MS;
			if (clock_ns < next_ns && !open_waits_are_due())
				continue;
			next_ns = open_waits_look(clock_ns);
			n++;
		}
		end(64, 64, WIRE_WAIT_ENTER);
		drain();
	}
	assert_int_equal(n_told, 0);
	assert_in_range(n, 10, 60);
}

static void wait_whose_end_is_lost_is_closed(void **state)
{
	(void)state;
	begin(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 6; i++)
		round_trip();
	assert_int_equal(n_told, 1);
	while (books()->drop[WIRE_DROP_RING_FULL].n == 0) {
		begin(128, 128, WIRE_WAIT_ENTER);
		clock_ns += 2 * MIN;
		end(128, 128, WIRE_WAIT_ENTER);
	}
	end(64, 64, WIRE_WAIT_PARK); /* no room */
	begin(64, 64, WIRE_WAIT_PARK); /* the place is used again */
	for (int i = 0; i < 3; i++)
		round_trip();
	assert_int_equal(n_told, 2);
	assert_int_equal(told[1].flags, WIRE_LOCK_CLOSED);
	assert_int_equal(told[1].mono_ns, told[0].mono_ns);
	assert_int_equal(told[1].tid, told[0].tid);
	for (int i = 0; i < 8; i++)
		round_trip();
	assert_int_equal(n_told, 3); /* the next one, as OPEN */
	assert_int_equal(told[2].flags, WIRE_LOCK_OPEN);
}

static void wait_that_the_reader_did_not_get_is_told_again(void **state)
{
	(void)state;
	begin(64, 64, WIRE_WAIT_PARK);
	clock_ns += 2 * NS_PER_S;
	(void)open_waits_look(clock_ns);
	open_waits_lost();
	assert_int_equal(n_told, 1);
	round_trip();
	assert_int_equal(n_told, 2);
	assert_int_equal(told[1].mono_ns, told[0].mono_ns);
	/* nor its end */
	end(64, 64, WIRE_WAIT_PARK);
	drain();
	open_waits_lost();
	round_trip();
	assert_int_equal(n_told, 3);
	assert_int_equal(told[2].flags, WIRE_LOCK_CLOSED);
	for (int i = 0; i < 4; i++)
		round_trip();
	assert_int_equal(n_told, 3);
}

static void next_look_is_when_the_next_wait_becomes_long(void **state)
{
	static const struct wait_lock nobodys;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(open_waits_look(clock_ns), clock_ns + 8 * NS_PER_S);
	wait_begin(64, 64, WIRE_WAIT_PARK, 0, &nobodys);
	begin_ns = clock_ns;
	clock_ns += 400 * NS_PER_MS;
	wait_begin(128, 128, WIRE_WAIT_PARK, 0, &nobodys);
	assert_int_equal(open_waits_look(clock_ns), begin_ns + NS_PER_S);
	clock_ns = begin_ns + 2 * NS_PER_S;
	assert_int_equal(open_waits_look(clock_ns), clock_ns + 8 * NS_PER_S);
	assert_int_equal(n_told, 2);
	open_waits_sent();
	assert_int_equal(open_waits_look(clock_ns), clock_ns + 8 * NS_PER_S);
	/* its end is on its way, or lost */
	end(64, 64, WIRE_WAIT_PARK);
	assert_int_equal(open_waits_look(clock_ns), clock_ns + 250 * NS_PER_MS);
	drain();
	open_waits_sent();
	end(128, 128, WIRE_WAIT_PARK);
}

static void wait_that_begins_long_before_the_next_look_wakes(void **state)
{
	(void)state;
	n_wakes = 0;
	(void)open_waits_look(clock_ns);
	assert_false(open_waits_are_due());
	begin(64, 64, WIRE_WAIT_PARK);
	assert_true(open_waits_are_due());
	begin(128, 128, WIRE_WAIT_PARK);
	assert_int_equal(n_wakes, 1);
	(void)open_waits_look(clock_ns);
	assert_false(open_waits_are_due());
	end(64, 64, WIRE_WAIT_PARK);
	begin(64, 64, WIRE_WAIT_PARK); /* the look at the other is soon enough */
	assert_int_equal(n_wakes, 1);
}

static void virtual_thread_without_a_carrier_is_told_without_a_stack(void **state)
{
	(void)state;
	carrier_number = WIRE_VIRTUAL_TID | 31;
	begin(64, 31, WIRE_WAIT_WAIT);
	for (int i = 0; i < 6; i++)
		round_trip();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].tid, WIRE_VIRTUAL_TID | 31);
	assert_int_equal(told[0].n_frames, 0);
}

static void wait_older_than_the_session_is_one_like_all_others(void **state)
{
	static const struct wait_lock nothing_known;
	int32_t place;

	(void)state;
	place = waits_add(64, 64, WIRE_WAIT_ENTER, &nothing_known);
	assert_true(place >= 0);
	assert_int_equal(waits_add(64, 64, WIRE_WAIT_ENTER, &nothing_known), -1);
	clock_ns += 5 * MIN;
	end(64, 64, WIRE_WAIT_ENTER);
	drain();
	assert_int_equal(read_.n, 1);
	place = waits_add(64, 64, WIRE_WAIT_ENTER, &nothing_known);
	waits_remove((uint32_t)place, waits_at((uint32_t)place)->begin_ns);
	assert_int_equal(waits_find(64), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(long_wait_comes_with_all_that_is_known_of_it),
		TEST(owner_that_is_found_meanwhile_is_in_the_place_of_its_mark),
		TEST(short_wait_is_only_counted),
		TEST(idle_waits_are_told_in_sums),
		TEST(task_that_waits_is_told_whatever_its_worker_did_before),
		TEST(short_waits_at_a_known_place_need_no_look),
		TEST(interpreted_frames_are_looked_at_each_time),
		TEST(monitors_are_never_idle_and_old_readers_know_no_sums),
		TEST(idle_threads_tell_fifty_times_a_second_in_all),
		TEST(long_idle_wait_is_told_alone),
		TEST(end_without_its_begin_is_counted),
		TEST(virtual_thread_s_wait_ends_on_another_carrier),
		TEST(begin_whose_end_was_not_told_is_forgotten_at_the_next),
		TEST(nothing_happens_while_waits_are_off),
		TEST(full_ring_costs_waits_but_not_the_books),
		TEST(few_threads_keep_to_a_small_part_of_the_table),
		TEST(many_wait_at_once),
		TEST(more_than_the_table_holds_are_counted_as_unpaired),
		TEST(many_threads_at_once_lose_nothing),
		TEST(long_wait_is_told_once_while_it_goes_on),
		TEST(lock_of_a_park_is_asked_of_the_jvm),
		TEST(wait_that_the_thread_does_not_know_of_is_not_told),
		TEST(owner_that_waits_itself_has_a_stack),
		TEST(owner_that_sleeps_has_a_stack_soon),
		TEST(owner_that_runs_is_left_to_its_samples),
		TEST(wait_below_the_threshold_is_not_told_early),
		TEST(owners_that_sleep_have_a_budget),
		TEST(short_waits_are_looked_at_seldom),
		TEST(wait_whose_end_is_lost_is_closed),
		TEST(wait_that_the_reader_did_not_get_is_told_again),
		TEST(next_look_is_when_the_next_wait_becomes_long),
		TEST(wait_that_begins_long_before_the_next_look_wakes),
		TEST(virtual_thread_without_a_carrier_is_told_without_a_stack),
		TEST(wait_older_than_the_session_is_one_like_all_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Wall-clock samples of threads of this process: a sleeping thread is woken once, a running one at
 * each poll, and the weights of each add up to the time. The test plays the agent's thread, the
 * names and the writer.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/outlet.h"
#include "agent/base/producer.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/wall.h"
#include "agent/engine/wall_blocked.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/unit.h"

struct events events;

/* ---- stand-ins ---------------------------------------------------------------------------- */

const char *walker_name(void)
{
	return "hotspot";
}

static struct {
	uint32_t tid;
	const char *name;
} known[4];

static void name_threads(void)
{
	for (int i = 0; i < 4; i++)
		if (known[i].tid)
			wall_thread_seen(known[i].tid, known[i].name);
}

static uint32_t epoch = 7;

static uint32_t current_epoch(void)
{
	return epoch;
}

/* The samples of one thread. */
static struct declared {
	uint64_t ns, signals, again, silent_ns;
} told[4];

static struct declared *told_of(uint32_t tid)
{
	for (int i = 0; i < 4; i++)
		if (known[i].tid == tid)
			return &told[i];
	fail();
	return NULL;
}

static void wall_repeat_sample(const struct wire_sample *record, uint32_t generation)
{
	assert_int_equal(record->node, 55);
	assert_int_equal(record->context, 77);
	assert_int_equal(generation, 3);
	told_of(record->tid)->ns += record->weight_ns;
	told_of(record->tid)->again++;
}

static const struct outlet fake_outlet = {
	.epoch = current_epoch,
	.name_threads = name_threads,
	.wall_repeat_sample = wall_repeat_sample,
};

bool producer_push(const struct ring_sample *head, const struct walk_frame *frames)
{
	assert_string_equal((const char *)(uintptr_t)frames->where, "[no signal]");
	told_of(head->tid)->ns += head->weight;
	told_of(head->tid)->silent_ns += head->weight;
	return true;
}

/* Does what the writer does: gives the sample's stack a number. */
static void drain(void)
{
	const struct ring_sample *s;

	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		struct wire_sample record = {
			.tid = s->tid, .node = 55, .weight_ns = s->weight, .context = 77
		};

		assert_int_equal(s->event, WIRE_EVENT_WALL);
		told_of(s->tid)->ns += s->weight;
		told_of(s->tid)->signals++;
		wall_written(s->slot, &record, epoch, 3);
		ring_pop(&agent.ring);
	}
}

/* ---- threads ---- */

static volatile bool done;
static volatile uint32_t tid_of_new;
static sem_t born, never;

static void *sleeps(void *unused)
{
	(void)unused;
	tid_of_new = thread_id();
	sem_post(&born);
	while (sem_wait(&never) < 0)
		;
	return NULL;
}

static void *runs(void *unused)
{
	(void)unused;
	tid_of_new = thread_id();
	sem_post(&born);
	while (!done)
		;
	return NULL;
}

static void *deaf(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return sleeps(unused);
}

static pthread_t begin_thread(int i, const char *name, void *(*body)(void *))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
	while (sem_wait(&born) < 0)
		;
	known[i].tid = tid_of_new;
	known[i].name = name;
	return thread;
}

/* ---- the agent's thread ---- */

static void play(uint64_t ns)
{
	uint64_t end = mono_ns() + ns, next = 0;

	while (mono_ns() < end) {
		struct timespec pause = { 0, 200000 };

		if (mono_ns() >= next)
			next = wall_source.tick(mono_ns());
		nanosleep(&pause, NULL);
		drain();
	}
}

/* On a busy machine it may take a while. */
static void play_until(const uint64_t *count, uint64_t least)
{
	for (int i = 0; i < 200 && *count < least; i++)
		play(20 * NS_PER_MS);
	assert_true(*count >= least);
}

static void begin(const char *names)
{
	struct wire_start start = { .wall_interval_ns = 10 * NS_PER_MS };
	const char *why = "";

	start.wall_threads = (struct wire_str){ names, (uint32_t)strlen(names) };
	memset(told, 0, sizeof(told));
	assert_int_equal(wall_source.begin(&start, &why), 0);
}

static void end(void)
{
	wall_source.end();
	assert_true(engine_stop());
	drain();
}

static int set_up(void **state)
{
	(void)state;
	memset(known, 0, sizeof(known));
	done = false;
	sem_init(&born, 0, 0);
	sem_init(&never, 0, 0);
	return ring_init(&agent.ring, RING_BYTES_DEFAULT);
}

static int tear_down(void **state)
{
	(void)state;
	wall_free();
	engine_free();
	engine_restore_signal();
	ring_deinit(&agent.ring);
	return 0;
}

/* ---- tests ---- */

#define PLAYED (400 * NS_PER_MS)
#define ROUNDS 40

static void a_sleeping_thread_is_told_in_full_and_woken_once(void **state)
{
	pthread_t thread = begin_thread(0, "sleeper", sleeps);

	(void)state;
	begin("");
	play(PLAYED);
	end();
	assert_in_range(told[0].ns, PLAYED - 100 * NS_PER_MS, PLAYED + 100 * NS_PER_MS);
	assert_in_range(told[0].signals, 1, 2);
	assert_in_range(told[0].again, ROUNDS / 8, ROUNDS + 1);
	sem_post(&never);
	pthread_join(thread, NULL);
}

static void a_running_thread_gets_a_signal_in_every_round(void **state)
{
	pthread_t thread = begin_thread(0, "runner", runs);

	(void)state;
	begin("");
	play(PLAYED);
	end();
	assert_in_range(told[0].ns, PLAYED - 200 * NS_PER_MS, PLAYED + 100 * NS_PER_MS);
	assert_true(told[0].signals > ROUNDS / 8);
	assert_int_equal(told[0].again, 0);
	done = true;
	pthread_join(thread, NULL);
}

static void new_ids_ask_for_the_stack_again(void **state)
{
	pthread_t thread = begin_thread(0, "sleeper", sleeps);

	(void)state;
	begin("");
	play_until(&told[0].again, 3);
	assert_int_equal(told[0].signals, 1);
	epoch++;
	play_until(&told[0].again, 6);
	end();
	assert_int_equal(told[0].signals, 2);
	sem_post(&never);
	pthread_join(thread, NULL);
}

static void a_name_chooses_threads(void **state)
{
	pthread_t a = begin_thread(0, "http-nio-8080-exec-1", sleeps);
	pthread_t b = begin_thread(1, "main", sleeps);

	(void)state;
	begin("nio-8080");
	play_until(&told[0].again, 3);
	end();
	assert_int_equal(told[1].ns, 0);
	sem_post(&never);
	sem_post(&never);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static void a_thread_that_no_signal_reaches_is_told_without_a_stack(void **state)
{
	pthread_t thread = begin_thread(0, "deaf", deaf);

	(void)state;
	begin("");
	play_until(&told[0].silent_ns, NS_PER_S);
	end();
	assert_int_equal(told[0].signals, 0);
	sem_post(&never);
	pthread_join(thread, NULL);
}

static void a_thread_that_ended_is_told_no_more(void **state)
{
	pthread_t thread = begin_thread(0, "sleeper", sleeps);
	uint64_t ns;

	(void)state;
	begin("");
	play_until(&told[0].again, 3);
	sem_post(&never);
	pthread_join(thread, NULL);
	play(PLAYED / 4);
	ns = told[0].ns;
	play(PLAYED / 4);
	end();
	assert_int_equal(told[0].ns, ns);
}

static void a_signal_of_others_is_not_taken_for_ours(void **state)
{
	siginfo_t info;

	(void)state;
	memset(&info, 0, sizeof(info));
	begin("");
	info.si_code = SI_QUEUE;
	assert_false(wall_on_signal_sig(&info, NULL));
	info.si_value.sival_ptr = (char *)wall.threads + 1;
	assert_false(wall_on_signal_sig(&info, NULL));
	info.si_value.sival_ptr = wall.threads + WALL_THREADS_MAX;
	assert_false(wall_on_signal_sig(&info, NULL));
	info.si_value.sival_ptr = wall.threads;
	assert_true(wall_on_signal_sig(&info, NULL)); /* it comes late: nothing waits for it */
	info.si_code = SI_TIMER;
	assert_false(wall_on_signal_sig(&info, NULL));
	end();
}

static void the_kernels_line_says_where_a_thread_is_blocked(void **state)
{
	static const char line[] = "202 0x7f01 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f85f16\n";
	uint64_t argument = 0, other = 0x7f09;

	(void)state;
	assert_true(wall_line_is_at(line, 0x7f85f16, 0x7ffd10, &argument));
	assert_int_equal(argument, 0x7f01);
	assert_true(wall_line_is_at(line, 0x7f85f16, 0x7ffd10, &argument));
	assert_false(
		wall_line_is_at(line, 0x7f85f16, 0x7ffd10, &other)); /* waits for something else */
	assert_false(wall_line_is_at(line, 0x7f85f16, 0x7ffd18, &argument));
	assert_false(wall_line_is_at(line, 0x7f85f17, 0x7ffd10, &argument));
	assert_false(wall_line_is_at("running\n", 0, 0, &argument));
	assert_false(wall_line_is_at("-1 0x7ffd10 0x7f85f16\n", 0x7f85f16, 0x7ffd10, &argument));
	assert_false(wall_line_is_at("202 0x7f01 0x189", 0, 0, &argument));
	assert_false(wall_line_is_at("", 0, 0, &argument));
#if defined(__x86_64__)
	assert_true(wall_line_is_at(line, 0x7f85f14, 0x7ffd10,
				    &argument)); /* it makes the same call again */
#endif
}

int main(void)
{
#define IN_PROCESS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_PROCESS(a_sleeping_thread_is_told_in_full_and_woken_once),
		IN_PROCESS(a_running_thread_gets_a_signal_in_every_round),
		IN_PROCESS(new_ids_ask_for_the_stack_again),
		IN_PROCESS(a_name_chooses_threads),
		IN_PROCESS(a_thread_that_no_signal_reaches_is_told_without_a_stack),
		IN_PROCESS(a_thread_that_ended_is_told_no_more),
		IN_PROCESS(a_signal_of_others_is_not_taken_for_ours),
		cmocka_unit_test(the_kernels_line_says_where_a_thread_is_blocked),
	};

	outlet = &fake_outlet;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

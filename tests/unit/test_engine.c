/*
 * The engine in this process, with signals sent by the test: a process may send itself signals that
 * look like the kernel's. With timers the weights of a thread must add up to its CPU clock,
 * whatever signals come, merge or stay out; with the host's signals each sample has the same
 * weight, and the sums of weights follow the clocks.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/engine/cpu_timer.h"
#include "proto/host_cookie.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/unit.h"

#define MS 1000000ull

/* ---- signals and samples -------------------------------------------------------------------- */

/* Sends the signal as BPF does, for ticks that stand for @owed_ns; 0 = as on a kernel that
 * cannot pass that. */
static void signal_that_owes(uint64_t owed_ns)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = engine.signo;
	info.si_code = SI_KERNEL;
	info.si_value.sival_ptr = (void *)(uintptr_t)owed_ns;
	assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), thread_id(), engine.signo, &info),
			 0);
}

static void signal_from_kernel(void)
{
	signal_that_owes(0);
}

static void burn(uint64_t ns)
{
	uint64_t end = thread_cpu_ns(0) + ns;

	while (thread_cpu_ns(0) < end)
		;
}

struct sums {
	uint64_t samples, stack_ns, stack_max_ns, exited_ns, silent_ns, late_ns, all_ns;
};

static struct sums drain(uint32_t tid)
{
	const struct ring_sample *s;
	struct sums sums = { 0 };

	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		const char *label = (const char *)(uintptr_t)s->frames[0].where;

		if (s->tid == tid) {
			sums.samples++;
			sums.all_ns += s->weight;
			if (s->frames[0].kind == WIRE_KIND_NATIVE) {
				sums.stack_ns += s->weight;
				if (s->weight > sums.stack_max_ns)
					sums.stack_max_ns = s->weight;
			} else if (strcmp(label, "[exited between ticks]") == 0) {
				sums.exited_ns += s->weight;
			} else if (strcmp(label, "[no signal]") == 0) {
				sums.silent_ns += s->weight;
			} else {
				sums.late_ns += s->weight;
			}
		}
		ring_pop(&agent.ring);
	}
	return sums;
}

static void start(bool host, uint64_t interval_ns)
{
	const char *why = "";

	assert_int_equal(engine_start(interval_ns, host, &why), 0);
}

static int setup(void **state)
{
	(void)state;
	memset(&agent.counters, 0, sizeof(agent.counters));
	return ring_init(&agent.ring, RING_BYTES_DEFAULT);
}

static int teardown(void **state)
{
	uint64_t finished = agent.counters.of[WIRE_EVENT_CPU].pushed,
		 finished_ns = agent.counters.of[WIRE_EVENT_CPU].pushed_weight;

	(void)state;
	assert_true(engine_stop());
	engine_free();
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		finished += agent.counters.of[WIRE_EVENT_CPU].drop[i].n;
		finished_ns += agent.counters.of[WIRE_EVENT_CPU].drop[i].weight;
	}
	assert_int_equal(agent.counters.of[WIRE_EVENT_CPU].taken, finished);
	assert_int_equal(agent.counters.of[WIRE_EVENT_CPU].taken_weight, finished_ns);
	ring_deinit(&agent.ring);
	return 0;
}

/* A thread of the test, and its work between begin and end. */
struct life {
	void (*body)(void);
	uint32_t tid;
	uint64_t cpu_ns;
};

static void *live(void *p)
{
	struct life *l = p;

	l->tid = thread_id();
	engine_thread_begin();
	l->body();
	l->cpu_ns = thread_cpu_ns(0);
	engine_thread_end();
	return NULL;
}

static struct life run(void (*body)(void))
{
	struct life l = { .body = body };
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, live, &l), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	return l;
}

static void assert_near(uint64_t a, uint64_t b, uint64_t slack_ns)
{
	assert_true(a < b + slack_ns && b < a + slack_ns);
}

static int timers(void)
{
	FILE *f = fopen("/proc/self/timers", "re");
	char line[256];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strncmp(line, "ID:", 3) == 0;
	if (f)
		fclose(f);
	return n;
}

/* ---- the host's signals ---- */

/* Short and long runs, with one signal at the end of each. */
static void signals_after_runs(void)
{
	for (int i = 0; i < 10; i++) {
		burn(i % 2 ? 2 * MS - 200 * 1000 : 200 * 1000);
		signal_from_kernel();
	}
}

static void signals_weigh_the_same_however_long_they_were_in_coming(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(true, MS);
	l = run(signals_after_runs);
	s = drain(l.tid);
	assert_int_equal(s.samples, 10);
	assert_int_equal(s.stack_ns, s.all_ns);
	assert_true(s.stack_max_ns < MS + MS / 10);
	assert_near(s.stack_ns, 10 * MS, MS);
	assert_int_equal(agent.counters.exited, 0);
}

/* A signal for a time off the CPU alone, one that stands for ticks too, and one that was not
 * asked for. */
static void signals_after_times_off_the_cpu(void)
{
	burn(100 * 1000);
	signal_that_owes(host_cookie_offcpu(3 * MS, 0));
	burn(2 * MS);
	signal_that_owes(host_cookie_offcpu(5 * MS, 2));
	__atomic_store_n(&engine.offcpu, 0, __ATOMIC_RELAXED);
	burn(MS);
	signal_that_owes(host_cookie_offcpu(7 * MS, 1));
	signal_that_owes(host_cookie_offcpu(7 * MS, 0));
}

static void a_time_off_the_cpu_is_a_sample_beside_the_ticks(void **state)
{
	uint64_t off[3] = { 0 }, n_off = 0, cpu_ns = 0, n_cpu = 0;
	const struct ring_sample *s;
	struct life l;

	(void)state;
	start(true, MS);
	__atomic_store_n(&engine.offcpu, 1, __ATOMIC_RELAXED);
	l = run(signals_after_times_off_the_cpu);
	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		if (s->tid == l.tid && s->event == WIRE_EVENT_OFFCPU && n_off < 3)
			off[n_off++] = s->weight;
		if (s->tid == l.tid && s->event == WIRE_EVENT_CPU) {
			n_cpu++;
			cpu_ns += s->weight;
		}
		if (s->tid == l.tid)
			assert_int_equal(s->n_frames, 1);
		ring_pop(&agent.ring);
	}
	assert_int_equal(n_off, 2);
	assert_int_equal(off[0], 3 * MS);
	assert_int_equal(off[1], 5 * MS);
	assert_int_equal(n_cpu, 2);
	assert_near(cpu_ns, 3 * MS, MS);
	assert_int_equal(agent.counters.of[WIRE_EVENT_OFFCPU].taken, 2);
	assert_int_equal(agent.counters.of[WIRE_EVENT_OFFCPU].pushed_weight, 8 * MS);
}

/* One tick in four is lost. */
static void signals_that_get_lost(void)
{
	for (int i = 0; i < 400; i++) {
		burn(MS);
		if (i % 4)
			signal_from_kernel();
	}
}

static void weights_make_up_for_lost_ticks(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(true, MS);
	l = run(signals_that_get_lost);
	s = drain(l.tid);
	assert_int_equal(s.samples, 300);
	assert_near(s.stack_ns, l.cpu_ns, 30 * MS); /* not 100 */
	assert_true(s.stack_max_ns < 9 * MS / 5); /* not 2 */
}

/* Each signal stands for one tick too many. */
static void signals_in_excess(void)
{
	for (int i = 0; i < 400; i++) {
		burn(MS / 2 + MS / 4);
		signal_from_kernel();
	}
}

static void weights_make_up_for_ticks_too_many(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(true, MS);
	l = run(signals_in_excess);
	s = drain(l.tid);
	assert_int_equal(s.samples, 400);
	assert_near(s.stack_ns, l.cpu_ns, 30 * MS);
}

static void long_call(void)
{
	burn(40 * MS);
	signal_that_owes(40 * MS);
	burn(MS);
	/* that CPU time is too much for this thread: it belongs to another one */
	signal_that_owes(3600 * NS_PER_S);
}

static void a_signal_weighs_the_ticks_that_it_stands_for(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(true, MS);
	l = run(long_call);
	s = drain(l.tid);
	assert_int_equal(s.samples, 2);
	assert_int_equal(s.stack_max_ns, 40 * MS);
	assert_near(s.stack_ns, 41 * MS, MS / 2);
}

static bool short_life_has_signal;

static void short_life(void)
{
	burn(MS / 2);
	if (short_life_has_signal)
		signal_from_kernel();
}

/* A signal for every third thread, although one for every second would be right. */
static void threads_shorter_than_an_interval_are_right_in_sum(void **state)
{
	uint64_t cpu_ns = 0, accounted_ns = 0, max_ns = 0;

	(void)state;
	start(true, MS);
	for (int i = 0; i < 300; i++) {
		struct life l;
		struct sums s;

		short_life_has_signal = i % 2 == 0;
		l = run(short_life);
		s = drain(l.tid);
		assert_int_equal(s.samples, short_life_has_signal);
		assert_int_equal(s.stack_ns, s.all_ns);
		cpu_ns += l.cpu_ns;
		accounted_ns += s.all_ns;
		max_ns = s.stack_max_ns > max_ns ? s.stack_max_ns : max_ns;
	}
	assert_true(max_ns <= 2 * MS);
	/* half too much if it were not for the pool */
	assert_near(accounted_ns, cpu_ns, cpu_ns / 5);
}

static void renamed_life(void)
{
	syscall(SYS_prctl, PR_SET_NAME, "the-maker", 0, 0, 0);
	signal_from_kernel();
	syscall(SYS_prctl, PR_SET_NAME, "its-own", 0, 0, 0);
	signal_from_kernel();
}

/* A thread's first sample may be from before HotSpot gives it a name of its own. */
static void a_thread_that_is_named_late_is_reported_with_that_name(void **state)
{
	const struct ring_sample *s;
	char names[2][COMM_BYTES];
	struct life l;
	size_t n = 0;

	(void)state;
	start(true, MS);
	l = run(renamed_life);
	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		if (s->tid == l.tid && s->frames[0].kind == WIRE_KIND_NATIVE && n < 2)
			memcpy(names[n++], s->name, COMM_BYTES);
		ring_pop(&agent.ring);
	}
	assert_int_equal(n, 2);
	assert_string_equal(names[0], "the-maker");
	assert_string_equal(names[1], "its-own");
}

static void silent_life(void)
{
	burn(20 * MS);
}

static void time_that_no_sample_covers_has_no_stack(void **state)
{
	uint64_t silent_ns = 0, cpu_ns = 0;

	(void)state;
	start(true, MS);
	for (int i = 0; i < 30; i++) {
		struct life l = run(silent_life);
		struct sums s = drain(l.tid);

		assert_int_equal(s.all_ns, s.silent_ns);
		silent_ns += s.silent_ns;
		cpu_ns += l.cpu_ns;
	}
	assert_near(silent_ns, cpu_ns, 270 * MS);
	assert_true(cpu_ns > 600 * MS);
}

static void silent_then_one(void)
{
	burn(400 * MS);
	signal_from_kernel();
}

static void a_signal_after_a_long_silence_is_no_witness(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(true, MS);
	l = run(silent_then_one);
	s = drain(l.tid);
	assert_near(s.all_ns, l.cpu_ns, MS);
	assert_int_equal(s.stack_ns, MS);
	assert_true(s.silent_ns >= 399 * MS);
}

static uint32_t go_on;

static void without_signals(void)
{
	burn(300 * MS);
	__atomic_store_n(&go_on, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&go_on, __ATOMIC_SEQ_CST) == 1)
		burn(MS);
	signal_from_kernel();
}

static void a_scan_accounts_a_thread_that_no_signal_reaches(void **state)
{
	struct life l = { .body = without_signals };
	struct sums s;
	pthread_t t;

	(void)state;
	go_on = 0;
	start(true, MS);
	assert_int_equal(pthread_create(&t, NULL, live, &l), 0);
	while (__atomic_load_n(&go_on, __ATOMIC_SEQ_CST) == 0)
		usleep(1000);
	(void)engine_scan();
	(void)engine_scan(); /* it is accounted for only once */
	assert_int_equal(engine_threads(), 2); /* and the idle one */
	__atomic_store_n(&go_on, 2, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(t, NULL), 0);
	s = drain(l.tid);
	assert_true(s.silent_ns >= 300 * MS);
	assert_true(s.all_ns < l.cpu_ns + 2 * MS);
}

static void scans_and_signals_at_once(void)
{
	for (int i = 0; i < 300; i++) {
		/* sometimes a scan finds the thread first */
		burn(i % 100 == 99 ? 300 * MS : MS / 2);
		signal_from_kernel();
	}
}

static void *scan_all_the_time(void *stop)
{
	engine.agent_tid = thread_id();
	while (!__atomic_load_n((uint32_t *)stop, __ATOMIC_SEQ_CST))
		(void)engine_scan();
	return NULL;
}

static void scans_meanwhile_book_nothing_twice(void **state)
{
	struct life l;
	struct sums s;
	uint32_t stop = 0;
	pthread_t t;

	(void)state;
	start(true, MS);
	assert_int_equal(pthread_create(&t, NULL, scan_all_the_time, &stop), 0);
	l = run(scans_and_signals_at_once);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(t, NULL), 0);
	s = drain(l.tid);
	assert_true(s.silent_ns >= 3 * 250 * MS);
	assert_true(s.all_ns < l.cpu_ns + 200 * MS);
}

static void a_thread_born_unseen(void)
{
	struct slot *s = slot_find_sig(thread_id());

	/* as if an earlier thread with this tid had ended unnoticed */
	s->seen_cpu_ns = NS_PER_S;
	burn(5 * MS);
	signal_from_kernel();
}

static void a_slot_of_an_earlier_thread_does_not_eat_weights(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(true, MS);
	l = run(a_thread_born_unseen);
	s = drain(l.tid);
	assert_int_equal(s.samples, 1);
	assert_int_equal(s.stack_ns, MS);
}

static void a_few_signals(void)
{
	for (int i = 0; i < 5; i++) {
		burn(MS);
		signal_from_kernel();
	}
}

static void late_signals_are_swallowed(void **state)
{
	struct life l;

	(void)state;
	start(true, MS);
	assert_true(engine_stop());
	l = run(a_few_signals);
	assert_int_equal(drain(l.tid).samples, 0);
	assert_int_equal(agent.counters.of[WIRE_EVENT_CPU].taken, 0);
	engine_free();
	(void)run(a_few_signals); /* SIG_DFL would end us */
}

static void with_timers_the_hosts_signals_are_nobodys(void **state)
{
	struct life l;
	struct sums s;

	(void)state;
	start(false, 100 * MS);
	l = run(a_few_signals);
	s = drain(l.tid);
	assert_int_equal(s.stack_ns % (100 * MS), 0); /* at most the timer's own signal */
	assert_true(s.samples <= 2);
}

static void one_engine_after_the_other(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		bool host = i % 2;
		struct life l;
		struct sums s;

		start(host, host ? MS : 10 * MS);
		assert_int_equal(timers() > 0, !host);
		l = run(a_few_signals);
		s = drain(l.tid);
		if (host)
			assert_near(s.all_ns, l.cpu_ns, MS);
		assert_true(engine_stop());
		assert_int_equal(timers(), 0);
	}
}

/* ---- what is left ---------------------------------------------------------------------------- */

static void (*handler_of(int signo))(int)
{
	struct sigaction now;

	assert_int_equal(sigaction(signo, NULL, &now), 0);
	return now.sa_handler;
}

static uint32_t blocked_phase; /* 1 = one of its signals is pending, 2 = one may still come */

static void *blocks_the_signal(void *signo)
{
	sigset_t set, pending;

	sigemptyset(&set);
	sigaddset(&set, *(int *)signo);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	engine_thread_begin();
	for (uint64_t end = mono_ns() + 5 * NS_PER_S; mono_ns() < end;) {
		burn(MS);
		sigpending(&pending);
		if (sigismember(&pending, *(int *)signo))
			break;
	}
	__atomic_store_n(&blocked_phase, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&blocked_phase, __ATOMIC_SEQ_CST) != 2)
		usleep(1000);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return sigismember(&pending, *(int *)signo) ? signo : NULL;
}

static void a_signal_that_is_still_pending_does_not_kill_at_the_end(void **state)
{
	pthread_t thread;
	void *was_pending;
	int signo;

	(void)state;
	engine.host_ever = 0;
	start(false, 4 * MS);
	signo = engine.signo;
	assert_int_equal(pthread_create(&thread, NULL, blocks_the_signal, &signo), 0);
	while (__atomic_load_n(&blocked_phase, __ATOMIC_SEQ_CST) != 1)
		usleep(1000);
	assert_true(engine_stop());
	engine_restore_signal();
	__atomic_store_n(&blocked_phase, 2, __ATOMIC_SEQ_CST);
	pthread_join(thread, &was_pending);
	assert_non_null(was_pending);
	assert_true(handler_of(signo) == SIG_DFL);
	assert_int_equal(engine.signo, 0);
}

static void a_handler_installed_over_ours_stays(void **state)
{
	int signo;

	(void)state;
	engine.host_ever = 0;
	start(false, 4 * MS);
	signo = engine.signo;
	assert_true(engine_stop());
	assert_true(signal(signo, SIG_IGN) != SIG_ERR);
	engine_restore_signal();
	assert_true(handler_of(signo) == SIG_IGN);
	assert_true(signal(signo, SIG_DFL) != SIG_ERR);
	engine.signo = 0;
}

static void after_the_host_the_handler_stays(void **state)
{
	(void)state;
	start(true, MS);
	assert_true(engine_stop());
	engine_restore_signal();
	assert_true(engine_has_signal());
	signal_from_kernel();
}

/* The agent's thread starts the engine and is not sampled, so timers need another thread. */
static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			signals_weigh_the_same_however_long_they_were_in_coming, setup, teardown),
		cmocka_unit_test_setup_teardown(a_time_off_the_cpu_is_a_sample_beside_the_ticks,
						setup, teardown),
		cmocka_unit_test_setup_teardown(weights_make_up_for_lost_ticks, setup, teardown),
		cmocka_unit_test_setup_teardown(weights_make_up_for_ticks_too_many, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_signal_weighs_the_ticks_that_it_stands_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(threads_shorter_than_an_interval_are_right_in_sum,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_thread_that_is_named_late_is_reported_with_that_name,
						setup, teardown),
		cmocka_unit_test_setup_teardown(time_that_no_sample_covers_has_no_stack, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_signal_after_a_long_silence_is_no_witness, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_scan_accounts_a_thread_that_no_signal_reaches,
						setup, teardown),
		cmocka_unit_test_setup_teardown(scans_meanwhile_book_nothing_twice, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_slot_of_an_earlier_thread_does_not_eat_weights,
						setup, teardown),
		cmocka_unit_test_setup_teardown(late_signals_are_swallowed, setup, teardown),
		cmocka_unit_test_setup_teardown(with_timers_the_hosts_signals_are_nobodys, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_engine_after_the_other, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_signal_that_is_still_pending_does_not_kill_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_handler_installed_over_ours_stays, setup,
						teardown),
		cmocka_unit_test_setup_teardown(after_the_host_the_handler_stays, setup, teardown),
	};
	pthread_t t;

	if (pthread_create(&t, NULL, idle, NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

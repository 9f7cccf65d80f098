#include "tests/unit/fake_proc.h"
#include <stdbool.h>
#include "daemon/discovery/discovery_priv.h"
#include "daemon/discovery/processes.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

struct found {
	int calls;
	pid_t order[8];
	bool no_room;
	pid_t pid;
	uint64_t start_time, seen_mono_ns;
};

static struct loop *loop;
static struct discovery *discovery;
static struct found found;
static struct config config;

static bool on_jvm(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	struct found *f = userdata;

	f->order[f->calls++ % 8] = jvm->pid;
	f->pid = jvm->pid;
	f->start_time = jvm->start_time;
	f->seen_mono_ns = seen_mono_ns;
	return !f->no_room;
}

static const struct discovery_ops ops = { .on_jvm = on_jvm };

/* Start time, in clock ticks since boot, of a process that began @seconds ago. */
static unsigned long long began(unsigned seconds)
{
	return (clock_ns(CLOCK_BOOTTIME) / NS_PER_S - seconds) * (unsigned)sysconf(_SC_CLK_TCK);
}

static int set_up(void **state)
{
	int proc_dfd = fake_open();

	(void)state;
	found = (struct found){ 0 };
	config_defaults(&config);
	config.scan_interval_ns = 3600 * NS_PER_S;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(discovery_new_at(loop, &config, &ops, &found, proc_dfd, &discovery), 0);
	fake_process(1, 1, FAKE_NO_JVM, FAKE_CATCHES_NONE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	discovery = discovery_free(discovery);
	loop = loop_free(loop);
	fake_remove("");
	return 0;
}

static void run_ms(unsigned ms)
{
	uint64_t end = clock_mono_ns() + ms * NS_PER_MS;

	for (uint64_t now = clock_mono_ns(); now < end; now = clock_mono_ns())
		assert_int_equal(loop_round(loop, end - now), 0);
}

/* The deadline ends a test that hangs; it is long, because the machine may be busy. */
#define RUN_UNTIL(condition)                                         \
	do {                                                         \
		uint64_t until_ns = clock_mono_ns() + 60 * NS_PER_S; \
		while (!(condition) && clock_mono_ns() < until_ns)   \
			run_ms(20);                                  \
	} while (0)

static void jvms_that_run_already_are_told_once(void **state)
{
	(void)state;
	fake_process(100, began(60), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	run_ms(50);
	assert_int_equal(found.calls, 1);
	assert_int_equal(found.pid, 100);
	discovery_exec(discovery, 100, "java", clock_mono_ns());
	run_ms(50);
	assert_int_equal(found.calls, 1);
}

static void the_first_scan_begins_with_those_that_are_named(void **state)
{
	const pid_t named[] = { 300, 77, 200 }, wanted[] = { 300, 200 };
	pid_t *pids = malloc(sizeof(named));

	(void)state;
	assert_non_null(pids);
	memcpy(pids, named, sizeof(named)); /* process 77 has ended */
	discovery_look_first(discovery, pids, 3);
	for (pid_t pid = 100; pid <= 400; pid += 100)
		fake_process(pid, began(60), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	run_ms(50);
	assert_int_equal(found.calls, 4);
	assert_memory_equal(found.order, wanted, sizeof(wanted));
}

static void a_new_java_is_looked_at_until_it_can_be_attached_to(void **state)
{
	uint64_t exec_mono_ns;

	(void)state;
	run_ms(20); /* the first scan */
	exec_mono_ns = clock_mono_ns();
	fake_process(100, began(0), FAKE_NO_JVM, FAKE_CATCHES_NONE);
	discovery_exec(discovery, 100, "java", exec_mono_ns);
	run_ms(5);
	assert_int_equal(found.calls, 0);
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_NONE);
	run_ms(15);
	assert_int_equal(found.calls, 0);
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	RUN_UNTIL(found.calls);
	assert_int_equal(found.calls, 1);
	assert_int_equal(found.seen_mono_ns, exec_mono_ns);
}

/* The receiver of the report has no room for the JVM, because its table is full. */
static void one_that_was_not_taken_is_told_of_again(void **state)
{
	(void)state;
	found.no_room = true;
	fake_process(100, began(60), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	RUN_UNTIL(found.calls == 1);
	found.no_room = false;
	run_ms(300); /* not at once */
	assert_int_equal(found.calls, 1);
	RUN_UNTIL(found.calls == 2);
	run_ms(300);
	assert_int_equal(found.calls, 2);
}

static void a_program_of_another_name_is_looked_at_as_well_but_less(void **state)
{
	uint64_t probes, begin;

	(void)state;
	run_ms(20);
	begin = clock_mono_ns();
	fake_process(100, began(0), FAKE_NO_JVM, FAKE_CATCHES_NONE);
	probes = discovery_probes(discovery);
	discovery_exec(discovery, 100, "launcher", clock_mono_ns());
	run_ms(30);
	/* if the machine was slow the next scan is due already */
	if (clock_mono_ns() - begin < 40 * NS_PER_MS)
		assert_int_equal(discovery_probes(discovery) - probes, 1);
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	RUN_UNTIL(found.calls);
	assert_int_equal(found.calls, 1);
}

static void a_jvm_that_never_catches_sigquit_is_told_after_five_seconds(void **state)
{
	uint64_t begin;

	(void)state;
	fake_process(100, began(60), FAKE_LIBJVM, FAKE_CATCHES_NONE); /* old, -Xrs */
	RUN_UNTIL(found.calls == 1);
	assert_int_equal(found.calls, 1);
	begin = clock_mono_ns();
	fake_process(101, began(0), FAKE_LIBJVM, FAKE_CATCHES_NONE); /* known since its exec */
	discovery_exec(discovery, 101, "java", clock_mono_ns());
	RUN_UNTIL(found.calls == 2);
	assert_int_equal(found.calls, 2);
	assert_int_equal(found.pid, 101);
	assert_true(clock_mono_ns() - begin > 4 * NS_PER_S);
}

static void an_ended_process_is_forgotten_and_its_number_used_again(void **state)
{
	(void)state;
	fake_process(100, 5, FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	run_ms(50);
	assert_int_equal(found.calls, 1);
	discovery_exit(discovery, 100, clock_mono_ns());
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	discovery_exec(discovery, 100, "java", clock_mono_ns());
	run_ms(50);
	assert_int_equal(found.calls, 2);
	assert_int_not_equal(found.start_time, 5);
}

static void a_lost_exit_does_not_hide_the_next_process_of_that_number(void **state)
{
	(void)state;
	fake_process(100, 5, FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	run_ms(50);
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	discovery_exec(discovery, 100, "java", clock_mono_ns());
	run_ms(50);
	assert_int_equal(found.calls, 2);
}

static void a_late_exit_event_does_not_forget_the_next_process(void **state)
{
	uint64_t before = clock_mono_ns();

	(void)state;
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	run_ms(50);
	discovery_exit(discovery, 100, before);
	discovery_exec(discovery, 100, "java", clock_mono_ns());
	run_ms(50);
	assert_int_equal(found.calls, 1);
}

static void without_events_new_processes_are_found_every_second(void **state)
{
	uint64_t probes;

	(void)state;
	run_ms(50);
	probes = discovery_probes(discovery);
	fake_process(100, began(0), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	RUN_UNTIL(found.calls);
	assert_int_equal(found.calls, 1);
	/* and processes that are known already are not examined again */
	assert_int_equal(discovery_probes(discovery) - probes, 1);
}

static void a_host_with_many_processes_is_scanned_whole(void **state)
{
	(void)state;
	for (int pid = 1000; pid < 1300; pid++)
		fake_process(pid, began(60), FAKE_NO_JVM, FAKE_CATCHES_NONE);
	fake_process(2000, began(60), FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	RUN_UNTIL(found.calls && discovery_probes(discovery) >= 302);
	run_ms(100);
	assert_int_equal(found.calls, 1);
	assert_int_equal(discovery_probes(discovery), 302); /* old processes are examined once */
}

/* Of the pids below 10000. */
static uint32_t known_processes(struct processes *t)
{
	uint32_t n = 0;

	for (int pid = 1; pid < 10000; pid++)
		n += processes_find(t, pid) != NULL;
	return n;
}

static void the_table_forgets_who_was_not_seen_again(void **state)
{
	struct processes *t;
	struct process *p;

	(void)state;
	assert_int_equal(processes_new(&t), 0);
	for (int pid = 1; pid < 10000; pid++) {
		p = processes_get(t, pid);
		p->generation = (uint32_t)pid % 2;
		processes_set_due(t, p, (uint64_t)pid);
	}
	assert_int_equal(known_processes(t), 9999);
	processes_sweep(t, 1);
	assert_int_equal(known_processes(t), 5000);
	assert_int_equal(processes_due_count(t), 5000);
	assert_null(processes_find(t, 4096));
	assert_non_null(processes_find(t, 4097));
	for (p = processes_due(t); p; p = processes_due(t))
		processes_set_due(t, p, 0);
	assert_int_equal(processes_due_count(t), 0);
	processes_free(t);
}

static void a_full_table_refuses_and_counts(void **state)
{
	struct processes *t;

	(void)state;
	assert_int_equal(processes_new(&t), 0);
	for (int pid = 1; pid <= PROCESSES_MAX; pid++)
		assert_non_null(processes_get(t, pid));
	assert_null(processes_get(t, PROCESSES_MAX + 1));
	assert_non_null(processes_get(t, 5));
	assert_int_equal(processes_refused(t), 1);
	processes_free(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(jvms_that_run_already_are_told_once),
		TEST(the_first_scan_begins_with_those_that_are_named),
		TEST(a_new_java_is_looked_at_until_it_can_be_attached_to),
		TEST(one_that_was_not_taken_is_told_of_again),
		TEST(a_program_of_another_name_is_looked_at_as_well_but_less),
		TEST(a_jvm_that_never_catches_sigquit_is_told_after_five_seconds),
		TEST(an_ended_process_is_forgotten_and_its_number_used_again),
		TEST(a_lost_exit_does_not_hide_the_next_process_of_that_number),
		TEST(a_late_exit_event_does_not_forget_the_next_process),
		TEST(without_events_new_processes_are_found_every_second),
		TEST(a_host_with_many_processes_is_scanned_whole),
		cmocka_unit_test(the_table_forgets_who_was_not_seen_again),
		cmocka_unit_test(a_full_table_refuses_and_counts),
	};

	log_set_level(LOG_LEVEL_ERR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

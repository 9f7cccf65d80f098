/* What a START asks of an agent, and what the daemon remembers of the answers. See
 * fake_session.h. */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct wire_start read_start(int control)
{
	struct wire_start start = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_frame frame;
	size_t n = read_control(control, buf, sizeof(buf));

	assert_int_equal(wire_peek(buf, n, &frame), n);
	assert_int_equal(wire_get_start(&frame, &start), 0);
	return start;
}

/* The agent's report about its engine and events, in its frame number @sequence. */
static void say(uint64_t sequence, uint64_t signo, uint64_t interval_ns, uint64_t events)
{
	struct wire_ledger l = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	l.accounts[WIRE_EVENT_CPU].taken = l.accounts[WIRE_EVENT_CPU].written = 1;
	l.accounts[WIRE_EVENT_CPU].taken_weight = l.accounts[WIRE_EVENT_CPU].written_weight =
		10000000;
	l.counter[WIRE_COUNTER_INTERVAL_NS] = interval_ns;
	l.counter[WIRE_COUNTER_HOST_SIGNAL] = signo;
	l.counter[WIRE_COUNTER_EVENTS] = events;
	l.counter[WIRE_COUNTER_SESSION_NS] = NS_PER_MS;
	wire_begin(&w, buf, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &l);
	len = wire_end(&w, sequence);
	assert_int_equal(write(agent_fd, buf, len), len);
}

static void say_engine(uint64_t sequence, uint64_t signo, uint64_t interval_ns)
{
	say(sequence, signo, interval_ns, 1u << WIRE_EVENT_CPU);
}

static void a_start_leaves_the_signals_to_the_host_where_it_can(void **state)
{
	struct timespec tick;
	struct wire_start start;
	struct target *t;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	host_gives_ns = 2 * NS_PER_MS;
	config.cpu_interval_ns = NS_PER_MS;
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	assert_int_equal(start.flags, WIRE_START_IDLE_APART | WIRE_START_HOST);
	assert_int_equal(start.interval_ns, 2 * NS_PER_MS);
	assert_int_equal(t->host_interval_ns, 2 * NS_PER_MS);
	hello(agent_fd, start.session);
	UNTIL(samples == 1);
	assert_string_equal(target_engine(t), ""); /* the made-up HELLO does not have it */
	/* values that no LEDGER has reported yet are not in a report's header */
	snprintf(t->engine, sizeof(t->engine), "cpu-timer");
	assert_string_equal(target_engine_note(t), "");
	say_engine(4, SIGPROF, 2 * NS_PER_MS);
	UNTIL(strcmp(target_engine(t), "host") == 0);
	assert_string_equal(target_engine_note(t), "");
	assert_int_equal(target_interval_ns(t), 2 * NS_PER_MS);

	assert_int_equal(target_start(t, 10 * NS_PER_MS, true), 0);
	start = read_start(control);
	assert_int_equal(start.flags, WIRE_START_IDLE_APART | WIRE_START_NO_BUDGET);
	assert_int_equal(start.interval_ns, 10 * NS_PER_MS);
	/* even if the agent reports the host engine now */
	assert_int_equal(t->host_interval_ns, 0);
	/* timers: the interval is the tick's, whatever was asked for */
	say_engine(5, 0, NS_PER_MS);
	UNTIL(strcmp(target_engine(t), "host") != 0);
	assert_string_equal(target_engine_note(t), TARGET_TIMERS_NOTE);
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	assert_int_equal(target_interval_ns(t), tick.tv_nsec);

	host_gives_ns = 0; /* refused since */
	assert_int_equal(target_start(t, NS_PER_MS, false), 0);
	start = read_start(control);
	assert_int_equal(start.flags, WIRE_START_IDLE_APART);
	assert_int_equal(start.interval_ns, NS_PER_MS);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void say_note(uint64_t sequence, const char *step, const char *what)
{
	const struct wire_fault note = { 0,
					 { step, (uint32_t)strlen(step) },
					 { what, (uint32_t)strlen(what) } };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	wire_begin(&w, buf, WIRE_NOTE);
	assert_true(wire_put_fault(&w, &note));
	len = wire_end(&w, sequence);
	assert_int_equal(write(agent_fd, buf, len), len);
}

static void a_start_asks_for_what_is_configured_and_wanted(void **state)
{
	const unsigned cpu_lock = 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK;
	const unsigned alloc = 1u << WIRE_EVENT_ALLOC;
	struct wire_start start;
	struct target *t;
	uint64_t frames;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	config.events = cpu_lock;
	config.lock_min_ns = 2 * NS_PER_MS;
	config.monitors = WIRE_MONITORS_NEVER;
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	assert_int_equal(start.events, cpu_lock);
	assert_int_equal(start.lock_min_ns, 2 * NS_PER_MS);
	assert_int_equal(start.monitors, WIRE_MONITORS_NEVER);
	assert_int_equal(target_interval(t, WIRE_EVENT_LOCK), 2 * NS_PER_MS);
	hello(agent_fd, start.session);
	UNTIL(samples == 1);
	assert_int_equal(target_events(t), 1u << WIRE_EVENT_CPU); /* nothing else was said */
	say(4, 0, NS_PER_MS, cpu_lock);
	UNTIL(target_events(t) == cpu_lock);
	say(5, 0, NS_PER_MS, 0); /* it can collect nothing */
	UNTIL(target_events(t) == 0);
	t->fault = (struct fault){ .code = EBUSY }; /* as its FAULT said */
	frames = frames_of(t);
	say(6, 0, NS_PER_MS, 0);
	UNTIL(frames_of(t) > frames);
	assert_int_equal(t->fault.code, EBUSY);
	say(7, 0, NS_PER_MS, cpu_lock);
	UNTIL(target_events(t) == cpu_lock);
	assert_int_equal(t->fault.code, 0);
	t->wanted_events = alloc;
	assert_int_equal(target_start(t, t->interval_ns, false), 0);
	assert_int_equal(read_start(control).events, cpu_lock | alloc);
	t->wanted_events = 0;
	assert_int_equal(target_start(t, t->interval_ns, false), 0);
	assert_int_equal(read_start(control).events, cpu_lock);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void waits_of_virtual_threads_are_asked_for_with_times_off_the_cpu(void **state)
{
	const unsigned offcpu = 1u << WIRE_EVENT_OFFCPU;
	struct wire_start start;
	struct target *t;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	config.events |= offcpu;
	config.offcpu_min_ns = 2 * NS_PER_MS;
	config.offcpu_virtual = true;
	host_gives_ns = 2 * NS_PER_MS;
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	hello(agent_fd, start.session);
	UNTIL(samples == 1);
	assert_int_equal(target_start(t, NS_PER_MS, false), 0);
	start = read_start(control);
	assert_true(start.events & offcpu);
	assert_int_equal(start.virtual_min_ns, 2 * NS_PER_MS);
	/* no signals from the host: no times off the CPU, and none of virtual threads */
	host_gives_ns = 0;
	assert_int_equal(target_start(t, NS_PER_MS, false), 0);
	start = read_start(control);
	assert_int_equal(start.events & offcpu, 0);
	assert_int_equal(start.virtual_min_ns, 0);
	host_gives_ns = 2 * NS_PER_MS;
	config.offcpu_virtual = false;
	assert_int_equal(target_start(t, NS_PER_MS, false), 0);
	start = read_start(control);
	assert_true(start.events & offcpu);
	assert_int_equal(start.virtual_min_ns, 0);
	host_gives_ns = 0;
	close(control);
	close(agent_fd);
	config.events &= ~offcpu;
	remove_fifos();
}

static void the_last_note_of_each_step_is_kept_until_it_is_taken_back(void **state)
{
	struct wire_start start;
	struct target *t;
	uint64_t n = 4;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	hello(agent_fd, start.session);
	UNTIL(samples == 1);
	say_note(n++, "lock", "first");
	say_note(n++, "alloc", "needs JDK 11");
	say_note(n++, "lock", "second");
	UNTIL(strcmp(t->notes[0].what, "second") == 0);
	assert_string_equal(t->notes[1].step, "alloc");
	say_note(n++, "lock", "");
	UNTIL(!t->notes[0].step[0]);
	/* more steps than there is room for do no harm */
	for (int i = 0; i < 2 * NOTES_MAX; i++) {
		char step[8];

		snprintf(step, sizeof(step), "s%d", i);
		say_note(n++, step, "said");
	}
	UNTIL(t->notes[0].step[0]);
	assert_string_equal(t->notes[0].step, "s0");
	assert_string_equal(t->notes[1].step, "alloc");
	close(control);
	close(agent_fd);
	remove_fifos();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIFE_TEST(a_start_leaves_the_signals_to_the_host_where_it_can),
		LIFE_TEST(a_start_asks_for_what_is_configured_and_wanted),
		LIFE_TEST(waits_of_virtual_threads_are_asked_for_with_times_off_the_cpu),
		LIFE_TEST(the_last_note_of_each_step_is_kept_until_it_is_taken_back),
	};

	if (is_injector(argc, argv))
		return injector(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The life of one target: it streams, ends, fails, is taken over by the next daemon. See
 * fake_session.h. */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_target_streams_and_leaves_when_told(void **state)
{
	struct stream_counts c;
	struct target *t;

	(void)state;
	t = add("talk");
	assert_int_equal(t->state, TARGET_INJECTING);
	UNTIL(samples == 1);
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_true(t->first_sample_mono_ns >= t->seen_mono_ns);
	assert_false(targets_quiet(table));
	target_detach(t);
	assert_int_equal(t->state, TARGET_DRAINING);
	UNTIL(t->state == TARGET_DETACHED);
	assert_int_equal(t->fault.code, 0);
	assert_true(targets_quiet(table));
	target_counts(t, &c); /* the accounts stay */
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 0);
}

static void the_same_process_is_taken_in_once_and_another_never(void **state)
{
	struct jvm jvm;

	(void)state;
	(void)add("talk");
	fill_in(&jvm);
	assert_int_equal(targets_add(table, &jvm, 0, NULL), -EEXIST);
	jvm.start_time++; /* the pid belongs to another process by now */
	assert_int_equal(targets_add(table, &jvm, 0, NULL), -ESRCH);
	assert_int_equal(count_targets(), 1);
}

static void the_end_of_the_process_keeps_its_last_events(void **state)
{
	struct target *t;

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	end_process(); /* usually before HELLO and the sample were read */
	UNTIL(t->state == TARGET_GONE);
	assert_int_equal(samples, 1);
	assert_true(t->gone_mono_ns > 0);
}

static void lasting_refusals_are_not_retried(void **state)
{
	struct target *t;

	(void)state;
	t = add("refuse");
	UNTIL(t->state == TARGET_FAILED);
	assert_string_equal(t->fault.what, "its owner forbids it");
	assert_null(t->priv->timer);
	target_detach(t);
	assert_int_equal(t->state, TARGET_DETACHED);
}

static void an_injector_that_dies_is_a_reason_and_its_leftovers_go(void **state)
{
	struct target *t;

	(void)state;
	t = add("die");
	UNTIL(t->state == TARGET_FAILED);
	assert_string_equal(t->fault.what,
			    "the program that attaches (kindling-inject) died without an answer");
	UNTIL(marked("cleanup"));
	snprintf(config.agent, sizeof(config.agent), "talk"); /* tried again after 1 s */
	UNTIL(samples == 1);
	assert_int_equal(t->attempts, 2);
}

static void an_injector_that_hangs_is_killed(void **state)
{
	struct target *t;

	(void)state;
	config.attach_deadline_ns = 0; /* the axe falls 5 s later */
	t = add("hang");
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(t->fault.step, FAULT_DEADLINE);
	UNTIL(marked("cleanup"));
	UNTIL(table->children == NULL);
	assert_int_equal(table->injectors, 0);
}

static void detach_during_an_attempt_waits_for_its_end(void **state)
{
	struct target *t;

	(void)state;
	t = add("slow");
	target_detach(t);
	assert_int_equal(t->state, TARGET_INJECTING);
	UNTIL(t->state == TARGET_DETACHED);
	assert_int_equal(t->fault.code, 0);
	assert_false(marked("cleanup")); /* nobody was killed */
}

static void bytes_that_are_no_frames_end_the_session_only(void **state)
{
	struct target *t;

	(void)state;
	t = add("garbage");
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(t->fault.step, FAULT_STREAM);
	assert_non_null(t->priv->timer); /* it is tried again */
}

/* Lines with @word that were written to @fd so far. */
static unsigned lines_with(int fd, const char *word)
{
	static char text[65536];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	unsigned lines = 0;

	text[n > 0 ? n : 0] = '\0';
	for (const char *p = text; (p = strstr(p, word)); p++)
		lines++;
	return lines;
}

static void an_agent_that_complains_much_does_not_fill_the_log(void **state)
{
	int old = dup(STDERR_FILENO), fds[2];
	struct target *t;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	t = add("loud");
	UNTIL(frames_of(t) == 3 + LOUD_FAULTS);
	assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
	close(old);
	assert_in_range(lines_with(fds[0], "target.agent_fault"), 10, 60);
	assert_string_equal(t->fault.what, "made up: all is lost"); /* what counts is known */
	close(fds[0]);
	close(fds[1]);
}

static void impossible_cpu_time_is_not_believed(void **state)
{
	struct target *t = add("greedy");
	struct stream_counts c;

	(void)state;
	UNTIL(frames_of(t) == 4);
	target_counts(t, &c);
	assert_int_equal(samples, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].dropped[WIRE_DROP_IMPLAUSIBLE].n, 1);
}

/* Its receiver answers, so it must not count as one that hangs; only its pipe is full. */
static void a_target_over_its_budget_is_held_back(void **state)
{
	uint64_t begin_ns, held_ns, total;
	struct target *t;
	char why[HELD_BACK_SIZE];

	(void)state;
	config.decode_cpu_permille = 1;
	t = add("flood");
	UNTIL(target_held_back(t, why, sizeof(why)));
	assert_non_null(strstr(why, "its share of limits.decode_cpu"));
	begin_ns = clock_mono_ns();
	held_ns = target_decode_ns(t);
	UNTIL(clock_mono_ns() > begin_ns + 9 * NS_PER_S);
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_int_equal(targets_stuck(table, &total), 0);
	assert_int_equal(total, 0);
	assert_true(target_held_back(t, why, sizeof(why)));
	assert_non_null(strstr(
		why,
		" s old; what was dropped since is not counted yet: it is what coverage lacks"));
	assert_true(target_decode_ns(t) > held_ns); /* a sip now and then */
	/* a thousandth of a CPU, and what was already on its way */
	assert_true(target_decode_ns(t) - held_ns < NS_PER_S / 2);
	config.decode_cpu_permille = 0;
	held_ns = target_decode_ns(t);
	UNTIL(target_decode_ns(t) - held_ns > NS_PER_S / 2);
}

static void an_agent_that_closes_its_pipe_is_missed(void **state)
{
	struct target *t;

	(void)state;
	t = add("short");
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(samples, 1);
	assert_string_equal(t->fault.what, "the agent closed its pipe");
}

static void an_agent_that_says_nothing_is_given_up(void **state)
{
	struct target *t;

	(void)state;
	t = add("mute");
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(t->fault.step, FAULT_HELLO);
}

static void a_new_interval_goes_to_the_running_session(void **state)
{
	uint64_t session;
	struct target *t;

	(void)state;
	t = add("talk");
	assert_int_equal(target_start(t, NS_PER_MS, true), -EAGAIN);
	UNTIL(samples == 1);
	session = t->priv->session;
	assert_int_equal(target_start(t, NS_PER_MS, true), 0);
	assert_int_equal(t->priv->session, session);
	assert_int_equal(t->interval_ns, NS_PER_MS);
	assert_true(t->no_budget);
}

static void an_agent_that_is_there_already_is_taken_over(void **state)
{
	struct wire_start start = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_frame frame;
	struct target *t;
	int control;
	size_t n;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(t->attempts, 0);
	n = read_control(control, buf, sizeof(buf));
	assert_int_equal(wire_peek(buf, n, &frame), n);
	assert_int_equal(wire_get_start(&frame, &start), 0);
	/* an agent that is there already must know the secret */
	assert_int_equal(start.secret.len, 0);
	hello(agent_fd, start.session);
	UNTIL(samples == 1);
	close(control);
	close(agent_fd);
	remove_fifos();
}

/* It holds two FIFOs with the right names. */
static void one_that_was_never_attached_to_is_no_agent(void **state)
{
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_frame frame;
	struct target *t;
	int control;
	size_t n;

	(void)state;
	if (make_fifos() < 0)
		skip();
	agent_known = false;
	t = add_with_fifos(events_path, &control);
	n = read_control(control, buf, sizeof(buf));
	assert_int_equal(wire_peek(buf, n, &frame), n);
	assert_int_equal(frame.type, WIRE_DETACH); /* in case it is an agent after all */
	UNTIL(t->state == TARGET_FAILED); /* the daemon attached to it like to any other JVM */
	assert_string_equal(t->fault.what, "its owner forbids it");
	assert_int_equal(samples, 0);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void one_that_does_not_know_the_secret_is_no_agent(void **state)
{
	struct wire_start start = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_frame frame;
	struct target *t;
	int control;
	size_t n;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	n = read_control(control, buf, sizeof(buf));
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_int_equal(wire_peek(buf, n, &frame), n);
	assert_int_equal(wire_get_start(&frame, &start), 0);
	agent_secret[7] ^= 1;
	hello(agent_fd, start.session);
	UNTIL(t->state == TARGET_FAILED);
	assert_string_equal(
		t->fault.what,
		"the sender does not know the secret of the attach: it is not the agent");
	assert_int_equal(samples, 0);
	close(control);
	close(agent_fd);
	remove_fifos();
}

/* An agent left by a daemon of another version: it reports that, is detached, and the JVM is
 * attached to again. */
static void one_that_speaks_another_protocol_is_replaced(void **state)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL + 1, .ns_pid = 1 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	struct wire_frame frame;
	struct target *t;
	int control;
	size_t n;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	n = read_control(control, buf, sizeof(buf));
	assert_int_equal(wire_peek(buf, n, &frame), n);
	assert_int_equal(frame.type, WIRE_START);
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	n = wire_end(&w, 1);
	assert_int_equal(write(agent_fd, buf, n), n);
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(t->fault.code, EPROTONOSUPPORT);
	assert_true(t->retry_mono_ns - clock_mono_ns() < NS_PER_S / 10 ||
		    t->retry_mono_ns < clock_mono_ns());
	n = read_control(control, buf, sizeof(buf));
	assert_int_equal(wire_peek(buf, n, &frame), n);
	assert_int_equal(frame.type, WIRE_DETACH);
	/* attached to like any other JVM */
	UNTIL(strcmp(t->fault.what, "its owner forbids it") == 0);
	assert_int_equal(samples, 0);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void an_agent_that_does_not_say_the_secret_of_its_attach_is_none(void **state)
{
	struct target *t = add("stranger");

	(void)state;
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(t->fault.code, EPERM);
	assert_int_equal(samples, 0);
}

static void secrets_outlive_the_daemon_and_not_the_process(void **state)
{
	uint8_t bytes[WIRE_SECRET_BYTES], again[WIRE_SECRET_BYTES];
	struct secrets s;
	char path[128];
	struct stat st;
	struct jvm jvm;
	FILE *f;

	(void)state;
	fill_in(&jvm);
	secrets_open(&s, dir);
	assert_null(secrets_find(&s, jvm.pid, jvm.start_time));
	assert_int_equal(secrets_make(&s, jvm.pid, jvm.start_time, bytes), 0);
	assert_int_equal(secrets_make(&s, jvm.pid, jvm.start_time, again), 0);
	assert_memory_not_equal(bytes, again, sizeof(bytes)); /* another attach */
	assert_int_equal(secrets_make(&s, jvm.pid, jvm.start_time + 1, bytes), 0);
	secrets_close(&s);
	snprintf(path, sizeof(path), "%s/agents", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	f = fopen(path, "a");
	fprintf(f, "nonsense\nanother-boot %d %llu 00112233445566778899aabbccddeeff\n", jvm.pid,
		(unsigned long long)jvm.start_time);
	fclose(f);
	secrets_open(&s, dir);
	assert_int_equal(s.n, 1);
	assert_memory_equal(secrets_find(&s, jvm.pid, jvm.start_time), again, sizeof(again));
	assert_true(secrets_is_former(&s, jvm.pid, jvm.start_time));
	for (int i = 0; i < 10000; i++) /* the file does not grow without bound */
		assert_int_equal(secrets_make(&s, jvm.pid, jvm.start_time, again), 0);
	/* attached to by this daemon */
	assert_false(secrets_is_former(&s, jvm.pid, jvm.start_time));
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < 1 << 20);
	secrets_forget(&s, jvm.pid, jvm.start_time);
	assert_null(secrets_find(&s, jvm.pid, jvm.start_time));
	secrets_close(&s);
	secrets_open(&s, dir);
	assert_memory_equal(secrets_find(&s, jvm.pid, jvm.start_time), again, sizeof(again));
	secrets_close(&s);
	assert_int_equal(unlink(path), 0);
}

static void an_agent_that_another_daemon_reads_from_is_left_alone(void **state)
{
	struct target *t;
	int control, reader;
	uint8_t byte;

	(void)state;
	if (make_fifos() < 0)
		skip();
	reader = open(events_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	t = add_with_fifos(events_path, &control);
	UNTIL(t->state == TARGET_FAILED);
	assert_int_equal(t->fault.code, EBUSY);
	assert_int_equal(read(control, &byte, 1), -1); /* not told anything */
	close(reader);
	UNTIL(t->state == TARGET_STREAMING); /* the other one went */
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void the_injector_of_a_process_that_ended_is_not_killed(void **state)
{
	struct target *t;

	(void)state;
	t = add("patient");
	assert_int_equal(t->state, TARGET_INJECTING);
	end_process();
	UNTIL(t->state == TARGET_GONE);
	assert_int_equal(table->injectors, 0);
	assert_non_null(table->children); /* it tidies up */
	mark("go");
	UNTIL(table->children == NULL);
	assert_false(marked("cleanup"));
}

/* The kernel counts these events, so an agent must not be able to claim them. */
static void signals_that_the_kernel_sent_earn_decoding(void **state)
{
	struct target *t;
	char why[256];

	(void)state;
	config.decode_cpu_permille = 100;
	t = add("flood");
	UNTIL(target_held_back(t, why, sizeof(why)));
	assert_true(t->priv->decoding.part_ns < 10 * NS_PER_MS);
	t->offcpu_signals = 2500; /* 50 ms */
	UNTIL(t->priv->decoding.part_ns > 15 * NS_PER_MS);
	UNTIL(t->priv->decoding.part_ns < 10 * NS_PER_MS);
	t->offcpu_signals = 10; /* the kernel counts anew */
	UNTIL(t->priv->decoding.signals == 10);
	assert_true(t->priv->decoding.part_ns < 10 * NS_PER_MS);
}

static void one_that_ended_is_remembered_without_what_it_held(void **state)
{
	struct target *t;

	(void)state;
	t = add("talk");
	UNTIL(samples == 1);
	end_process();
	UNTIL(t->state == TARGET_GONE);
	assert_int_equal(freed, 0); /* its waits and samples can be queried */
	loop_timer_set(t->priv->timer, 0, 0); /* two minutes later */
	UNTIL(freed == 1);
	assert_null(targets_next(table, NULL));
	assert_ptr_equal(targets_next_known(table, NULL), t);
	assert_int_equal(count_targets(), 0);
	loop_timer_set(t->priv->timer, 0, 0); /* an hour later */
	UNTIL(!targets_next_known(table, NULL));
	assert_int_equal(freed, 1);
}

static void the_table_frees_what_is_under_way(void **state)
{
	(void)state;
	(void)add("hang");
	table = targets_free(table);
	assert_int_equal(freed, 1);
	for (int i = 0; i < 250 && !marked("cleanup"); i++)
		usleep(20000);
	assert_true(marked("cleanup"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIFE_TEST(a_target_streams_and_leaves_when_told),
		LIFE_TEST(the_same_process_is_taken_in_once_and_another_never),
		LIFE_TEST(the_end_of_the_process_keeps_its_last_events),
		LIFE_TEST(lasting_refusals_are_not_retried),
		LIFE_TEST(an_injector_that_dies_is_a_reason_and_its_leftovers_go),
		LIFE_TEST(an_injector_that_hangs_is_killed),
		LIFE_TEST(detach_during_an_attempt_waits_for_its_end),
		LIFE_TEST(bytes_that_are_no_frames_end_the_session_only),
		LIFE_TEST(an_agent_that_complains_much_does_not_fill_the_log),
		LIFE_TEST(impossible_cpu_time_is_not_believed),
		LIFE_TEST(a_target_over_its_budget_is_held_back),
		LIFE_TEST(signals_that_the_kernel_sent_earn_decoding),
		LIFE_TEST(an_agent_that_closes_its_pipe_is_missed),
		LIFE_TEST(an_agent_that_says_nothing_is_given_up),
		LIFE_TEST(a_new_interval_goes_to_the_running_session),
		LIFE_TEST(an_agent_that_is_there_already_is_taken_over),
		LIFE_TEST(one_that_was_never_attached_to_is_no_agent),
		LIFE_TEST(one_that_does_not_know_the_secret_is_no_agent),
		LIFE_TEST(one_that_speaks_another_protocol_is_replaced),
		LIFE_TEST(an_agent_that_does_not_say_the_secret_of_its_attach_is_none),
		LIFE_TEST(secrets_outlive_the_daemon_and_not_the_process),
		LIFE_TEST(an_agent_that_another_daemon_reads_from_is_left_alone),
		LIFE_TEST(the_injector_of_a_process_that_ended_is_not_killed),
		LIFE_TEST(one_that_ended_is_remembered_without_what_it_held),
		LIFE_TEST(the_table_frees_what_is_under_way),
	};

	if (is_injector(argc, argv))
		return injector(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

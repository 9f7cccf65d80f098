/* Which JVMs are profiled, when, and which are not any more. See fake_session.h. */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_rule_keeps_out_before_anything_is_started(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	config.n_rules = 1;
	config.rules[0] = (struct config_rule){ .line = 3, .has_uid = true, .uid_max = UINT32_MAX };
	strcpy(config.file, "/etc/k.yaml");
	t = add("talk");
	assert_int_equal(t->state, TARGET_EXCLUDED);
	assert_int_equal(table->injectors, 0);
	assert_string_equal(t->fault.what, "denied by targets.rules[0] (k.yaml:3): uid 0");
	assert_int_equal(target_attach(t, 0, &why), -EPERM); /* the rule is stronger */
	assert_string_equal(why.what, t->fault.what);
	assert_int_equal(t->state, TARGET_EXCLUDED);
	config.n_rules = 0;
}

static void keep_one_out(uint64_t daemon_began_s)
{
	table->begin_boot_s = daemon_began_s;
	config.opt_in = true;
	assert_int_equal(add("talk")->state, TARGET_EXCLUDED);
}

static void leftovers_in_an_excluded_jvm_are_removed(void **state)
{
	(void)state;
	keep_one_out(UINT32_MAX);
	UNTIL(marked("cleanup"));
}

static void one_that_began_after_the_daemon_needs_no_cleaning(void **state)
{
	uint64_t end = clock_mono_ns() + 300 * NS_PER_MS;

	(void)state;
	keep_one_out(0);
	UNTIL(clock_mono_ns() > end);
	assert_false(marked("cleanup"));
}

static void opt_in_takes_in_by_hand_alone(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	config.opt_in = true;
	t = add("talk");
	assert_int_equal(t->state, TARGET_EXCLUDED);
	assert_int_equal(target_attach(t, 0, &why), 0);
	UNTIL(samples == 1);
	assert_int_equal(t->state, TARGET_STREAMING);
}

static void an_owner_asks_where_it_is_opt_in_and_takes_it_back(void **state)
{
	struct target *t;
	char note[200];

	(void)state;
	config.opt_in = true;
	config.events = 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK;
	t = add("talk");
	assert_int_equal(t->state, TARGET_EXCLUDED);
	allowed_set_value(&t->jvm.allowed, "profile", "true", "a: ");
	allowed_set_value(&t->jvm.allowed, "events", "cpu,alloc", "a: ");
	targets_settings(table);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(target_asked_events(t), 1u << WIRE_EVENT_CPU);
	t->wanted_events = 1u << WIRE_EVENT_WALL | 1u << WIRE_EVENT_ALLOC; /* a recording's */
	assert_int_equal(target_asked_events(t), 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_ALLOC);
	/* times off the CPU need the host engine for CPU samples */
	config.events = 1u << WIRE_EVENT_OFFCPU;
	t->wanted_events = 0;
	assert_int_equal(target_asked_events(t), 1u << WIRE_EVENT_CPU);
	config.events = 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK;
	assert_true(target_owners_note(t, note, sizeof(note)));
	assert_string_equal(note, "a: cpu,alloc");
	allowed_set_value(&t->jvm.allowed, "profile", "false", "b: ");
	targets_settings(table);
	UNTIL(t->state == TARGET_EXCLUDED);
	assert_string_equal(t->fault.what, "its owner forbids profiling: b: false");
}

static unsigned relabelled;

static void on_labels(void *userdata, struct target *t)
{
	(void)userdata;
	(void)t;
	relabelled++;
}

/* As if the container runtime did not answer at first. */
static void names_that_come_late_change_labels_and_what_the_owner_allows(void **state)
{
	struct target *t;
	struct jvm jvm;
	char pod[LABEL_VALUE_SIZE] = "";

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	table->ops.on_labels = on_labels;
	relabelled = 0;
	jvm = t->jvm;
	target_set_names(t, &jvm); /* nothing new */
	assert_int_equal(relabelled, 0);
	strcpy(jvm.pod, "bank/vault-0");
	target_set_names(t, &jvm);
	assert_int_equal(relabelled, 1);
	labels_get(t->labels, "pod", pod);
	assert_string_equal(pod, "vault-0");
	assert_int_equal(t->state, TARGET_STREAMING);
	allowed_set_value(&jvm.allowed, "profile", "false", "kindling.io/profile: ");
	target_set_names(t, &jvm);
	UNTIL(t->state == TARGET_EXCLUDED);
	assert_string_equal(t->fault.what,
			    "its owner forbids profiling: kindling.io/profile: false");
}

static void an_owners_interval_is_the_shortest(void **state)
{
	struct target *t;

	(void)state;
	t = add("talk");
	allowed_set_value(&t->jvm.allowed, "interval", "1s", "a: ");
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(target_start(t, NS_PER_MS, true), 0);
	assert_int_equal(t->interval_ns, NS_PER_S);
	assert_int_equal(target_start(t, 2 * NS_PER_S, true), 0);
	assert_int_equal(t->interval_ns, 2 * NS_PER_S);
}

static void an_owner_who_allows_nothing_that_is_collected_keeps_us_out(void **state)
{
	struct target *t;

	(void)state;
	config.events = 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	allowed_set_value(&t->jvm.allowed, "events", "wall", "a: ");
	targets_settings(table);
	UNTIL(t->state == TARGET_EXCLUDED);
	assert_string_equal(
		t->fault.what,
		"its owner allows none of the events that the settings collect: a: wall");
}

static void a_detached_jvm_stays_detached_over_a_restart(void **state)
{
	static const struct targets_ops none;
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	table = targets_free(table);
	assert_int_equal(targets_new(loop, &config, &none, NULL, &table), 0);
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(target_detach_for(t, 7), 0);
	assert_int_equal(target_attach(t, 7, &why), -EAGAIN); /* it is being detached */
	UNTIL(t->state == TARGET_DETACHED);
	assert_int_equal(strncmp(t->fault.what, "detached by uid 7 at ", 21), 0);
	table = targets_free(table);
	assert_int_equal(targets_new(loop, &config, &none, NULL, &table), 0);
	t = add("talk");
	assert_int_equal(t->state, TARGET_DETACHED);
	assert_int_equal(strncmp(t->fault.what, "detached by uid 7 at ", 21), 0);
	assert_int_equal(target_attach(t, 7, &why), 0);
	UNTIL(t->state == TARGET_STREAMING);
	end_process();
	UNTIL(t->state == TARGET_GONE);
	assert_int_equal(table->overrides.n, 0);
	assert_int_equal(target_detach_for(t, 7), -ESRCH);
}

static void an_attach_that_is_refused_leaves_an_earlier_detach(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(target_detach_for(t, 7), 0);
	UNTIL(t->state == TARGET_DETACHED);
	config.n_rules = 1;
	config.rules[0] = (struct config_rule){ .line = 3, .has_uid = true, .uid_max = UINT32_MAX };
	assert_int_equal(target_attach(t, 9, &why), -EPERM);
	config.n_rules = 0;
	targets_settings(table);
	UNTIL(t->state == TARGET_DETACHED);
	assert_int_equal(strncmp(t->fault.what, "detached by uid 7 at ", 21), 0);
}

static void other_settings_take_in_and_out_and_ask_for_other_things(void **state)
{
	struct target *t;

	(void)state;
	config.opt_in = true;
	t = add("talk");
	assert_int_equal(t->state, TARGET_EXCLUDED);
	config.opt_in = false;
	targets_settings(table);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(t->interval_ns, config.cpu_interval_ns);
	config.cpu_interval_ns = 7 * NS_PER_MS;
	targets_settings(table);
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_int_equal(t->interval_ns, 7 * NS_PER_MS);
	assert_int_equal(target_start(t, NS_PER_MS, true), 0); /* a recording's own */
	targets_settings(table);
	assert_int_equal(t->interval_ns, NS_PER_MS);
	config.n_rules = 1;
	config.rules[0] = (struct config_rule){ .line = 3, .has_uid = true, .uid_max = UINT32_MAX };
	targets_settings(table);
	UNTIL(t->state == TARGET_EXCLUDED);
	assert_int_equal(t->fault.step, FAULT_RULE);
	config.rules[0].line = 4;
	targets_settings(table);
	assert_non_null(strstr(t->fault.what, ":4)"));
	config.n_rules = 0;
}

static void settings_that_change_during_an_attempt_are_asked_for_after_it(void **state)
{
	struct target *t;

	(void)state;
	t = add("slow");
	assert_int_equal(t->state, TARGET_INJECTING);
	config.cpu_interval_ns = 7 * NS_PER_MS;
	targets_settings(table);
	assert_int_equal(t->state, TARGET_INJECTING);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(t->interval_ns, 7 * NS_PER_MS);
}

static void detach_during_an_attempt_can_be_taken_back(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	t = add("slow");
	assert_int_equal(target_detach_for(t, 0), 0);
	assert_int_equal(t->state, TARGET_INJECTING);
	assert_int_equal(target_attach(t, 0, &why), 0);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(target_detach_for(t, 0), 0);
	UNTIL(t->state == TARGET_DETACHED);
}

static void a_place_that_gets_free_is_taken_unless_the_daemon_stops(void **state)
{
	struct target *first, *second;

	(void)state;
	config.targets_max = 1;
	first = add("talk");
	second = add_other("talk");
	assert_int_equal(second->state, TARGET_EXCLUDED);
	assert_int_equal(second->fault.step, FAULT_BUDGET);
	UNTIL(first->state == TARGET_STREAMING);
	end_process();
	UNTIL(second->state == TARGET_STREAMING);
	assert_int_equal(first->state, TARGET_GONE);
	end_other();
}

static void a_daemon_that_stops_takes_nobody_in(void **state)
{
	struct target *first, *second;
	uint64_t end = clock_mono_ns() + 1500 * NS_PER_MS;
	struct fault why = { 0 };

	(void)state;
	config.targets_max = 1;
	first = add("talk");
	second = add_other("talk");
	UNTIL(first->state == TARGET_STREAMING);
	targets_stop(table);
	end_process();
	UNTIL(first->state == TARGET_GONE);
	while (clock_mono_ns() < end) /* longer than the time to the next review */
		(void)loop_round(loop, 20 * NS_PER_MS);
	assert_int_equal(second->state, TARGET_EXCLUDED);
	assert_int_equal(target_attach(second, 0, &why), -ESHUTDOWN);
	end_other();
}

static void the_rate_makes_the_second_one_wait(void **state)
{
	struct target *first, *second;
	uint64_t begin = clock_mono_ns();

	(void)state;
	config.attach_rate = 1;
	first = add("talk");
	second = add_other("talk");
	assert_int_equal(second->state, TARGET_FOUND);
	UNTIL(second->state != TARGET_FOUND);
	assert_true(clock_mono_ns() - begin >= NS_PER_S);
	UNTIL(first->state == TARGET_STREAMING && second->state == TARGET_STREAMING);
	end_other();
}

/* After a restart no JVM of the host has an agent: all are attached to at once. */
static void a_jvm_that_has_an_agent_does_not_wait_for_a_turn(void **state)
{
	struct target *first, *second;
	uint8_t bytes[WIRE_SECRET_BYTES];

	(void)state;
	config.attach_rate = 1;
	first = add("talk");
	second = add_other("talk");
	assert_int_equal(second->state, TARGET_FOUND);
	assert_int_equal(
		secrets_make(&table->secrets, second->jvm.pid, second->jvm.start_time, bytes), 0);
	table->secrets.list[table->secrets.n - 1].former = true;
	targets_inject_next(table);
	assert_int_equal(second->state, TARGET_INJECTING);
	assert_false(turns_is_former(second)); /* once */
	UNTIL(first->state == TARGET_STREAMING && second->state == TARGET_STREAMING);
	end_other();
}

static void a_crash_takes_agents_out_of_jvms_alike(void **state)
{
	struct target *first, *second;
	struct fault why = { 0 };
	pid_t pid = process;

	(void)state;
	config.crash_block_ns = 3600 * NS_PER_S;
	first = add("talk");
	second = add_other("talk");
	UNTIL(first->state == TARGET_STREAMING && second->state == TARGET_STREAMING);
	targets_exited(table, 1, SIGSEGV); /* somebody else */
	assert_int_equal(targets_crashes(table), 0);
	targets_exited(table, pid, SIGSEGV);
	end_process();
	UNTIL(first->state == TARGET_GONE);
	assert_string_equal(first->fault.what, "the process was ended by SIGSEGV");
	UNTIL(second->state == TARGET_EXCLUDED);
	assert_int_equal(second->fault.step, FAULT_CRASH);
	assert_int_equal(targets_crashes(table), 1);
	assert_non_null(strstr(targets_cohort(table, 0)->name, "Made.Up"));
	assert_null(targets_cohort(table, 1));
	assert_int_equal(target_attach(second, 0, &why), 0); /* by hand one may */
	UNTIL(second->state == TARGET_STREAMING);
	end_other();
}

static void a_status_that_comes_after_the_end_counts_too(void **state)
{
	struct target *t;
	pid_t pid = process;

	(void)state;
	config.crash_block_ns = 3600 * NS_PER_S;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	end_process();
	UNTIL(t->state == TARGET_GONE);
	assert_null(targets_cohort(table, 0));
	targets_exited(table, pid, SIGABRT | 0x80);
	assert_non_null(targets_cohort(table, 0));
	assert_string_equal(t->fault.what, "the process was ended by SIGABRT");
}

static void an_ended_target_makes_room_in_a_full_table(void **state)
{
	struct target *t;
	struct jvm jvm;

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	table->count += TARGETS_MAX - 1;
	fill_in(&jvm);
	jvm.start_time++;
	assert_int_equal(targets_add(table, &jvm, 0, NULL), -ENOSPC); /* all of them live */
	end_process();
	UNTIL(t->state == TARGET_GONE);
	t = add_other("talk");
	assert_int_equal(freed, 1);
	assert_int_equal(table->count, TARGETS_MAX);
	table->count -= TARGETS_MAX - 1;
	UNTIL(t->state == TARGET_STREAMING);
	end_other();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIFE_TEST(a_rule_keeps_out_before_anything_is_started),
		LIFE_TEST(leftovers_in_an_excluded_jvm_are_removed),
		LIFE_TEST(one_that_began_after_the_daemon_needs_no_cleaning),
		LIFE_TEST(opt_in_takes_in_by_hand_alone),
		LIFE_TEST(an_owner_asks_where_it_is_opt_in_and_takes_it_back),
		LIFE_TEST(names_that_come_late_change_labels_and_what_the_owner_allows),
		LIFE_TEST(an_owners_interval_is_the_shortest),
		LIFE_TEST(an_owner_who_allows_nothing_that_is_collected_keeps_us_out),
		LIFE_TEST(a_detached_jvm_stays_detached_over_a_restart),
		LIFE_TEST(an_attach_that_is_refused_leaves_an_earlier_detach),
		LIFE_TEST(other_settings_take_in_and_out_and_ask_for_other_things),
		LIFE_TEST(settings_that_change_during_an_attempt_are_asked_for_after_it),
		LIFE_TEST(detach_during_an_attempt_can_be_taken_back),
		LIFE_TEST(a_place_that_gets_free_is_taken_unless_the_daemon_stops),
		LIFE_TEST(a_daemon_that_stops_takes_nobody_in),
		LIFE_TEST(the_rate_makes_the_second_one_wait),
		LIFE_TEST(a_jvm_that_has_an_agent_does_not_wait_for_a_turn),
		LIFE_TEST(a_crash_takes_agents_out_of_jvms_alike),
		LIFE_TEST(a_status_that_comes_after_the_end_counts_too),
		LIFE_TEST(an_ended_target_makes_room_in_a_full_table),
	};

	if (is_injector(argc, argv))
		return injector(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

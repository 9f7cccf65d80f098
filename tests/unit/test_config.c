#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/core/config.h"
#include "daemon/core/config_change.h"
#include "daemon/core/config_fields.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "proto/wire.h"

static struct config config;
static char err[300];

static int parse(const char *text)
{
	err[0] = '\0';
	config_defaults(&config);
	return config_parse(&config, "k.yaml", text, strlen(text), err, sizeof(err));
}

/* Events that are collected only if they are named. */
static bool is_commented_out(const struct config_entry *e)
{
	return strncmp(e->name, "events.alloc.", 13) == 0 ||
	       strncmp(e->name, "events.wall.", 12) == 0;
}

static void the_example_sets_every_field_to_its_default(void **state)
{
	struct config defaults, loaded;

	(void)state;
	config_defaults(&defaults);
	loaded = defaults;
	for (size_t i = 0; i < config_entry_count; i++) {
		const struct config_entry *e = &config_entries[i];

		/* "auto" keeps the default: nothing is overwritten */
		if (e->offset == offsetof(struct config, agent) ||
		    e->offset == offsetof(struct config, injector) || is_commented_out(e))
			continue;
		memset((char *)&loaded + e->offset, e->type == CONFIG_BOOL ? 0 : 0x55, e->size);
	}
	if (config_load(&loaded, EXAMPLE, err, sizeof(err)) < 0)
		fail_msg("%s", err);
	assert_int_equal(loaded.events, defaults.events);
	for (size_t i = 0; i < config_entry_count; i++) {
		const struct config_entry *e = &config_entries[i];
		const char *a = (const char *)&defaults + e->offset;
		const char *b = (const char *)&loaded + e->offset;

		bool is_text = e->type == CONFIG_PATH || e->type == CONFIG_TEXT ||
			       e->type == CONFIG_METHODS || e->type == CONFIG_SOCKET;

		if (is_text ? strcmp(a, b) != 0 : memcmp(a, b, e->size) != 0)
			fail_msg("%s: the example and the embedded default differ", e->name);
	}
}

/* The example file describes every field of the table: each has a comment above it. */
static void the_example_names_every_field_once(void **state)
{
	char text[16384];
	FILE *f = fopen(EXAMPLE, "r");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	for (size_t i = 0; i < config_entry_count; i++) {
		const char *dot = strrchr(config_entries[i].name, '.');
		char key[64];

		snprintf(key, sizeof(key), "%s: ", dot ? dot + 1 : config_entries[i].name);
		if (!strstr(text, key))
			fail_msg("%s is missing in the example", config_entries[i].name);
		assert_non_null(config_field(i, NULL));
	}
	assert_null(config_field(config_entry_count, NULL));
}

static void values_are_read_with_their_units(void **state)
{
	(void)state;
	assert_int_equal(parse("events:\n  cpu: { interval: 5ms, max_cpu: 0.5% }\n"
			       "store:\n  max_size: 512MiB\n  retention: 7d\n"
			       "quiet_attach: no\ndiscovery:\n  bpf: off\nlog:\n  level: debug\n"
			       "socket: /tmp/x.sock\n"),
			 0);
	assert_int_equal(config.cpu_interval_ns, 5 * NS_PER_MS);
	assert_true(config.cpu_interval_given);
	assert_int_equal(config.max_cpu_permille, 5);
	assert_int_equal(config.store_max_bytes, 512ull << 20);
	assert_int_equal(config.retention_ns, 7 * 24 * 3600 * NS_PER_S);
	assert_false(config.quiet_attach);
	assert_int_equal(config.bpf, BPF_OFF);
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(config.socket, "/tmp/x.sock");
}

static void events_that_are_named_are_collected(void **state)
{
	const unsigned cpu = 1u << WIRE_EVENT_CPU, lock = 1u << WIRE_EVENT_LOCK;
	const unsigned all = cpu | lock | 1u << WIRE_EVENT_OFFCPU;

	(void)state;
	assert_int_equal(parse("socket: /a\n"), 0);
	assert_int_equal(config.events, all);
	assert_int_equal(parse("events:\n  # lock:\n"), 0);
	assert_int_equal(config.events, all);
	assert_int_equal(parse("events: { cpu: { interval: 5ms } }\n"), 0);
	assert_int_equal(config.events, cpu);
	assert_int_equal(parse("events:\n  lock:\n  wall: { interval: 20ms, threads: http- }\n"),
			 0);
	assert_int_equal(config.events, lock | 1u << WIRE_EVENT_WALL);
	assert_int_equal(config.wall_interval_ns, 20 * NS_PER_MS);
	assert_string_equal(config.wall_threads, "http-");
	assert_int_equal(
		parse("events: { lock: { min_wait: 50us, monitors: never }, alloc: {} }\n"), 0);
	assert_int_equal(config.events, lock | 1u << WIRE_EVENT_ALLOC);
	assert_int_equal(config.lock_min_ns, 50000);
	assert_int_equal(config.monitors, WIRE_MONITORS_NEVER);
}

/* A kernel that cannot measure them is a warning only then. */
static void times_off_the_cpu_are_asked_for_by_other_events_than_the_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse("socket: /a\n"), 0);
	assert_false(config_asks_for_offcpu(&config));
	assert_int_equal(config_load(&config, EXAMPLE, err, sizeof(err)), 0);
	assert_false(config_asks_for_offcpu(&config));
	assert_int_equal(parse("events: [cpu, lock]\n"), 0);
	assert_false(config_asks_for_offcpu(&config));
	assert_int_equal(parse("events: [cpu, offcpu]\n"), 0);
	assert_true(config_asks_for_offcpu(&config));
	assert_int_equal(parse("events: {cpu: {}, lock: {}, offcpu: {min: 100us}}\n"), 0);
	assert_true(config_asks_for_offcpu(&config));
	assert_int_equal(parse("events: {cpu: {}, lock: {}, offcpu: {virtual: true}}\n"), 0);
	assert_true(config.offcpu_virtual);
	assert_true(config_asks_for_offcpu(&config));
	assert_int_equal(parse("events: {cpu: {}, lock: {}, offcpu: {syscall_exits: true}}\n"), 0);
	assert_true(config.offcpu_syscall_exits);
	assert_true(config_asks_for_offcpu(&config));
}

static void events_may_be_a_list(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(parse("events: [cpu, lock]\nlog: {level: debug}\n"), 0);
	assert_int_equal(config.events, 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK);
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(parse("events:\n  - alloc\n  - wall\n"), 0);
	assert_string_equal(config_events(&config, text, sizeof(text)), "alloc, wall");
}

static void durations_of_settings_have_fractions_and_several_units(void **state)
{
	(void)state;
	assert_int_equal(parse("store: { retention: 1.5h }\ndiscovery: { scan_interval: 2m30s }"),
			 0);
	assert_int_equal(config.retention_ns, 5400 * NS_PER_S);
	assert_int_equal(config.scan_interval_ns, 150 * NS_PER_S);
}

/* The output of `kindling config check` is a valid file of settings. */
static void values_are_written_as_they_are_read(void **state)
{
	char text[300], why[200];
	struct config again;

	(void)state;
	assert_int_equal(parse("events: { lock: { min_wait: 1500us, monitors: always } }\n"
			       "targets: { mode: opt-in }\nlog: { level: debug }\n"
			       "names: { cri: \"unix:///run/cri.sock\" }\n"),
			 0);
	config_defaults(&again);
	for (size_t i = 0; i < config_entry_count; i++) {
		const struct config_entry *e = &config_entries[i];

		config_value(&config, i, text, sizeof(text));
		if (e->type != CONFIG_TEXT && e->type != CONFIG_METHODS && /* they have quotes */
		    e->type != CONFIG_FILE &&
		    e->type != CONFIG_PROGRAM) /* there is no such file in the build of this test */
			assert_int_equal(config_set(&again, e, text, why, sizeof(why)), 0);
		assert_memory_equal((char *)&again + e->offset, (char *)&config + e->offset,
				    e->size);
	}
}

static void a_socket_has_an_address_or_is_off(void **state)
{
	(void)state;
	assert_int_equal(parse("names: { cri: /run/cri.sock }"), 0);
	assert_string_equal(config.names_cri, "/run/cri.sock");
	assert_int_equal(parse("names: { cri: \"unix:///run/cri.sock\" }"), 0);
	assert_string_equal(config.names_cri, "/run/cri.sock");
	assert_int_equal(parse("names: { cri: off }"), 0);
	assert_string_equal(config.names_cri, "");
	assert_int_equal(parse("names: { cri: \"tcp://127.0.0.1:1\" }"), -EINVAL);
	assert_non_null(strstr(err, "names.cri: must be off or the address of a Unix socket"));
}

static void empty_files_and_empty_sections_are_fine(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("# nothing\n---\n"), 0);
	assert_int_equal(parse("agent:\n  # ring_size: 1MiB\nlog: {}\n"), 0);
}

static void refused(const char *text, const char *sentence)
{
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(err, sentence);
}

static void methods_that_wait_for_work_are_names(void **state)
{
	static struct config live;
	struct config_changes c;
	char text[64 + IDLE_ADDED_MAX] = "idle: [a.b, ";

	(void)state;
	assert_int_equal(parse("socket: /a"), 0);
	assert_string_equal(config.idle, "");
	live = config;
	assert_int_equal(parse("idle: [com.acme.Worker.next, Caf\xc3\xa9$1]"), 0);
	assert_string_equal(config.idle, "com.acme.Worker.next,Caf\xc3\xa9$1");
	assert_int_equal(parse("socket: /a\nidle: com.acme.Worker.next"), 0);
	assert_string_equal(config.idle, "com.acme.Worker.next");
	config_apply(&live, &config, &c);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.list[0].name, "idle");
	assert_string_equal(c.list[0].to, "\"com.acme.Worker.next\"");
	assert_string_equal(live.idle, "com.acme.Worker.next");
	refused("idle: [com/acme/Worker.next]",
		"k.yaml:1: idle: must be a list of classes or methods, as in [com.acme.Worker.next]; "
		"not \"com/acme/Worker.next\"");
	refused("idle: [a, \"\"]",
		"k.yaml:1: idle: must be a list of classes or methods, as in [com.acme.Worker.next]; "
		"not \"\"");
	refused("idle: [a.b, .c]",
		"k.yaml:1: idle: must be a list of classes or methods, as in [com.acme.Worker.next]; "
		"not \".c\"");
	refused("idle: [[a]]",
		"k.yaml:1: idle: must be a list of words, as in [com.acme.Worker.next]");
	assert_int_equal(parse("idle: {a: b}"), -EINVAL);
	memset(text + strlen(text), 'x', IDLE_ADDED_MAX);
	strcat(text, "]");
	refused(text, "k.yaml:1: idle: is longer than 1023 characters");
	/* a change in the part that no report of changes has room for is one */
	text[12 + IDLE_ADDED_MAX - 5] = ']';
	text[12 + IDLE_ADDED_MAX - 4] = '\0';
	assert_int_equal(parse(text), 0);
	live = config;
	text[12 + IDLE_ADDED_MAX - 6] = 'y';
	assert_int_equal(parse(text), 0);
	config_apply(&live, &config, &c);
	assert_int_equal(c.n, 1);
	assert_memory_equal(live.idle, config.idle, sizeof(live.idle));
}

static void an_unknown_field_is_named_with_its_line_and_what_was_meant(void **state)
{
	(void)state;
	refused("socket: /a\nevents:\n  cpu:\n    intervall: 5ms\n",
		"k.yaml:4: events.cpu.intervall: there is no such setting; did you mean "
		"events.cpu.interval?");
	refused("retention: 1h\n",
		"k.yaml:1: retention: there is no such setting; did you mean store.retention?");
	refused("colour: red\n", "k.yaml:1: colour: there is no such setting");
	refused("log.level: info\n",
		"k.yaml:1: a setting's name must not contain dots; indent the settings below it");
}

static void a_wrong_value_is_named_with_what_would_be_right(void **state)
{
	(void)state;
	refused("events:\n  lock:\n    monitors: sometimes\n",
		"k.yaml:3: events.lock.monitors: is one of auto, always, never; not \"sometimes\"");
	refused("events:\n  lock: 1ms\n",
		"k.yaml:2: events.lock: has settings of its own, such as events.lock.min_wait, and takes "
		"no value");
	refused("events:\n  cpu:\n    interval: 10\n",
		"k.yaml:3: events.cpu.interval: must be a duration with units (ns, us, ms, s, m, "
		"h, d), as in 10ms, 1.5h or 2m30s; not \"10\"");
	refused("events: {cpu: {interval: 1us}}",
		"k.yaml:1: events.cpu.interval: must lie between 100us and 10s; 1us does not");
	refused("agent:\n  ring_size: 512K\n",
		"k.yaml:2: agent.ring_size: must be a size with a unit (B, KiB, MiB, GiB, TiB), as "
		"in 512KiB; not \"512K\"");
	refused("events: {cpu: {max_cpu: 200%}}",
		"k.yaml:1: events.cpu.max_cpu: must lie between 0.1% and 100.0%; 200% does not");
	refused("quiet_attach: maybe\n",
		"k.yaml:1: quiet_attach: must be true or false, not \"maybe\"");
	refused("log: {level: loud}",
		"k.yaml:1: log.level: is one of error, warning, info, debug; not \"loud\"");
	refused("state_dir: here\n", "k.yaml:1: state_dir: must be an absolute path, not \"here\"");
	refused("store: {max_size: 99999999999999999999TiB}",
		"k.yaml:1: store.max_size: must lie between 1MiB and 16TiB; "
		"99999999999999999999TiB does not");
}

static void a_path_too_long_is_refused_not_cut(void **state)
{
	char text[200] = "socket: /";

	(void)state;
	memset(text + 9, 'x', 150);
	refused(text, "k.yaml:1: socket: path is longer than 103 bytes");
}

static void a_field_set_twice_is_refused(void **state)
{
	(void)state;
	refused("log:\n  level: info\n  level: debug\n",
		"k.yaml:3: log.level: is set a second time");
	refused("log:\n  level: info\nagent: {}\nlog:\n  level: debug\n",
		"k.yaml:4: log: is set a second time");
}

static void a_shape_that_is_not_ours_is_refused(void **state)
{
	(void)state;
	refused("events: 5\n", "k.yaml:1: events: has settings of its own, such as "
			       "events.cpu.interval, and takes no value");
	refused("socket:\n  path: /x\n",
		"k.yaml:1: socket: takes one value, not settings below it");
	refused("events: [cpu, locks]\n",
		"k.yaml:1: events: must be a list of cpu, lock, alloc, wall, offcpu; not \"locks\"");
	refused("events: [[cpu]]\n",
		"k.yaml:1: events: must be a list of words, as in [cpu, lock]");
	refused("events: []\n",
		"k.yaml:1: events: is empty; leave it out to collect cpu, lock and offcpu");
	refused("events: [cpu]\nevents: {wall: }\n", "k.yaml:2: events: is set a second time");
	refused("socket: [/x]\n", "k.yaml:1: socket: takes one value, not a list or an alias");
	refused("- socket\n", "k.yaml:1: must be one map of settings, `name: value`");
	refused("hello\n", "k.yaml:1: must be settings, `name: value`, and not one word");
	assert_int_equal(parse("a: &x\n  b: *x\n"), -EINVAL);
	assert_int_equal(parse("log: {level: info}\n---\nlog: {level: info}\n"), -EINVAL);
	assert_int_equal(parse("socket: \"/a\\0b\"\n"), -EINVAL);
	assert_int_equal(parse("\"socket\\0x\": /a\n"), -EINVAL);
}

static void rules_are_read_in_their_order_with_their_lines(void **state)
{
	(void)state;
	assert_int_equal(parse("targets:\n  mode: opt-in\n  rules:\n"
			       "    - deny: { command: \"*kafka*\", uid: 1000-1999 }\n"
			       "    - allow:\n        namespace: shop\n  max: 7\n"),
			 0);
	assert_true(config.opt_in);
	assert_int_equal(config.targets_max, 7);
	assert_int_equal(config.n_rules, 2);
	assert_string_equal(config.file, "k.yaml");
	assert_false(config.rules[0].allow);
	assert_string_equal(config.rules[0].command, "*kafka*");
	assert_int_equal(config.rules[0].uid_min, 1000);
	assert_int_equal(config.rules[0].uid_max, 1999);
	assert_int_equal(config.rules[0].line, 4);
	assert_true(config.rules[1].allow);
	assert_string_equal(config.rules[1].namespace, "shop");
	assert_false(config.rules[1].has_uid);
	assert_int_equal(config.rules[1].line, 5);
	assert_int_equal(parse("targets: { rules: [] }"), 0);
	assert_int_equal(parse("targets:\n  rules:\n  # - deny: {}\n"), 0);
	assert_int_equal(config.n_rules, 0);
}

static void rules_are_written_as_they_are_read(void **state)
{
	static const char *const rules[] = {
		"deny: { command: \"*k\\\"f\\\\ka*\", uid: 1000-1999 }",
		"allow: { container: \"shop-*\", pod: \"a/b\", namespace: \"shop\", image: \"i\" }",
		"deny: { environment: \"A=b\", uid: 7 }",
	};
	char text[2048] = "targets:\n  rules:\n";

	(void)state;
	for (int i = 0; i < 3; i++)
		sprintf(text + strlen(text), "    - %s\n", rules[i]);
	if (parse(text) < 0)
		fail_msg("%s", err);
	assert_string_equal(config.rules[0].command, "*k\"f\\ka*");
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(config_rule(&config, i, text, sizeof(text)), rules[i]);
	memset(config.rules[0].command, '"', sizeof(config.rules[0].command) - 1);
	assert_int_equal(strlen(config_rule(&config, 0, text, sizeof(text))), 2 * 255 + 37);
	assert_int_equal(strlen(config_rule(&config, 0, text, 64)), 63);
}

static void a_file_that_nothing_works_without_must_be_there(void **state)
{
	char why[200];

	(void)state;
	refused("agent:\n  library: /nowhere/libkindling.so\n",
		"k.yaml:2: agent.library: /nowhere/libkindling.so cannot be read: No such file or "
		"directory");
	refused("agent: {library: /tmp}",
		"k.yaml:1: agent.library: /tmp cannot be read: it is not a file");
	refused("injector: /etc/passwd\n",
		"k.yaml:1: injector: /etc/passwd cannot be run: Permission denied");
	assert_int_equal(parse("agent: {library: /etc/passwd}\ninjector: /bin/sh\n"), 0);
	assert_int_equal(config_check_files(&config, NULL, why, sizeof(why)), 0);
	strcpy(config.agent, "/nowhere");
	assert_int_equal(config_check_files(&config, NULL, why, sizeof(why)), -EINVAL);
	assert_string_equal(why,
			    "agent.library: /nowhere cannot be read: No such file or directory");
}

static void a_reload_takes_what_can_change_and_names_the_rest(void **state)
{
	static struct config live;
	struct config_changes c;

	(void)state;
	assert_int_equal(parse("socket: /a\nevents: {cpu: {interval: 10ms}}\n"
			       "targets: { rules: [ { deny: { uid: 1 } } ] }"),
			 0);
	live = config;
	config_apply(&live, &config, &c);
	assert_int_equal(c.n, 0);
	assert_int_equal(parse("socket: /b\nevents: {cpu: {interval: 5ms}, wall: }\n"
			       "quiet_attach: false\ntargets: { mode: opt-in }"),
			 0);
	config_apply(&live, &config, &c);
	assert_int_equal(c.n, 6);
	assert_string_equal(c.list[0].name, "events");
	assert_string_equal(c.list[0].from, "cpu");
	assert_string_equal(c.list[0].to, "cpu, wall");
	assert_int_equal(c.list[0].when, CONFIG_NOW);
	assert_string_equal(c.list[1].name, "socket");
	assert_string_equal(c.list[1].to, "/b");
	assert_int_equal(c.list[1].when, CONFIG_RESTART);
	assert_string_equal(live.socket, "/a");
	assert_string_equal(c.list[2].name, "events.cpu.interval");
	assert_string_equal(c.list[2].from, "10ms");
	assert_int_equal(live.cpu_interval_ns, 5 * NS_PER_MS);
	assert_string_equal(c.list[3].name, "quiet_attach");
	assert_int_equal(c.list[3].when, CONFIG_NEXT_ATTACH);
	assert_false(live.quiet_attach);
	assert_string_equal(c.list[4].name, "targets.mode");
	assert_true(live.opt_in);
	assert_string_equal(c.list[5].name, "targets.rules");
	assert_string_equal(c.list[5].from, "1 of them");
	assert_int_equal(live.n_rules, 0);
	assert_true(config_entry_count + 2 <= CONFIG_CHANGES_MAX);
}

static void a_wrong_rule_is_named_with_its_line_and_number(void **state)
{
	char text[4096] = "targets:\n  rules:\n";

	(void)state;
	refused("targets:\n  rules:\n    - deny: { uid: 1 }\n    - deny: { comand: x }\n",
		"k.yaml:4: targets.rules[1].deny.comand: there is no such condition; the "
		"conditions are container, pod, namespace, image, annotation, uid, command and "
		"environment");
	refused("targets: { rules: [ { forbid: { uid: 1 } } ] }",
		"k.yaml:1: targets.rules[0]: must be one rule, `- deny: { command: x }` or "
		"`- allow: {...}`");
	refused("targets: { rules: [ { allow: { uid: a } } ] }",
		"k.yaml:1: targets.rules[0].allow.uid: must be a uid or a range, as in 1000-1999; "
		"not \"a\"");
	refused("targets: { rules: [ { allow: {} } ] }",
		"k.yaml:1: targets.rules[0].allow: needs a condition, as in { namespace: shop }");
	refused("targets: { rules: [ { allow: { environment: A } } ] }",
		"k.yaml:1: targets.rules[0].allow.environment: must be NAME=value, not \"A\"");
	refused("targets: { rules: no }",
		"k.yaml:1: targets.rules: must be a list of rules, `- deny: {...}`");
	refused("targets: { mode: some }",
		"k.yaml:1: targets.mode: is one of opt-out, opt-in; not \"some\"");
	refused("targets: { attach_rate: 1000 }",
		"k.yaml:1: targets.attach_rate: must lie between 0 and 100; 1000 does not");
	assert_int_equal(parse("targets: { rules: [ deny ] }"), -EINVAL);
	assert_int_equal(parse("targets: { rules: [ { deny: { uid: [1] } } ] }"), -EINVAL);
	assert_int_equal(parse("targets: { rules: [ { deny: { uid: 1 }, allow: {} } ] }"), -EINVAL);
	for (int i = 0; i <= RULES_MAX; i++)
		strcat(text, "  - deny: { uid: 1 }\n");
	refused(text, "k.yaml:67: targets.rules[64]: at most 64 rules are allowed");
}

static void text_that_is_not_yaml_is_refused_with_its_line(void **state)
{
	(void)state;
	assert_int_equal(parse("log:\n  level: \"info\n"), -EINVAL);
	assert_int_equal(strncmp(err, "k.yaml:3: is not YAML: ", 23), 0);
	assert_int_equal(parse("socket: \xff\xfe\n"), -EINVAL);
}

static void sinks_are_read_with_all_their_keys(void **state)
{
	const struct config_sink *s = config.sinks;
	char text[300];

	(void)state;
	assert_int_equal(
		parse("sinks:\n"
		      "  - {name: lake, type: s3, url: http://127.0.0.1:7070, bucket: profiles,\n"
		      "     region: us-east-1, prefix: kindling, access_key_file: /a, secret_key_file: /b,\n"
		      "     format: pb.gz, interval: 60s, events: [cpu, lock]}\n"
		      "  - name: pyro\n    type: pyroscope\n    url: https://x/\n"
		      "    headers: {X-Scope-OrgID: shop}\n    targets: {pod: shop/*}\n"
		      "  - {name: dir, type: files, directory: /out, keep: 2GB, threads: false}\n"
		      "  - {name: mine, type: exec, command: [/bin/take, --stdin], spool_age: 2h}\n"
		      "  - {name: otel, type: otlp, url: http://x:4317, protocol: grpc}\n"
		      "  - {name: ch, type: clickhouse, url: http://x, database: k, create: true}\n"),
		0);
	assert_int_equal(config.n_sinks, 6);
	assert_string_equal(s[0].events, "cpu,lock");
	assert_string_equal(s[0].secret_key_file, "/b");
	assert_int_equal(s[0].interval_ns, 60 * NS_PER_S);
	assert_string_equal(s[1].headers[0].name, "X-Scope-OrgID");
	assert_string_equal(s[1].targets[0].value, "shop/*");
	assert_false(s[1].threads);
	assert_int_equal(s[2].keep_bytes, 2000000000);
	assert_false(s[2].threads);
	assert_memory_equal(s[3].command, "/bin/take\0--stdin", 18);
	assert_int_equal(s[3].n_words, 2);
	assert_int_equal(s[3].spool_age_ns, 7200 * NS_PER_S);
	assert_true(s[4].threads);
	assert_true(s[5].create);
	assert_string_equal(
		config_sink_text(&s[0], text, sizeof(text)),
		"{name: lake, type: s3, interval: 1m, url: http://127.0.0.1:7070, format: pb.gz, events: cpu,lock}");
	assert_int_equal(parse("sinks:\n"), 0);
	assert_int_equal(parse("sinks: []\n"), 0);
	assert_int_equal(config.n_sinks, 0);
}

static void wrong_sinks_are_refused_by_name_and_line(void **state)
{
	(void)state;
	refused("sinks: files\n",
		"k.yaml:1: sinks: must be a list of sinks, `- {name: x, type: files}`");
	refused("sinks:\n  - {type: files, directory: /x}\n",
		"k.yaml:2: sinks[0]: a sink needs a name");
	refused("sinks:\n  - {name: ../x, type: files}\n",
		"k.yaml:2: sinks[0].name: may have letters, digits, - and _, not \"../x\"");
	refused("sinks:\n  - {name: x, type: graphite}\n",
		"k.yaml:2: sinks[0].type: must be files, exec, s3, pyroscope, otlp, clickhouse or skywalking, not \"graphite\"");
	refused("sinks:\n  - {name: x, type: files, directory: /x}\n  - {name: x, type: files, directory: /y}\n",
		"k.yaml:3: sinks[1]: there is a sink called x already, at line 2");
	refused("sinks:\n  - {name: x, type: files, directory: out}\n",
		"k.yaml:2: sinks[0].directory: must be an absolute path, not \"out\"");
	refused("sinks:\n  - {name: x, type: files, directory: /x, url: http://x}\n",
		"k.yaml:2: sinks[0]: url is not a setting of a sink of type files");
	refused("sinks:\n  - {name: x, type: s3, url: http://x, bucket: b, access_key_file: /a}\n",
		"k.yaml:2: sinks[0]: a sink of type s3 needs secret_key_file or secret_key_env");
	refused("sinks:\n  - {name: x, type: otlp, url: http://u:p@x}\n",
		"k.yaml:2: sinks[0].url: must not contain a user or password; use user and "
		"password_file");
	refused("sinks:\n  - {name: x, type: otlp, url: http://x, interval: 15s}\n",
		"k.yaml:2: sinks[0]: interval must be a multiple of 10s, the length of a window");
	refused("sinks:\n  - {name: x, type: otlp, url: http://x, events: [gc]}\n",
		"k.yaml:2: sinks[0].events: must be a list of cpu, lock, alloc, wall, offcpu; not \"gc\"");
	refused("sinks:\n  - {name: x, type: exec, command: [take]}\n",
		"k.yaml:2: sinks[0].command: must begin with the path of a program, not \"take\"");
	refused("sinks:\n  - {name: x, type: otlp, url: http://x, headers: {A: \"b\\r\\nC: d\"}}\n",
		"k.yaml:2: sinks[0].headers: contains a control character");
	refused("sinks:\n  - {name: x, type: files, directory: /x, colour: red}\n",
		"k.yaml:2: sinks[0].colour: there is no such setting of a sink");
}

static void a_missing_file_is_said_to_be_missing(void **state)
{
	(void)state;
	config_defaults(&config);
	assert_int_equal(config_load(&config, "/nowhere/k.yaml", err, sizeof(err)), -ENOENT);
	assert_string_equal(err, "/nowhere/k.yaml: cannot be read: No such file or directory");
	assert_int_equal(config_load(&config, "/tmp", err, sizeof(err)), -EINVAL);
}

static void the_environment_changes_the_default_socket(void **state)
{
	(void)state;
	setenv("KINDLING_SOCKET", "/tmp/other.sock", 1);
	config_defaults(&config);
	assert_string_equal(config.socket, "/tmp/other.sock");
	unsetenv("KINDLING_SOCKET");
	config_defaults(&config);
	assert_string_equal(config.socket, "/run/kindling/kindling.sock");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_sets_every_field_to_its_default),
		cmocka_unit_test(the_example_names_every_field_once),
		cmocka_unit_test(values_are_read_with_their_units),
		cmocka_unit_test(events_that_are_named_are_collected),
		cmocka_unit_test(times_off_the_cpu_are_asked_for_by_other_events_than_the_defaults),
		cmocka_unit_test(events_may_be_a_list),
		cmocka_unit_test(sinks_are_read_with_all_their_keys),
		cmocka_unit_test(wrong_sinks_are_refused_by_name_and_line),
		cmocka_unit_test(durations_of_settings_have_fractions_and_several_units),
		cmocka_unit_test(values_are_written_as_they_are_read),
		cmocka_unit_test(methods_that_wait_for_work_are_names),
		cmocka_unit_test(a_socket_has_an_address_or_is_off),
		cmocka_unit_test(empty_files_and_empty_sections_are_fine),
		cmocka_unit_test(an_unknown_field_is_named_with_its_line_and_what_was_meant),
		cmocka_unit_test(a_wrong_value_is_named_with_what_would_be_right),
		cmocka_unit_test(a_path_too_long_is_refused_not_cut),
		cmocka_unit_test(a_field_set_twice_is_refused),
		cmocka_unit_test(a_shape_that_is_not_ours_is_refused),
		cmocka_unit_test(rules_are_read_in_their_order_with_their_lines),
		cmocka_unit_test(rules_are_written_as_they_are_read),
		cmocka_unit_test(a_file_that_nothing_works_without_must_be_there),
		cmocka_unit_test(a_reload_takes_what_can_change_and_names_the_rest),
		cmocka_unit_test(a_wrong_rule_is_named_with_its_line_and_number),
		cmocka_unit_test(text_that_is_not_yaml_is_refused_with_its_line),
		cmocka_unit_test(a_missing_file_is_said_to_be_missing),
		cmocka_unit_test(the_environment_changes_the_default_socket),
	};

	unsetenv("KINDLING_SOCKET");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

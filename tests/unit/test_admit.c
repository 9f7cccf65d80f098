/* Tests the parts that admit.c consults: rules, the attach rate, the breaker and manual
 * requests. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/config.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/owner.h"
#include "daemon/ground/proc.h"
#include "daemon/target/budget.h"
#include "daemon/target/crash.h"
#include "daemon/target/overrides.h"
#include "daemon/target/rules.h"

/* ---- rules ---------------------------------------------------------------------------------- */

static struct config config;

static void parse(const char *rules)
{
	char text[2048], err[300];

	snprintf(text, sizeof(text), "targets:\n  rules:\n%s", rules);
	config_defaults(&config);
	if (config_parse(&config, "/etc/kindling/k.yaml", text, strlen(text), err, sizeof(err)) < 0)
		fail_msg("%s", err);
}

static struct jvm shop(void)
{
	struct jvm jvm = { .pid = 4711, .uid = 1000, .name = "org.shop.Main" };

	strcpy(jvm.container_id,
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	strcpy(jvm.container, "cart");
	strcpy(jvm.pod, "shop/cart-7d9");
	strcpy(jvm.image, "registry/shop/cart:1.2");
	strcpy(jvm.notes, "app=cart\nteam=shop\n");
	return jvm;
}

static char command[] = "java -cp /app org.shop.Main --port 80",
	    environment[] = "A=1\0TEAM=shop\0B=";

/* What is known of a process with this command line, for the rules that were parsed last. */
static struct facts facts_from(const char *words, const char *variables, size_t len)
{
	const struct facts_text text = { words, variables, len };
	struct facts facts = { 0 };

	facts_match(config.rules, config.n_rules, &text, &facts);
	return facts;
}

static bool hits(const char *conditions)
{
	struct jvm jvm = shop();
	struct facts facts;
	char rules[512];

	snprintf(rules, sizeof(rules), "    - deny: { %s }\n", conditions);
	parse(rules);
	facts = facts_from(command, environment, sizeof(environment));
	return rules_find(&config, &jvm, &facts) == 0;
}

static void a_rule_holds_when_all_of_its_conditions_do(void **state)
{
	(void)state;
	assert_true(hits("container: cart, namespace: shop, uid: 1000"));
	assert_false(hits("container: cart, namespace: shop, uid: 1001"));
	assert_false(hits("container: car"));
	assert_true(hits("container: \"c*t\""));
	assert_true(hits("container: 0123456789ab"));
	assert_false(hits("container: 0123456789a"));
	assert_true(hits("pod: cart-7d9"));
	assert_true(hits("pod: \"shop/*\""));
	assert_true(hits("namespace: \"s[gh]op\""));
	assert_false(hits("namespace: cart-7d9"));
	assert_true(hits("annotation: team=shop"));
	assert_true(hits("annotation: \"app=c*\""));
	assert_false(hits("annotation: team=sho"));
	assert_true(hits("image: \"registry/*:1.2\""));
	assert_true(hits("uid: 900-1000"));
	assert_false(hits("uid: 0-999"));
}

static void a_command_without_pattern_signs_is_looked_for_and_with_them_is_the_whole(void **state)
{
	(void)state;
	assert_true(hits("command: org.shop"));
	assert_true(hits("command: \"app org\""));
	assert_false(hits("command: org.shop.Other"));
	assert_true(hits("command: \"*org.shop.*\""));
	assert_true(hits("command: \"java * org.shop.Main --port ??\""));
	assert_false(hits("command: \"org.shop*\""));
}

static void a_variable_of_the_environment_is_one_whole_entry(void **state)
{
	(void)state;
	assert_true(hits("environment: TEAM=shop"));
	assert_true(hits("environment: \"TEAM=*\""));
	assert_true(hits("environment: B="));
	assert_false(hits("environment: EAM=shop"));
	assert_false(hits("environment: TEAM=sho"));
}

static void unreadable_facts_match_no_rule(void **state)
{
	struct jvm jvm = { .pid = 1 };
	struct facts facts;

	(void)state;
	parse("    - deny: { command: \"*\" }\n    - deny: { environment: \"*=*\" }\n"
	      "    - deny: { namespace: \"*\" }\n");
	facts = facts_from(NULL, NULL, 0);
	assert_int_equal(rules_find(&config, &jvm, &facts), -1);
}

static void the_first_rule_that_holds_decides_and_is_named(void **state)
{
	const struct facts facts = { 0 };
	struct jvm jvm = shop();
	struct fault why;

	(void)state;
	parse("    - deny: { uid: 0 }\n    - allow: { namespace: shop }\n    - deny: { uid: 1000 }\n");
	assert_int_equal(rules_find(&config, &jvm, &facts), 1);
	strcpy(jvm.pod, "other/x");
	assert_int_equal(rules_find(&config, &jvm, &facts), 2);
	rules_explain(&config, 2, &why);
	assert_string_equal(why.what, "denied by targets.rules[2] (k.yaml:5): uid 1000");
	assert_int_equal(why.step, FAULT_RULE);
	assert_true(why.flags & FAULT_PERMANENT);
}

static void rules_that_only_moved_are_the_same_rules(void **state)
{
	uint64_t hash;

	(void)state;
	parse("    - deny: { uid: 0 }\n");
	hash = rules_hash(&config);
	parse("\n\n    - deny: { uid: 0 }\n");
	assert_int_equal(rules_hash(&config), hash);
	parse("    - allow: { uid: 0 }\n");
	assert_int_not_equal(rules_hash(&config), hash);
}

static void facts_are_read_from_proc(void **state)
{
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY), dfd = proc_open(proc_dfd, getpid());
	struct facts facts;
	int rules_fd;

	(void)state;
	parse("    - deny: { command: test_admit }\n    - deny: { command: test_other }\n"
	      "    - deny: { environment: \"*=*\" }\n    - deny: { environment: NONE=1 }\n");
	rules_fd = facts_rules_file(&config, 4711);
	assert_int_equal(facts_read(dfd, rules_fd, &facts), 0);
	assert_int_equal(facts.rules_id, 4711);
	assert_int_equal(facts.command, 1u << 0);
	assert_int_equal(facts.environment, 1u << 2);
	assert_false(facts.owner_says_no);
	assert_false(facts.has_agent);
	close(rules_fd);
	assert_int_equal(facts_read(dfd, dfd, &facts), -EBADMSG);
	close(dfd);
	close(proc_dfd);
}

static void a_pattern_means_something_and_not_nothing(void **state)
{
	const struct facts facts = { 0 };
	struct jvm jvm = { .pid = 1 };

	(void)state;
	parse("    - allow: { container: \"*\" }\n    - allow: { pod: \"*\" }\n"
	      "    - allow: { image: \"*\" }\n");
	assert_int_equal(rules_find(&config, &jvm, &facts), -1);
	strcpy(jvm.container_id, "0123456789abcdef"); /* its name has not been read yet */
	assert_int_equal(rules_find(&config, &jvm, &facts), 0);
}

/* A process whose environment has @bytes bytes before the last entry, which is @last. */
static pid_t with_environment(size_t bytes, char *last)
{
	char *argv[] = { (char *)(uintptr_t) "sleep", (char *)(uintptr_t) "60", NULL };
	static char filler[64 << 10];
	char *environment_of[40] = { NULL };
	pid_t pid;

	memset(filler, 'x', sizeof(filler) - 1);
	filler[1] = '=';
	for (size_t i = 0; i < bytes / sizeof(filler); i++)
		environment_of[i] = filler;
	environment_of[bytes / sizeof(filler)] = last;
	pid = fork();
	if (pid == 0) {
		execve("/bin/sleep", argv, environment_of);
		_exit(127);
	}
	return pid;
}

static int forbids(size_t bytes, const char *last)
{
	pid_t pid = with_environment(bytes, (char *)(uintptr_t)last);
	uint64_t until_ns = clock_mono_ns() + 60 * NS_PER_S;
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY), dfd = proc_open(proc_dfd, pid), r;
	char comm[32] = "", some[2];

	/* after an exec the name can be read a moment before the environment */
	while ((strcmp(comm, "sleep\n") != 0 ||
		proc_read(dfd, "environ", some, sizeof(some)) <= 0) &&
	       clock_mono_ns() < until_ns) {
		(void)proc_read(dfd, "comm", comm, sizeof(comm));
		usleep(1000);
	}
	r = owner_forbids(dfd);
	close(dfd);
	close(proc_dfd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

static void the_owners_no_is_found_behind_any_environment(void **state)
{
	(void)state;
	assert_int_equal(forbids(0, OWNER_VARIABLE "=1"), 1);
	assert_int_equal(forbids(1600 << 10, OWNER_VARIABLE "=1"), 1);
	assert_int_equal(forbids(1600 << 10, OWNER_VARIABLE "=0"), 0);
	assert_int_equal(forbids(1600 << 10, "A=" OWNER_VARIABLE "=1"), 0);
	assert_int_equal(owner_forbids(-1), -EBADF);
}

static void the_owner_says_no_by_anything_but_nothing_and_zero(void **state)
{
	(void)state;
#define SAYS_NO(text) owner_says_no(text, sizeof(text))
	assert_true(SAYS_NO("A=1\0KINDLING_DISABLE=1"));
	assert_true(SAYS_NO("KINDLING_DISABLE=true\0B=2"));
	assert_false(SAYS_NO("KINDLING_DISABLE=0"));
	assert_false(SAYS_NO("KINDLING_DISABLE=\0A=1"));
	assert_false(SAYS_NO("XKINDLING_DISABLE=1"));
	assert_false(SAYS_NO("KINDLING_DISABLED=1"));
	assert_false(owner_says_no("KINDLING_DISABLE=1", 17)); /* cut */
	assert_false(owner_says_no("", 0));
}

/* ---- the rate ------------------------------------------------------------------------------- */

static void no_second_sees_more_attaches_than_the_rate(void **state)
{
	struct budget b = { 0 };
	uint64_t begun[200], now = 5 * NS_PER_S;

	(void)state;
	for (int i = 0; i < 200; i++) {
		now += budget_wait_ns(&b, 7, now);
		assert_int_equal(budget_wait_ns(&b, 7, now), 0);
		budget_begin(&b, now);
		begun[i] = now;
		now += (uint64_t)(i % 5) * 20 * NS_PER_MS;
		if (i >= 7)
			assert_true(begun[i] - begun[i - 7] >= NS_PER_S);
	}
	assert_true(now < 40 * NS_PER_S);
}

static void the_first_ones_do_not_wait_and_a_refused_one_gives_its_place_back(void **state)
{
	struct budget b = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(budget_wait_ns(&b, 2, NS_PER_S), 0);
		budget_begin(&b, NS_PER_S);
	}
	assert_int_equal(budget_wait_ns(&b, 2, NS_PER_S + 1), NS_PER_S - 1);
	assert_int_equal(budget_wait_ns(&b, 0, NS_PER_S + 1), 0);
	assert_int_equal(budget_wait_ns(&b, 3, NS_PER_S + 1), 0);
	budget_give_back(&b);
	assert_int_equal(budget_wait_ns(&b, 2, NS_PER_S + 1), 0);
}

/* ---- the breaker ---------------------------------------------------------------------------- */

static void a_crash_blocks_its_cohort_and_nobody_else_until_it_expires(void **state)
{
	struct crashes c = { 0 };
	struct jvm a = shop(), same = shop(), other = shop();
	struct fault why;

	(void)state;
	same.pid = 4712;
	strcpy(same.name, "org.shop.Other"); /* only the image decides */
	strcpy(other.image, "registry/shop/cart:1.3");
	crash_block(&c, &a, "process 4711 died of SIGSEGV 3 s after an attach", 3600 * NS_PER_S);
	assert_non_null(crash_find(&c, &same, 1));
	assert_null(crash_find(&c, &other, 1));
	crash_explain(crash_find(&c, &same, 1), &why);
	assert_string_equal(why.what,
			    "left alone until 1970-01-01T01:00Z, for process 4711 died of "
			    "SIGSEGV 3 s after an attach");
	assert_null(crash_find(&c, &same, 3600 * NS_PER_S));
	crash_expire(&c, 3600 * NS_PER_S, NS_PER_S);
	assert_int_equal(c.n, 0);
	crashes_close(&c);
}

/* Any user can crash their own JVMs, so that must not affect others'. */
static void a_crash_says_nothing_about_what_others_run(void **state)
{
	struct jvm a = shop(), user = shop(), container = shop(), namespace = shop(),
		   again = shop();
	struct jvm mine = { .uid = 1000, .name = "Bootstrap" },
		   theirs = { .uid = 2000, .name = "Bootstrap" };
	struct crashes c = { 0 };

	(void)state;
	user.uid = 2000;
	strcpy(container.container, "database");
	strcpy(namespace.pod, "other/cart-7d9");
	strcpy(again.pod, "shop/cart-8e0"); /* the container was made again and has another id */
	again.container_id[0] = 'f';
	crash_block(&c, &a, "x", NS_PER_S);
	crash_block(&c, &mine, "x", NS_PER_S);
	assert_non_null(crash_find(&c, &a, 1));
	assert_non_null(crash_find(&c, &again, 1));
	assert_null(crash_find(&c, &user, 1));
	assert_null(crash_find(&c, &container, 1));
	assert_null(crash_find(&c, &namespace, 1));
	assert_non_null(crash_find(&c, &mine, 1));
	assert_null(crash_find(&c, &theirs, 1));
	crashes_close(&c);
}

static void an_image_is_known_by_its_digest_whatever_it_is_called(void **state)
{
	struct jvm a = shop(), renamed = shop(), retagged = shop();
	struct crashes c = { 0 };

	(void)state;
	strcpy(a.image_digest, "sha256:aa");
	strcpy(renamed.image_digest, "sha256:aa");
	strcpy(renamed.image, "mirror/cart:latest");
	strcpy(retagged.image_digest, "sha256:bb"); /* the same name, another image */
	crash_block(&c, &a, "x", NS_PER_S);
	assert_non_null(crash_find(&c, &renamed, 1));
	assert_null(crash_find(&c, &retagged, 1));
	crashes_close(&c);
}

static void without_a_digest_the_build_of_libjvm_tells_images_apart(void **state)
{
	struct jvm a = shop(), same = shop(), rebuilt = shop();
	struct crashes c = { 0 };

	(void)state;
	strcpy(a.libjvm_build, "7 bytes of 2025-04-15T12:00:00Z");
	strcpy(same.libjvm_build, "7 bytes of 2025-04-15T12:00:00Z");
	strcpy(rebuilt.libjvm_build, "8 bytes of 2025-07-15T12:00:00Z");
	crash_block(&c, &a, "x", NS_PER_S);
	assert_non_null(crash_find(&c, &same, 1));
	assert_null(crash_find(&c, &rebuilt, 1));
	crashes_close(&c);
}

static void on_the_host_a_cohort_is_a_program_with_its_jdk(void **state)
{
	struct jvm a = { .name = "A" }, b = { .name = "B" };
	struct crashes c = { 0 };

	(void)state;
	strcpy(a.libjvm, "/jdk/lib/server/libjvm.so");
	strcpy(b.libjvm, "/jdk/lib/server/libjvm.so");
	crash_block(&c, &a, "x", NS_PER_S);
	crash_block(&c, &a, "x", NS_PER_S);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.list[0].crashes, 2);
	assert_null(crash_find(&c, &b, 1));
	/* a JDK that was upgraded in place */
	strcpy(a.libjvm_build, "8 bytes of 2025-07-15T12:00:00Z");
	assert_null(crash_find(&c, &a, 1));
	a.libjvm_build[0] = '\0';
	assert_non_null(crash_find(&c, &a, 1));
	strcpy(a.jdk, "Debian 17.0.16");
	assert_null(crash_find(&c, &a, 1));
	crashes_close(&c);
}

static void crash_many(struct crashes *c, const char *namespace, unsigned n)
{
	struct jvm jvm = { 0 };

	snprintf(jvm.pod, sizeof(jvm.pod), "%s/x", namespace);
	for (unsigned i = 0; i < n; i++) {
		jvm.uid = i; /* perhaps a uid of its own user namespace */
		snprintf(jvm.container, sizeof(jvm.container), "c%u", i);
		snprintf(jvm.image, sizeof(jvm.image), "image-%u", i);
		crash_block(c, &jvm, "x", (i + 1000) * NS_PER_S);
	}
	assert_non_null(crash_find(c, &jvm, 1)); /* the last one is in the table */
}

static void the_table_of_cohorts_is_bounded_for_each_owner(void **state)
{
	struct crashes c = { 0 };
	struct jvm real = shop();
	char namespace[16];

	(void)state;
	crash_block(&c, &real, "x", 2 * NS_PER_S); /* ends before all others */
	/* the numbers of docs/security.md, 8 of 64, and not the constants of the code */
	crash_many(&c, "evil", 200);
	assert_int_equal(c.n, 1 + 8);
	assert_non_null(crash_find(&c, &real, 1));
	for (unsigned i = 0; i < 64; i++) { /* in a full table, too */
		snprintf(namespace, sizeof(namespace), "evil-%u", i % 32);
		crash_many(&c, namespace, 2);
		assert_non_null(crash_find(&c, &real, 1));
	}
	assert_int_equal(c.n, 64);
	crashes_close(&c);
}

static void blocks_outlive_the_daemon_until_they_expire(void **state)
{
	char dir[] = "/tmp/kindling-test-XXXXXX", path[64];
	struct jvm jvm = shop(), other = shop();
	struct crashes c;
	FILE *f;

	(void)state;
	strcpy(other.image, "other");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/blocked", dir);
	crashes_open(&c, dir, 1);
	crash_block(&c, &jvm, "it died", 20);
	crash_block(&c, &jvm, "it died again", 30);
	crash_block(&c, &other, "x", 10);
	crashes_close(&c);
	f = fopen(path, "a");
	fputs("nonsense\n99 1\tno reason\n99\t\xff\033[2J\tx\tz\n99 1\t\xff\033[2J\ty\tz\n99 1\told\tno owner\n",
	      f);
	fclose(f);
	crashes_open(&c, dir, 15);
	assert_int_equal(c.n, 2);
	assert_null(crash_find(&c, &other, 15));
	assert_non_null(crash_find(&c, &jvm, 15));
	assert_string_equal(crash_find(&c, &jvm, 15)->reason, "it died again");
	assert_int_equal(crash_find(&c, &jvm, 15)->crashes, 2);
	assert_string_equal(c.list[1].name, "??[2J");
	/* the clock has been set back */
	crash_expire(&c, 5, 20);
	crashes_close(&c);
	crashes_open(&c, dir, 5);
	assert_non_null(crash_find(&c, &jvm, 24));
	assert_null(crash_find(&c, &jvm, 25));
	crash_expire(&c, 100, 20);
	crashes_close(&c);
	crashes_open(&c, dir, 1);
	assert_int_equal(c.n, 0);
	crashes_close(&c);
	unlink(path);
	rmdir(dir);
}

static void signals_of_a_crash_are_told_from_ends(void **state)
{
	(void)state;
	assert_int_equal(crash_signal(SIGSEGV | 0x80), SIGSEGV);
	assert_int_equal(crash_signal(SIGABRT), SIGABRT);
	assert_int_equal(crash_signal(SIGKILL), 0);
	assert_int_equal(crash_signal(SIGTERM), 0);
	assert_int_equal(crash_signal(SIGSEGV << 8), 0); /* an exit status */
	assert_int_equal(crash_signal(0), 0);
}

/* ---- what people asked for ------------------------------------------------------------------ */

static uint64_t my_start_time(void)
{
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY), dfd = proc_open(proc_dfd, getpid());
	struct proc_stat stat = { 0 };
	char text[1024];

	assert_true(proc_read(dfd, "stat", text, sizeof(text)) > 0);
	assert_true(proc_parse_stat(text, &stat));
	close(dfd);
	close(proc_dfd);
	return stat.start_time;
}

static void overrides_outlive_the_daemon_but_not_their_process(void **state)
{
	char dir[] = "/tmp/kindling-test-XXXXXX", path[64];
	struct override mine = { getpid(), my_start_time(), false, 7, 1700000000, 0xabcdef };
	struct override dead = { getpid(), my_start_time() + 1, false, 7, 1700000000, 1 };
	const struct override *found;
	struct overrides w;
	struct fault why;

	(void)state;
	assert_non_null(mkdtemp(dir));
	overrides_open(&w, dir);
	assert_int_equal(overrides_put(&w, &mine), 0);
	assert_int_equal(overrides_put(&w, &mine), 0);
	assert_int_equal(overrides_put(&w, &dead), 0);
	assert_int_equal(w.n, 2);
	overrides_close(&w);
	overrides_open(&w, dir);
	assert_int_equal(w.n, 1);
	found = overrides_find(&w, mine.pid, mine.start_time);
	assert_non_null(found);
	assert_false(found->attach);
	assert_int_equal(found->uid, mine.uid);
	assert_int_equal(found->real_s, mine.real_s);
	assert_int_equal(found->rules_hash, mine.rules_hash);
	overrides_explain(found, &why);
	assert_non_null(
		strstr(why.what, "detached by uid 7 at 2023-11-14T22:13:20Z; `kindling attach "));
	overrides_remove(&w, mine.pid, mine.start_time);
	overrides_close(&w);
	overrides_open(&w, dir);
	assert_int_equal(w.n, 0);
	overrides_close(&w);
	snprintf(path, sizeof(path), "%s/wishes", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void a_broken_file_of_overrides_is_treated_as_empty(void **state)
{
	char dir[] = "/tmp/kindling-test-XXXXXX", path[64];
	struct overrides w;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/wishes", dir);
	f = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fprintf(f, "%d nonsense \xff\n", i);
	fclose(f);
	overrides_open(&w, dir);
	assert_int_equal(w.n, 0);
	overrides_close(&w);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_holds_when_all_of_its_conditions_do),
		cmocka_unit_test(
			a_command_without_pattern_signs_is_looked_for_and_with_them_is_the_whole),
		cmocka_unit_test(a_variable_of_the_environment_is_one_whole_entry),
		cmocka_unit_test(unreadable_facts_match_no_rule),
		cmocka_unit_test(the_first_rule_that_holds_decides_and_is_named),
		cmocka_unit_test(rules_that_only_moved_are_the_same_rules),
		cmocka_unit_test(facts_are_read_from_proc),
		cmocka_unit_test(a_pattern_means_something_and_not_nothing),
		cmocka_unit_test(the_owner_says_no_by_anything_but_nothing_and_zero),
		cmocka_unit_test(the_owners_no_is_found_behind_any_environment),
		cmocka_unit_test(no_second_sees_more_attaches_than_the_rate),
		cmocka_unit_test(the_first_ones_do_not_wait_and_a_refused_one_gives_its_place_back),
		cmocka_unit_test(a_crash_blocks_its_cohort_and_nobody_else_until_it_expires),
		cmocka_unit_test(an_image_is_known_by_its_digest_whatever_it_is_called),
		cmocka_unit_test(without_a_digest_the_build_of_libjvm_tells_images_apart),
		cmocka_unit_test(on_the_host_a_cohort_is_a_program_with_its_jdk),
		cmocka_unit_test(a_crash_says_nothing_about_what_others_run),
		cmocka_unit_test(the_table_of_cohorts_is_bounded_for_each_owner),
		cmocka_unit_test(blocks_outlive_the_daemon_until_they_expire),
		cmocka_unit_test(signals_of_a_crash_are_told_from_ends),
		cmocka_unit_test(overrides_outlive_the_daemon_but_not_their_process),
		cmocka_unit_test(a_broken_file_of_overrides_is_treated_as_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

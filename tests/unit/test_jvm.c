#include "tests/unit/fake_proc.h"
#include <errno.h>
#include "daemon/discovery/jvm.h"
#include "daemon/ground/maps.h"
#include "daemon/ground/proc.h"

static int proc_dfd;
static struct jvm jvm;

static int set_up(void **state)
{
	(void)state;
	proc_dfd = fake_open();
	memset(&jvm, 0, sizeof(jvm));
	return proc_dfd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(proc_dfd);
	fake_remove("");
	return 0;
}

static void a_process_without_libjvm_is_no_jvm(void **state)
{
	(void)state;
	fake_process(100, 5, FAKE_NO_JVM, FAKE_CATCHES_QUIT);
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_NO);
	fake_process(101, 5, "", FAKE_CATCHES_NONE); /* a kernel thread */
	assert_int_equal(jvm_probe(proc_dfd, 101, &jvm), JVM_NO);
}

static void a_jvm_that_catches_sigquit_is_ready(void **state)
{
	static const char cmdline[] = "java\0-cp\0/x\0com.example.Main\0arg";

	(void)state;
	fake_process(100, 4711, FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	fake_bytes("100/cmdline", cmdline, sizeof(cmdline));
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_READY);
	assert_int_equal(jvm.pid, 100);
	assert_int_equal(jvm.ns_pid, 7);
	assert_int_equal(jvm.start_time, 4711);
	assert_int_equal(jvm.uid, 1001); /* effective */
	assert_int_equal(jvm.gid, 101);
	assert_string_equal(jvm.comm, "java");
	assert_string_equal(jvm.name, "com.example.Main");
	assert_string_equal(jvm.libjvm, "/jdk/lib/server/libjvm.so");
	assert_false(jvm.libjvm_deleted);
	assert_string_equal(jvm.container_id, "");
	assert_string_equal(jvm.jdk, "");
}

static void a_jvm_that_does_not_catch_sigquit_yet_is_young(void **state)
{
	(void)state;
	fake_process(100, 5, FAKE_LIBJVM, FAKE_CATCHES_NONE);
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_YOUNG);
	assert_int_equal(jvm.start_time, 5);
	/* bit 3 of the mask, not 4: SIGILL is caught, SIGQUIT is not */
	fake_process(100, 5, FAKE_LIBJVM, "0000000000000008");
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_YOUNG);
	fake_process(100, 5, FAKE_LIBJVM, "0000000000000004");
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_READY);
}

static void a_process_that_is_gone_or_dead_is_said_to_be(void **state)
{
	(void)state;
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), -ESRCH);
	fake_process(100, 5, FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	fake_file("100/stat", "100 (java) Z 1 1 1 0 -1 4 1 0 0 0 1 1 0 0 20 0 20 0 5 1 1 0\n");
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), -ESRCH);
}

static void a_link_in_place_of_a_process_is_not_followed(void **state)
{
	(void)state;
	fake_process(100, 5, FAKE_LIBJVM, FAKE_CATCHES_QUIT);
	fake_link("200", "100");
	assert_true(jvm_probe(proc_dfd, 200, &jvm) < 0);
	fake_link("100/maps", "/etc/passwd");
	assert_true(jvm_probe(proc_dfd, 100, &jvm) < 0);
}

static void a_jdk_that_was_replaced_under_a_running_jvm_is_found(void **state)
{
	(void)state;
	fake_process(100, 5, "1-2 r-xp 0 fe:00 1  /jdk/lib/server/libjvm.so (deleted)\n",
		     FAKE_CATCHES_QUIT);
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_READY);
	assert_true(jvm.libjvm_deleted);
	assert_string_equal(jvm.libjvm, "/jdk/lib/server/libjvm.so");
}

static void openj9_is_found_under_its_own_name(void **state)
{
	(void)state;
	fake_process(100, 5,
		     "1-2 r-xp 0 fe:00 1  /j9/lib/j9vm/libjvm.so\n"
		     "2-3 r-xp 0 fe:00 1  /j9/lib/default/libj9vm29.so\n"
		     "3-4 r-xp 0 fe:00 1  /j9/lib/server/libjvm.so\n",
		     FAKE_CATCHES_QUIT);
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_READY);
	assert_string_equal(jvm.libjvm, "/j9/lib/default/libj9vm29.so");
}

static void only_code_of_exactly_that_name_counts(void **state)
{
	(void)state;
	fake_process(100, 5,
		     "1-2 r--p 0 fe:00 1  /jdk/lib/server/libjvm.so\n" /* somebody reads it */
		     "1-2 r-xp 0 fe:00 1  /x/mylibjvm.so\n"
		     "1-2 r-xp 0 fe:00 1  /x/libjvm.so.bak\n"
		     "1-2 r-xp 0 fe:00 1  /x/libjvm.so/other\n"
		     "1-2 r-xp 0 fe:00 1  /memfd:libjvm.so (deleted)\n"
		     "1-2 r-xp 0 00:00 0  [libjvm.so]\n"
		     "1-2 r-xp\n\nlibjvm.so\n",
		     FAKE_CATCHES_QUIT);
	assert_int_equal(jvm_probe(proc_dfd, 100, &jvm), JVM_NO);
}

/* The test's own process: nothing is made up. */
static void a_real_process_is_read(void **state)
{
	int real = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(jvm_probe(real, getpid(), &jvm), JVM_NO);
	close(real);
}

static void texts_of_another_process_have_an_end(void **state)
{
	struct jvm said;
	const size_t first = offsetof(struct jvm, comm);
	size_t ends = 0;

	(void)state;
	memset(&said, 'x', sizeof(said));
	jvm_end_texts(&said);
	for (size_t i = first; i < offsetof(struct jvm, allowed); i++)
		ends += ((const char *)&said)[i] == '\0';
	assert_int_equal(ends, 13);
	assert_int_equal(strlen(said.name), sizeof(said.name) - 1);
	assert_int_equal(strlen(said.allowed.no_word), sizeof(said.allowed.no_word) - 1);
	assert_int_equal(strlen(said.image_digest), sizeof(said.image_digest) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_another_process_have_an_end),
		cmocka_unit_test_setup_teardown(a_process_without_libjvm_is_no_jvm, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_jvm_that_catches_sigquit_is_ready, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_jvm_that_does_not_catch_sigquit_yet_is_young,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone_or_dead_is_said_to_be,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_link_in_place_of_a_process_is_not_followed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_jdk_that_was_replaced_under_a_running_jvm_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(openj9_is_found_under_its_own_name, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(only_code_of_exactly_that_name_counts, set_up,
						tear_down),
		cmocka_unit_test(a_real_process_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

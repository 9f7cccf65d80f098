#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"

#define STAT(comm, state) "42 (" comm ") " state " 1 1 1 0 -1 4 1 0 0 0 3 4 0 0 20 0 20 0 99 1 1 0\n"

static void brackets_in_a_name_do_not_confuse(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_true(proc_parse_stat(
		"7 (a) R (b)) S 1 1 1 0 -1 4 1 0 0 0 1 1 0 0 20 0 20 0 99 1 1 0\n", &stat));
	assert_string_equal(stat.comm, "a) R (b)");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.start_time, 99);
	assert_false(proc_parse_stat("7 (java) S 1 1\n", &stat));
	assert_false(proc_parse_stat("", &stat));
	assert_false(proc_parse_stat("7 )java( S 1", &stat));
}

static void a_status_without_its_lines_is_refused(void **state)
{
	struct proc_status s;

	(void)state;
	assert_false(proc_parse_status("Name:\tUid:\t0\t0\n", &s));
	assert_true(proc_parse_status("Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nSigCgt:\t0f\n", &s));
	assert_int_equal(s.uid, 2);
	assert_int_equal(s.gid, 6);
	assert_int_equal(s.ns_pid, 0); /* before Linux 4.1 */
	assert_int_equal(s.caught, 15);
}

static void start_time_and_state_stand_behind_the_last_bracket(void **state)
{
	(void)state;
	assert_int_equal(proc_state(STAT("x) Z (y", "R")), 'R');
	assert_int_equal(proc_start_time(STAT("x) Z (y", "R")), 99);
	assert_int_equal(proc_start_time("42 (x"), 0);
	assert_int_equal(proc_start_time("42 (x) S 1"), 0);
	assert_int_equal(proc_state("42 (x"), '?');
}

static void fields_are_found_at_the_beginning_of_a_line(void **state)
{
	static const char limits[] = "Limit          Soft Limit  Hard Limit  Units\n"
				     "Max processes  4711        4711        processes\n";
	char text[16];

	(void)state;
	assert_true(proc_field("Name:\tjava\nUid:\t1\t2\n", "Uid:", text, sizeof(text)));
	assert_string_equal(text, "1\t2");
	assert_true(proc_field(limits, "Max processes", text, sizeof(text)));
	assert_string_equal(text, "4711        471"); /* cut */
	assert_false(proc_field("Name:\tUid:\t0\n", "Uid:", text, sizeof(text)));
	assert_int_equal(proc_signal_mask("ShdPnd:\t0000000000000004\n", "ShdPnd:"), 4);
	assert_int_equal(proc_signal_mask("Name:\tx\n", "SigPnd:"), 0);
	assert_int_equal(proc_signal_mask("SigPnd:\n00ff", "SigPnd:"), 0);
}

static void id_0_of_a_user_namespace_is_found(void **state)
{
	uint32_t id = 0;

	(void)state;
	assert_int_equal(proc_map_root("1 300000 5\n 0 200000 65536\n", &id), 0);
	assert_int_equal(id, 200000);
	assert_int_equal(proc_map_root("1000 1000 1\n", &id), -ENOENT);
	assert_int_equal(proc_map_root("", &id), -ENOENT);
}

/* The test's own process: nothing is made up. */
static void a_real_process_is_read(void **state)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int dfd = proc_open(proc_dfd, getpid());
	char text[8192], cut[8], boot[PROC_BOOT_ID_SIZE];
	struct proc_status status;

	(void)state;
	assert_true(proc_read(dfd, "stat", text, sizeof(text)) > 0);
	assert_int_equal(proc_state(text), 'R');
	assert_true(proc_lives(getpid(), proc_start_time(text)));
	assert_false(proc_lives(getpid(), proc_start_time(text) + 1));
	assert_int_equal(proc_read(dfd, "stat", cut, sizeof(cut)), sizeof(cut) - 1);
	assert_int_equal(proc_read(dfd, "nothing", text, sizeof(text)), -ESRCH);
	assert_int_equal(proc_read(dfd, "exe", text, sizeof(text)), -ELOOP); /* not followed */
	assert_int_equal(proc_open(proc_dfd, 1 << 30), -ESRCH);
	assert_true(proc_read(dfd, "status", text, sizeof(text)) > 0);
	assert_true(proc_parse_status(text, &status));
	assert_int_equal(status.uid, geteuid());
	proc_boot_id(boot);
	assert_int_equal(strlen(boot), 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brackets_in_a_name_do_not_confuse),
		cmocka_unit_test(a_status_without_its_lines_is_refused),
		cmocka_unit_test(start_time_and_state_stand_behind_the_last_bracket),
		cmocka_unit_test(fields_are_found_at_the_beginning_of_a_line),
		cmocka_unit_test(id_0_of_a_user_namespace_is_found),
		cmocka_unit_test(a_real_process_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

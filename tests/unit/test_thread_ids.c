/* Thread numbers inside a container, read from a made-up /proc/PID/task. */
#include "daemon/host/thread_ids.h"

#include <stdlib.h>
#include "tests/unit/fake_proc.h"

#define S 1000000000ull

static struct thread_ids *ids;
static uint64_t now = 100 * S;

static void thread(uint32_t host_tid, uint32_t ns_tid)
{
	char name[32], text[160];

	snprintf(name, sizeof(name), "%u/status", host_tid);
	snprintf(
		text, sizeof(text),
		"Name:\tNSpid: 7\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nNSpid:\t%u\t%u\nSigCgt:\t0\n",
		host_tid, ns_tid);
	fake_file(name, text);
}

static void ends(uint32_t host_tid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u/status", fake_root, host_tid);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/%u", fake_root, host_tid);
	assert_int_equal(rmdir(path), 0);
}

static void told(uint32_t ns_tid, uint64_t java_id)
{
	now += S;
	thread_ids_reported(ids, ns_tid, java_id, now);
}

static int setup(void **state)
{
	(void)state;
	ids = thread_ids_new(fake_open());
	return ids ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	ids = thread_ids_free(ids);
	fake_remove("");
	return 0;
}

static void both_numbers_lead_to_each_other(void **state)
{
	(void)state;
	thread(4711, 7);
	thread(4712, 8);
	told(7, 1);
	assert_int_equal(thread_ids_host(ids, 7), 4711);
	assert_int_equal(thread_ids_host(ids, 8), 4712);
	assert_int_equal(thread_ids_container(ids, 4712), 8);
	assert_int_equal(thread_ids_container(ids, 8), 0);
}

static void thread_that_nobody_saw_is_marked(void **state)
{
	(void)state;
	told(9, 1);
	assert_int_equal(thread_ids_host(ids, 9), THREAD_ID_FOREIGN | 9);
}

static void number_that_ended_is_kept_until_it_is_another_s(void **state)
{
	(void)state;
	thread(4711, 7);
	told(7, 1);
	ends(4711);
	told(8, 2);
	assert_int_equal(thread_ids_host(ids, 7), 4711);
	thread(5000, 7);
	told(7, 3);
	assert_int_equal(thread_ids_host(ids, 7), 5000);
	assert_int_equal(thread_ids_container(ids, 4711), 0);
}

static void host_s_number_that_comes_back_is_read_again(void **state)
{
	(void)state;
	thread(4711, 7);
	told(7, 1);
	ends(4711);
	told(8, 2);
	told(8, 2);
	thread(4711, 30);
	told(30, 3);
	assert_int_equal(thread_ids_host(ids, 30), 4711);
	assert_int_equal(thread_ids_container(ids, 4711), 30);
}

static void looks_are_bounded_and_go_on(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < THREAD_IDS_LOOKS + 100; i++)
		thread(10000 + i, 1 + i);
	for (int i = 0; i < 2; i++) {
		now += 1000 * S;
		told(1u << 20, 0); /* nobody: looks each time */
	}
	for (uint32_t i = 0; i < THREAD_IDS_LOOKS + 100; i++)
		assert_int_equal(thread_ids_host(ids, 1 + i), 10000 + i);
	thread(9999, 5000);
	thread_ids_reported(ids, 5000, 1, now); /* too soon after the last pass */
	assert_int_equal(thread_ids_host(ids, 5000), THREAD_ID_FOREIGN | 5000);
}

static void words_that_are_no_numbers_are_left_out(void **state)
{
	(void)state;
	fake_file("4711/status",
		  "Name:\tx\nUid:\t1\t1\nGid:\t1\t1\nNSpid:\t99999999\nSigCgt:\t0\n");
	fake_file("99999999/status", "Uid:\t1\t1\nGid:\t1\t1\nNSpid:\t9 9\nSigCgt:\t0\n");
	fake_file("x/status", "");
	told(9, 1);
	assert_int_equal(thread_ids_host(ids, 9), THREAD_ID_FOREIGN | 9);
	assert_int_equal(thread_ids_container(ids, 4711), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_numbers_lead_to_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(thread_that_nobody_saw_is_marked, setup, teardown),
		cmocka_unit_test_setup_teardown(number_that_ended_is_kept_until_it_is_another_s,
						setup, teardown),
		cmocka_unit_test_setup_teardown(host_s_number_that_comes_back_is_read_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(looks_are_bounded_and_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(words_that_are_no_numbers_are_left_out, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

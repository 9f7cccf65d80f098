/* The file .attach_pidN: who owns it, when it is removed and when it must stay. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "injector/inject.h"
#include "tests/unit/opens.h"

#define STAT(state) "42 (java) " state " 1 42 42 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 9 0 987654 1 2"

static char dir[64];
static struct inject in;
static struct fault f;

static const char *at(const char *name)
{
	static char path[4][256];
	static int turn;

	snprintf(path[++turn % 4], sizeof(path[0]), "%s/%s", dir, name);
	return path[turn % 4];
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(at(name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool exists(void)
{
	return access(at("root/tmp/.attach_pid7"), F_OK) == 0;
}

static int open_dir(const char *name)
{
	return open(at(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/kindling-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mkdir(at("proc"), 0755), 0);
	assert_int_equal(mkdir(at("root"), 0755), 0);
	assert_int_equal(mkdir(at("root/tmp"), 0755), 0);
	assert_int_equal(mkdir(at("proc/cwd"), 0755), 0);
	put("proc/stat", STAT("S"));
	put("proc/status", "ShdPnd:\t0000000000000000\n");
	f = (struct fault){ 0 };
	in = (struct inject)INJECT_NULL;
	in.pid = 42;
	in.ns_pid = 7;
	in.start_time = 987654;
	in.uid = in.ns_root_uid = geteuid();
	in.gid = in.ns_root_gid = getegid();
	in.fault = &f;
	in.deadline_mono_ns = clock_mono_ns() + 300 * NS_PER_MS;
	in.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	in.proc_dfd = open_dir("proc");
	in.root_dfd = open_dir("root");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(in.pidfd);
	close(in.proc_dfd);
	close(in.root_dfd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void without_a_tmp_it_lies_where_the_jvm_is_now(void **state)
{
	(void)state;
	assert_int_equal(rmdir(at("root/tmp")), 0);
	assert_int_equal(attach_file_make(&in), 0);
	assert_int_equal(access(at("proc/cwd/.attach_pid7"), F_OK), 0);
	attach_file_forget(&in);
	assert_int_equal(access(at("proc/cwd/.attach_pid7"), F_OK), -1);
}

static void it_says_whose_it_is_and_goes_when_it_was_answered(void **state)
{
	char text[64] = "";
	int fd;

	(void)state;
	assert_int_equal(attach_file_make(&in), 0);
	fd = open(at("root/tmp/.attach_pid7"), O_RDONLY);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "kindling 42 987654\n");
	assert_true(flock(fd, LOCK_EX | LOCK_NB) < 0); /* while the attach lives */
	close(fd);
	attach_file_forget(&in);
	assert_false(exists());
}

static void a_young_jvm_is_not_followed_into_its_hsperfdata_directory(void **state)
{
	char target[128];

	(void)state;
	assert_int_equal(mkdir(at("hsperfdata_root"), 0755), 0);
	snprintf(target, sizeof(target), "%s", at("hsperfdata_root"));
	assert_int_equal(rmdir(at("proc/cwd")), 0);
	assert_int_equal(symlink(target, at("proc/cwd")), 0);
	assert_int_equal(rmdir(at("root/tmp")), 0);
	assert_int_equal(attach_file_make(&in), -ENOENT);
	assert_int_equal(access(at("hsperfdata_root/.attach_pid7"), F_OK), -1);
}

static void it_stays_while_sigquit_is_pending_or_the_process_stands_still(void **state)
{
	(void)state;
	put("proc/status", "ShdPnd:\t0000000000000004\n");
	assert_int_equal(attach_file_make(&in), 0);
	put("proc/stat", STAT("T"));
	assert_false(attach_file_give_up(&in));
	assert_true(exists());
	attach_file_cleanup(&in); /* still so */
	assert_true(exists());
	put("proc/status", "ShdPnd:\t0000000000000000\n");
	attach_file_cleanup(&in); /* locked by another injector that has not sent SIGQUIT yet */
	assert_true(exists());
	put("proc/stat", STAT("S"));
	attach_file_cleanup(&in);
	assert_false(exists());
}

static bool on_nfs;
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

/* As on NFS and CIFS: an exclusive lock needs a descriptor for writing, flock(2). */
int __wrap_flock(int fd, int operation)
{
	if (on_nfs && operation & LOCK_EX && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		errno = EBADF;
		return -1;
	}
	return __real_flock(fd, operation);
}

static void on_nfs_the_file_of_a_killed_attach_is_taken_over_too(void **state)
{
	(void)state;
	on_nfs = true;
	put("root/tmp/.attach_pid7", "kindling 42 987654\n");
	assert_int_equal(attach_file_make(&in), 0);
	attach_file_forget(&in);
	assert_false(exists());
	put("root/tmp/.attach_pid7", "kindling 42 987654\n");
	attach_file_cleanup(&in);
	assert_false(exists());
	assert_int_equal(rmdir(at("root/tmp")), 0);
	put("proc/cwd/.attach_pid7", "kindling 42 987654\n");
	assert_int_equal(attach_file_make(&in), 0);
	attach_file_forget(&in);
	assert_int_equal(access(at("proc/cwd/.attach_pid7"), F_OK), -1);
	on_nfs = false;
}

static void the_next_attach_to_the_same_process_takes_it_over_at_once(void **state)
{
	(void)state;
	put("root/tmp/.attach_pid7", "kindling 42 987654\n");
	assert_int_equal(attach_file_make(&in), 0);
	assert_true(exists());
	attach_file_forget(&in);
	assert_false(exists());
}

static void one_that_is_in_use_is_waited_for(void **state)
{
	int fd;

	(void)state;
	put("root/tmp/.attach_pid7", "kindling 42 987654\n");
	fd = open(at("root/tmp/.attach_pid7"), O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(attach_file_make(&in), -EBUSY);
	attach_file_cleanup(&in);
	assert_true(exists());
	close(fd);
}

static void another_targets_or_another_tools_is_not_touched(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at("43"), 0755), 0);
	put("43/stat", STAT("S"));
	/* the file belongs to another pod that shares /tmp */
	put("root/tmp/.attach_pid7", "kindling 43 987654\n");
	attach_file_cleanup(&in);
	assert_true(exists());
	assert_int_equal(attach_file_make(&in), -EBUSY);
	put("root/tmp/.attach_pid7", ""); /* jcmd's, and young */
	attach_file_cleanup(&in);
	assert_true(exists());
}

/* The JVM looks there first. */
static void an_earlier_attach_file_in_the_working_directory_is_removed(void **state)
{
	(void)state;
	put("proc/cwd/.attach_pid7", "");
	assert_int_equal(attach_file_make(&in), -EBUSY); /* jcmd's, and young */
	f = (struct fault){ 0 };
	in.deadline_mono_ns = clock_mono_ns() + 300 * NS_PER_MS;
	put("proc/cwd/.attach_pid7", "kindling 42 987654\n");
	assert_int_equal(attach_file_make(&in), 0);
	assert_true(access(at("proc/cwd/.attach_pid7"), F_OK) < 0);
	assert_true(exists());
	attach_file_forget(&in);
}

static void one_for_a_process_that_has_ended_is_in_nobodys_way(void **state)
{
	(void)state;
	put("root/tmp/.attach_pid7", "kindling 44 987654\n"); /* there is no such process */
	assert_int_equal(attach_file_make(&in), 0);
	attach_file_forget(&in);
	assert_int_equal(mkdir(at("44"), 0755), 0);
	put("44/stat", STAT("S"));
	put("root/tmp/.attach_pid7", "kindling 44 987653\n"); /* another one by now */
	assert_int_equal(attach_file_make(&in), 0);
	attach_file_forget(&in);
	put("root/tmp/.attach_pid7", "kindling 44 987654\n");
	assert_int_equal(attach_file_make(&in), -EBUSY);
}

static void a_link_or_fifo_in_its_place_is_not_opened(void **state)
{
	(void)state;
	put("secret", "kindling 42 987654\n");
	assert_int_equal(symlink(at("secret"), at("root/tmp/.attach_pid7")), 0);
	attach_file_cleanup(&in);
	assert_true(exists());
	assert_int_equal(unlink(at("root/tmp/.attach_pid7")), 0);
	assert_int_equal(mkfifo(at("root/tmp/.attach_pid7"), 0600), 0);
	attach_file_cleanup(&in); /* it returns and does not wait for a writer */
	assert_true(exists());
}

/* A container may create a file that only a privileged process such as the injector can open. */
static void a_device_in_its_place_is_never_opened(void **state)
{
	static const char *const places[] = { "root/tmp", "proc/cwd" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int dfd = open_dir(places[i]), watch = watch_opens(at(places[i]));

		if (!make_device(dfd, ".attach_pid7", in.uid))
			skip();
		close(open(at(i ? "proc/cwd/.attach_pid7" : "root/tmp/.attach_pid7"), O_RDONLY));
		assert_true(was_opened(watch, ".attach_pid7")); /* it would be seen */
		in.deadline_mono_ns = clock_mono_ns() + 100 * NS_PER_MS;
		f = (struct fault){ 0 };
		assert_int_equal(attach_file_make(&in), -EBUSY);
		assert_non_null(strstr(f.what, ".attach_pid7 exists already"));
		attach_file_cleanup(&in);
		(void)attach_file_is_awaited(&in, dfd);
		assert_false(was_opened(watch, ".attach_pid7"));
		assert_int_equal(unlinkat(dfd, ".attach_pid7", 0), 0);
		close(watch);
		close(dfd);
	}
}

/* 10 s of an attach of others, each time. */
static unsigned pauses_of_5_ms;
void __real_inject_pause_ms(int ms);
void __wrap_inject_pause_ms(int ms);

void __wrap_inject_pause_ms(int ms)
{
	pauses_of_5_ms += ms == 5;
	__real_inject_pause_ms(ms);
}

static void one_of_a_stranger_is_not_waited_for(void **state)
{
	uint64_t begin = clock_mono_ns();

	(void)state;
	put("root/tmp/.attach_pid7", "for ever");
	if (chown(at("root/tmp/.attach_pid7"), in.uid + 1000, (gid_t)-1) < 0)
		skip();
	in.deadline_mono_ns = begin + 3600 * NS_PER_S;
	pauses_of_5_ms = 0;
	assert_int_equal(attach_file_make(&in), -EBUSY);
	assert_in_range(pauses_of_5_ms, 1,
			/* at most as many tries as fit into half a second; fewer on a busy
			 * machine */
			101);
	assert_non_null(strstr(f.what, "belongs to uid 1000"));
	/* and its own user's file is not waited for long either */
	assert_int_equal(chown(at("root/tmp/.attach_pid7"), in.uid, (gid_t)-1), 0);
	assert_int_equal(attach_file_make(&in), -EBUSY);
	assert_true(clock_mono_ns() - begin < 1800 * NS_PER_S);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(without_a_tmp_it_lies_where_the_jvm_is_now),
		FILE_TEST(it_says_whose_it_is_and_goes_when_it_was_answered),
		FILE_TEST(a_young_jvm_is_not_followed_into_its_hsperfdata_directory),
		FILE_TEST(it_stays_while_sigquit_is_pending_or_the_process_stands_still),
		FILE_TEST(on_nfs_the_file_of_a_killed_attach_is_taken_over_too),
		FILE_TEST(the_next_attach_to_the_same_process_takes_it_over_at_once),
		FILE_TEST(one_that_is_in_use_is_waited_for),
		FILE_TEST(another_targets_or_another_tools_is_not_touched),
		FILE_TEST(an_earlier_attach_file_in_the_working_directory_is_removed),
		FILE_TEST(one_for_a_process_that_has_ended_is_in_nobodys_way),
		FILE_TEST(a_link_or_fifo_in_its_place_is_not_opened),
		FILE_TEST(a_device_in_its_place_is_never_opened),
		FILE_TEST(one_of_a_stranger_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

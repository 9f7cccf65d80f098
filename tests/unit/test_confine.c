#include "tests/unit/unit.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/confine.h"

static const int calls[] = { SYS_getppid, SYS_exit_group };

/* The wait status of a child that makes @call under a filter. */
static int status_of(long call, uint32_t otherwise)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		(void)confine_capabilities(0);
		if (confine_calls(calls, sizeof(calls) / sizeof(calls[0]), otherwise) < 0)
			_exit(99);
		/* a sanitizer's _exit() does more */
		(void)syscall(SYS_exit_group, syscall(call) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void a_call_that_is_not_on_the_list_is_not_made(void **state)
{
	const uint32_t refuse = SECCOMP_RET_ERRNO | ENOSYS;
	int status;

	(void)state;
	assert_int_equal(status_of(SYS_getppid, SECCOMP_RET_KILL_PROCESS), 0);
	status = status_of(SYS_getpid, SECCOMP_RET_KILL_PROCESS);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = status_of(SYS_getpid, refuse);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS);
#if defined(__x86_64__)
	/* the same call number in another system call convention */
	status = status_of(SYS_getppid | 0x40000000, refuse);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS);
#endif
}

static void more_calls_than_fit_are_refused(void **state)
{
	static const int many[1000];

	(void)state;
	assert_int_equal(confine_calls(many, 1000, SECCOMP_RET_KILL_PROCESS), -E2BIG);
}

/* The number in a line of /proc/self/status. */
static unsigned long long line_of(const char *name, int base)
{
	unsigned long long value = ~0ull;
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, base);
	if (f)
		fclose(f);
	return value;
}

#define UID  70708
#define KEPT (CONFINE_CAP(SYS_PTRACE) | CONFINE_CAP(CHECKPOINT_RESTORE))

/* Returns 0, or the number of the line of the status that is wrong. */
static int check_rights(uint64_t keep, uid_t uid)
{
	static const char *const none[] = { "CapInh", "CapAmb" };
	static const char *const some[] = { "CapPrm", "CapEff", "CapBnd" };

	for (int i = 0; i < 2; i++)
		if (line_of(none[i], 16) != 0)
			return 1 + i;
	for (int i = 0; i < 3; i++)
		if (line_of(some[i], 16) != keep)
			return 3 + i;
	if (line_of("NoNewPrivs", 10) != 1)
		return 6;
	if (line_of("Uid", 10) != uid || line_of("Gid", 10) != uid)
		return 7;
	return setuid(0) < 0 || uid == 0 ? 0 : 8;
}

/* @name: NULL = it stays root */
static int rights_after(uint64_t keep, const char *name, uid_t becomes)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		if ((name ? confine_user(name, UID, keep) : confine_capabilities(keep)) < 0)
			_exit(99);
		_exit(check_rights(keep, becomes));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void rights_that_are_given_up_are_gone(void **state)
{
	(void)state;
	if (geteuid() != 0 || !(line_of("CapEff", 16) & CONFINE_CAP(SETPCAP)))
		skip();
	assert_int_equal(rights_after(0, NULL, 0), 0);
	assert_int_equal(rights_after(0, "no-such-account", UID), 0);
	assert_int_equal(rights_after(KEPT, NULL, 0), 0);
	assert_int_equal(rights_after(KEPT, "no-such-account", UID), 0);
	/* an account with that name has a number of its own; root must be refused */
	assert_int_equal(rights_after(0, "daemon", 1), 0);
	assert_int_equal(rights_after(0, "root", UID), 0);
}

static bool write_map(pid_t pid, const char *which)
{
	static const char map[] = "0 0 65536\n";
	char path[64];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	f = fopen(path, "we");
	ok = f && fputs(map, f) >= 0;
	return f && fclose(f) == 0 && ok;
}

/* 65,536 uids are the usual size of a container's user namespace. */
static int become_in_a_user_namespace(int told_fd, int go_fd)
{
	char c;

	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	(void)!write(told_fd, "", 1);
	if (read(go_fd, &c, 1) != 1)
		return 98;
	if (confine_user("no-such-account", UID, 0) < 0)
		return 99;
	return check_rights(0, CONFINE_NOBODY);
}

static void where_there_is_no_such_number_it_is_nobody(void **state)
{
	int told[2], go[2], status;
	char c;
	pid_t child;

	(void)state;
	if (geteuid() != 0 || !(line_of("CapEff", 16) & CONFINE_CAP(SETPCAP)))
		skip();
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (child == 0) {
		close(told[0]);
		close(go[1]);
		_exit(become_in_a_user_namespace(told[1], go[0]));
	}
	close(told[1]);
	close(go[0]);
	if (read(told[0], &c, 1) == 1) {
		assert_true(write_map(child, "uid_map"));
		assert_true(write_map(child, "gid_map"));
		assert_int_equal(write(go[1], "", 1), 1);
	}
	close(told[0]);
	close(go[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* user namespaces are not allowed on this machine */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_is_not_on_the_list_is_not_made),
		cmocka_unit_test(more_calls_than_fit_are_refused),
		cmocka_unit_test(rights_that_are_given_up_are_gone),
		cmocka_unit_test(where_there_is_no_such_number_it_is_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

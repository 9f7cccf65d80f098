/*
 * A process that may not read seccomp filters asks the service that may. The target is a child that
 * sleeps on a futex under a filter, like a JVM's main thread; the process that asks has a filter of
 * its own, like a child of a hardened service. Needs root, because the kernel shows filters to
 * nobody else.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"
#include "injector/filters.h"
#include "injector/inject.h"
#include "injector/seccomp.h"

#define WAIT_MS 10000

static char directory[] = "/tmp/kindling-filters-XXXXXX", path[64];

/* @nr: the system call that ends the process; -1 = none does */
static void set_filter(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(99);
}

/* A child that ends with the test, also if that fails: whoever waits for the end of its output
 * would wait for the child. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* A child that runs for @busy_ms before it sleeps. */
static pid_t start_late_sleeper(int nr, uint64_t busy_ms)
{
	static uint32_t word;
	pid_t pid = start_child();

	if (pid == 0) {
		uint64_t until_ns = clock_mono_ns() + busy_ms * NS_PER_MS;

		set_filter(nr);
		while (clock_mono_ns() < until_ns)
			;
		for (;;)
			(void)syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	}
	return pid;
}

static pid_t start_sleeper(int nr)
{
	return start_late_sleeper(nr, 0);
}

/* The socket is there a moment before it listens. */
static bool is_listening(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0;
}

static pid_t start_reader(void)
{
	pid_t pid = start_child();

	if (pid == 0)
		_exit(filters_serve(path));
	for (int ms = 0; !is_listening() && ms < WAIT_MS; ms++)
		(void)usleep(1000);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void open_target(struct inject *in, pid_t pid)
{
	char name[32], stat[1024];

	in->pid = pid;
	snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	in->proc_dfd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(in->proc_dfd >= 0);
	assert_true(proc_read(in->proc_dfd, "stat", stat, sizeof(stat)) > 0);
	in->start_time = proc_start_time(stat);
}

/* The verdict on a child under a filter: 'D' deadly, '-' harmless, 'B' busy, 'E' an error. */
static char ask_as_child(const struct inject *in, bool check)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct fault f = { 0 };
		struct inject mine = *in;
		char call[32] = "";
		int r;

		set_filter(-1);
		mine.fault = &f;
		mine.loads = true;
		r = check ? seccomp_check(&mine) : filters_ask(&mine, call, sizeof(call));
		if (check)
			_exit(r == -EPERM && strstr(f.what, "timer_create") ? 'D' : '-');
		_exit(r == -EBUSY ? 'B' : r < 0 ? 'E' : call[0] ? 'D' : '-');
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return (char)WEXITSTATUS(status);
}

static void ask_and_expect(int nr, char expected, bool check)
{
	struct inject in = INJECT_NULL;
	pid_t target = start_sleeper(nr);
	char said = 'B';

	open_target(&in, target);
	for (int ms = 0; said == 'B' && ms < WAIT_MS; ms += 10) { /* until it sleeps */
		said = ask_as_child(&in, false);
		(void)usleep(10000);
	}
	if (check)
		said = ask_as_child(&in, true);
	fd_close(in.proc_dfd);
	end(target);
	assert_int_equal(said, expected);
}

static void a_process_with_a_filter_learns_of_a_deadly_one(void **state)
{
	pid_t reader = start_reader();

	(void)state;
	ask_and_expect(SYS_timer_create, 'D', false);
	ask_and_expect(SYS_timer_create, 'D', true);
	ask_and_expect(SYS_reboot, '-', false);
	end(reader);
	(void)unlink(path);
}

static void nobody_there_is_no_verdict(void **state)
{
	(void)state;
	ask_and_expect(SYS_timer_create, 'E', false);
	ask_and_expect(SYS_timer_create, '-', true);
}

static void another_process_of_that_number_is_not_read(void **state)
{
	struct inject in = INJECT_NULL;
	pid_t reader = start_reader(), target = start_sleeper(SYS_timer_create);
	char call[32];

	(void)state;
	open_target(&in, target);
	in.start_time++;
	assert_int_equal(filters_ask(&in, call, sizeof(call)), -ESRCH);
	fd_close(in.proc_dfd);
	end(target);
	end(reader);
	(void)unlink(path);
}

static void somebody_else_gets_no_answer(void **state)
{
	struct inject in = INJECT_NULL;
	pid_t reader = start_reader(), target = start_sleeper(SYS_timer_create), pid;
	int status;

	(void)state;
	open_target(&in, target);
	assert_int_equal(chmod(path, 0666), 0); /* whatever the mode says */
	assert_int_equal(chmod(directory, 0755), 0);
	pid = fork();
	if (pid == 0) {
		char call[32];

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		_exit(filters_ask(&in, call, sizeof(call)) == -EPROTO ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd_close(in.proc_dfd);
	end(target);
	end(reader);
	(void)unlink(path);
	assert_int_equal(status, 0);
}

/* The result of seccomp_check() for a process whose filter forbids timer_create(), and which
 * runs for @busy_ms before it sleeps. */
static int check_busy(uint64_t busy_ms, struct fault *f)
{
	struct inject in = INJECT_NULL;
	pid_t target = start_late_sleeper(SYS_timer_create, busy_ms);
	int r;

	*f = (struct fault){ 0 };
	for (int ms = 0, filtered = 0; !filtered && ms < WAIT_MS; ms++) {
		char name[32], status[8192], mode[16];

		(void)usleep(1000);
		snprintf(name, sizeof(name), "/proc/%d/status", (int)target);
		filtered = proc_read(AT_FDCWD, name, status, sizeof(status)) > 0 &&
			   proc_field(status, "Seccomp:", mode, sizeof(mode)) && mode[0] == '2';
	}
	open_target(&in, target);
	in.fault = f;
	in.loads = true;
	in.deadline_mono_ns = clock_mono_ns() + WAIT_MS * NS_PER_MS;
	r = seccomp_check(&in);
	fd_close(in.proc_dfd);
	end(target);
	return r;
}

static void a_process_that_runs_is_read_when_it_sleeps(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(check_busy(300, &f), -EPERM);
	assert_non_null(strstr(f.what, "timer_create"));
	assert_true(f.flags & FAULT_PERMANENT);
	assert_int_equal(check_busy(WAIT_MS, &f), -EAGAIN);
	assert_non_null(strstr(f.what, "none of its threads sleeps"));
	assert_false(f.flags & FAULT_PERMANENT);
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_with_a_filter_learns_of_a_deadly_one),
		cmocka_unit_test(nobody_there_is_no_verdict),
		cmocka_unit_test(another_process_of_that_number_is_not_read),
		cmocka_unit_test(somebody_else_gets_no_answer),
		cmocka_unit_test(a_process_that_runs_is_read_when_it_sleeps),
	};

	if (geteuid() != 0 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0) {
		puts("SKIPPED: filters can be read by root alone, and by nobody who has one");
		return 0;
	}
	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof(path), "%s/socket", directory);
	(void)setenv(FILTERS_SOCKET_ENV, path, 1);
	return cmocka_run_group_tests(tests, NULL, remove_directory);
}

/* The warden starts only the programs that it was given; the data process has no rights. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/rights.h"
#include "daemon/core/warden_priv.h"
#include "daemon/ground/mem.h"

#define WARDEN_ENDS_MS 15000 /* some 100 ms, unless the machine is busy */

static const struct warden_settings settings = {
	.programs = { "/bin/echo", "/bin/cat", "/bin/echo", "", "/bin/cat" },
	.children_max = { 20, 3, 20, 0, 2 },
	.library = "/opt/given.so",
};

/* ---- a child that the kernel does not release -------------------------------------------------
 */

pid_t __real_wait4(pid_t pid, int *status, int options, struct rusage *used);
pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *used);

static bool never_released; /* a wait for this child never returns in the warden */

pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *used)
{
	while (never_released)
		pause();
	return __real_wait4(pid, status, options, used);
}

/* A warden that waits for ever would keep the test waiting, too. */
static bool ends_in_time(pid_t warden)
{
	CLEANUP(fd_closep) int pidfd = (int)syscall(SYS_pidfd_open, warden, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	assert_true(pidfd >= 0);
	if (poll(&p, 1, WARDEN_ENDS_MS) == 1)
		return true;
	kill(warden, SIGKILL); /* its data process ends with it */
	return false;
}

/* Runs @data as the data process under a warden; returns the warden's exit status. */
static int run(const struct warden_settings *s, int (*data)(void))
{
	pid_t warden = fork();
	bool in_time;
	int status;

	if (warden == 0) {
		if (warden_begin(s) < 0)
			_exit(99);
		_exit(data());
	}
	in_time = ends_in_time(warden);
	assert_int_equal(waitpid(warden, &status, 0), warden);
	if (!in_time)
		fail_msg("the warden has not ended after %d s: it waits for something",
			 WARDEN_ENDS_MS / 1000);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Checks a condition in the data process; if it fails, the exit status is the line's number. */
#define EXPECT(what)                                                               \
	do {                                                                       \
		if (!(what)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
			return 1;                                                  \
		}                                                                  \
	} while (0)

static int start(enum warden_program program, char **argv, const struct warden_fd *fds, unsigned n)
{
	CLEANUP(fd_closep) int pidfd = -1;
	pid_t pid;

	return warden_start(program, argv, fds, n, &pid, &pidfd);
}

static int ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 20000) == 1;
}

/* ---- what it starts -------------------------------------------------------------------------- */

static int starts_and_tells_the_end(void)
{
	char *argv[] = { "/bin/echo", "--result-fd", "3", "12", "34", "receive", "uid=5", NULL };
	int out[2], status = -1, pidfd = -1;
	char text[100] = "";
	uint64_t cpu_ns = 0;
	pid_t pid;

	EXPECT(pipe2(out, O_CLOEXEC) == 0);
	EXPECT(warden_start(WARDEN_INJECTOR, argv, (struct warden_fd[]){ { -1, 0 }, { out[1], 1 } },
			    2, &pid, &pidfd) == 0);
	close(out[1]);
	EXPECT(read(out[0], text, sizeof(text) - 1) > 0);
	EXPECT(strcmp(text, "--result-fd 3 12 34 receive uid=5\n") == 0);
	EXPECT(ended(pidfd));
	EXPECT(warden_reap(pid, &status, &cpu_ns) == 1);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0 && cpu_ns > 0);
	EXPECT(warden_reap(pid, &status, NULL) == -ECHILD);
	return 0;
}

static void programs_are_started_with_their_descriptors(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, starts_and_tells_the_end), 0);
}

static int kills_its_children(void)
{
	char *argv[] = { "/bin/cat", NULL };
	int in[2], status = 0, pidfd = -1;
	pid_t pid;

	EXPECT(pipe2(in, O_CLOEXEC) == 0);
	EXPECT(warden_start(WARDEN_LOOK, argv, (struct warden_fd[]){ { in[0], 0 } }, 1, &pid,
			    &pidfd) == 0);
	EXPECT(warden_reap(pid, &status, NULL) == 0);
	warden_kill(pid);
	EXPECT(ended(pidfd));
	EXPECT(warden_reap(pid, &status, NULL) == 1);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return 0;
}

static void children_are_killed_and_waited_for(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, kills_its_children), 0);
}

/* The kernel takes long to release each of these children, and requests are answered meanwhile. */
static int is_answered(void)
{
	char *argv[] = { "/bin/echo", NULL };
	int status = -1, pidfds[2];
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		EXPECT(warden_start(WARDEN_SYMBOLS, argv, NULL, 0, &pids[i], &pidfds[i]) == 0);
		EXPECT(ended(pidfds[i]));
		EXPECT(warden_reap(pids[i], &status, NULL) == 1);
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		/* still there, but told */
		EXPECT(kill(pids[i], 0) == 0);
		EXPECT(warden_reap(pids[i], &status, NULL) == -ECHILD);
		warden_kill(pids[i]);
	}
	return 0;
}

static void nobody_waits_for_the_kernel_to_release_a_child(void **state)
{
	(void)state;
	never_released = true;
	assert_int_equal(run(&settings, is_answered), 0);
}

static int the_kernel_releases(void **state)
{
	(void)state;
	never_released = false;
	return 0;
}

static int is_released(void)
{
	char *argv[] = { "/bin/echo", NULL };
	int pidfd;
	pid_t pid;

	EXPECT(warden_start(WARDEN_SYMBOLS, argv, NULL, 0, &pid, &pidfd) == 0);
	EXPECT(ended(pidfd));
	EXPECT(warden_reap(pid, NULL, NULL) == 1);
	for (int i = 0; kill(pid, 0) == 0 && i < 2000; i++)
		usleep(10000);
	EXPECT(kill(pid, 0) < 0 && errno == ESRCH);
	return 0;
}

static void a_child_whose_end_was_told_is_released(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, is_released), 0);
}

static int look_until_refused(int fd, pid_t *pids, int *pidfds, int n)
{
	char *argv[] = { "/bin/cat", NULL };

	for (int i = 0; i < n; i++)
		EXPECT(warden_start(WARDEN_LOOK, argv, (struct warden_fd[]){ { fd, 0 } }, 1,
				    &pids[i], &pidfds[i]) == 0);
	EXPECT(start(WARDEN_LOOK, argv, (struct warden_fd[]){ { fd, 0 } }, 1) == -EAGAIN);
	return 0;
}

static int is_bounded(void)
{
	char *other[] = { "/bin/echo", NULL };
	int in[2], pidfds[3];
	pid_t pids[3], pid;

	EXPECT(pipe2(in, O_CLOEXEC) == 0);
	EXPECT(look_until_refused(in[0], pids, pidfds, 3) == 0);
	EXPECT(warden_refused() == 1);
	/* the limits of other programs are separate */
	EXPECT(start(WARDEN_SYMBOLS, other, NULL, 0) == 0);
	/* a child that has ended counts until it was waited for */
	warden_kill(pids[1]);
	EXPECT(ended(pidfds[1]));
	EXPECT(look_until_refused(in[0], &pid, pidfds, 0) == 0);
	EXPECT(warden_reap(pids[1], NULL, NULL) == 1);
	EXPECT(look_until_refused(in[0], &pids[1], &pidfds[1], 1) == 0);
	EXPECT(warden_refused() == 3);
	for (int i = 0; i < 3; i++)
		warden_kill(pids[i]);
	return 0;
}

static void of_each_program_only_so_many_run(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, is_bounded), 0);
}

static pid_t stranger;

static int kills_nobody_else(void)
{
	int status;

	warden_kill(stranger);
	warden_kill(getpid());
	warden_kill(getppid());
	warden_kill(0);
	warden_kill(-1);
	EXPECT(warden_reap(stranger, &status, NULL) == -ECHILD);
	EXPECT(warden_reap(-1, &status, NULL) == -ECHILD);
	return 0;
}

static void nobody_else_is_killed(void **state)
{
	int status;

	(void)state;
	stranger = fork();
	if (stranger == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(run(&settings, kills_nobody_else), 0);
	assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
	kill(stranger, SIGKILL);
	waitpid(stranger, &status, 0);
}

/* ---- what it does not start ------------------------------------------------------------------ */

#define REFUSED(program, ...) \
	EXPECT(start(program, (char *[]){ __VA_ARGS__, NULL }, NULL, 0) == -EACCES)
#define STARTED(program, ...) EXPECT(start(program, (char *[]){ __VA_ARGS__, NULL }, NULL, 0) == 0)

static int is_refused(void)
{
	REFUSED(WARDEN_INJECTOR, "/tmp/other");
	REFUSED(WARDEN_LOOK, "/bin/echo");
	REFUSED(WARDEN_LOOK, "/bin/cat", "/etc/shadow");
	REFUSED(WARDEN_SYMBOLS, "/bin/echo", "-x");
	REFUSED(WARDEN_NAMES, "/bin/echo");
	REFUSED(WARDEN_NAMES, "/bin/cat", "/etc/shadow");
	REFUSED(WARDEN_SYMBOLS, "/bin/echo", "/a", "/b");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--help");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "jcmd");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "-1", "2", "receive");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "receive", "-v");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "receive", "uid=");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "receive", "u=1");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "attach");
	REFUSED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "attach",
		"/opt/other.so");
	STARTED(WARDEN_INJECTOR, "/bin/echo", "--result-fd", "3", "1", "2", "attach",
		"/opt/given.so", "quiet=0");
	STARTED(WARDEN_SYMBOLS, "/bin/echo", "/lib/libc.so.6");
	return 0;
}

static void other_programs_and_words_are_refused(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, is_refused), 0);
}

static char library[64];

static int library_is_taken(void)
{
	return start(WARDEN_INJECTOR,
		     (char *[]){ "/bin/echo", "--result-fd", "3", "1", "2", "attach", library,
				 NULL },
		     NULL, 0) == 0;
}

/* After a reload the settings may name another program. */
static void a_library_that_was_not_given_is_roots(void **state)
{
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	strcpy(library, "/tmp/test_warden.XXXXXX");
	fd = mkstemp(library);
	assert_true(fd >= 0);
	assert_int_equal(run(&settings, library_is_taken), 1);
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_int_equal(run(&settings, library_is_taken), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(fchown(fd, 1000, 0), 0);
	assert_int_equal(run(&settings, library_is_taken), 0);
	close(fd);
	unlink(library);
}

/* ---- requests to the container runtime ------------------------------------------------------- */

static int runtime_fd;

/* The data process gets neither the connection nor an influence on the request. */
static int asks_for_names(void)
{
	static const char id[] = "0123456789abcdef", other[] = "/tmp/nowhere";
	struct warden_fd fd = { STDIN_FILENO, WARDEN_NAMES_FD };
	char *argv[] = { "/bin/cat", NULL }, asked[1000] = "";
	CLEANUP(fd_closep) int pidfd = -1, connection = -1;
	pid_t pid;

	EXPECT(warden_ask_names(other, WARDEN_NAMES_CONTAINER, id, 7) == -ESRCH);
	EXPECT(warden_start(WARDEN_NAMES, argv, &fd, 1, &pid, &pidfd) == -EINVAL);
	EXPECT(warden_start(WARDEN_NAMES, argv, NULL, 0, &pid, &pidfd) == 0);
	EXPECT(warden_ask_names(other, WARDEN_NAMES_CONTAINER, "x y", 7) == -EINVAL);
	EXPECT(warden_ask_names(other, WARDEN_NAMES_COUNT, id, 7) == -EINVAL);
	EXPECT(warden_ask_names(other, WARDEN_NAMES_CONTAINER, id, 7) == 0);
	connection = accept(runtime_fd, NULL, NULL);
	EXPECT(connection >= 0);
	EXPECT(read(connection, asked, sizeof(asked)) > 100);
	EXPECT(memmem(asked, sizeof(asked), "/ListContainers", 15));
	EXPECT(memmem(asked, sizeof(asked), id, strlen(id)));
	warden_kill(pid);
	EXPECT(ended(pidfd));
	return 0;
}

static void the_runtime_is_asked_what_the_warden_knows(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct warden_settings s = settings;

	int kept = dup(STDIN_FILENO), ends[2];

	(void)state;
	/* cat ends at the end of its standard input, and closes its end of the request socket */
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	snprintf(s.cri, sizeof(s.cri), "/tmp/test_warden.%d.sock", (int)getpid());
	strcpy(addr.sun_path, s.cri);
	runtime_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(runtime_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(runtime_fd, 4), 0);
	assert_int_equal(run(&s, asks_for_names), 0);
	assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
	close(kept);
	close(ends[0]);
	close(ends[1]);
	close(runtime_fd);
	unlink(s.cri);
}

/* ---- messages -------------------------------------------------------------------------------- */

#define TOO_MANY (WARDEN_FDS_MAX + 1)

/* A buffer for five descriptors has room for a sixth at its end, because control messages are
 * padded to eight bytes. */
static void more_descriptors_than_allowed_do_not_arrive(void **state)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * TOO_MANY)] = { 0 };
	struct iovec iov = { control, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int pair[2], fds[TOO_MANY], got[TOO_MANY];
	unsigned n = 0;
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (unsigned i = 0; i < TOO_MANY; i++) {
		fds[i] = pair[0];
		got[i] = -7;
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
	assert_int_equal(warden_receive(pair[1], &byte, 1, got, &n), 1);
	assert_int_equal(n, WARDEN_FDS_MAX);
	assert_int_equal(got[WARDEN_FDS_MAX], -7);
	for (unsigned i = 0; i < n; i++)
		close(got[i]);
	close(pair[0]);
	close(pair[1]);
}

/* ---- what it passes on ------------------------------------------------------------------------
 */

static int told_fd[2];

static void on_tell(unsigned what, const char *status)
{
	char text[500];
	int n = snprintf(text, sizeof(text), "%u %s", what, status ? status : "-");

	(void)!write(told_fd[1], text, (size_t)n + 1);
}

static int tells(void)
{
	char big[3 * WARDEN_STATUS_MAX];

	EXPECT(warden_report(WARDEN_TELL_WATCHDOG, NULL) == 0);
	/* an unknown message for the service manager, and a byte that is not a character */
	EXPECT(warden_report(WARDEN_TELL_READY, "12 streaming\nMAINPID=1\xff") == 0);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	EXPECT(warden_report(0, big) == 0);
	return 0;
}

static void a_status_is_one_line(void **state)
{
	struct warden_settings s = settings;
	char text[1000] = "";
	size_t len = 0;

	(void)state;
	s.tell = on_tell;
	assert_int_equal(pipe2(told_fd, O_CLOEXEC), 0);
	assert_int_equal(run(&s, tells), 0);
	close(told_fd[1]);
	for (ssize_t n = 1; n > 0; len += n > 0 ? (size_t)n : 0)
		n = read(told_fd[0], text + len, sizeof(text) - len);
	close(told_fd[0]);
	assert_string_equal(text, "8 -");
	assert_string_equal(text + 4, "1 12 streaming?MAINPID=1?");
	assert_int_equal(strlen(text + 4 + 26), 2 + WARDEN_STATUS_MAX - 1);
}

static int tells_nobody(void)
{
	EXPECT(warden_report(WARDEN_TELL_READY, "text") == -EINVAL);
	return 0;
}

static void without_a_service_manager_nothing_is_told(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, tells_nobody), 0);
	assert_int_equal(warden_report(WARDEN_TELL_READY, "text"), -ENOENT);
}

/* ---- how it ends ----------------------------------------------------------------------------- */

static int ends_with_seven(void)
{
	return 7;
}

static int ends_by_a_signal(void)
{
	raise(SIGKILL);
	return 0;
}

static void its_status_is_that_of_the_data_process(void **state)
{
	(void)state;
	assert_int_equal(run(&settings, ends_with_seven), 7);
	assert_int_equal(run(&settings, ends_by_a_signal), 128 + SIGKILL);
}

static void signals_are_passed_on(void **state)
{
	int ready[2], status;
	pid_t warden;
	char c = 0;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	warden = fork();
	if (warden == 0) {
		sigset_t set;
		int signo;

		if (warden_begin(&settings) < 0)
			_exit(99);
		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_BLOCK, &set, NULL);
		(void)!write(ready[1], "x", 1);
		_exit(sigwait(&set, &signo) == 0 && signo == SIGTERM ? 5 : 6);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	/* the signal may come before the warden is ready: it is blocked a moment later */
	usleep(100000);
	kill(warden, SIGTERM);
	assert_int_equal(waitpid(warden, &status, 0), warden);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
	close(ready[0]);
	close(ready[1]);
}

static void the_data_process_ends_with_its_warden(void **state)
{
	int held[2], status;
	pid_t warden;
	char c;

	(void)state;
	assert_int_equal(pipe(held), 0);
	warden = fork();
	if (warden == 0) {
		close(held[0]);
		if (warden_begin(&settings) < 0)
			_exit(99);
		(void)!write(held[1], "x", 1);
		for (;;)
			pause();
	}
	close(held[1]);
	assert_int_equal(read(held[0], &c, 1), 1);
	kill(warden, SIGKILL);
	assert_int_equal(waitpid(warden, &status, 0), warden);
	assert_int_equal(read(held[0], &c, 1), 0); /* nobody has the other end open any more */
	close(held[0]);
}

/* ---- rights ---------------------------------------------------------------------------------- */

static char state_dir[64];

static int has_no_rights(void)
{
	char caps[1000] = "";
	struct fault f = { 0 };
	struct rights r;
	struct stat st;
	FILE *file;

	EXPECT(rights_prepare("kindling", state_dir, &r, &f) == 0);
	EXPECT(rights_drop(&r, getppid(), &f) == 0);
	EXPECT(getuid() == r.uid && geteuid() == r.uid && getgid() == r.gid);
	EXPECT(setuid(0) < 0);
	file = fopen("/proc/self/status", "re");
	EXPECT(file);
	while (fgets(caps, sizeof(caps), file))
		if (strncmp(caps, "CapEff:", 7) == 0 || strncmp(caps, "CapPrm:", 7) == 0)
			EXPECT(strspn(caps + 8, "0") == 16);
	fclose(file);
	EXPECT(open("/etc/shadow", O_RDONLY) < 0 && errno == EACCES);
#ifndef __SANITIZE_ADDRESS__
	EXPECT(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
	EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
#endif
	EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	EXPECT(chdir(state_dir) == 0);
	EXPECT(stat("file", &st) == 0 && st.st_uid == r.uid);
	EXPECT(lstat("link", &st) == 0 && st.st_uid == 0);
	EXPECT(stat("two", &st) == 0 && st.st_uid == 0);
	/* a copy of the data process, made by fork, still works */
	EXPECT(fork() >= 0);
	return 0;
}

static int refuses_an_unknown_account(void)
{
	struct fault f = { 0 };
	struct rights r;

	EXPECT(rights_prepare("nobody-is-called-so", state_dir, &r, &f) < 0);
	EXPECT(strstr(f.what, "user: there is no account named nobody-is-called-so"));
	return 0;
}

static void nothing_is_left_of_roots_rights(void **state)
{
	char path[128];

	(void)state;
	if (geteuid() != 0)
		skip();
	strcpy(state_dir, "/tmp/test_rights.XXXXXX");
	assert_non_null(mkdtemp(state_dir));
	snprintf(path, sizeof(path),
		 "cd %s && touch file two && ln two three && ln -s /etc/shadow link", state_dir);
	assert_int_equal(system(path), 0);
	assert_int_equal(run(&settings, has_no_rights), 0);
	assert_int_equal(run(&settings, refuses_an_unknown_account), 0);
	snprintf(path, sizeof(path), "rm -r %s", state_dir);
	assert_int_equal(system(path), 0);
}

static uid_t owner_below(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", state_dir, name);
	assert_int_equal(lstat(path, &st), 0);
	return st.st_uid;
}

static void a_deep_directory_is_given_and_no_link_followed(void **state)
{
	const struct rights r = { .uid = 12345, .gid = 12345 };
	char path[128];

	(void)state;
	if (geteuid() != 0)
		skip();
	strcpy(state_dir, "/tmp/test_rights.XXXXXX");
	assert_non_null(mkdtemp(state_dir));
	snprintf(
		path, sizeof(path),
		"cd %s && mkdir -p a/b/c && touch a/b/c/file a/b/c/two && ln a/b/c/two a/three && ln -s a/b link",
		state_dir);
	assert_int_equal(system(path), 0);
	assert_int_equal(rights_give_beneath(state_dir, "a/b/c", &r), 0);
	assert_int_equal(owner_below("a/b"), 0);
	assert_int_equal(owner_below("a/b/c"), 12345);
	assert_int_equal(owner_below("a/b/c/file"), 12345);
	assert_int_equal(owner_below("a/three"), 0);
	assert_int_equal(rights_give_beneath(state_dir, "link/c", &r), -ELOOP);
	assert_int_equal(rights_give_beneath(state_dir, "../a", &r), -EXDEV);
	assert_int_equal(rights_give_beneath(state_dir, "a/none", &r), -ENOENT);
	snprintf(path, sizeof(path), "rm -r %s", state_dir);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_started_with_their_descriptors),
		cmocka_unit_test(children_are_killed_and_waited_for),
		cmocka_unit_test_teardown(nobody_waits_for_the_kernel_to_release_a_child,
					  the_kernel_releases),
		cmocka_unit_test(a_child_whose_end_was_told_is_released),
		cmocka_unit_test(of_each_program_only_so_many_run),
		cmocka_unit_test(nobody_else_is_killed),
		cmocka_unit_test(other_programs_and_words_are_refused),
		cmocka_unit_test(the_runtime_is_asked_what_the_warden_knows),
		cmocka_unit_test(a_library_that_was_not_given_is_roots),
		cmocka_unit_test(more_descriptors_than_allowed_do_not_arrive),
		cmocka_unit_test(a_status_is_one_line),
		cmocka_unit_test(without_a_service_manager_nothing_is_told),
		cmocka_unit_test(its_status_is_that_of_the_data_process),
		cmocka_unit_test(signals_are_passed_on),
		cmocka_unit_test(the_data_process_ends_with_its_warden),
		cmocka_unit_test(nothing_is_left_of_roots_rights),
		cmocka_unit_test(a_deep_directory_is_given_and_no_link_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

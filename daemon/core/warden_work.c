/* The work itself, in the warden or, without one, in the single process of kindlingd. */
#include "daemon/core/warden_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "daemon/ground/mem.h"

#define NUMBERS_END 5 /* no program gets a descriptor of this number or above */

extern char **environ;

static void warden_work_close_all(int *fds)
{
	for (int i = 0; i < WARDEN_FDS_MAX; i++)
		fds[i] = fd_close(fds[i]);
}

/* All are first duplicated to high numbers, so that no dup2() closes one that is still needed. */
static int warden_work_add_fds(posix_spawn_file_actions_t *actions, const struct warden_fd *fds,
			       unsigned n, int high[WARDEN_FDS_MAX])
{
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		if (fds[i].fd < 0)
			continue;
		high[i] = fcntl(fds[i].fd, F_DUPFD_CLOEXEC, NUMBERS_END);
		r = high[i] < 0 ? errno
				: posix_spawn_file_actions_adddup2(actions, high[i], fds[i].as);
	}
	return r;
}

static int warden_work_spawn(char *const argv[], char *const env[], const struct warden_fd *fds,
			     unsigned n_fds, pid_t *ret)
{
	int high[WARDEN_FDS_MAX] = { -1, -1, -1, -1, -1 };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, pipe;
	int r;

	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &pipe);
	r = warden_work_add_fds(&actions, fds, n_fds, high);
	if (r == 0)
		r = posix_spawn(ret, argv[0], &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	warden_work_close_all(high);
	return -r;
}

int warden_work_start(enum warden_program program, char *const argv[], const struct warden_fd *fds,
		      unsigned n_fds, pid_t *ret_pid, int *ret_pidfd)
{
	bool alone = program == WARDEN_SYMBOLS || program == WARDEN_NAMES;
	struct warden_fd all[WARDEN_FDS_MAX];
	CLEANUP(fd_closep) int questions_fd = -1;
	char *nothing[] = { NULL };
	int r;

	if (n_fds + (program == WARDEN_NAMES) > WARDEN_FDS_MAX)
		return -E2BIG;
	memcpy(all, fds, n_fds * sizeof(*fds));
	if (program == WARDEN_NAMES) {
		questions_fd = warden_names_open();
		if (questions_fd < 0)
			return questions_fd;
		all[n_fds++] = (struct warden_fd){ questions_fd, WARDEN_NAMES_FD };
	}
	r = warden_work_spawn(argv, alone ? nothing : environ, all, n_fds, ret_pid);
	if (r < 0)
		return r;
	/* the child has not been waited for yet, so the pid cannot have been reused */
	*ret_pidfd = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	if (*ret_pidfd >= 0)
		return 0;
	r = -errno;
	(void)kill(*ret_pid, SIGKILL);
	(void)waitpid(*ret_pid, NULL, 0); /* it has just started, so it cannot hang anywhere */
	return r;
}

int warden_work_kill(pid_t pid)
{
	siginfo_t si = { 0 };

	/* only a child that runs: any other pid may be some other process's, also that of a child
	 * that has ended, which another thread may release at this moment */
	if (pid <= 0 || waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		return -ECHILD;
	return si.si_pid || kill(pid, SIGKILL) == 0 ? 0 : -errno;
}

/* Connects and closes at once: the listener does not answer a connection without a question. */
int warden_work_filters_listen(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep)
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || !*path || strlen(path) >= sizeof(addr.sun_path))
		return fd < 0 ? -errno : -EINVAL;
	strcpy(addr.sun_path, path);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN)
		return 1;
	return errno == ENOENT || errno == ECONNREFUSED ? 0 : -errno;
}

int warden_work_clock(int cpu, pid_t thread, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
		.exclude_idle = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, cpu < 0 ? thread : -1, cpu < 0 ? -1 : cpu,
			      -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

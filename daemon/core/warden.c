/* See warden.h: the data process's side, and the messages of both sides. */
#include "daemon/core/warden_priv.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/core/release.h"
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"

static int warden_fd = -1; /* -1: there is no warden */
static uint64_t refused;

/* ---- messages -------------------------------------------------------------------------------- */

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * WARDEN_FDS_MAX)];
};

ssize_t warden_send(int fd, const void *p, size_t len, const int *fds, unsigned n_fds)
{
	union control control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)p, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t n;

	if (n_fds) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t warden_receive(int fd, void *p, size_t size, int *ret_fds, unsigned *ret_n_fds)
{
	union control control = { 0 };
	struct iovec iov = { p, size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      /* CMSG_SPACE() would leave room for one more descriptor */
			      .msg_controllen = CMSG_LEN(sizeof(int) * WARDEN_FDS_MAX) };
	ssize_t n;

	*ret_n_fds = 0;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*ret_n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(ret_fds, CMSG_DATA(c), sizeof(int) * *ret_n_fds);
	}
	return n;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* @ret_fd: the descriptor that comes with the answer, or -1. If the warden has ended this process
 * exits: the kernel is about to kill it anyway (PR_SET_PDEATHSIG). */
static struct warden_answer warden_ask(const struct warden_question *q, size_t args_len,
				       const int *fds, unsigned n_fds, int *ret_fd)
{
	size_t len = offsetof(struct warden_question, args) + args_len;
	struct warden_answer a;
	int got[WARDEN_FDS_MAX];
	unsigned n = 0;

	*ret_fd = -1;
	if (warden_send(warden_fd, q, len, fds, n_fds) < 0 ||
	    warden_receive(warden_fd, &a, sizeof(a), got, &n) != (ssize_t)sizeof(a)) {
		log_err("warden.gone", "error=\"the privileged process of kindlingd has ended\"");
		_exit(1);
	}
	if (n > 0)
		*ret_fd = got[0];
	return a;
}

static int warden_put_args(struct warden_question *q, char *const argv[], size_t *ret_len)
{
	size_t len, used = 0;

	for (; argv[q->n_args]; q->n_args++) {
		len = strlen(argv[q->n_args]) + 1;
		if (used + len > sizeof(q->args) || q->n_args == WARDEN_ARGS_MAX)
			return -E2BIG;
		memcpy(q->args + used, argv[q->n_args], len);
		used += len;
	}
	*ret_len = used;
	return 0;
}

int warden_start(enum warden_program program, char *const argv[], const struct warden_fd *fds,
		 unsigned n_fds, pid_t *ret_pid, int *ret_pidfd)
{
	struct warden_question q = { .ask = WARDEN_START, .program = program };
	struct warden_answer a;
	int numbers[WARDEN_FDS_MAX];
	size_t len;
	int r;

	if (warden_fd < 0)
		return warden_work_start(program, argv, fds, n_fds, ret_pid, ret_pidfd);
	r = warden_put_args(&q, argv, &len);
	for (unsigned i = 0; i < n_fds && r == 0; i++) {
		if (fds[i].fd < 0)
			continue;
		numbers[q.n_fds] = fds[i].fd;
		q.as[q.n_fds++] = fds[i].as;
	}
	if (r < 0)
		return r;
	a = warden_ask(&q, len, numbers, q.n_fds, ret_pidfd);
	*ret_pid = a.pid;
	refused += a.full;
	return a.result;
}

uint64_t warden_refused(void)
{
	return refused;
}

int warden_reap(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns)
{
	struct warden_question q = { .ask = WARDEN_REAP, .pid = pid };
	struct warden_answer a = { 0 };
	int none;

	if (warden_fd < 0)
		a.result = release_ended(pid, &a.status, &a.cpu_ns);
	else
		a = warden_ask(&q, 0, NULL, 0, &none);
	if (ret_status)
		*ret_status = a.status;
	if (ret_cpu_ns)
		*ret_cpu_ns = a.cpu_ns;
	return a.result;
}

void warden_kill(pid_t pid)
{
	struct warden_question q = { .ask = WARDEN_KILL, .pid = pid };
	int none;

	if (warden_fd < 0)
		(void)warden_work_kill(pid);
	else
		(void)warden_ask(&q, 0, NULL, 0, &none);
}

/* Asks a question whose answer is a descriptor. Returns it, or -errno. */
static int warden_ask_for_fd(const struct warden_question *q)
{
	int fd;
	struct warden_answer a = warden_ask(q, 0, NULL, 0, &fd);

	return a.result < 0 ? a.result : fd < 0 ? -EIO : fd;
}

int warden_open_clock(int cpu, uint64_t period_ns)
{
	struct warden_question q = { .ask = WARDEN_CLOCK, .cpu = cpu, .period_ns = period_ns };

	return warden_fd < 0 ? warden_work_clock(cpu, 0, period_ns) : warden_ask_for_fd(&q);
}

int warden_filters_listen(const char *path)
{
	struct warden_question q = { .ask = WARDEN_FILTERS };
	int none;

	return warden_fd < 0 ? warden_work_filters_listen(path)
			     : warden_ask(&q, 0, NULL, 0, &none).result;
}

int warden_ask_names(const char *path, enum warden_names what, const char *id, uint64_t number)
{
	struct warden_question q = { .ask = WARDEN_ASK_NAMES, .names = what, .number = number };
	char text[WARDEN_NAMES_ID_SIZE], *argv[] = { text, NULL };
	size_t len = 0;
	int none;

	if (warden_fd < 0)
		return warden_work_names(path, what, id, number);
	if ((size_t)snprintf(text, sizeof(text), "%s", id) >= sizeof(text))
		return -EINVAL;
	(void)warden_put_args(&q, argv, &len);
	return warden_ask(&q, len, NULL, 0, &none).result;
}

int warden_open_settings(void)
{
	struct warden_question q = { .ask = WARDEN_SETTINGS };

	return warden_fd < 0 ? -ENOENT : warden_ask_for_fd(&q);
}

int warden_report(unsigned what, const char *status)
{
	struct warden_question q = { .ask = WARDEN_TELL, .tell = what };
	char text[WARDEN_STATUS_MAX], *argv[] = { text, NULL };
	size_t len = 0;
	int none;

	if (warden_fd < 0)
		return -ENOENT;
	if (status) {
		snprintf(text, sizeof(text), "%s", status);
		(void)warden_put_args(&q, argv, &len);
	}
	return warden_ask(&q, len, NULL, 0, &none).result;
}

/* ---- the split ------------------------------------------------------------------------------- */

/* A process group of its own, because the warden passes on signals such as a terminal's Ctrl-C, and
 * they would arrive twice. WATCHDOG_PID names the warden, but the watchdog's interval holds for
 * this process, sd_watchdog_enabled(3). */
static void warden_become_data(pid_t warden)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != warden)
		_exit(1);
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_NAME, "kindlingd-data");
	(void)unsetenv("WATCHDOG_PID");
}

int warden_begin(const struct warden_settings *settings)
{
	int pair[2];
	pid_t warden = getpid(), data;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	data = fork();
	if (data < 0) {
		int r = -errno;

		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (data > 0) {
		close(pair[1]);
		exit(warden_run(pair[0], data, settings));
	}
	close(pair[0]);
	warden_fd = pair[1];
	warden_become_data(warden);
	return 0;
}

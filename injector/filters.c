/* See filters.h. */
#include "injector/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "daemon/ground/confine.h"
#include "injector/inject.h"
#include "injector/seccomp.h"

#define ASK_S		2 /* seconds; the whole attach has ten by default */
#define ANSWER_S	5 /* SIGALRM ends this process when a question takes longer */
#define IDLE_MS		30000
#define LISTEN_FD	3 /* the first descriptor that a service manager passes, sd_listen_fds(3) */
#define CONNECTIONS_MAX 64
/* PTRACE_SECCOMP_GET_FILTER; the ptrace itself; /proc/PID/task/TID/syscall of other users */
#define KEPT (CONFINE_CAP(SYS_ADMIN) | CONFINE_CAP(SYS_PTRACE) | CONFINE_CAP(DAC_READ_SEARCH))

static int filters_address_of(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	strcpy(ret->sun_path, path);
	return 0;
}

/* Limits how long one end waits for the other, in connect(2) too (unix(7)). */
static void filters_set_timeout(int fd, time_t seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* ---- the end that asks --------------------------------------------------------------------- */

int filters_ask(const struct inject *in, char *ret_call, size_t size)
{
	const struct filters_question q = { in->start_time, in->pid, FILTERS_VERSION };
	const char *path = getenv(FILTERS_SOCKET_ENV);
	struct filters_answer a = { 0 };
	struct sockaddr_un addr;
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	filters_set_timeout(fd, ASK_S);
	if (filters_address_of(path ? path : FILTERS_SOCKET, &addr) < 0 ||
	    connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -EACCES;
	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) != (ssize_t)sizeof(q) ||
	    recv(fd, &a, sizeof(a), 0) != (ssize_t)sizeof(a))
		return -EPROTO;
	a.call[sizeof(a.call) - 1] = '\0';
	if (a.result == 0)
		snprintf(ret_call, size, "%s", a.call);
	return a.result;
}

/* ---- the end that answers -------------------------------------------------------------------- */

static int filters_read_of(const struct filters_question *q, const char **ret_call)
{
	struct inject in = INJECT_NULL;
	char path[32];
	int r;

	in.pid = q->pid;
	in.start_time = q->start_time;
	snprintf(path, sizeof(path), "/proc/%d", (int)q->pid);
	/* opened first, so that all that follows can be checked against the process of the pidfd */
	in.pidfd = q->pid > 0 ? (int)syscall(SYS_pidfd_open, q->pid, 0) : -1;
	if (in.pidfd < 0)
		return -ESRCH;
	in.proc_dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = in.proc_dfd >= 0 && inject_alive(&in) ? seccomp_read(&in, ret_call) : -ESRCH;
	fd_close(in.proc_dfd);
	fd_close(in.pidfd);
	return r;
}

/* Only root may ask, even if the socket's mode was changed. */
static bool is_root(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == 0;
}

static void filters_answer_one(int fd)
{
	struct filters_question q;
	struct filters_answer a = { .result = -EPROTO };
	const char *call = NULL;

	filters_set_timeout(fd, 1);
	if (!is_root(fd) || recv(fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
		return;
	(void)alarm(ANSWER_S);
	if (q.version == FILTERS_VERSION)
		a.result = filters_read_of(&q, &call);
	(void)alarm(0);
	if (a.result == 0)
		snprintf(a.call, sizeof(a.call), "%s", call ? call : "");
	(void)send(fd, &a, sizeof(a), MSG_NOSIGNAL);
}

/* Returns -1. */
static int filters_print_error(const char *why, const char *what)
{
	fprintf(stderr, "kindling-inject: %s: %s\n", what, why);
	return -1;
}

/* Returns a listening socket at @path, after removing one that a killed process left there; or -1
 * after printing what is wrong. */
static int listen_at(const char *path)
{
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	struct stat st;

	if (fd < 0 || filters_address_of(path, &addr) < 0)
		return filters_print_error("not the path of a socket", path);
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	(void)umask(0177);
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, CONNECTIONS_MAX) < 0)
		return filters_print_error(strerror(errno), path);
	return TAKE_FD(fd);
}

static int filters_inherited(void)
{
	int listens = 0;
	socklen_t len = sizeof(listens);

	if (getsockopt(LISTEN_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || !listens)
		return filters_print_error(
			"the service manager passed no socket, and none is named", "filters");
	return LISTEN_FD;
}

int filters_serve(const char *path)
{
	CLEANUP(fd_closep) int fd = path ? listen_at(path) : filters_inherited();
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	if (fd < 0 || confine_capabilities(KEPT) < 0)
		return fd < 0 ? 2 : 1;
	for (;;) {
		int n = poll(&polled, 1, path ? -1 : IDLE_MS), one;

		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return 1;
		one = n > 0 ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (one >= 0)
			filters_answer_one(one);
		fd_close(one);
	}
}

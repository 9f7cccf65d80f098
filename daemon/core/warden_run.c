/* The warden itself: answers the requests of the data process until that has ended. It waits for
 * nothing else. */
#include "daemon/core/warden_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "daemon/core/release.h"
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"

struct warden {
	int fd;
	pid_t data;
	const struct warden_settings *settings;
};

/* ---- answers --------------------------------------------------------------------------------- */

bool warden_take_args(struct warden_question *q, size_t len, char *argv[WARDEN_ARGS_MAX + 1])
{
	char *p = q->args, *end = q->args + len;

	if (q->n_args < 1 || q->n_args > WARDEN_ARGS_MAX)
		return false;
	for (unsigned i = 0; i < q->n_args; i++) {
		char *nul = memchr(p, '\0', (size_t)(end - p));

		if (!nul)
			return false;
		argv[i] = p;
		p = nul + 1;
	}
	argv[q->n_args] = NULL;
	return true;
}

static int warden_run_start(const struct warden *w, struct warden_question *q, size_t args_len,
			    const int *fds, unsigned n_fds, struct warden_answer *a)
{
	struct warden_fd given[WARDEN_FDS_MAX];
	char *argv[WARDEN_ARGS_MAX + 1];
	int r, pidfd = -1;

	if (q->program >= WARDEN_PROGRAM_COUNT || q->n_fds != n_fds ||
	    !warden_take_args(q, args_len, argv))
		return -EINVAL;
	for (unsigned i = 0; i < n_fds; i++) {
		if (q->as[i] < 0 || q->as[i] > 4 ||
		    (q->program == WARDEN_NAMES && q->as[i] == WARDEN_NAMES_FD))
			return -EINVAL;
		given[i] = (struct warden_fd){ fds[i], q->as[i] };
	}
	r = warden_check(w->settings, q->program, argv);
	if (r < 0) {
		log_err("warden.refused", "program=%s", log_str(argv[0]));
		return r;
	}
	a->full = warden_children_full(w->settings, q->program);
	if (a->full)
		return -EAGAIN;
	r = warden_work_start(q->program, argv, given, n_fds, &a->pid, &pidfd);
	if (r < 0)
		return r;
	warden_children_add(a->pid, q->program);
	return pidfd;
}

/* The data process itself is not among the children: SIGCHLD handles its end. A child whose end
 * has been reported may still exist, until it is released. */
static int warden_run_reap(pid_t pid, struct warden_answer *a)
{
	int r = warden_children_has(pid) ? release_ended(pid, &a->status, &a->cpu_ns) : -ECHILD;

	if (r == 1)
		warden_children_remove(pid);
	return r;
}

static int warden_run_open_settings(const struct warden *w)
{
	int fd = w->settings->file
			 ? open(w->settings->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
			 : -ENOENT;

	return fd == -1 ? -errno : fd;
}

/* Reports to the service manager. Of the data process's text only printable ASCII is passed on, so
 * that it stays one line. */
static int warden_run_report(const struct warden *w, struct warden_question *q, size_t args_len)
{
	char *argv[WARDEN_ARGS_MAX + 1] = { NULL };

	if (!w->settings->tell || (q->n_args && !warden_take_args(q, args_len, argv)))
		return -EINVAL;
	for (char *p = argv[0]; p && *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			*p = '?';
	w->settings->tell(q->tell, argv[0]);
	return 0;
}

static int warden_run_names(const struct warden *w, struct warden_question *q, size_t args_len)
{
	char *argv[WARDEN_ARGS_MAX + 1];

	if (q->names >= WARDEN_NAMES_COUNT || !warden_take_args(q, args_len, argv))
		return -EINVAL;
	return warden_work_names(w->settings->cri, q->names, argv[0], q->number);
}

/* Does what @q asks. Returns the result; with *ret_is_fd a descriptor for the answer. */
static int warden_run_work(const struct warden *w, struct warden_question *q, size_t args_len,
			   const int *fds, unsigned n_fds, struct warden_answer *a, bool *ret_is_fd)
{
	switch (q->ask) {
	case WARDEN_START:
		*ret_is_fd = true;
		return warden_run_start(w, q, args_len, fds, n_fds, a);
	case WARDEN_CLOCK:
		*ret_is_fd = true;
		return warden_work_clock(q->cpu, w->data, q->period_ns);
	case WARDEN_SETTINGS:
		*ret_is_fd = true;
		return warden_run_open_settings(w);
	case WARDEN_TELL:
		return warden_run_report(w, q, args_len);
	case WARDEN_FILTERS:
		return warden_work_filters_listen(w->settings->filters);
	case WARDEN_ASK_NAMES:
		return warden_run_names(w, q, args_len);
	case WARDEN_REAP:
		return warden_run_reap(q->pid, a);
	case WARDEN_KILL:
		return q->pid == w->data ? -ECHILD : warden_work_kill(q->pid);
	default:
		return -EINVAL;
	}
}

/* Answers one request. false: the data process has closed its socket, or does not read answers. */
static bool warden_run_answer_one(const struct warden *w)
{
	static struct warden_question q;
	const size_t head = offsetof(struct warden_question, args);
	struct warden_answer a = { 0 };
	int fds[WARDEN_FDS_MAX], fd = -1;
	bool is_fd = false;
	unsigned n_fds;
	ssize_t n = warden_receive(w->fd, &q, sizeof(q), fds, &n_fds), sent;

	if (n == -EAGAIN)
		return true;
	if (n <= 0)
		return false;
	if ((size_t)n < head)
		a.result = -EINVAL;
	else
		a.result = warden_run_work(w, &q, (size_t)n - head, fds, n_fds, &a, &is_fd);
	for (unsigned i = 0; i < n_fds; i++)
		close(fds[i]);
	if (is_fd && a.result >= 0) {
		fd = a.result;
		a.result = 0;
	}
	sent = warden_send(w->fd, &a, sizeof(a), &fd, fd >= 0);
	fd_close(fd);
	return sent == (ssize_t)sizeof(a);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The exit status for the warden, if the data process has ended; else -1. As in shells, 128 + the
 * signal shows in the service's status that it died by a signal. */
static int warden_run_data_status(const struct warden *w)
{
	int status;

	if (waitpid(w->data, &status, WNOHANG) != w->data)
		return -1;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	log_err("daemon.died", "signal=%d", WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int warden_run_on_signal(const struct warden *w, int signals_fd)
{
	struct signalfd_siginfo si;

	if (read(signals_fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return -1;
	if (si.ssi_signo == SIGCHLD)
		return warden_run_data_status(w);
	(void)kill(w->data, (int)si.ssi_signo);
	return -1;
}

/* Removes the API's socket, which the data process has no right to do. If somebody accepts
 * connections there, the socket is another daemon's and stays. */
static void warden_run_remove_socket(const struct warden *w)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", w->settings->socket);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 &&
	    errno == ECONNREFUSED)
		(void)unlink(addr.sun_path);
}

int warden_run(int fd, pid_t data, const struct warden_settings *settings)
{
	const struct warden w = { fd, data, settings };
	CLEANUP(fd_closep) int signals_fd = -1;
	struct pollfd polled[2];
	sigset_t set;
	int status = -1;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	signals_fd = signalfd(-1, &set, SFD_CLOEXEC);
	/* the warden does not wait for a data process that does not read its answers */
	if (signals_fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return 1;
	polled[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	polled[1] = (struct pollfd){ .fd = signals_fd, .events = POLLIN };
	status = warden_run_data_status(&w); /* it may have ended before SIGCHLD was blocked */
	while (status < 0) {
		if (poll(polled, 2, -1) < 0)
			continue;
		/* no end yet: the data process will end, or has to exit at its next request */
		if (polled[0].revents && !warden_run_answer_one(&w))
			polled[0].fd = -1;
		if (polled[1].revents)
			status = warden_run_on_signal(&w, signals_fd);
	}
	warden_run_remove_socket(&w);
	return status;
}

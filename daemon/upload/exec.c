/*
 * A command for each upload: the body is its standard input, its exit status the answer. 0 =
 * accepted; 65 (EX_DATAERR) = rejected for good; anything else = retry. The last line of its
 * standard error is the reason shown by status. It runs with the rights of kindling-upload, and is
 * killed at its timeout.
 */
#include "daemon/upload/sink_types.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/utf8.h"

#define EXEC_WORDS_MAX 64

struct exec_run {
	struct sink_file *file; /* NULL = the sink no longer waits for it */
	pid_t pid;
	int pidfd, err_fd;
	struct loop_source *source, *err_source;
	struct loop_timer *deadline;
	bool late;
	char said[SINK_TEXT_MAX]; /* the end of what it wrote to standard error */
	size_t said_len;
};

static void exec_free(struct exec_run *x)
{
	loop_source_free(x->source);
	loop_source_free(x->err_source);
	loop_timer_free(x->deadline);
	fd_close(x->pidfd);
	fd_close(x->err_fd);
	free(x);
}

/* ---- its standard error ---------------------------------------------------------------------- */

static void exec_keep(struct exec_run *x, const char *p, size_t n)
{
	size_t room = sizeof(x->said) - 1;

	if (n >= room) {
		p += n - room;
		n = room;
	}
	if (x->said_len + n > room) {
		size_t over = x->said_len + n - room;

		memmove(x->said, x->said + over, x->said_len - over);
		x->said_len -= over;
	}
	memcpy(x->said + x->said_len, p, n);
	x->said_len += n;
	x->said[x->said_len] = '\0';
}

static void exec_read(struct exec_run *x)
{
	char buf[4096];
	ssize_t n = read(x->err_fd, buf, sizeof(buf));

	if (n > 0)
		exec_keep(x, buf, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		x->err_source = loop_source_free(x->err_source);
}

static void exec_on_err(void *userdata, uint32_t events)
{
	(void)events;
	exec_read(userdata);
}

/* The last line that it wrote. */
static const char *exec_last_line(struct exec_run *x)
{
	char *at;

	while (x->said_len && x->said[x->said_len - 1] == '\n')
		x->said[--x->said_len] = '\0';
	at = strrchr(x->said, '\n');
	at = at ? at + 1 : x->said;
	for (char *p = at; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	(void)utf8_mend(at);
	return at;
}

/* ---- its end --------------------------------------------------------------------------------- */

static enum sink_verdict exec_verdict(const struct exec_run *x, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return SINK_CONFIRMED;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EX_DATAERR)
		return SINK_REFUSED;
	/* it was killed, perhaps after it had delivered */
	return WIFSIGNALED(status) || x->late ? SINK_UNKNOWN : SINK_RETRY;
}

static void exec_on_end(void *userdata, uint32_t events)
{
	struct exec_run *x = userdata;
	char why[SINK_TEXT_MAX + 64], head[64];
	const char *said;
	int status = 0;

	(void)events;
	if (waitpid(x->pid, &status, WNOHANG) == 0)
		return;
	if (x->err_source)
		exec_read(x);
	if (x->late)
		snprintf(head, sizeof(head), "the command took too long");
	else if (WIFSIGNALED(status))
		snprintf(head, sizeof(head), "the command was ended by signal %d",
			 WTERMSIG(status));
	else
		snprintf(head, sizeof(head), "the command ended with status %d",
			 WEXITSTATUS(status));
	said = exec_last_line(x);
	snprintf(why, sizeof(why), "%s%s%s", head, *said ? ": " : "", said);
	if (x->file)
		sink_done(x->file, exec_verdict(x, status), 0, why);
	exec_free(x);
}

static void exec_on_deadline(void *userdata)
{
	struct exec_run *x = userdata;

	x->late = true;
	(void)kill(-x->pid, SIGKILL);
}

/* ---- its start ------------------------------------------------------------------------------- */

static void exec_words(const struct config_sink *c, char *argv[EXEC_WORDS_MAX + 1])
{
	char *at = (char *)(uintptr_t)c->command;
	unsigned n = 0;

	for (; n < c->n_words && n < EXEC_WORDS_MAX; n++) {
		argv[n] = at;
		at += strlen(at) + 1;
	}
	argv[n] = NULL;
}

static int exec_spawn(const struct sink *s, const struct spool_header *h, int in, int err,
		      pid_t *ret)
{
	char key[520], type[100], sink[80], begin[64], end[64], target[180];
	char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *env[] = { path, key, type, sink, begin, end, target, NULL };
	char *argv[EXEC_WORDS_MAX + 1];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, pipes;
	int r;

	snprintf(key, sizeof(key), "KINDLING_KEY=%s", h->key);
	snprintf(type, sizeof(type), "KINDLING_CONTENT_TYPE=%s", h->content_type);
	snprintf(sink, sizeof(sink), "KINDLING_SINK=%s", s->config->name);
	snprintf(begin, sizeof(begin), "KINDLING_BEGIN_NS=%llu",
		 (unsigned long long)h->begin_real_ns);
	snprintf(end, sizeof(end), "KINDLING_END_NS=%llu", (unsigned long long)h->end_real_ns);
	snprintf(target, sizeof(target), "KINDLING_TARGET=%s", h->target);
	exec_words(s->config, argv);
	sigemptyset(&none);
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &pipes);
	r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret, argv[0], &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

/* Watches for the end of a started command. false: its end would not be noticed. */
static bool exec_watch(struct sink *s, struct exec_run *x)
{
	x->pidfd = (int)syscall(SYS_pidfd_open, x->pid, 0);
	return x->pidfd >= 0 &&
	       loop_add(sink_loop(s), x->pidfd, EPOLLIN, exec_on_end, x, &x->source) == 0 &&
	       loop_add(sink_loop(s), x->err_fd, EPOLLIN, exec_on_err, x, &x->err_source) == 0 &&
	       loop_timer_add(sink_loop(s), s->config->timeout_ns, 0, exec_on_deadline, x,
			      &x->deadline) == 0;
}

static int exec_send(struct sink *s, struct sink_file *f)
{
	struct exec_run *x = calloc(1, sizeof(*x));
	CLEANUP(fd_closep) int in = -1;
	struct spool_header h;
	int err[2], r;

	if (!x)
		return -ENOMEM;
	x->pidfd = x->err_fd = -1;
	in = spool_open(s->dfd, f->seq, true, &h);
	r = in < 0 ? in : pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0) {
		x->err_fd = err[0];
		(void)fcntl(err[1], F_SETFL, 0); /* the command's own writes may block */
		r = exec_spawn(s, &h, in, err[1], &x->pid);
		close(err[1]);
	}
	if (r < 0) {
		exec_free(x);
		return r;
	}
	if (!exec_watch(s, x)) {
		(void)kill(-x->pid, SIGKILL);
		(void)waitpid(x->pid, NULL, 0);
		exec_free(x);
		return -ENOMEM;
	}
	x->file = f;
	f->request = x;
	return 0;
}

/* Leaves the command running: it may be in the middle of a delivery. */
static void exec_cancel(struct sink *s, struct sink_file *f)
{
	(void)s;
	if (f->request)
		exec_free(f->request);
}

static int exec_open(struct sink *s, char *why, size_t why_size)
{
	const char *program = s->config->command;

	if (access(program, X_OK) < 0) {
		snprintf(why, why_size, "command: uid %u cannot run %s: %s", (unsigned)geteuid(),
			 program, strerror(errno));
		return -EACCES;
	}
	return sink_choose_format(s, REPORT_PPROF, why, why_size);
}

const struct sink_type sink_exec = {
	.open = exec_open,
	.encode = sink_encode_report,
	.send = exec_send,
	.cancel = exec_cancel,
	.in_flight_max = 2,
};

/*
 * Child processes of the target room. The loop never waits for one: a killed child may hang in a
 * file system of the target's, so its end is an event of its pidfd like any other.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "daemon/core/log.h"
#include "injector/result.h"

extern char **environ;

struct child {
	struct targets *table;
	struct child *next;
	pid_t pid;
	int pidfd;
	struct loop_source *source;
	bool owned; /* somebody will call child_kill(): it stays till then */
	bool ended; /* and was waited for */
	struct child **seen; /* who wants to know that it lives still; NULL = nobody */
	pid_t target; /* that it cleans up; 0 = it does something else */
	uint64_t target_start_time;
};

static void child_free(struct child *c)
{
	struct child **link;

	for (link = &c->table->children; *link && *link != c; link = &(*link)->next)
		;
	if (*link)
		*link = c->next;
	if (c->seen)
		*c->seen = NULL;
	loop_source_free(c->source);
	fd_close(c->pidfd);
	free(c);
}

static void on_end(void *userdata, uint32_t events)
{
	struct child *c = userdata;
	int status = 0;

	(void)events;
	if (waitpid(c->pid, &status, WNOHANG) == 0)
		return;
	if (c->target && WIFEXITED(status) && WEXITSTATUS(status) == INJECT_STATUS_LEFT)
		left_tell(c->table, c->target, c->target_start_time);
	/* its end may be seen before its answer, in the same round of the loop */
	c->ended = true;
	c->source = loop_source_free(c->source);
	if (!c->owned)
		child_free(c);
}

static int spawn(char *const argv[], const int fds[3], pid_t *ret)
{
	static const int numbers[3] = { 0, 3, 4 };
	posix_spawn_file_actions_t actions;
	int high[3] = { -1, -1, -1 };
	posix_spawnattr_t attr;
	sigset_t none, pipe;
	int r = 0;

	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3 && r == 0; i++) {
		if (fds[i] < 0)
			continue;
		/* none may be overwritten by the copy of another */
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, numbers[2] + 1);
		r = high[i] < 0 ? errno
				: posix_spawn_file_actions_adddup2(&actions, high[i], numbers[i]);
	}
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &pipe);
	if (r == 0)
		r = posix_spawn(ret, argv[0], &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	for (int i = 0; i < 3; i++)
		fd_close(high[i]);
	return -r;
}

int child_start(struct targets *table, char *const argv[], const int fds[3], struct child **ret)
{
	struct child *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->table = table;
	r = spawn(argv, fds, &c->pid);
	if (r < 0) {
		free(c);
		return r;
	}
	c->next = table->children;
	table->children = c;
	/* it is our child and not waited for yet, so the pid is still its own */
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	r = c->pidfd < 0 ? -errno : loop_add(table->loop, c->pidfd, EPOLLIN, on_end, c, &c->source);
	if (r < 0) {
		(void)kill(c->pid, SIGKILL);
		(void)waitpid(c->pid, NULL, 0); /* just started, nothing to hang in */
		child_free(c);
		return r;
	}
	c->owned = ret;
	if (ret)
		*ret = c;
	return 0;
}

void child_cleans(struct child *c, const struct target *t)
{
	c->target = t->jvm.pid;
	c->target_start_time = t->jvm.start_time;
}

void child_let_go(struct child *c)
{
	c->owned = false;
	if (c->ended)
		child_free(c);
}

void child_kill(struct child *c)
{
	c->owned = false;
	if (c->ended)
		child_free(c);
	else
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

void child_kill_and_see(struct child *c, struct child **seen)
{
	if (*seen)
		(*seen)->seen = NULL;
	*seen = NULL;
	if (!c->ended) {
		*seen = c;
		c->seen = seen;
	}
	child_kill(c);
}

void child_unsee(struct child **seen)
{
	if (*seen)
		(*seen)->seen = NULL;
	*seen = NULL;
}

void children_forget(struct targets *table)
{
	while (table->children) {
		(void)waitpid(table->children->pid, NULL, WNOHANG);
		child_free(table->children);
	}
}

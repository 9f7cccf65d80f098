/* See look.h. */
#include "daemon/discovery/look.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/core/tenant.h"
#include "daemon/discovery/container.h"
#include "daemon/discovery/proc.h"

#define CHILD_FD 3

extern char **environ;

struct lane {
	struct look *owner;
	pid_t child; /* 0 = none yet */
	int fd;
	struct loop_source *source;
	uint64_t number; /* of the question that is asked; 0 = none is */
	pid_t pid; /* that it is about */
	unsigned turns; /* since it was asked: counted, for a daemon that was stopped itself */
};

/* A child that was given up, until it can be waited for. */
struct given_up {
	pid_t child;
	uint64_t tenant;
};

struct look {
	struct loop *loop;
	look_fn *fn;
	void *userdata;
	char program[256];
	struct lane lanes[LOOK_LANES];
	struct given_up given_up[LOOK_STUCK_ALL];
	unsigned n_given_up;
	uint64_t number;
	struct loop_timer *timer;
};

/* ---- children that were given up ------------------------------------------------------------ */

static void wait_for_some(struct look *l)
{
	for (unsigned i = l->n_given_up; i-- > 0;)
		if (waitpid(l->given_up[i].child, NULL, WNOHANG) != 0)
			l->given_up[i] = l->given_up[--l->n_given_up];
}

/* By what cannot keep us waiting: its cgroup, and who owns its directory. */
static uint64_t tenant_of(pid_t pid)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int pid_dfd = proc_open(proc_dfd, pid);
	char cgroup[8192], id[CONTAINER_ID_SIZE] = "", name[TENANT_SIZE];
	struct stat st = { 0 };

	if (pid_dfd >= 0) {
		(void)fstat(pid_dfd, &st);
		if (proc_read(pid_dfd, "cgroup", cgroup, sizeof(cgroup)) > 0)
			(void)container_id_from_cgroup(cgroup, NULL, id);
	}
	return tenant_number(tenant_name(name, id, st.st_uid));
}

static unsigned given_up_of(const struct look *l, uint64_t tenant)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->n_given_up; i++)
		n += l->given_up[i].tenant == tenant;
	return n;
}

/* The lane is free again; nobody waits for the child, which may never end. */
static void give_up(struct lane *lane)
{
	struct look *l = lane->owner;

	lane->source = loop_source_free(lane->source);
	lane->fd = fd_close(lane->fd);
	lane->number = 0;
	if (lane->child) {
		(void)kill(lane->child, SIGKILL);
		if (l->n_given_up < LOOK_STUCK_ALL)
			l->given_up[l->n_given_up++] =
				(struct given_up){ lane->child, tenant_of(lane->pid) };
	}
	lane->child = 0;
}

unsigned look_stuck(const struct look *l)
{
	return l->n_given_up;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void on_answer(void *userdata, uint32_t events)
{
	static struct look_answer a;
	struct lane *lane = userdata;
	struct look *l = lane->owner;
	ssize_t n = recv(lane->fd, &a, sizeof(a), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(a)) {
		bool asked = lane->number != 0;

		give_up(lane);
		if (asked)
			l->fn(l->userdata, lane->pid, -EIO, NULL);
		return;
	}
	if (a.number != lane->number)
		return;
	lane->number = 0;
	l->fn(l->userdata, lane->pid, a.result, &a.jvm);
}

static void on_turn(void *userdata)
{
	struct look *l = userdata;

	wait_for_some(l);
	for (struct lane *lane = l->lanes; lane < l->lanes + LOOK_LANES; lane++) {
		if (!lane->number || ++lane->turns <= LOOK_ANSWER_NS / LOOK_TURN_NS)
			continue;
		log_warn("discovery.no_answer", "pid=%d", lane->pid);
		give_up(lane);
		l->fn(l->userdata, lane->pid, -ETIMEDOUT, NULL);
	}
}

/* ---- questions ------------------------------------------------------------------------------ */

static int spawn(const char *program, int fd, pid_t *ret)
{
	char *argv[] = { (char *)(uintptr_t)program, NULL };
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
	r = posix_spawn_file_actions_adddup2(&actions, fd, CHILD_FD);
	if (r == 0)
		r = posix_spawn(ret, program, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

static int start(struct lane *lane)
{
	CLEANUP(fd_closep) int theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	lane->fd = pair[0];
	theirs = pair[1];
	r = spawn(lane->owner->program, theirs, &lane->child);
	if (r < 0)
		lane->child = 0;
	else
		r = loop_add(lane->owner->loop, lane->fd, EPOLLIN, on_answer, lane, &lane->source);
	if (r < 0)
		give_up(lane);
	return r;
}

int look_ask(struct look *l, pid_t pid)
{
	struct look_question q = { .number = l->number + 1, .pid = pid };
	struct lane *lane = l->lanes;
	int r;

	while (lane < l->lanes + LOOK_LANES && lane->number)
		lane++;
	if (lane == l->lanes + LOOK_LANES)
		return -EAGAIN;
	if (l->n_given_up &&
	    (l->n_given_up >= LOOK_STUCK_ALL || given_up_of(l, tenant_of(pid)) >= LOOK_STUCK_MAX))
		return -EBUSY;
	r = lane->child ? 0 : start(lane);
	if (r < 0)
		return r;
	lane->pid = pid;
	if (send(lane->fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(q)) {
		give_up(lane);
		return -EIO;
	}
	lane->number = ++l->number;
	lane->turns = 0;
	return 0;
}

int look_new(struct loop *loop, const char *program, look_fn *fn, void *userdata, struct look **ret)
{
	CLEANUP(look_freep) struct look *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->loop = loop;
	l->fn = fn;
	l->userdata = userdata;
	snprintf(l->program, sizeof(l->program), "%s", program);
	for (int i = 0; i < LOOK_LANES; i++) {
		l->lanes[i].owner = l;
		l->lanes[i].fd = -1;
	}
	r = loop_timer_add(loop, LOOK_TURN_NS, LOOK_TURN_NS, on_turn, l, &l->timer);
	if (r == 0)
		r = start(&l->lanes[0]); /* a program that is not there is known at once */
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

struct look *look_free(struct look *l)
{
	if (!l)
		return NULL;
	for (int i = 0; i < LOOK_LANES; i++)
		give_up(&l->lanes[i]);
	wait_for_some(l);
	loop_timer_free(l->timer);
	free(l);
	return NULL;
}

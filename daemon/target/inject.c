/* One child per attempt: kindling-inject, its result socket, its deadline. */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "daemon/core/clock.h"
#include "injector/result.h"

extern char **environ;

static void end_child(struct target *t)
{
	struct target_priv *p = t->priv;

	p->result_source = loop_source_free(p->result_source);
	p->result_fd = fd_close(p->result_fd);
	p->timer = loop_timer_free(p->timer);
	if (p->injector > 0) {
		/* it has answered or is late: either way it is not waited for */
		(void)kill(p->injector, SIGKILL);
		(void)waitpid(p->injector, NULL, 0);
		p->injector = 0;
		p->table->injectors--;
	}
}

static void on_backoff(void *userdata)
{
	struct target *t = userdata;

	t->priv->timer = loop_timer_free(t->priv->timer);
	target_inject(t);
}

static void fail(struct target *t, const struct fault *why)
{
	uint64_t wait_ns = target_backoff_ns(t->attempts, why);

	target_set_state(t, TARGET_FAILED, why);
	if (wait_ns && t->state == TARGET_FAILED)
		(void)loop_timer_add(t->priv->table->loop, wait_ns, 0, on_backoff, t, &t->priv->timer);
}

/* The answer: one message with two descriptors, or none when it died. */
static bool receive(int fd, struct inject_result *ret, int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	fds[0] = fds[1] = -1;
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	ret->fault.what[sizeof(ret->fault.what) - 1] = '\0';
	return true;
}

static void on_result(void *userdata, uint32_t events)
{
	struct target *t = userdata;
	struct inject_result result = { 0 };
	int fds[2];

	(void)events;
	if (!receive(t->priv->result_fd, &result, fds))
		fault_set(&result.fault, EPROTO, FAULT_INTERNAL, "the injector died without an answer");
	if (result.fault.code == 0 && fds[1] < 0)
		fault_set(&result.fault, EPROTO, FAULT_INTERNAL, "the injector gave no pipe");
	end_child(t);
	if (result.fault.code) {
		fd_close(fds[0]);
		fd_close(fds[1]);
		fail(t, &result.fault);
	} else {
		session_open(t, fds[0], fds[1]);
		target_set_state(t, TARGET_STREAMING, NULL);
		t->attempts = 0;
	}
	targets_inject_next(t->priv->table);
}

/* A killed injector may have left names in the target: a second one takes them away. */
static void cleanup_after(const struct target *t)
{
	const struct config *c = t->priv->table->config;
	char pid[16], start[24];
	char *argv[] = { (char *)(uintptr_t)c->injector, (char *)(uintptr_t) "--result-fd",
			 (char *)(uintptr_t) "3", pid, start, (char *)(uintptr_t) "cleanup", NULL };
	pid_t child;

	snprintf(pid, sizeof(pid), "%d", t->jvm.pid);
	snprintf(start, sizeof(start), "%llu", (unsigned long long)t->jvm.start_time);
	if (posix_spawn(&child, c->injector, NULL, NULL, argv, environ) == 0)
		(void)waitpid(child, NULL, 0); /* it opens and unlinks: milliseconds */
}

static void on_deadline(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	fault_set(&f, ETIMEDOUT, FAULT_DEADLINE, "the attach did not end within its deadline");
	end_child(t);
	cleanup_after(t);
	fail(t, &f);
	targets_inject_next(t->priv->table);
}

void target_inject_abort(struct target *t)
{
	if (t->priv->injector > 0)
		end_child(t);
}

/* stdin = the START frame, fd 3 = the result socket, nothing else of ours. */
static int spawn(struct target *t, int result_fd, int start_fd)
{
	const struct config *c = t->priv->table->config;
	char pid[16], start[24], deadline[40], pipe_bytes[40];
	char *argv[] = {
		(char *)(uintptr_t)c->injector,
		(char *)(uintptr_t) "--result-fd",
		(char *)(uintptr_t) "3",
		pid,
		start,
		(char *)(uintptr_t) "attach",
		(char *)(uintptr_t)c->agent,
		deadline,
		pipe_bytes,
		(char *)(uintptr_t)(c->quiet_attach ? NULL : "quiet=0"),
		NULL,
	};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int r;

	snprintf(pid, sizeof(pid), "%d", t->jvm.pid);
	snprintf(start, sizeof(start), "%llu", (unsigned long long)t->jvm.start_time);
	snprintf(deadline, sizeof(deadline), "deadline_ms=%llu",
		 (unsigned long long)(c->attach_deadline_ns / NS_PER_MS));
	snprintf(pipe_bytes, sizeof(pipe_bytes), "pipe=%llu", (unsigned long long)c->pipe_bytes);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, start_fd, 0);
	posix_spawn_file_actions_adddup2(&actions, result_fd, 3);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	r = posix_spawn(&t->priv->injector, c->injector, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (r)
		t->priv->injector = 0;
	return -r;
}

static int start_child(struct target *t, struct fault *f)
{
	struct targets *table = t->priv->table;
	CLEANUP(fd_closep) int theirs = -1;
	uint8_t frame[WIRE_FRAME_MAX];
	int pair[2], start[2], len, r;

	len = session_frame(t, frame, table->config->cpu_interval_ns, false);
	if (pipe2(start, O_CLOEXEC) < 0)
		return fault_set(f, errno, FAULT_INTERNAL, "make a pipe: ");
	r = write(start[1], frame, (size_t)len) == len ? 0 : -EIO;
	close(start[1]);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r == 0) {
		t->priv->result_fd = pair[0];
		theirs = pair[1];
		r = spawn(t, theirs, start[0]);
	}
	close(start[0]);
	if (r == 0)
		r = loop_add(table->loop, t->priv->result_fd, EPOLLIN, on_result, t,
			     &t->priv->result_source);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "start %s: ", table->config->injector);
	table->injectors++;
	/* its own deadline comes first, so that it can tidy up; ours is the axe */
	return loop_timer_add(table->loop, table->config->attach_deadline_ns + 4 * NS_PER_S, 0,
			      on_deadline, t, &t->priv->timer);
}

void target_inject(struct target *t)
{
	struct fault f = { 0 };

	if (t->priv->table->injectors >= INJECTORS_MAX) {
		/* FAILED ones come again soon; FOUND ones are picked by targets_inject_next() */
		if (t->state == TARGET_FAILED)
			(void)loop_timer_add(t->priv->table->loop, 200 * NS_PER_MS, 0, on_backoff, t,
					     &t->priv->timer);
		return;
	}
	t->attempts++;
	target_set_state(t, TARGET_INJECTING, NULL);
	if (start_child(t, &f) < 0) {
		end_child(t);
		fail(t, &f);
	}
}

void targets_inject_next(struct targets *table)
{
	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->state == TARGET_FOUND && table->injectors < INJECTORS_MAX)
			target_inject(t);
}

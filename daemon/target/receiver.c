/* See receiver.h. */
#include "daemon/target/receiver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "daemon/ground/clock.h"
#include "daemon/target/target_priv.h"

#define QUIET_S	 2 /* after this time without a message a receiver is asked whether it lives */
#define ANSWER_S 5 /* time for its answer; only seconds in which the daemon ran count */

/* ---- receivers that were given up ----------------------------------------------------------- */

static bool receiver_is_stuck(const struct target *t)
{
	const struct target_priv *p = t->priv;
	uint64_t now = clock_mono_ns();

	return (p->stuck && now - p->stuck_mono_ns > STUCK_NS) ||
	       (p->late && now > p->late_mono_ns);
}

int receiver_allowed(const struct target *t)
{
	unsigned n = 0;

	for (const struct target *x = t->priv->table->first; x; x = x->priv->next) {
		if (!receiver_is_stuck(x))
			continue;
		if (x == t)
			return -EBUSY;
		n += x->priv->tenant == t->priv->tenant;
	}
	return n < RECEIVERS_STUCK_MAX ? 0 : -EBUSY;
}

unsigned targets_stuck(const struct targets *table, uint64_t *ret_total)
{
	unsigned n = 0;

	*ret_total = table->stuck_total;
	for (const struct target *t = table->first; t; t = t->priv->next)
		n += receiver_is_stuck(t);
	return n;
}

/* ---- messages ------------------------------------------------------------------------------- */

int receiver_read(struct target *t, uint8_t *buf, size_t size, size_t *ret_len)
{
	char what = 0;
	struct iovec iov[2] = { { &what, 1 }, { buf, size } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n = recvmsg(t->priv->socket_fd, &msg, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	t->priv->quiet_s = t->priv->unanswered_s = 0;
	t->priv->asked = false;
	*ret_len = (size_t)n - 1;
	return what;
}

static int receiver_send(struct target *t, char what, const void *content, size_t len)
{
	struct iovec iov[2] = { { &what, 1 }, { (void *)(uintptr_t)content, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (t->priv->socket_fd < 0 ||
	    sendmsg(t->priv->socket_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -EIO;
	return 0;
}

int receiver_write(struct target *t, const uint8_t *buf, size_t len)
{
	return receiver_send(t, RECEIVE_WRITE, buf, len);
}

int receiver_allow(struct target *t, uint32_t bytes)
{
	return receiver_send(t, RECEIVE_ALLOW, &bytes, sizeof(bytes));
}

int receiver_gather(struct target *t, uint32_t ms)
{
	return receiver_send(t, RECEIVE_GATHER, &ms, sizeof(ms));
}

void receiver_ask(struct target *t)
{
	t->priv->asked = true;
	t->priv->unanswered_s = 0;
	(void)receiver_send(t, RECEIVE_ASK, NULL, 0);
}

/* ---- receivers that do not answer ----------------------------------------------------------- */

/* Counts calls of the one-second timer rather than reading a clock, so that a pause of the daemon
 * itself counts as one second, however long it was. */
static bool receiver_is_late(struct target *t)
{
	struct target_priv *p = t->priv;

	/* without a session it belongs to an attempt or a look, which have their own deadlines */
	if (!p->receiver || !t->stream)
		return false;
	if (p->asked)
		return ++p->unanswered_s > ANSWER_S;
	if (++p->quiet_s > QUIET_S)
		receiver_ask(t);
	return false;
}

void receivers_on_second(void *userdata)
{
	struct targets *table = userdata;

	for (struct target *t = table->first, *next; t; t = next) {
		next = t->priv->next;
		if (receiver_is_late(t)) {
			table->stuck_total++;
			session_stuck(t);
		}
	}
}

/* ---- begin and end -------------------------------------------------------------------------- */

static int receiver_begin(struct target *t, char *const argv[], int pipes_fd)
{
	struct target_priv *p = t->priv;
	CLEANUP(fd_closep) int theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	p->socket_fd = pair[0];
	theirs = pair[1];
	r = child_start(p->table, argv, (int[3]){ pipes_fd, theirs, -1 }, &p->receiver);
	if (r < 0)
		p->socket_fd = fd_close(p->socket_fd);
	p->quiet_s = p->unanswered_s = 0;
	p->asked = false;
	gathering_begin(t);
	return r;
}

int receiver_start(struct target *t, int pipes_fd)
{
	const struct config *c = t->priv->table->config;
	char pid[16], start[24], uid[24], pipe_bytes[40];
	char *argv[] = { WORD(c->injector),
			 WORD("--result-fd"),
			 WORD("3"),
			 pid,
			 start,
			 WORD("receive"),
			 NULL,
			 NULL,
			 NULL,
			 NULL };

	snprintf(pid, sizeof(pid), "%d", t->jvm.pid);
	snprintf(start, sizeof(start), "%llu", (unsigned long long)t->jvm.start_time);
	snprintf(uid, sizeof(uid), "uid=%u", t->jvm.uid);
	snprintf(pipe_bytes, sizeof(pipe_bytes), "pipe=%llu", (unsigned long long)c->pipe_bytes);
	if (pipes_fd < 0) {
		argv[5] = WORD("reattach");
		argv[6] = uid;
		argv[7] = pipe_bytes;
		if (secrets_find(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time))
			argv[8] = WORD("known=1");
	}
	receiver_stop(t);
	return receiver_begin(t, argv, pipes_fd);
}

void receiver_stop(struct target *t)
{
	struct target_priv *p = t->priv;

	p->socket_source = loop_source_free(p->socket_source);
	p->socket_fd = fd_close(p->socket_fd);
	if (!p->receiver)
		return;
	p->stuck_mono_ns = clock_mono_ns();
	child_kill_and_see(p->receiver, &p->stuck);
	p->receiver = NULL;
}

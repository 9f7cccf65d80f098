/* See receive.h. */
#include "injector/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/confine.h"
#include "daemon/ground/mem.h"
#include "proto/wire.h"

#define PIPE_BYTES_MIN	4096
#define DRAIN_READS_MAX 512 /* reads that empty any pipe */
/* Send buffer for a slow daemon. While it is full the receiver waits, and reads neither pipes nor
 * messages. */
#define SOCKET_BYTES (2 * RECEIVE_BYTES)
/* An agent gives up a pipe that has been full for ten seconds. */
#define LEASE_NS (9 * NS_PER_S)
/* The gathering time of RECEIVE_GATHER is meant for a pipe of this size; a smaller pipe fills up
 * sooner and is read more often. */
#define GATHER_PIPE_BYTES (1024 * 1024)
#define GATHER_MS_MAX	  1000
/* Timer slack, which lets the kernel wake all receivers of the host together: then one wake-up of
 * the daemon, and of the CPU, serves many messages. */
#define GATHER_SLACK_NS (4 * NS_PER_MS)
#define ANSWER_NS	NS_PER_S

struct receiver {
	int socket_fd, events_fd, control_fd;
	size_t chunk; /* bytes of a read */
	uint64_t read_mono_ns; /* when events was last read */
	uint64_t pipe_bytes;
	uint64_t gather_ns; /* between two reads; RECEIVE_GATHER */
	/* `events` is not read before this time; 0 = as soon as it has data */
	uint64_t next_mono_ns;
	/* time of the last command to the agent, whose answer is passed on at once */
	uint64_t asked_mono_ns;
	uint32_t allowed; /* bytes that may still be passed on, or RECEIVE_UNBOUNDED */
	bool over;
};

/* Sends a message, waiting for the daemon if necessary. Meanwhile data stays in the pipe, and the
 * agent counts its drops. */
static void receive_send(struct receiver *r, char what, const void *content, size_t len)
{
	struct iovec iov[2] = { { &what, 1 }, { (void *)(uintptr_t)content, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	while (sendmsg(r->socket_fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR) {
			r->over = true;
			return;
		}
}

/* Makes one read and passes it on. Returns its bytes; 0 = the pipe is empty now. */
static size_t pass_on(struct receiver *r)
{
	static uint8_t buf[RECEIVE_BYTES];
	ssize_t n = read(r->events_fd, buf, r->allowed < r->chunk ? r->allowed : r->chunk);

	if (n <= 0)
		return 0;
	if (r->allowed != RECEIVE_UNBOUNDED)
		r->allowed -= (uint32_t)n;
	receive_send(r, RECEIVE_DATA, buf, (size_t)n);
	return r->over ? 0 : (size_t)n;
}

static void receive_drain(struct receiver *r)
{
	for (int i = 0; i < DRAIN_READS_MAX && pass_on(r); i++)
		;
}

/*
 * Has the agent stopped sampling, because the pipe was full for too long? That is how an agent
 * notices that nobody reads, because a stopped daemon causes no POLLERR. A full pipe may hold only
 * half of its size, because a frame that does not fit into the rest of a page begins a new one.
 */
static bool lease_is_lost(struct receiver *r)
{
	uint64_t now = clock_mono_ns(), last = r->read_mono_ns;
	int waiting = 0;

	r->read_mono_ns = now;
	return now - last > LEASE_NS && ioctl(r->events_fd, FIONREAD, &waiting) == 0 &&
	       waiting > fcntl(r->events_fd, F_GETPIPE_SZ) / 3;
}

/* Sets the time of the next read. It follows at once if the agent writes rarely, was just sent a
 * command, or has more data than one read takes. Otherwise it is at the next multiple of the
 * gathering time, which is the same moment for all receivers. */
static void gather(struct receiver *r, uint64_t since_last_ns, bool all_read)
{
	bool waits = all_read && since_last_ns < 2 * r->gather_ns &&
		     r->read_mono_ns - r->asked_mono_ns > ANSWER_NS;

	r->next_mono_ns =
		waits ? r->read_mono_ns + r->gather_ns - r->read_mono_ns % r->gather_ns : 0;
}

static void on_events(struct receiver *r)
{
	uint64_t last = r->read_mono_ns;

	if (!lease_is_lost(r)) {
		size_t n = pass_on(r);

		gather(r, r->read_mono_ns - last, n < r->chunk / 2);
		return;
	}
	receive_drain(r);
	receive_send(r, RECEIVE_LATE, NULL, 0);
}

/* Changes the gathering time. Data that is waiting is read now. */
static void receive_gather_ms(struct receiver *r, uint32_t ms)
{
	r->gather_ns = (ms < GATHER_MS_MAX ? ms : GATHER_MS_MAX) * NS_PER_MS;
	if (r->pipe_bytes < GATHER_PIPE_BYTES)
		r->gather_ns = r->gather_ns * r->pipe_bytes / GATHER_PIPE_BYTES;
	r->next_mono_ns = 0;
}

static void receive_on_command(struct receiver *r)
{
	uint8_t buf[1 + WIRE_FRAME_MAX];
	ssize_t n = recv(r->socket_fd, buf, sizeof(buf), MSG_DONTWAIT);
	uint32_t ms;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		r->over = true;
	} else if (n > 0 && buf[0] == RECEIVE_ASK) {
		receive_drain(r);
		receive_send(r, RECEIVE_ANSWER, NULL, 0);
	} else if (n == 1 + sizeof(r->allowed) && buf[0] == RECEIVE_ALLOW) {
		memcpy(&r->allowed, buf + 1, sizeof(r->allowed));
	} else if (n == 1 + sizeof(ms) && buf[0] == RECEIVE_GATHER) {
		memcpy(&ms, buf + 1, sizeof(ms));
		receive_gather_ms(r, ms);
	} else if (n > 1 && buf[0] == RECEIVE_WRITE) {
		r->asked_mono_ns = clock_mono_ns();
		r->next_mono_ns = 0;
		if (write(r->control_fd, buf + 1, (size_t)n - 1) != n - 1)
			receive_send(r, RECEIVE_UNWRITTEN, NULL, 0);
	}
}

/* The time between two reads of this pipe in ms; -1 = it is read as soon as it has data. */
static int gathers_ms(struct receiver *r)
{
	uint64_t now = r->next_mono_ns ? clock_mono_ns() : 0;

	if (now < r->next_mono_ns)
		return (int)((r->next_mono_ns - now + NS_PER_MS - 1) / NS_PER_MS);
	r->next_mono_ns = 0;
	return -1;
}

void receive_run(int socket_fd, int events_fd, int control_fd)
{
	struct receiver r = { .socket_fd = socket_fd,
			      .events_fd = events_fd,
			      .control_fd = control_fd,
			      .chunk = RECEIVE_BYTES,
			      .read_mono_ns = clock_mono_ns(),
			      .asked_mono_ns = clock_mono_ns(),
			      .allowed = RECEIVE_UNBOUNDED };
	int pipe_bytes = fcntl(events_fd, F_GETPIPE_SZ);
	struct pollfd fds[2] = { { .fd = socket_fd, .events = POLLIN },
				 { .fd = events_fd, .events = POLLIN } };

	if (pipe_bytes >= PIPE_BYTES_MIN && pipe_bytes < RECEIVE_BYTES)
		r.chunk = (size_t)pipe_bytes;
	if (pipe_bytes > 0)
		r.pipe_bytes = (uint64_t)pipe_bytes;
	while (!r.over) {
		int wait = gathers_ms(&r);

		/* while nothing may be read, the pipe is not polled at all: its end must not be
		 * noticed before its content was read */
		fds[1].fd = r.allowed && wait < 0 ? events_fd : -1;
		fds[1].revents = 0;
		if (poll(fds, 2, wait) < 0) {
			if (errno != EINTR)
				return;
			continue;
		}
		if (fds[0].revents)
			receive_on_command(&r);
		if (fds[1].revents & POLLIN)
			on_events(&r);
		else if (fds[1].revents)
			return; /* POLLHUP alone: the writer has closed the pipe, and it is empty */
	}
}

/* ---- rights --------------------------------------------------------------------------------- */

/* The system calls of the loop above, and those of the exit. */
static const int calls[] = {
	SYS_read,  SYS_write,	   SYS_sendmsg,	      SYS_recvfrom,	   SYS_ppoll,
#ifdef SYS_poll
	SYS_poll,
#endif
	SYS_ioctl, SYS_fcntl,	   SYS_clock_gettime, SYS_restart_syscall, SYS_rt_sigreturn,
	SYS_exit,  SYS_exit_group,
};

/* Drops all rights: from here on the receiver only copies the target's bytes. */
static void receive_begin_reading(int socket_fd)
{
	int bytes = SOCKET_BYTES;

	(void)setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)prctl(PR_SET_TIMERSLACK, GATHER_SLACK_NS, 0, 0, 0);
	(void)confine_capabilities(0);
	if (!CONFINE_SANITIZED)
		(void)confine_calls(calls, ARRAY_SIZE(calls), SECCOMP_RET_KILL_PROCESS);
}

/* ---- where the pipes come from -------------------------------------------------------------- */

/* Only the daemon ends a receiver. A signal to the process group must not, because the agent's last
 * frames are still to be passed on. */
static void receive_begin(void)
{
	(void)alarm(0);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
}

int receive_send_pipes(int pipes_fd, int events_fd, int control_fd)
{
	int fds[2] = { events_fd, control_fd };
	char control[CMSG_SPACE(sizeof(fds))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	return sendmsg(pipes_fd, &msg, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

static bool take_pipes(int pipes_fd, int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	while ((n = recvmsg(pipes_fd, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	c = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	return true;
}

int receive_attached(int socket_fd, int pipes_fd)
{
	int fds[2];

	receive_begin();
	if (!take_pipes(pipes_fd, fds))
		return 1;
	(void)close(pipes_fd);
	receive_begin_reading(socket_fd);
	receive_run(socket_fd, fds[0], fds[1]);
	return 0;
}

/* Discards what a previous daemon did not read, which may begin in the middle of a frame. */
static void receive_discard(int events_fd)
{
	uint8_t junk[4096];

	for (int i = 0; i < 4096 && read(events_fd, junk, sizeof(junk)) > 0; i++)
		;
}

int receive_reattached(const struct inject *in, int socket_fd, size_t pipe_bytes, uid_t uid,
		       bool known)
{
	struct receiver r = { .socket_fd = socket_fd };
	int events_fd = -1, control_fd = -1;
	struct receive_found answer = { 0 };

	receive_begin();
	reattach_find(in, uid, known, &answer, &events_fd, &control_fd);
	if (answer.found == 1) {
		(void)fcntl(events_fd, F_SETPIPE_SZ, (int)pipe_bytes);
		receive_discard(events_fd);
	}
	receive_send(&r, RECEIVE_FOUND, &answer, sizeof(answer));
	if (answer.found != 1 || r.over)
		return 0;
	receive_begin_reading(socket_fd);
	receive_run(socket_fd, events_fd, control_fd);
	return 0;
}

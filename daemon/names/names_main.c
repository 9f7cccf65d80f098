/*
 * kindling-names: reads the answers of a container runtime for kindlingd (names.h). The warden
 * sends each question and passes the connection to this program, which can only read from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/names/cri.h"
#include "daemon/names/frames.h"
#include "daemon/names/names_rights.h"

/* Bytes of the connection: the answer, and the frames around it. */
#define BYTES_MAX (WARDEN_NAMES_ANSWER_MAX + WARDEN_NAMES_ANSWER_MAX / 8)

struct names_bytes {
	uint8_t came[BYTES_MAX], body[BYTES_MAX];
	size_t len;
};

/* Waits for more bytes and reads them. 0, -ETIMEDOUT, -EMSGSIZE, or -ECONNRESET: the connection has
 * ended. */
static int names_main_more(int fd, struct names_bytes *b, uint64_t until_mono_ns)
{
	uint64_t now = clock_mono_ns();
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (b->len == sizeof(b->came))
		return -EMSGSIZE;
	if (now >= until_mono_ns || poll(&p, 1, (int)((until_mono_ns - now) / NS_PER_MS) + 1) == 0)
		return -ETIMEDOUT;
	n = read(fd, b->came + b->len, sizeof(b->came) - b->len);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	b->len += (size_t)n;
	return n == 0 ? -ECONNRESET : 0;
}

static void names_main_read(int fd, const struct warden_names_question *q, struct names_bytes *b,
			    struct names_answer *ret)
{
	uint64_t until_mono_ns = clock_mono_ns() + NAMES_ANSWER_MS * NS_PER_MS;
	size_t len = 0;
	int r = 0;

	b->len = 0;
	while (r == 0) {
		r = names_main_more(fd, b, until_mono_ns);
		if (r == 0)
			r = frames_read(b->came, b->len, b->body, &len);
	}
	ret->result = r;
	if (r == 1)
		cri_read(q->what, b->body + FRAMES_HEAD, len, ret);
}

/* Receives a question and its connection, which the caller closes. false: the warden has ended, or
 * the message is malformed. */
static bool names_main_receive(struct warden_names_question *ret, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec io = { ret, sizeof(*ret) };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	const struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(WARDEN_NAMES_FD, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n == (ssize_t)sizeof(*ret) ? CMSG_FIRSTHDR(&message) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS || ret->what >= WARDEN_NAMES_COUNT)
		return false;
	memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return true;
}

int main(int argc, char **argv)
{
	struct names_bytes *bytes = malloc(sizeof(*bytes));
	static struct names_answer a;
	struct warden_names_question q;
	int fd, r = 0;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("kindling-names " KINDLING_VERSION) < 0;
	/* it ends when the warden's socket is closed; signals to the process group, as by Ctrl-C,
	 * are not meant for it */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc != 1 || fcntl(NAMES_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(WARDEN_NAMES_FD, F_SETFD, FD_CLOEXEC) < 0) {
		fputs("kindling-names is started by kindlingd, and does nothing by itself\n",
		      stderr);
		return 2;
	}
	if (!bytes || names_give_up_rights() < 0)
		return 1;
	while (r >= 0 && names_main_receive(&q, &fd)) {
		memset(&a, 0, sizeof(a));
		names_main_read(fd, &q, bytes, &a);
		close(fd);
		a.number = q.number;
		r = (int)send(NAMES_FD, &a, sizeof(a), 0);
	}
	return 0;
}

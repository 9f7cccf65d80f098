/* See look_message.h: sends and receives messages with their descriptors. */
#include "daemon/discovery/look_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "daemon/ground/mem.h"

int look_send(int socket_fd, const void *message, size_t len, const int *fds, size_t n_fds,
	      int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(LOOK_FDS * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)message, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t n = 0;

	while (n < n_fds && n < LOOK_FDS && fds[n] >= 0)
		n++;
	if (n) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	if (sendmsg(socket_fd, &msg, flags | MSG_NOSIGNAL) != (ssize_t)len)
		return errno ? -errno : -EIO;
	return 0;
}

ssize_t look_receive(int socket_fd, void *message, size_t len, int fds[LOOK_FDS], int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(LOOK_FDS * sizeof(int))];
	struct iovec iov = { message, len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(socket_fd, &msg, flags | MSG_CMSG_CLOEXEC);

	for (int i = 0; i < LOOK_FDS; i++)
		fds[i] = -1;
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len <= CMSG_LEN(LOOK_FDS * sizeof(int)))
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n;
}

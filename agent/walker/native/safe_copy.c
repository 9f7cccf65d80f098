#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/walker/native/safe_copy.h"

#define PIPE_BYTES 65536 /* a pipe's capacity */

int safe_copy_open(struct safe_copy *ret)
{
	/* O_NONBLOCK, so that a write is cut instead of blocking: a pipe has only one page if its
	 * user has exceeded the limit of pipe memory, pipe(7) */
	return syscall(SYS_pipe2, ret->fd, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
}

void safe_copy_close(struct safe_copy *copy)
{
	close(copy->fd[0]);
	close(copy->fd[1]);
}

int safe_copy(struct safe_copy *copy, void *to, uint64_t address, size_t len)
{
	uint8_t *at = to;

	while (len) {
		size_t part = len < PIPE_BYTES ? len : PIPE_BYTES;
		ssize_t n = write(copy->fd[1], (const void *)(uintptr_t)address, part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		for (ssize_t got = 0; got < n;) {
			ssize_t r = read(copy->fd[0], at + got, (size_t)(n - got));

			if (r < 0 && errno == EINTR)
				continue;
			if (r <= 0)
				return -EIO;
			got += r;
		}
		at += n;
		address += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

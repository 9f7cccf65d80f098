/* See lock.h. */
#include "daemon/core/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include "daemon/ground/mem.h"

static pid_t lock_read_pid(int fd)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return (pid_t)strtol(text, NULL, 10);
}

int lock_take(const char *path, pid_t *ret_holder)
{
	CLEANUP(fd_closep) int fd = -1;
	int r;

	/* not truncated yet: it may contain the pid of another holder, which is then reported */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		*ret_holder = lock_read_pid(fd);
		return r;
	}
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* See maps.h. */
#include "daemon/core/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "daemon/core/mem.h"

#define BYTES_MAX (8u << 20)
#define CHUNK	  32768 /* longer than a line: a path of 4096 bytes may be four times that, escaped */

/* Whole lines of @buf; what is left of the last one stays. */
static size_t take_lines(char *buf, size_t len, maps_fn fn, void *userdata)
{
	char *line = buf, *end;

	while ((end = memchr(line, '\n', len - (size_t)(line - buf)))) {
		*end = '\0';
		fn(userdata, line);
		line = end + 1;
	}
	len -= (size_t)(line - buf);
	memmove(buf, line, len);
	return len;
}

int maps_each(int pid_dfd, maps_fn fn, void *userdata)
{
	CLEANUP(fd_closep) int fd = openat(pid_dfd, "maps", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char buf[CHUNK];
	size_t have = 0, total = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (total < BYTES_MAX && (n = read(fd, buf + have, sizeof(buf) - have)) != 0) {
		if (n < 0)
			return -errno;
		total += (size_t)n;
		have = take_lines(buf, have + (size_t)n, fn, userdata);
		if (have == sizeof(buf)) /* no line is that long */
			have = 0;
	}
	return 0;
}

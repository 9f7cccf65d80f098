/* See maps.h. */
#include "daemon/ground/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "daemon/ground/mem.h"

#define BYTES_MAX (8u << 20)

void maps_feed(struct maps_lines *m, const char *text, size_t len, maps_fn fn, void *userdata)
{
	while (len) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) : len;

		if (n >= sizeof(m->line) - m->len)
			m->skip = true;
		if (!m->skip) {
			memcpy(m->line + m->len, text, n);
			m->len += n;
		}
		if (!newline)
			return;
		m->line[m->len] = '\0';
		if (!m->skip)
			fn(userdata, m->line);
		m->len = 0;
		m->skip = false;
		text += n + 1;
		len -= n + 1;
	}
}

int maps_each(int pid_dfd, maps_fn fn, void *userdata)
{
	CLEANUP(fd_closep) int fd = openat(pid_dfd, "maps", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct maps_lines lines = { .len = 0 };
	size_t total = 0;
	char buf[16384]; /* read(2) returns a page at a time, or one line that is longer */
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (total < BYTES_MAX && (n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		maps_feed(&lines, buf, (size_t)n, fn, userdata);
		total += (size_t)n;
	}
	return 0;
}

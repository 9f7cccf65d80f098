/* Text of /proc: what it says is shaped by the target, so reads are capped and parsing is strict.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

ssize_t proc_read(int dfd, const char *name, char *buf, size_t size)
{
	CLEANUP(fd_closep) int fd = openat(dfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (have < size - 1 && (n = read(fd, buf + have, size - 1 - have)) != 0) {
		if (n < 0)
			return -errno;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return (ssize_t)have;
}

/* Field @n (3 = state) of stat: counted behind the last ')', because comm may hold any byte. */
static const char *stat_field(const char *stat, int n)
{
	const char *p = strrchr(stat, ')');

	for (int i = 2; p && i < n; i++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	return p;
}

uint64_t proc_start_time(const char *stat)
{
	const char *p = stat_field(stat, 22);

	return p ? strtoull(p, NULL, 10) : 0;
}

char proc_state(const char *stat)
{
	const char *p = stat_field(stat, 3);

	return p && *p ? *p : '?';
}

bool proc_status_field(const char *status, const char *key, char *ret, size_t size)
{
	size_t key_len = strlen(key), n = 0;
	const char *p = status;

	while (p && strncmp(p, key, key_len) != 0) {
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	if (!p)
		return false;
	for (p += key_len; *p == '\t' || *p == ' '; p++)
		;
	while (p[n] && p[n] != '\n' && n < size - 1) {
		ret[n] = p[n];
		n++;
	}
	ret[n] = '\0';
	return true;
}

uint64_t proc_signal_mask(const char *status, const char *key)
{
	char text[32];

	return proc_status_field(status, key, text, sizeof(text)) ? strtoull(text, NULL, 16) : 0;
}

int proc_map_root(const char *map, uint32_t *ret)
{
	unsigned inside, outside, count;

	/* lines "inside outside count" */
	while (map && sscanf(map, "%u %u %u", &inside, &outside, &count) == 3) {
		if (inside == 0 && count > 0) {
			*ret = outside;
			return 0;
		}
		map = strchr(map, '\n');
		if (map)
			map++;
	}
	return -ENOENT;
}

bool inject_alive(const struct inject *in)
{
	struct pollfd p = { .fd = in->pidfd, .events = POLLIN };
	char stat[1024];

	if (poll(&p, 1, 0) != 0) /* readable = the process has ended, pidfd_open(2) */
		return false;
	return proc_read(in->proc_dfd, "stat", stat, sizeof(stat)) > 0 &&
	       proc_start_time(stat) == in->start_time;
}

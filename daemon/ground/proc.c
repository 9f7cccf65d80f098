/* See proc.h. */
#include "daemon/ground/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

int proc_open(int proc_dfd, pid_t pid)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%d", (int)pid);
	fd = openat(proc_dfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

static int proc_open_file(int dfd, const char *name)
{
	int fd = openat(dfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

ssize_t proc_read(int dfd, const char *name, char *buf, size_t size)
{
	CLEANUP(fd_closep) int fd = proc_open_file(dfd, name);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}

bool proc_parse_stat(const char *text, struct proc_stat *ret)
{
	const char *open = strchr(text, '(');
	const char *p = strrchr(text, ')'); /* the name itself may contain parentheses and spaces */
	char *end;

	if (!open || !p || p < open || p[1] != ' ' || !p[2])
		return false;
	utf8_copy(ret->comm, sizeof(ret->comm), open + 1, (size_t)(p - open - 1));
	ret->state = p[2];
	p += 2;
	ret->cpu_ticks = 0;
	for (int field = 3; field < 22; field++) {
		p = strchr(p, ' ');
		if (!p)
			return false;
		p++;
		if (field + 1 == 14 || field + 1 == 15)
			ret->cpu_ticks += strtoull(p, NULL, 10);
	}
	if (*p < '0' || *p > '9')
		return false;
	ret->start_time = strtoull(p, &end, 10);
	return true;
}

uint64_t proc_start_time(const char *text)
{
	struct proc_stat stat;

	return proc_parse_stat(text, &stat) ? stat.start_time : 0;
}

char proc_state(const char *text)
{
	struct proc_stat stat;

	return proc_parse_stat(text, &stat) ? stat.state : '?';
}

bool proc_lives(pid_t pid, uint64_t start_time)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int dfd = proc_open(proc_dfd, pid);
	struct proc_stat stat;
	char text[1024];

	return dfd >= 0 && proc_read(dfd, "stat", text, sizeof(text)) > 0 &&
	       proc_parse_stat(text, &stat) && stat.start_time == start_time;
}

/* The text after @key, which must be at the beginning of a line; NULL = there is none. */
static const char *proc_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0)
			return line + len;
	}
	return NULL;
}

bool proc_field(const char *text, const char *key, char *ret, size_t size)
{
	const char *p = proc_value(text, key);
	size_t n;

	if (!p)
		return false;
	p += strspn(p, " \t");
	n = strcspn(p, "\n");
	n = n < size - 1 ? n : size - 1;
	memcpy(ret, p, n);
	ret[n] = '\0';
	return true;
}

/* The number at position @index in the line that begins with @key; the last one if @index is -1. */
static bool proc_number(const char *text, const char *key, int index, int base, uint64_t *ret)
{
	const char *p = proc_value(text, key);
	bool found = false;

	for (int i = 0; p && (index < 0 || i <= index); i++) {
		char *end;
		uint64_t value;

		p += strspn(p, " \t");
		if (!*p || *p == '\n')
			break;
		value = strtoull(p, &end, base);
		if (end == p)
			return false;
		p = end;
		if (index >= 0 && i < index)
			continue;
		*ret = value;
		found = true;
	}
	return found;
}

bool proc_parse_status(const char *text, struct proc_status *ret)
{
	uint64_t uid, gid, ns_pid = 0;

	/* the process chooses only Name, which is the first line, and newlines in it are escaped */
	if (!proc_number(text, "Uid:", 1, 10, &uid) || !proc_number(text, "Gid:", 1, 10, &gid) ||
	    !proc_number(text, "SigCgt:", 0, 16, &ret->caught))
		return false;
	(void)proc_number(text, "NSpid:", -1, 10, &ns_pid);
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	ret->ns_pid = (pid_t)ns_pid;
	return true;
}

uint64_t proc_signal_mask(const char *status, const char *key)
{
	uint64_t mask;

	return proc_number(status, key, 0, 16, &mask) ? mask : 0;
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

void proc_boot_id(char ret[PROC_BOOT_ID_SIZE])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || fscanf(f, "%39s", ret) != 1)
		strcpy(ret, "unknown");
	if (f)
		fclose(f);
}

/* See proc.h. */
#include "daemon/discovery/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/maps.h"
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

static int discovery_proc_open_file(int pid_dfd, const char *name)
{
	int fd = openat(pid_dfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

ssize_t proc_read(int pid_dfd, const char *name, char *buf, size_t size)
{
	CLEANUP(fd_closep) int fd = discovery_proc_open_file(pid_dfd, name);
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
	const char *p = strrchr(text, ')'); /* the name may hold brackets and spaces itself */
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

bool proc_lives(pid_t pid, uint64_t start_time)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int dfd = proc_open(proc_dfd, pid);
	struct proc_stat stat;
	char text[1024];

	return dfd >= 0 && proc_read(dfd, "stat", text, sizeof(text)) > 0 &&
	       proc_parse_stat(text, &stat) && stat.start_time == start_time;
}

/* Text after "@key:" at the start of a line, or NULL. */
static const char *status_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

/* The @index-th number of a line; the last one if @index is -1. */
static bool discovery_proc_status_number(const char *text, const char *key, int index, int base,
					 uint64_t *ret)
{
	const char *p = status_value(text, key);
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

	/* Name, the one line that the process writes itself, escapes newlines and comes first */
	if (!discovery_proc_status_number(text, "Uid", 1, 10, &uid) ||
	    !discovery_proc_status_number(text, "Gid", 1, 10, &gid) ||
	    !discovery_proc_status_number(text, "SigCgt", 0, 16, &ret->caught))
		return false;
	(void)discovery_proc_status_number(text, "NSpid", -1, 10, &ns_pid);
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	ret->ns_pid = (pid_t)ns_pid;
	return true;
}

static bool is_library(const char *base, const char *name)
{
	size_t len = strlen(name);

	return strncmp(base, name, len) == 0 && strcmp(base + len, ".so") == 0;
}

/* libj9vm29.so: the number is the release line */
static bool is_j9(const char *base)
{
	size_t digits;

	if (strncmp(base, "libj9vm", 7) != 0)
		return false;
	digits = strspn(base + 7, "0123456789");
	return strcmp(base + 7 + digits, ".so") == 0;
}

/* "start-end perms offset dev inode   path" */
void proc_maps_line(void *maps, char *line)
{
	static const char deleted_mark[] = " (deleted)";
	size_t mark = sizeof(deleted_mark) - 1;
	const char *perms = strchr(line, ' ');
	struct proc_maps *m = maps;
	char *path, *base;
	bool deleted, j9;
	size_t len;

	/* code, not data: a program that reads or copies the file is no JVM */
	if (!perms || strlen(perms) < 5 || perms[3] != 'x')
		return;
	path = strchr(perms, '/');
	if (!path)
		return;
	len = strlen(path);
	deleted = len > mark && strcmp(path + len - mark, deleted_mark) == 0;
	if (deleted)
		path[len - mark] = '\0';
	base = strrchr(path, '/') + 1;
	j9 = is_j9(base);
	if ((!j9 && !is_library(base, "libjvm")) || (m->path[0] && (m->j9 || !j9)))
		return;
	if (strlen(path) >= sizeof(m->path))
		return;
	strcpy(m->path, path);
	m->deleted = deleted;
	m->j9 = j9;
}

int proc_read_maps(int pid_dfd, struct proc_maps *ret)
{
	int r;

	ret->deleted = ret->j9 = false;
	ret->path[0] = '\0';
	r = maps_each(pid_dfd, proc_maps_line, ret);
	return r == -ENOENT ? -ESRCH : r;
}

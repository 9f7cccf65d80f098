/*
 * Copies of the agent that earlier attaches left mapped: the library is never unmapped. glibc knows
 * a library again by its name, so that there is one copy of a version. musl knows it by its file,
 * and the file of the last attach is gone (nothing is left in a container): each attach maps one
 * more, some 190 KiB that come back when the JVM ends.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/mem.h"

#define LINE_MAX_BYTES 4352 /* a path and what stands before it */
#define LINES_MAX      200000

/* A line of /proc/PID/maps, proc(5): "start-end r-xp offset device inode path". */
bool copies_is_one(const char *line)
{
	const char *rights = strchr(line, ' ');

	return rights && strncmp(rights, " r-xp ", 6) == 0 && strstr(line, "/libkindling-");
}

static int count(const struct inject *in)
{
	int fd = openat(in->proc_dfd, "maps", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), n = 0;
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[LINE_MAX_BYTES];

	if (!maps) {
		n = -errno;
		fd_close(fd);
		return n;
	}
	for (int i = 0; i < LINES_MAX && fgets(line, sizeof(line), maps); i++)
		n += copies_is_one(line);
	fclose(maps);
	return n;
}

int copies_check(struct inject *in)
{
	int n = count(in);

	if (n < 0)
		return fault_set(in->fault, -n, FAULT_PREFLIGHT,
				 "read maps of process %d: ", in->pid);
	if (n < COPIES_MAX)
		return 0;
	fault_set(in->fault, ENOSPC, FAULT_PREFLIGHT,
		  "%d copies of the agent from earlier attaches are in it, and its C library "
		  "gives none back before it ends",
		  n);
	in->fault->flags |= FAULT_PERMANENT;
	return -ENOSPC;
}

/*
 * Copies of the agent that earlier attaches left mapped: the library is never unmapped. glibc knows
 * a library again by its name, so that there is one copy of a version. musl knows it by its file,
 * and the file of the last attach is gone (nothing is left in a container): each attach maps one
 * more, some 190 KiB that come back when the JVM ends.
 */
#include "injector/inject.h"

#include <errno.h>
#include <string.h>

/* A line of /proc/PID/maps, proc(5): "start-end r-xp offset device inode path". */
bool copies_is_one(const char *line)
{
	const char *rights = strchr(line, ' ');

	return rights && strncmp(rights, " r-xp ", 6) == 0 && strstr(line, "/libkindling-");
}

int copies_check(struct inject *in)
{
	int n = in->maps.copies;

	if (n < COPIES_MAX)
		return 0;
	fault_set(
		in->fault, ENOSPC, FAULT_PREFLIGHT,
		"%d copies of the agent from earlier attaches are loaded, and this C library (musl) cannot unload them",
		n);
	in->fault->flags |= FAULT_PERMANENT;
	return -ENOSPC;
}

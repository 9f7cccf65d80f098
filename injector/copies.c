/*
 * Limits the copies of the agent's library in one JVM, because the library is never unloaded. glibc
 * recognises a loaded library by its name, so each version is mapped once. musl recognises it by
 * its file, and every attach removes its file afterwards: each attach maps another copy, some 190
 * KiB that are freed when the JVM ends.
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

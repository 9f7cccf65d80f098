/* See beside.h. */
#include "daemon/ground/beside.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool beside_find(char *dst, size_t size, const char *relative)
{
	char path[PATH_MAX], found[PATH_MAX];
	ssize_t n;
	char *slash;

	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	n = snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", relative);
	if ((size_t)n >= sizeof(path) - (size_t)(slash + 1 - path) || !realpath(path, found) ||
	    strlen(found) >= size)
		return false;
	strcpy(dst, found);
	return true;
}

bool beside_find_program(char *dst, size_t size, const char *name)
{
	char in_bin[NAME_MAX];

	snprintf(in_bin, sizeof(in_bin), "../bin/%s", name);
	return beside_find(dst, size, name) || beside_find(dst, size, in_bin);
}

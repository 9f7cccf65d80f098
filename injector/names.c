/*
 * Reads the names in a directory of a target's /tmp, among which those of kindling may be hidden:
 * other users may have created any number. A bound in names would hide ours behind a few hundred
 * files of a stranger, so the bound is time. Behind millions of names what a killed attempt left
 * stays, for as long as they do. An attempt that ends knows its own names, and searches for none.
 */
#include "injector/inject.h"

#include <dirent.h>
#include <fcntl.h>
#include "daemon/ground/clock.h"

/* An attempt that has exceeded its deadline has four seconds left to remove its files (main.c), and
 * a cleanup reads several directories. */
#define NAMES_ALL_NS (1500 * NS_PER_MS)
#define NAMES_ONE_NS (300 * NS_PER_MS) /* some 900,000 names of an ext4 in memory */
#define NAMES_BATCH  64 /* names between two looks at the clock */

static uint64_t names_until_mono_ns; /* the process makes one attempt, or one cleanup */

void names_begin(void)
{
	names_until_mono_ns = clock_mono_ns() + NAMES_ALL_NS;
}

void names_open(struct names *n, int dfd)
{
	int fd = files_open(dfd, ".", O_RDONLY | O_DIRECTORY, 0);

	n->dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!n->dir)
		fd_close(fd);
	n->seen = 0;
	n->until_mono_ns = clock_mono_ns() + NAMES_ONE_NS;
	if (n->until_mono_ns > names_until_mono_ns)
		n->until_mono_ns = names_until_mono_ns;
}

const char *names_next(struct names *n)
{
	struct dirent *e;

	if (!n->dir || (n->seen++ % NAMES_BATCH == 0 && clock_mono_ns() > n->until_mono_ns))
		return NULL;
	e = readdir(n->dir);
	return e ? e->d_name : NULL;
}

void names_close(struct names *n)
{
	if (n->dir)
		closedir(n->dir);
	n->dir = NULL;
}

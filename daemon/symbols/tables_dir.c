/* See tables_dir.h. */
#include "daemon/symbols/tables_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/core/mem.h"

#define TABLES_MAX 16384

struct entry {
	char name[96];
	struct timespec used;
	uint64_t bytes;
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static DIR *open_dir(int dfd)
{
	int fd = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		(void)fd_close(fd);
	return d;
}

void tables_dir_sweep(int dfd)
{
	DIR *d = open_dir(dfd);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] == '.' && ends_with(e->d_name, ".sym.tmp"))
			(void)unlinkat(dfd, e->d_name, 0);
	if (d)
		closedir(d);
}

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

static size_t read_entries(int dfd, struct entry *entries, uint64_t *ret_bytes)
{
	DIR *d = open_dir(dfd);
	uint64_t bytes = 0;
	struct dirent *e;
	size_t n = 0;

	while (d && n < TABLES_MAX && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || !ends_with(e->d_name, ".sym") ||
		    strlen(e->d_name) >= sizeof(entries[n].name) ||
		    fstatat(dfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		strcpy(entries[n].name, e->d_name);
		entries[n].used = st.st_mtim;
		entries[n++].bytes = (uint64_t)st.st_blocks * 512;
		bytes += (uint64_t)st.st_blocks * 512;
	}
	if (d)
		closedir(d);
	*ret_bytes = bytes;
	return n;
}

void tables_dir_prune(int dfd, uint64_t max)
{
	CLEANUP(freep) struct entry *entries = calloc(TABLES_MAX, sizeof(*entries));
	uint64_t bytes;
	size_t n;

	if (!entries)
		return;
	n = read_entries(dfd, entries, &bytes);
	if (bytes <= max)
		return;
	qsort(entries, n, sizeof(*entries), by_use);
	for (size_t i = 0; i < n && bytes > max; i++)
		if (unlinkat(dfd, entries[i].name, 0) == 0)
			bytes -= entries[i].bytes;
}

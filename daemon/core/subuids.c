/* See subuids.h. */
#include "daemon/core/subuids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/mem.h"

struct subuids_range {
	uint32_t first, count, owner;
};

static struct {
	struct subuids_range *ranges; /* by @first */
	unsigned n;
} subuids;

/* ---- text ----------------------------------------------------------------------------------- */

/* The text of the file, NUL-terminated, cut to SUBUIDS_FILE_SIZE; the caller frees it. */
static int subuids_read(const char *path, char **ret)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	CLEANUP(freep) char *text = fd < 0 ? NULL : malloc(SUBUIDS_FILE_SIZE + 1);
	size_t n = 0;
	ssize_t r = 1;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	while (n < SUBUIDS_FILE_SIZE && (r = read(fd, text + n, SUBUIDS_FILE_SIZE - n)) > 0)
		n += (size_t)r;
	if (r < 0)
		return -errno;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

/* A decimal number that ends at @end. */
static bool subuids_number(const char *text, char end, uint32_t *ret)
{
	char *after;
	unsigned long long n;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &after, 10);
	if (errno || n > UINT32_MAX || *after != end)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/* Cuts the fields of a line at its colons. Returns how many there are, at most @max. */
static unsigned subuids_split(char *line, char **fields, unsigned max)
{
	unsigned n = 0;

	for (char *p = line; p && n < max; n++) {
		fields[n] = p;
		p = strchr(p, ':');
		if (p)
			*p++ = '\0';
	}
	return n;
}

/* The uid of @name in the text of passwd(5), "name:password:uid:...". */
static bool subuids_find_user(const char *passwd, const char *name, uint32_t *ret)
{
	size_t len = strlen(name);

	for (const char *line = passwd; line && *line; line = strchr(line, '\n')) {
		const char *p;

		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || line[len] != ':')
			continue;
		p = strchr(line + len + 1, ':');
		return p && subuids_number(p + 1, ':', ret);
	}
	return false;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* A line "name or uid:first:count". false = it is not one. */
static bool subuids_parse(char *line, const char *passwd, struct subuids_range *ret)
{
	char *fields[4];

	if (subuids_split(line, fields, 4) != 3 || !fields[0][0] ||
	    !subuids_number(fields[1], '\0', &ret->first) ||
	    !subuids_number(fields[2], '\0', &ret->count))
		return false;
	/* root's own uid cannot be delegated */
	if (!ret->first || !ret->count || ret->count > UINT32_MAX - ret->first)
		return false;
	if (!subuids_find_user(passwd, fields[0], &ret->owner) &&
	    !subuids_number(fields[0], '\0', &ret->owner))
		ret->owner = ret->first;
	return true;
}

static int subuids_compare(const void *a, const void *b)
{
	const struct subuids_range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

int subuids_load(const char *file, const char *passwd)
{
	CLEANUP(freep) char *text = NULL, *users = NULL;
	struct subuids_range *ranges;
	char *save = NULL;
	unsigned n = 0;
	int r = subuids_read(file, &text);

	if (r < 0 && r != -ENOENT)
		return r;
	if (text && subuids_read(passwd, &users) < 0)
		users = strdup(""); /* numbers need no passwd */
	ranges = text && users ? calloc(SUBUIDS_MAX, sizeof(*ranges)) : NULL;
	if (text && !ranges)
		return -ENOMEM;
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && n < SUBUIDS_MAX;
	     line = strtok_r(NULL, "\n", &save))
		n += subuids_parse(line, users, &ranges[n]);
	if (n)
		qsort(ranges, n, sizeof(*ranges), subuids_compare);
	free(subuids.ranges);
	subuids.ranges = n ? ranges : NULL;
	subuids.n = n;
	if (!n)
		free(ranges);
	return (int)n;
}

uint32_t subuids_owner(uint32_t uid)
{
	unsigned low = 0, high = subuids.n;
	const struct subuids_range *r;

	/* the last range that begins at or before @uid; ranges do not overlap, useradd(8) */
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (subuids.ranges[middle].first <= uid)
			low = middle + 1;
		else
			high = middle;
	}
	r = low ? &subuids.ranges[low - 1] : NULL;
	return r && uid - r->first < r->count ? r->owner : uid;
}

/*
 * See gaps.h. A line is "boot pid start_time cpu_ns mono_ns owed_ns owed_cpu_ns"; a line of five
 * fields is an older version's, which reads no more than these. The file is overwritten by one
 * write: if the daemon is killed meanwhile, whole lines remain, and the first one of a process
 * counts. Nothing is synced, because after a crash of the host the file is useless.
 */
#include "daemon/host/gaps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"

#define LINE_MAX_BYTES 200
#define FORMER_MAX     2048 /* lines that are read from the previous daemon's file */

struct gaps {
	char path[300];
	char boot_id[PROC_BOOT_ID_SIZE];
	struct gaps_last *former;
	unsigned n_former;
	int fd; /* -1 = not opened yet */
	char *text; /* what is to be written */
	size_t len, room;
	size_t written; /* the length of the file */
};

static struct gaps_last *find_former(const struct gaps *g, pid_t pid, uint64_t start_time)
{
	for (unsigned i = 0; i < g->n_former; i++)
		if (g->former[i].pid == pid && g->former[i].start_time == start_time)
			return &g->former[i];
	return NULL;
}

static bool parse_line(const struct gaps *g, const char *line, struct gaps_last *ret)
{
	char boot[40];
	int n;

	*ret = (struct gaps_last){ .pid = 0 };
	n = sscanf(line, "%39s %d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "\n",
		   boot, &ret->pid, &ret->start_time, &ret->cpu_ns, &ret->mono_ns, &ret->owed_ns,
		   &ret->owed_cpu_ns);
	return (n == 5 || n == 7) && strchr(line, '\n') && strcmp(boot, g->boot_id) == 0 &&
	       ret->pid > 0;
}

static void gaps_read_file(struct gaps *g)
{
	FILE *f = fopen(g->path, "re");
	char line[LINE_MAX_BYTES];
	struct gaps_last last;

	while (f && g->n_former < FORMER_MAX && fgets(line, sizeof(line), f))
		if (parse_line(g, line, &last) && !find_former(g, last.pid, last.start_time) &&
		    proc_lives(last.pid, last.start_time))
			g->former[g->n_former++] = last;
	if (f)
		fclose(f);
}

int gaps_open(const char *dir, struct gaps **ret)
{
	struct gaps *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->fd = -1;
	g->written = SIZE_MAX; /* unknown: the first write cuts the file */
	g->former = calloc(FORMER_MAX, sizeof(*g->former));
	if (!g->former) {
		gaps_free(g);
		return -ENOMEM;
	}
	snprintf(g->path, sizeof(g->path), "%s/sampled", dir);
	proc_boot_id(g->boot_id);
	gaps_read_file(g);
	*ret = g;
	return 0;
}

struct gaps *gaps_free(struct gaps *g)
{
	if (!g)
		return NULL;
	fd_close(g->fd);
	free(g->former);
	free(g->text);
	free(g);
	return NULL;
}

bool gaps_take(struct gaps *g, pid_t pid, uint64_t start_time, struct gaps_last *ret)
{
	struct gaps_last *last = g ? find_former(g, pid, start_time) : NULL;
	uint64_t now = clock_mono_ns();

	if (!last)
		return false;
	*ret = *last;
	*last = g->former[--g->n_former];
	return ret->mono_ns <= now && now - ret->mono_ns <= GAPS_MAX_NS;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

void gaps_add(struct gaps *g, const struct gaps_last *last)
{
	size_t room = g->room ? 2 * g->room : 32ul * LINE_MAX_BYTES;
	char *more;

	if (g->room - g->len < LINE_MAX_BYTES) {
		more = realloc(g->text, room);
		if (!more)
			return; /* without memory it is not counted */
		g->text = more;
		g->room = room;
	}
	g->len += (size_t)snprintf(g->text + g->len, LINE_MAX_BYTES,
				   "%s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				   "\n",
				   g->boot_id, last->pid, last->start_time, last->cpu_ns,
				   last->mono_ns, last->owed_ns, last->owed_cpu_ns);
}

void gaps_begin(struct gaps *g)
{
	g->len = 0;
	for (unsigned i = 0; i < g->n_former; i++)
		if (clock_mono_ns() - g->former[i].mono_ns <= GAPS_MAX_NS)
			gaps_add(g, &g->former[i]);
}

int gaps_write(struct gaps *g)
{
	if (g->fd < 0)
		g->fd = open(g->path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (g->fd < 0)
		return -errno;
	if (g->len && pwrite(g->fd, g->text, g->len, 0) != (ssize_t)g->len)
		return -EIO;
	if (g->len != g->written && ftruncate(g->fd, (off_t)g->len) < 0)
		return -errno;
	g->written = g->len;
	return 0;
}

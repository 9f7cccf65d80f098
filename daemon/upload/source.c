/* See source.h. */
#include "daemon/upload/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/store/store.h"

struct source {
	char path[300];
	struct store *store;
};

int source_open(const char *state_dir, struct source **ret)
{
	struct source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	snprintf(s->path, sizeof(s->path), "%s/segments", state_dir);
	r = store_open(s->path, &s->store);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct source *source_free(struct source *s)
{
	if (!s)
		return NULL;
	store_free(s->store);
	free(s);
	return NULL;
}

/* Opens the directory again if somebody has removed it, and kindlingd has made another one. */
static int source_reopen(struct source *s)
{
	struct store *store;
	int r;

	if (!store_is_gone(s->store))
		return 0;
	r = store_open(s->path, &store);
	if (r < 0)
		return r;
	store_free(s->store);
	s->store = store;
	return 0;
}

/* Checks that the files can be opened. The store takes one that cannot for a missing one: then
 * nothing would be delivered, and no error seen. */
static int source_check(struct source *s)
{
	int fd = openat(store_dir_fd(s->store), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(dir))) {
		const char *dot = strrchr(e->d_name, '.');

		if (dot && strcmp(dot, ".seg") == 0 &&
		    faccessat(dirfd(dir), e->d_name, R_OK, AT_EACCESS) < 0 && errno != ENOENT)
			r = -errno;
	}
	closedir(dir);
	return r;
}

int source_list(struct source *s, uint64_t from, uint64_t to, struct source_process **ret,
		uint32_t *ret_n)
{
	struct store_process *known;
	struct source_process *list;
	uint32_t n, kept = 0;
	int r = source_reopen(s);

	if (r == 0)
		r = source_check(s);
	if (r == 0)
		r = store_processes_unnamed(s->store, from, to, &known, &n);
	if (r < 0)
		return r;
	list = calloc((size_t)n + 1, sizeof(*list));
	/* the store lists all processes of whole segments */
	for (uint32_t i = 0; list && i < n; i++)
		if (known[i].begin_real_ns < to && known[i].end_real_ns > from)
			list[kept++] = (struct source_process){ known[i].pid, known[i].start_time };
	store_processes_free(known, n);
	if (!list)
		return -ENOMEM;
	*ret = list;
	*ret_n = kept;
	return 0;
}

uint64_t source_next(struct source *s, uint64_t from, uint64_t to)
{
	struct store_process *known;
	uint64_t next = to;
	uint32_t n;

	if (store_processes_unnamed(s->store, from, to, &known, &n) < 0)
		return to;
	/* of whole segments, so what is found may begin too early, never too late */
	for (uint32_t i = 0; i < n; i++)
		if (known[i].end_real_ns > from && known[i].begin_real_ns < next)
			next = known[i].begin_real_ns;
	store_processes_free(known, n);
	return next;
}

struct source_sum {
	struct profile *profile;
	struct profile_filter filter;
};

static int source_add(void *userdata, const struct profile *window)
{
	struct source_sum *sum = userdata;

	profile_expect(sum->profile, window);
	return profile_merge(sum->profile, window, &sum->filter);
}

int source_profile(struct source *s, uint64_t from, uint64_t to, const struct source_process *who,
		   unsigned events, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct source_sum sum = { .filter = { .pids = &who->pid,
					      .start_times = &who->start_time,
					      .n_pids = 1,
					      .events = events,
					      .no_idle = true } };
	int r = profile_new(&p);

	sum.profile = p;
	if (r == 0)
		r = store_each_window(s->store, who->pid, who->start_time, from, to, source_add,
				      &sum);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

int source_processes(struct source *s, uint64_t from, uint64_t to, struct store_process **ret,
		     uint32_t *ret_n)
{
	return store_processes(s->store, from, to, ret, ret_n);
}

/* See tables_dir.h. */
#include "daemon/symbols/tables_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/ground/mem.h"

#define TABLES_MAX 65536

struct entry {
	char name[200];
	bool in_use;
	struct timespec used;
	uint64_t bytes;
};

static bool tables_dir_ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static DIR *tables_dir_open_dir(int dfd)
{
	int fd = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		(void)fd_close(fd);
	return d;
}

void tables_dir_sweep(int dfd)
{
	DIR *d = tables_dir_open_dir(dfd);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] == '.' && tables_dir_ends_with(e->d_name, ".sym.tmp"))
			(void)unlinkat(dfd, e->d_name, 0);
	if (d)
		closedir(d);
}

/* The length of "<tenant>_", the beginning of a table's name. */
static size_t tenant_len(const char *name)
{
	return strcspn(name, "_");
}

static int by_tenant(const struct entry *x, const struct entry *y)
{
	size_t n = tenant_len(x->name), m = tenant_len(y->name);
	int r = memcmp(x->name, y->name, n < m ? n : m);

	return r ? r : n < m ? -1 : n > m;
}

/* Sorts by tenant, and each tenant's tables in the order of their removal. */
static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int r = by_tenant(x, y);

	if (r)
		return r;
	if (x->in_use != y->in_use)
		return x->in_use ? 1 : -1;
	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The bytes that a table counts for: one with several names is divided among them. */
static uint64_t charge_of(const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * 512 / (st->st_nlink ? st->st_nlink : 1);

	return bytes < TABLES_DIR_BYTES_MIN ? TABLES_DIR_BYTES_MIN : bytes;
}

struct entries {
	struct entry *all;
	size_t n, cap;
	uint64_t bytes;
};

static bool add_entry(struct entries *e, const char *name, const struct stat *st,
		      const struct tables_use *use)
{
	struct entry *one;

	if (e->n == e->cap) {
		size_t cap = e->cap ? 2 * e->cap : 256;
		struct entry *p = realloc(e->all, cap * sizeof(*p));

		if (!p)
			return false;
		e->all = p;
		e->cap = cap;
	}
	one = &e->all[e->n++];
	strcpy(one->name, name);
	one->used = st->st_mtim;
	one->bytes = charge_of(st);
	one->in_use = use->in_use && use->in_use(use->userdata, name);
	e->bytes += one->bytes;
	return true;
}

static void read_entries(int dfd, const struct tables_use *use, struct entries *to)
{
	DIR *d = tables_dir_open_dir(dfd);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || !tables_dir_ends_with(e->d_name, ".sym") ||
		    fstatat(dfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		/* a name without "_" is an earlier version's, which used the build-id */
		if (!strchr(e->d_name, '_') || strlen(e->d_name) >= sizeof(to->all->name) ||
		    to->n >= TABLES_MAX || !add_entry(to, e->d_name, &st, use))
			(void)unlinkat(dfd, e->d_name, 0);
	}
	if (d)
		closedir(d);
}

/* One tenant's tables, in the order of their removal. */
struct share {
	size_t next, end;
	uint64_t bytes;
};

static size_t make_shares(const struct entries *e, struct share *shares)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++) {
		if (i == 0 || by_tenant(&e->all[i - 1], &e->all[i]) != 0)
			shares[n++] = (struct share){ .next = i };
		shares[n - 1].end = i + 1;
		shares[n - 1].bytes += e->all[i].bytes;
	}
	return n;
}

static struct share *tables_dir_largest(struct share *shares, size_t n)
{
	struct share *most = NULL;

	for (size_t i = 0; i < n; i++)
		if (shares[i].next < shares[i].end && (!most || shares[i].bytes > most->bytes))
			most = &shares[i];
	return most;
}

static void remove_down_to(int dfd, struct entries *e, uint64_t max, const struct tables_use *use)
{
	CLEANUP(freep) struct share *shares = calloc(e->n + 1, sizeof(*shares));
	struct share *most;
	size_t n;

	if (!shares)
		return;
	qsort(e->all, e->n, sizeof(*e->all), by_use);
	n = make_shares(e, shares);
	while (e->bytes > max && (most = tables_dir_largest(shares, n))) {
		const struct entry *one = &e->all[most->next++];

		most->bytes -= one->bytes;
		e->bytes -= one->bytes;
		(void)unlinkat(dfd, one->name, 0);
		if (use->on_gone)
			use->on_gone(use->userdata, one->name);
	}
}

void tables_dir_prune(int dfd, uint64_t max, const struct tables_use *use, uint64_t *ret_bytes,
		      unsigned *ret_n)
{
	struct entries e = { 0 };

	read_entries(dfd, use, &e);
	/* removing a name makes a shared table count more for its other names: so it is added up
	 * again */
	for (int round = 0; round < 3 && e.bytes > max; round++) {
		remove_down_to(dfd, &e, max - max / 8, use);
		e.n = 0;
		e.bytes = 0;
		read_entries(dfd, use, &e);
	}
	*ret_bytes = e.bytes;
	*ret_n = (unsigned)e.n;
	free(e.all);
}

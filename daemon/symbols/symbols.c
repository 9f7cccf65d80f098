/*
 * See symbols.h: processes and the files that they map. A file is known by its device, inode, size
 * and times, and by whose process maps it: in a file system of its own a container can give a file
 * any number and any time, but only for itself.
 */
#include "daemon/symbols/symbols_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/core/clock.h"
#include "daemon/symbols/mapped.h"
#include "daemon/symbols/tables_dir.h"

#define PROCESS_FILES_MAX 512
#define TENANT_FILES_MAX  8192
#define PROCESSES_MAX	  2048
#define TENANTS_MAX	  2048
#define PATH_BYTES_MAX	  1024
/* each holds two open files */
#define TENANT_WAITING_MAX 128
#define WAITING_MAX	   1024
#define KEEP_NS		   (120 * NS_PER_S) /* what a process mapped, after its end */

/* ---- tenants --------------------------------------------------------------------------------- */

static bool is_idle(const struct tenant *t)
{
	return !t->files && !t->contents && !t->reading && tenant_is_full(t);
}

/* One without a process is kept until its budget is full: else it would be full at once. */
static void sweep_tenants(struct symbols *s, uint64_t now)
{
	struct tenant **at = &s->tenants;

	while (*at) {
		struct tenant *t = *at;

		tenant_refill(t, now);
		if (is_idle(t)) {
			*at = t->next;
			free(t);
		} else {
			at = &t->next;
		}
	}
}

static struct tenant *tenant_of(struct symbols *s, const char *name)
{
	struct tenant *t;
	unsigned n = 0;

	for (t = s->tenants; t; t = t->next, n++)
		if (strcmp(t->name, name) == 0)
			return t;
	t = n < TENANTS_MAX ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	tenant_refill(t, clock_mono_ns());
	t->next = s->tenants;
	s->tenants = t;
	return t;
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct process **find_process(struct symbols *s, int pid, uint64_t start_time)
{
	struct process **at = &s->processes[(unsigned)pid % PROCESSES_HASH];

	while (*at && ((*at)->pid != pid || (*at)->start_time != start_time))
		at = &(*at)->next;
	return at;
}

static void forget_process(struct symbols *s, struct process **at)
{
	struct process *p = *at;

	for (unsigned i = 0; i < FILE_BUCKETS; i++)
		while (p->files[i]) {
			struct file *f = p->files[i];

			p->files[i] = f->next;
			content_unref(f->content);
			free(f->path);
			free(f);
		}
	p->tenant->files -= p->n_files;
	*at = p->next;
	s->n_processes--;
	free(p);
}

static struct process *process_of(struct symbols *s, const struct symbols_process *who)
{
	struct process **at = find_process(s, who->pid, who->start_time), *p = *at;
	struct tenant *t;

	if (p || s->n_processes >= PROCESSES_MAX)
		return p;
	t = tenant_of(s, who->tenant);
	p = t ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	*p = (struct process){ .pid = who->pid, .start_time = who->start_time, .tenant = t };
	s->n_processes++;
	*at = p;
	return p;
}

void symbols_end(struct symbols *s, int pid, uint64_t start_time)
{
	struct process *p = *find_process(s, pid, start_time);

	if (p && !p->ended_mono_ns)
		p->ended_mono_ns = clock_mono_ns();
}

static void on_second(void *userdata)
{
	struct symbols *s = userdata;
	uint64_t now = clock_mono_ns();

	for (unsigned i = 0; i < PROCESSES_HASH; i++)
		for (struct process **at = &s->processes[i]; *at;)
			if ((*at)->ended_mono_ns && now - (*at)->ended_mono_ns > KEEP_NS)
				forget_process(s, at);
			else
				at = &(*at)->next;
	sweep_tenants(s, now);
	children_start(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *path)
{
	uint64_t h = tenant_number(path);

	return (uint32_t)(h ^ h >> 32);
}

static struct file *find_file(const struct process *p, const char *path)
{
	uint32_t hash = hash_of(path);
	struct file *f = p->files[hash % FILE_BUCKETS];

	while (f && (f->hash != hash || strcmp(f->path, path) != 0))
		f = f->next;
	return f;
}

/* A reference to @c goes over to it. */
static void remember_file(struct process *p, uint64_t begin, const char *path, struct content *c)
{
	struct file *f = find_file(p, path);

	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->path = strdup(path);
		if (!f || !f->path) {
			free(f);
			content_unref(c);
			return;
		}
		f->hash = hash_of(path);
		f->next = p->files[f->hash % FILE_BUCKETS];
		p->files[f->hash % FILE_BUCKETS] = f;
		p->n_files++;
		p->tenant->files++;
	}
	content_unref(f->content);
	f->begin = begin;
	f->content = c;
}

static void make_key(char buf[KEY_SIZE], const char *tenant, const struct stat *st)
{
	snprintf(buf, KEY_SIZE, "%s_%llx-%llx-%llx-%llx.%lx-%llx.%lx.sym", tenant,
		 (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
		 (unsigned long long)st->st_size, (unsigned long long)st->st_mtim.tv_sec,
		 (unsigned long)st->st_mtim.tv_nsec, (unsigned long long)st->st_ctim.tv_sec,
		 (unsigned long)st->st_ctim.tv_nsec);
}

/* Its file is kept open until a child may read it. False = too many wait. */
static bool queue_input(struct content *c, int *fd, int pid, const char *path)
{
	struct symbols *s = c->owner;

	if (s->waiting >= WAITING_MAX || c->tenant->waiting >= TENANT_WAITING_MAX)
		return false;
	c->path = strdup(path);
	if (!c->path)
		return false;
	c->file_fd = TAKE_FD(*fd);
	c->root_fd = mapped_root(pid);
	s->waiting++;
	c->tenant->waiting++;
	return true;
}

static int open_input(const struct symbols_process *who, uint64_t begin, uint64_t end,
		      const char *path, const uint8_t *build_id, unsigned build_id_len,
		      char key[KEY_SIZE])
{
	bool vdso = strcmp(path, MAPPED_VDSO) == 0;
	struct stat st;
	int fd;

	fd = vdso ? mapped_open_vdso(end - begin, build_id, build_id_len, &st)
		  : mapped_open(who->pid, begin, end, path, &st);
	/* the vDSO is the daemon's own: whoever has it, it is the same */
	if (fd >= 0)
		make_key(key, vdso ? "vdso" : who->tenant, &st);
	return fd;
}

void symbols_want(struct symbols *s, const struct symbols_process *who, uint64_t begin,
		  uint64_t end, const char *path, const uint8_t *build_id, unsigned build_id_len)
{
	CLEANUP(fd_closep) int fd = -1;
	struct process *p;
	struct content *c;
	struct file *f;
	char key[KEY_SIZE];

	if ((path[0] != '/' && strcmp(path, MAPPED_VDSO) != 0) || strlen(path) > PATH_BYTES_MAX)
		return;
	p = process_of(s, who);
	f = p ? find_file(p, path) : NULL;
	if (f && f->begin == begin)
		return;
	if (!p || p->n_files >= PROCESS_FILES_MAX || p->tenant->files >= TENANT_FILES_MAX) {
		s->counts.refused++;
		return;
	}
	fd = open_input(who, begin, end, path, build_id, build_id_len, key);
	c = fd < 0 ? NULL : content_ref(s, p->tenant, key);
	if (!c)
		return;
	if (c->state == WANTED && c->file_fd < 0 && !content_open(c) &&
	    !queue_input(c, &fd, who->pid, path)) {
		s->counts.refused++;
		content_unref(c);
		return; /* not remembered: wanted again with the next mapping frame */
	}
	remember_file(p, begin, path, c);
	children_start(s);
}

const char *symbols_lookup(struct symbols *s, int pid, uint64_t start_time, const char *path,
			   uint64_t offset)
{
	const struct process *p = *find_process(s, pid, start_time);
	const struct file *f = p ? find_file(p, path) : NULL;

	return f && f->content->state == READY ? table_find(&f->content->names->table, offset)
					       : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int symbols_new(struct loop *loop, const char *dir, uint64_t max_bytes, struct symbols **ret)
{
	CLEANUP(symbols_freep) struct symbols *s = calloc(1, sizeof(*s));
	const struct tables_use none = { 0 };
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->max_bytes = max_bytes;
	s->dfd = -1;
	if (mkdir(dir, 0750) == 0 || errno == EEXIST)
		s->dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dfd < 0)
		return -errno;
	tables_dir_sweep(s->dfd);
	tables_dir_prune(s->dfd, max_bytes, &none, &s->counts.table_bytes, &s->counts.tables);
	children_find_program(s);
	r = loop_timer_add(loop, NS_PER_S, NS_PER_S, on_second, s, &s->second);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct symbols *symbols_free(struct symbols *s)
{
	if (!s)
		return NULL;
	loop_timer_free(s->second);
	children_free(s);
	for (unsigned i = 0; i < PROCESSES_HASH; i++)
		while (s->processes[i])
			forget_process(s, &s->processes[i]);
	while (s->tenants) {
		struct tenant *t = s->tenants;

		s->tenants = t->next;
		free(t);
	}
	fd_close(s->dfd);
	free(s);
	return NULL;
}

void symbols_counts(const struct symbols *s, struct symbols_counts *ret)
{
	*ret = s->counts;
	ret->waiting = s->waiting;
	ret->reading = s->reading;
}

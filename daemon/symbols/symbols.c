/*
 * See symbols.h: processes and the files that they map. A file is identified by device, inode, size
 * and times together with the tenant of its process: a container can give files in a file system of
 * its own any of these, but only deceives itself.
 */
#include "daemon/symbols/symbols_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/symbols/mapped.h"
#include "daemon/symbols/tables_dir.h"

#define PROCESS_FILES_MAX 512
#define TENANT_FILES_MAX  8192
#define PROCESSES_MAX	  2048
#define TENANTS_MAX	  2048
#define PATH_BYTES_MAX	  1023
/* each keeps two descriptors open */
#define TENANT_WAITING_MAX 128
#define WAITING_MAX	   1024
#define KEEP_NS		   (120 * NS_PER_S) /* processes are remembered for this time after their end */
#define GIVE_BACK_S	   10

/* ---- tenants --------------------------------------------------------------------------------- */

static bool symbols_is_idle(const struct tenant *t, uint64_t now)
{
	return !t->processes && !t->contents && !t->reading && tenant_is_full(t) &&
	       t->open_from_mono_ns <= now;
}

/* Frees tenants without processes, but not before their budget is full: a tenant that comes back
 * begins with a full one. */
static void sweep_tenants(struct symbols *s, uint64_t now)
{
	struct tenant **at = &s->tenants;

	while (*at) {
		struct tenant *t = *at;

		tenant_refill(t, now);
		if (symbols_is_idle(t, now)) {
			*at = t->next;
			free(t);
		} else {
			at = &t->next;
		}
	}
}

static struct tenant *symbols_tenant_of(struct symbols *s, const char *name)
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
	t->wanted_end = &t->wanted;
	tenant_refill(t, clock_mono_ns());
	t->next = s->tenants;
	s->tenants = t;
	return t;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void file_free(struct file *f)
{
	content_unref(f->content);
	free(f->path);
	free(f);
}

static struct process **symbols_find_process(struct symbols *s, int pid, uint64_t start_time)
{
	struct process **at = &s->processes[(unsigned)pid % PROCESSES_HASH];

	while (*at && ((*at)->pid != pid || (*at)->start_time != start_time))
		at = &(*at)->next;
	return at;
}

static void forget_file(struct file *f)
{
	struct process *p = f->process;
	struct file **at = &p->files[f->hash % FILE_BUCKETS];

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	p->n_files--;
	p->tenant->files--;
	file_free(f);
}

static void forget_process(struct symbols *s, struct process **at)
{
	struct process *p = *at;

	for (unsigned i = 0; i < FILE_BUCKETS; i++)
		while (p->files[i]) {
			struct file *f = p->files[i];

			p->files[i] = f->next;
			file_unwant(s, f);
			file_free(f);
		}
	p->tenant->files -= p->n_files;
	p->tenant->processes--;
	*at = p->next;
	s->n_processes--;
	free(p);
}

static struct process *symbols_process_of(struct symbols *s, const struct symbols_process *who)
{
	struct process **at = symbols_find_process(s, who->pid, who->start_time), *p = *at;
	struct tenant *t;

	if (p || s->n_processes >= PROCESSES_MAX)
		return p;
	t = symbols_tenant_of(s, who->tenant);
	p = t ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	*p = (struct process){
		.owner = s, .pid = who->pid, .start_time = who->start_time, .tenant = t
	};
	s->n_processes++;
	t->processes++;
	*at = p;
	return p;
}

void symbols_end(struct symbols *s, int pid, uint64_t start_time)
{
	struct process *p = *symbols_find_process(s, pid, start_time);

	if (!p || p->ended_mono_ns)
		return;
	p->ended_mono_ns = clock_mono_ns();
	for (unsigned i = 0; i < FILE_BUCKETS; i++)
		for (struct file *f = p->files[i], *next; f; f = next) {
			next = f->next;
			file_unwant(s, f);
			if (!f->content)
				forget_file(f);
		}
}

static void symbols_on_second(void *userdata)
{
	struct symbols *s = userdata;
	uint64_t now = clock_mono_ns();

	if (++s->seconds % GIVE_BACK_S == 0) /* lookups of single names do not give it back */
		symbols_give_back(s);

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

static uint32_t symbols_hash_of(const char *path)
{
	uint64_t h = tenant_number(path);

	return (uint32_t)(h ^ h >> 32);
}

static struct file *find_file(const struct process *p, const char *path)
{
	uint32_t hash = symbols_hash_of(path);
	struct file *f = p->files[hash % FILE_BUCKETS];

	while (f && (f->hash != hash || strcmp(f->path, path) != 0))
		f = f->next;
	return f;
}

static struct file *add_file(struct process *p, const char *path)
{
	struct file *f = calloc(1, sizeof(*f));

	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return NULL;
	}
	f->process = p;
	f->hash = symbols_hash_of(path);
	f->next = p->files[f->hash % FILE_BUCKETS];
	p->files[f->hash % FILE_BUCKETS] = f;
	p->n_files++;
	p->tenant->files++;
	return f;
}

static void make_key(char buf[KEY_SIZE], const char *tenant, const struct stat *st)
{
	snprintf(buf, KEY_SIZE, "%s_%llx-%llx-%llx-%llx.%lx-%llx.%lx.sym", tenant,
		 (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
		 (unsigned long long)st->st_size, (unsigned long long)st->st_mtim.tv_sec,
		 (unsigned long)st->st_mtim.tv_nsec, (unsigned long long)st->st_ctim.tv_sec,
		 (unsigned long)st->st_ctim.tv_nsec);
}

/* Keeps the file open until a child may read it. false = too many wait. */
static bool queue_input(struct content *c, int *file_fd, int *root_fd, const char *path)
{
	struct symbols *s = c->owner;

	if (s->waiting >= WAITING_MAX || c->tenant->waiting >= TENANT_WAITING_MAX)
		return false;
	c->path = strdup(path);
	if (!c->path)
		return false;
	c->file_fd = TAKE_FD(*file_fd);
	c->root_fd = TAKE_FD(*root_fd);
	s->waiting++;
	c->tenant->waiting++;
	return true;
}

/* The opened file's content, with a reference; NULL = there is no room. */
static struct content *content_of(struct file *f, int *file_fd, int *root_fd, const struct stat *st)
{
	struct tenant *t = f->process->tenant;
	/* the vDSO is this process's own, the same for all processes */
	bool vdso = strcmp(f->path, MAPPED_VDSO) == 0;
	struct content *c;
	char key[KEY_SIZE];

	make_key(key, vdso ? "vdso" : t->name, st);
	c = content_ref(f->process->owner, t, key);
	if (!c || c->state != WANTED || c->file_fd >= 0 || content_open(c) ||
	    queue_input(c, file_fd, root_fd, f->path))
		return c;
	f->process->owner->counts.refused++;
	content_unref(c);
	return NULL;
}

void file_opened(struct file *f, int result, int file_fd, int root_fd, const struct stat *st)
{
	CLEANUP(fd_closep) int file = file_fd, root = root_fd;
	struct symbols *s = f->process->owner;
	struct content *c = NULL;

	if (result == 0)
		c = content_of(f, &file, &root, st);
	else if (result == -EBUSY)
		s->counts.refused++;
	else if (result == -ETIMEDOUT || result == -EIO)
		s->counts.failed++;
	if (c) {
		content_unref(f->content);
		f->content = c;
		children_start(s);
	} else if (f->content) {
		f->begin =
			0; /* as last mapped; it is asked for again with the next mapping frame */
	} else {
		forget_file(f); /* it will be asked for again */
	}
}

void symbols_want(struct symbols *s, const struct symbols_process *who, uint64_t begin,
		  uint64_t end, const char *path, const uint8_t *build_id, unsigned build_id_len)
{
	bool vdso = strcmp(path, MAPPED_VDSO) == 0;
	struct process *p;
	struct file *f;

	if ((path[0] != '/' && !vdso) || strlen(path) > PATH_BYTES_MAX ||
	    (vdso && !mapped_is_our_vdso(end - begin, build_id, build_id_len)))
		return;
	p = symbols_process_of(s, who);
	if (p)
		p->ended_mono_ns = 0;
	f = p ? find_file(p, path) : NULL;
	if (f && f->begin == begin)
		return;
	if (!p || p->n_files >= PROCESS_FILES_MAX || p->tenant->files >= TENANT_FILES_MAX) {
		s->counts.refused++;
		return;
	}
	if (!f)
		f = add_file(p, path);
	if (!f)
		return;
	f->begin = begin;
	f->end = end;
	file_want(s, f);
}

const char *symbols_lookup(struct symbols *s, int pid, uint64_t start_time, const char *path,
			   uint64_t offset)
{
	const struct process *p = *symbols_find_process(s, pid, start_time);
	const struct file *f = p ? find_file(p, path) : NULL;

	return f && f->content && f->content->state == READY ? content_find(f->content, offset)
							     : NULL;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* Opens the host's root, which has its debug files, or, if this process cannot see it, its own.
 * The descriptor's number is above those that a child uses. */
static int open_host_root(void)
{
	CLEANUP(fd_closep) int fd = open("/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HOST_FD + 1);
}

int symbols_new(struct loop *loop, const char *dir, uint64_t max_bytes,
		const struct symbols_opener *opener, void *userdata, struct symbols **ret)
{
	CLEANUP(symbols_freep) struct symbols *s = calloc(1, sizeof(*s));
	const struct tables_use none = { 0 };
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->max_bytes = max_bytes;
	s->opener = opener;
	s->opener_userdata = userdata;
	s->dfd = s->host_root_fd = -1;
	if (mkdir(dir, 0750) == 0 || errno == EEXIST)
		s->dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dfd < 0)
		return -errno;
	tables_dir_sweep(s->dfd);
	tables_dir_prune(s->dfd, max_bytes, &none, &s->counts.table_bytes, &s->counts.tables);
	children_find_program(s);
	s->host_root_fd = open_host_root();
	r = loop_timer_add(loop, NS_PER_S, NS_PER_S, symbols_on_second, s, &s->second);
	if (r == 0)
		r = openings_init(s);
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
	loop_timer_free(s->open_timer);
	fd_close(s->dfd);
	fd_close(s->host_root_fd);
	free(s);
	return NULL;
}

void symbols_counts(const struct symbols *s, struct symbols_counts *ret)
{
	*ret = s->counts;
	ret->waiting = s->waiting;
	ret->reading = s->reading;
	for (int i = 0; i < OPENINGS_MAX; i++)
		ret->opening += s->openings[i].ticket != 0;
}

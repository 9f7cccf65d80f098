/*
 * See symbols.h: which files are known, the children that read them, the tables they made. Files
 * are known by (pid, path); their content by build-id or, without one, by device, inode, size and
 * time of change.
 */
#include "daemon/symbols/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/symbols/mapped.h"
#include "daemon/symbols/table.h"
#include "daemon/symbols/tables_dir.h"

#define CHILDREN_MAX 4
#define WAITING_MAX  64 /* each holds an open file */
#define CONTENTS_MAX 4096 /* for the daemon's life: names given out stay valid */
#define FILES_MAX    8192 /* the oldest goes */
#define BUCKETS	     4096
#define DEADLINE_NS  (30 * NS_PER_S)
#define ROOT_FD	     3 /* of the child: roots of the container and of the host */
#define HOST_FD	     4

enum content_state { WANTED, READING, READY, NONE };

/* One content, however many processes map it. */
struct content {
	struct content *next;
	struct symbols *owner;
	char key[80];
	enum content_state state;
	int file_fd, root_fd; /* WANTED: the file, and the root of the container it is in */
	char *path; /* there */
	pid_t child; /* READING */
	int pidfd, out_fd;
	struct loop_source *source;
	struct loop_timer *deadline;
	void *bytes; /* READY: mapped */
	size_t len;
	struct table table;
};

struct file {
	struct file *next; /* in its bucket */
	int pid;
	uint64_t begin; /* another one: the pid is another process now */
	char *path;
	struct content *content;
};

struct symbols {
	struct loop *loop;
	int dfd;
	char program[256];
	struct content *contents;
	struct file *buckets[BUCKETS]; /* by path */
	struct file *files[FILES_MAX]; /* ring, oldest at next_file when full */
	unsigned next_file, children, waiting, n_contents;
};

/* Beside the running program, as the injector is. */
static void find_program(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	char *slash;

	buf[n > 0 ? n : 0] = '\0';
	slash = strrchr(buf, '/');
	if (slash)
		snprintf(slash + 1, size - (size_t)(slash + 1 - buf), "kindling-symbols");
}

int symbols_new(struct loop *loop, const char *dir, struct symbols **ret)
{
	struct symbols *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->dfd = -1;
	if (mkdir(dir, 0750) == 0 || errno == EEXIST)
		s->dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dfd < 0) {
		r = -errno;
		free(s);
		return r;
	}
	tables_dir_sweep(s->dfd);
	if (getenv("KINDLING_SYMBOLS")) /* tests: the program of the build tree */
		snprintf(s->program, sizeof(s->program), "%s", getenv("KINDLING_SYMBOLS"));
	else
		find_program(s->program, sizeof(s->program));
	*ret = s;
	return 0;
}

static void end_child(struct content *c)
{
	c->source = loop_source_free(c->source);
	c->deadline = loop_timer_free(c->deadline);
	if (c->child > 0) {
		(void)kill(c->child, SIGKILL);
		(void)waitpid(c->child, NULL, 0);
		c->owner->children--;
	}
	c->child = 0;
	c->pidfd = fd_close(c->pidfd);
	c->out_fd = fd_close(c->out_fd);
}

static void forget_input(struct content *c)
{
	c->file_fd = fd_close(c->file_fd);
	c->root_fd = fd_close(c->root_fd);
	free(c->path);
	c->path = NULL;
}

struct symbols *symbols_free(struct symbols *s)
{
	if (!s)
		return NULL;
	while (s->contents) {
		struct content *c = s->contents;

		s->contents = c->next;
		end_child(c);
		forget_input(c);
		if (c->bytes)
			munmap(c->bytes, c->len);
		free(c);
	}
	for (unsigned i = 0; i < FILES_MAX; i++)
		if (s->files[i]) {
			free(s->files[i]->path);
			free(s->files[i]);
		}
	fd_close(s->dfd);
	free(s);
	return NULL;
}

/* ---- tables --------------------------------------------------------------------------------- */

static bool map_table(struct content *c, int fd)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > TABLE_BYTES_MAX)
		return false;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return false;
	if (table_check(p, (size_t)st.st_size, &c->table) < 0) {
		munmap(p, (size_t)st.st_size);
		return false;
	}
	c->bytes = p;
	c->len = (size_t)st.st_size;
	c->state = READY;
	return true;
}

static void unmap_table(struct content *c)
{
	munmap(c->bytes, c->len);
	c->bytes = NULL;
	c->state = WANTED;
}

static bool open_cached(struct content *c)
{
	CLEANUP(fd_closep)
	int fd = openat(c->owner->dfd, c->key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || !map_table(c, fd))
		return false;
	if (c->table.flags & TABLE_EXPORTED_ONLY) {
		/* its debug file may have been installed since an earlier daemon looked */
		unmap_table(c);
		return false;
	}
	(void)futimens(fd, NULL); /* used: pruned later than others */
	return true;
}

/* ---- children ------------------------------------------------------------------------------- */

static void start_next(struct symbols *s);

static void finish(struct content *c, bool ok)
{
	char temp[96];

	snprintf(temp, sizeof(temp), ".%s.tmp", c->key);
	c->state = NONE;
	if (!ok || !map_table(c, c->out_fd) ||
	    renameat(c->owner->dfd, temp, c->owner->dfd, c->key) < 0)
		(void)unlinkat(c->owner->dfd, temp, 0);
	else
		tables_dir_prune(c->owner->dfd, TABLES_DIR_BYTES_MAX);
	log_debug("symbols.read", "key=%s functions=%u", c->key, c->table.n_entries);
	end_child(c);
	start_next(c->owner);
}

static void on_child(void *userdata, uint32_t events)
{
	struct content *c = userdata;
	siginfo_t info = { 0 };
	pid_t child = c->child;
	bool ok;

	(void)events;
	ok = waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_code == CLD_EXITED &&
	     info.si_status == 0;
	c->child = 0;
	c->owner->children--;
	finish(c, ok);
}

static void on_deadline(void *userdata)
{
	finish(userdata, false);
}

/* The root of the host, where its debug files are; of the daemon where it cannot see that. The
 * number is beyond those that the child's own have. */
static int open_host_root(void)
{
	CLEANUP(fd_closep) int fd = mapped_root(1);

	if (fd < 0)
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HOST_FD + 1);
}

static int spawn(struct content *c)
{
	char *argv[] = { c->owner->program, c->path, NULL }, *nothing[] = { NULL };
	CLEANUP(fd_closep) int host_fd = open_host_root();
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	char temp[96];
	int r;

	snprintf(temp, sizeof(temp), ".%s.tmp", c->key);
	(void)unlinkat(c->owner->dfd, temp, 0);
	c->out_fd = openat(c->owner->dfd, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			   0640);
	if (c->out_fd < 0)
		return -errno;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, c->file_fd, 0);
	posix_spawn_file_actions_adddup2(&actions, c->out_fd, 1);
	if (c->root_fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, c->root_fd, ROOT_FD);
	if (host_fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, host_fd, HOST_FD);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	r = posix_spawn(&c->child, c->owner->program, &actions, &attr, argv, nothing);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (r) {
		c->child = 0;
		return -r;
	}
	c->owner->children++;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->child, 0);
	if (c->pidfd < 0)
		return -errno;
	return loop_add(c->owner->loop, c->pidfd, EPOLLIN, on_child, c, &c->source);
}

static void start(struct content *c)
{
	c->state = READING;
	c->owner->waiting--;
	if (spawn(c) < 0 ||
	    loop_timer_add(c->owner->loop, DEADLINE_NS, 0, on_deadline, c, &c->deadline) < 0) {
		end_child(c);
		c->state = NONE;
	}
	forget_input(c);
}

static void start_next(struct symbols *s)
{
	for (struct content *c = s->contents; c && s->children < CHILDREN_MAX; c = c->next)
		if (c->state == WANTED)
			start(c);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void make_key(char *buf, size_t size, const struct stat *st, const uint8_t *id,
		     unsigned id_len)
{
	size_t n = 0;

	if (id_len == 0) {
		snprintf(buf, size, "f%llx-%llx-%llx-%llx.sym", (unsigned long long)st->st_dev,
			 (unsigned long long)st->st_ino, (unsigned long long)st->st_size,
			 (unsigned long long)st->st_mtim.tv_sec);
		return;
	}
	for (unsigned i = 0; i < id_len && n + 24 < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%02x", id[i]);
	/* the id is the file's own word: with the size it hardly stands for another file by mistake
	 */
	snprintf(buf + n, size - n, "-%llx.sym", (unsigned long long)st->st_size);
}

static struct content *content_of(struct symbols *s, const char *key)
{
	struct content *c;

	for (c = s->contents; c; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	if (s->n_contents >= CONTENTS_MAX)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	s->n_contents++;
	c->owner = s;
	c->file_fd = c->root_fd = c->pidfd = c->out_fd = -1;
	snprintf(c->key, sizeof(c->key), "%s", key);
	c->next = s->contents;
	s->contents = c;
	return c;
}

static struct file **bucket_of(struct symbols *s, const char *path)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *path; path++)
		h = (h ^ (uint8_t)*path) * 16777619u;
	return &s->buckets[h % BUCKETS];
}

static struct file *find_file(struct symbols *s, int pid, const char *path)
{
	for (struct file *f = *bucket_of(s, path); f; f = f->next)
		if (f->pid == pid && strcmp(f->path, path) == 0)
			return f;
	return NULL;
}

static void forget_file(struct symbols *s, struct file *f)
{
	struct file **at = bucket_of(s, f->path);

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	free(f->path);
	free(f);
}

static void remember_file(struct symbols *s, int pid, uint64_t begin, const char *path,
			  struct content *c)
{
	struct file *f = find_file(s, pid, path), **bucket = bucket_of(s, path);

	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->path = strdup(path);
		if (!f || !f->path) {
			free(f);
			return;
		}
		if (s->files[s->next_file])
			forget_file(s, s->files[s->next_file]);
		s->files[s->next_file] = f;
		s->next_file = (s->next_file + 1) % FILES_MAX;
		f->pid = pid;
		f->next = *bucket;
		*bucket = f;
	}
	f->begin = begin;
	f->content = c;
}

/* Its file is kept open until a child may read it. False = too many wait. */
static bool queue_input(struct content *c, int *fd, int pid, const char *path)
{
	if (c->owner->waiting >= WAITING_MAX)
		return false;
	c->path = strdup(path);
	if (!c->path)
		return false;
	c->file_fd = TAKE_FD(*fd);
	c->root_fd = mapped_root(pid);
	c->owner->waiting++;
	start_next(c->owner);
	return true;
}

void symbols_want(struct symbols *s, int pid, uint64_t begin, uint64_t end, const char *path,
		  const uint8_t *build_id, unsigned build_id_len)
{
	bool vdso = strcmp(path, MAPPED_VDSO) == 0;
	CLEANUP(fd_closep) int fd = -1;
	struct content *c;
	struct file *f;
	struct stat st;
	char key[80];

	if (path[0] != '/' && !vdso)
		return;
	f = find_file(s, pid, path);
	if (f && f->begin == begin)
		return;
	fd = vdso ? mapped_open_vdso(end - begin, build_id, build_id_len, &st)
		  : mapped_open(pid, begin, end, path, &st);
	if (fd < 0)
		return;
	make_key(key, sizeof(key), &st, build_id, build_id_len > 24 ? 24 : build_id_len);
	c = content_of(s, key);
	if (!c)
		return;
	if (c->state == WANTED && c->file_fd < 0 && !open_cached(c) &&
	    !queue_input(c, &fd, pid, path))
		return; /* not remembered: wanted again with the next mapping frame */
	remember_file(s, pid, begin, path, c);
}

const char *symbols_lookup(struct symbols *s, int pid, const char *path, uint64_t offset)
{
	const char *name = NULL;

	for (struct file *f = *bucket_of(s, path); f; f = f->next) {
		const char *here;

		if ((pid != 0 && f->pid != pid) || strcmp(f->path, path) != 0)
			continue;
		here = f->content->state == READY ? table_find(&f->content->table, offset) : NULL;
		if (pid != 0)
			return here;
		/* several containers, several files at one path: no name is better than a wrong one
		 */
		if (!here || (name && here != name && strcmp(here, name) != 0))
			return NULL;
		name = here;
	}
	return name;
}

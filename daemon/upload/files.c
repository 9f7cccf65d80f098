/*
 * A directory of files. Bodies are copied under a temporary name and renamed, in a thread of the
 * sink's own, so that a file system that hangs blocks no other sink. A key stands for one file,
 * however often it is sent. When the directory holds more than `keep`, the oldest files that
 * kindling wrote are removed.
 */
#include "daemon/upload/sink_types.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/core/worker.h"
#include "daemon/ground/replace.h"

#define FILES_MAX  200000 /* that are looked at when room is made */
#define FILES_KEEP (2ull << 30)

struct files_sink {
	struct worker *worker;
	char directory[256];
	char temp[80]; /* the temporary name; other sinks may use the same directory */
	uint64_t keep_bytes;
	uint64_t since_bytes; /* bytes written since room was last made; used by the worker */
};

struct files_job {
	struct files_sink *sink;
	struct sink_file *file; /* NULL = the sink no longer waits for it */
	int fd; /* of the body */
	char key[480];
	bool is_test;
	int result;
};

/* ---- room ------------------------------------------------------------------------------------ */

struct files_entry {
	struct timespec time;
	uint64_t bytes;
	char name[NAME_MAX + 1];
};

/* Is it the name of a file that kindling wrote, for any sink? "..._2026-11-22T20-04-00Z...." */
static bool files_is_ours(const char *name)
{
	const char *at = strrchr(name, '_');
	int y, mo, d, h, mi, s, n = 0;

	return at &&
	       sscanf(at, "_%4d-%2d-%2dT%2d-%2d-%2dZ.%n", &y, &mo, &d, &h, &mi, &s, &n) == 6 &&
	       n == 22;
}

static int files_by_age(const void *a, const void *b)
{
	const struct files_entry *x = a, *y = b;

	if (x->time.tv_sec != y->time.tv_sec)
		return x->time.tv_sec < y->time.tv_sec ? -1 : 1;
	return x->time.tv_nsec < y->time.tv_nsec ? -1 : x->time.tv_nsec > y->time.tv_nsec;
}

static struct files_entry *files_list(int dfd, size_t *ret_n, uint64_t *ret_bytes)
{
	int fd = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct files_entry *list = NULL;
	size_t n = 0, cap = 0;
	const struct dirent *e;
	struct stat st;

	while (dir && n < FILES_MAX && (e = readdir(dir))) {
		if (!files_is_ours(e->d_name) ||
		    fstatat(dfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (n == cap) {
			struct files_entry *p =
				realloc(list, (cap = cap ? 2 * cap : 64) * sizeof(*p));

			if (!p)
				break;
			list = p;
		}
		list[n].time = st.st_mtim;
		list[n].bytes = (uint64_t)st.st_size;
		snprintf(list[n].name, sizeof(list[n].name), "%s", e->d_name);
		*ret_bytes += list[n++].bytes;
	}
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
	*ret_n = n;
	return list;
}

static void files_make_room(struct files_sink *d, int dfd)
{
	CLEANUP(freep) struct files_entry *list = NULL;
	uint64_t bytes = 0;
	size_t n = 0;

	list = files_list(dfd, &n, &bytes);
	if (!list || bytes <= d->keep_bytes)
		return;
	qsort(list, n, sizeof(*list), files_by_age);
	/* keeps the newest file, whatever its size; frees a sixteenth more than necessary, so
	 * that not every new file causes a scan */
	for (size_t i = 0; i + 1 < n && bytes > d->keep_bytes - d->keep_bytes / 16; i++)
		if (unlinkat(dfd, list[i].name, 0) == 0)
			bytes -= list[i].bytes;
}

/* ---- one file -------------------------------------------------------------------------------- */

static int files_copy(int from, int to)
{
	char buf[65536];
	ssize_t n, written;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n; at += written) {
			written = write(to, buf + at, (size_t)(n - at));
			if (written < 0)
				return -errno;
		}
	return n < 0 || fdatasync(to) < 0 ? -errno : 0;
}

static int files_store(struct files_job *j)
{
	struct files_sink *d = j->sink;
	CLEANUP(fd_closep) int dfd = -1;
	CLEANUP(fd_closep) int to = -1;
	struct replace file = { .name = j->key, .temp = d->temp };
	struct stat st;
	int r;

	dfd = open(d->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dfd < 0)
		return -errno;
	file.dfd = dfd;
	to = openat(dfd, d->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (to < 0)
		return -errno;
	r = files_copy(j->fd, to);
	if (r == 0 && fstat(to, &st) == 0)
		d->since_bytes += (uint64_t)st.st_size;
	if (r == 0)
		r = replace_by(&file, to, NULL, 0);
	if (r == 0 && fsync(dfd) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dfd, d->temp, 0);
	else if (d->since_bytes > d->keep_bytes / 16) {
		files_make_room(d, dfd);
		d->since_bytes = 0;
	}
	return r;
}

static void files_run(void *userdata)
{
	struct files_job *j = userdata;

	j->result = files_store(j);
}

static void files_over(void *userdata)
{
	struct files_job *j = userdata;
	char why[SINK_TEXT_MAX];

	if (j->result < 0)
		snprintf(why, sizeof(why), "directory %s: %s", j->sink->directory,
			 strerror(-j->result));
	else
		snprintf(why, sizeof(why), "written: %s/%.100s", j->sink->directory, j->key);
	if (j->file)
		sink_done(j->file, j->result < 0 ? SINK_RETRY : SINK_CONFIRMED, 0, why);
	fd_close(j->fd);
	free(j);
}

static int files_send(struct sink *s, struct sink_file *f)
{
	struct files_job *j = calloc(1, sizeof(*j));
	struct spool_header h;
	int r;

	if (!j)
		return -ENOMEM;
	j->fd = spool_open(s->dfd, f->seq, true, &h);
	j->sink = s->data;
	j->file = f;
	r = j->fd;
	if (r >= 0) {
		memcpy(j->key, h.key, sizeof(j->key));
		r = worker_submit(j->sink->worker, files_run, files_over, j);
	}
	if (r < 0) {
		fd_close(j->fd);
		free(j);
		return r;
	}
	f->request = j;
	return 0;
}

static void files_cancel(struct sink *s, struct sink_file *f)
{
	(void)s;
	if (f->request)
		((struct files_job *)f->request)->file = NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int upload_files_open(struct sink *s, char *why, size_t why_size)
{
	struct files_sink *d;
	int r = sink_choose_format(s, REPORT_JFR, why, why_size);

	if (r < 0)
		return r;
	if (access(s->config->directory, W_OK | X_OK) < 0) {
		snprintf(why, why_size, "directory %s: uid %u may not write there: %s",
			 s->config->directory, (unsigned)geteuid(), strerror(errno));
		return -EACCES;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	s->data = d;
	snprintf(d->directory, sizeof(d->directory), "%s", s->config->directory);
	snprintf(d->temp, sizeof(d->temp), ".kindling-%s.tmp", s->config->name);
	d->keep_bytes = s->config->keep_bytes ? s->config->keep_bytes : FILES_KEEP;
	return worker_new(sink_loop(s), &d->worker);
}

static void files_close(struct sink *s)
{
	struct files_sink *d = s->data;

	if (!d)
		return;
	worker_free(d->worker);
	free(d);
}

const struct sink_type sink_files = {
	.open = upload_files_open,
	.encode = sink_encode_report,
	.send = files_send,
	.cancel = files_cancel,
	.close = files_close,
	.in_flight_max = 4,
};

/*
 * The index of a segment: its contents by process. It is read from the index's file; if that is
 * missing, torn or another segment's, the segment is scanned. Of the file only CRCs and bounds are
 * checked; what an entry points to is checked when it is read.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include "daemon/store/index_file.h"

void index_deinit(struct index *x)
{
	if (!x->borrowed) {
		free(x->processes);
		free(x->entries);
	}
	free(x->strings);
	fd_close(x->fd);
	*x = INDEX_NULL;
}

const struct index_process *index_find(const struct index *x, uint32_t pid, uint64_t start_time)
{
	uint32_t low = 0, high = x->n_processes;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct index_process *q = &x->processes[middle];

		if (q->pid == pid && q->start_time == start_time)
			return q;
		if (q->pid < pid || (q->pid == pid && q->start_time < start_time))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool is_header(struct index_header h)
{
	uint32_t crc = h.crc;

	h.crc = 0;
	return h.magic == INDEX_MAGIC && crc == (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h)) &&
	       h.n_processes <= INDEX_PROCESSES_MAX && h.n_entries <= INDEX_ENTRIES_MAX &&
	       h.strings_len > 0 && h.strings_len <= INDEX_STRINGS_MAX &&
	       h.table_at <= (uint64_t)INT64_MAX / 2;
}

static bool is_before(const struct index_process *a, const struct index_process *b)
{
	return a->pid != b->pid ? a->pid < b->pid : a->start_time < b->start_time;
}

static bool is_process(const struct index *x, uint32_t i, uint64_t table_at)
{
	const struct index_process *q = &x->processes[i];

	if (i > 0 && !is_before(q - 1, q))
		return false;
	for (int text = 0; text < INDEX_TEXT_COUNT; text++)
		if (q->text[text] >= x->strings_len)
			return false;
	return q->begin_real_ns <= q->end_real_ns && q->sum_at < table_at &&
	       (!x->n_entries || (q->first <= x->n_entries && q->n <= x->n_entries - q->first));
}

static int read_table(int fd, const struct index_header *h, struct index *x)
{
	size_t len = h->n_processes * sizeof(*x->processes);
	off_t at = (off_t)h->table_at;
	uint32_t crc;

	x->processes = malloc(len + 1);
	x->strings = malloc((size_t)h->strings_len + 1);
	if (!x->processes || !x->strings)
		return -ENOMEM;
	if (pread(fd, x->processes, len, at) != (ssize_t)len ||
	    pread(fd, x->strings, h->strings_len, at + (off_t)len) != (ssize_t)h->strings_len)
		return -EBADMSG;
	crc = (uint32_t)crc32(0, (const Bytef *)x->processes, (uInt)len);
	crc = (uint32_t)crc32(crc, (const Bytef *)x->strings, h->strings_len);
	if (crc != h->table_crc || x->strings[0] || x->strings[h->strings_len - 1])
		return -EBADMSG;
	x->n_processes = h->n_processes;
	x->n_entries = h->n_entries;
	x->strings_len = h->strings_len;
	x->entries_at = at + (off_t)len + h->strings_len;
	for (uint32_t i = 0; i < x->n_processes; i++)
		if (!is_process(x, i, h->table_at))
			return -EBADMSG;
	return 0;
}

int index_read_fd(int fd, uint32_t number, uint64_t covered, struct index *ret)
{
	struct index x = INDEX_NULL;
	struct index_header h;
	struct stat st;
	int r;

	x.fd = fd;
	if (fstat(fd, &st) < 0 || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    !is_header(h) || h.table_at > (uint64_t)st.st_size ||
	    h.n_processes * sizeof(*x.processes) + h.strings_len >
		    (uint64_t)st.st_size - h.table_at)
		r = -EBADMSG;
	else
		r = h.covered == covered && h.number == number ? read_table(fd, &h, &x) : -ESTALE;
	x.covered = covered;
	if (r < 0)
		index_deinit(&x);
	else
		*ret = x;
	return r;
}

int index_read(struct store *s, enum store_file kind, uint64_t segment, uint64_t covered,
	       struct index *ret)
{
	char name[STORE_NAME_SIZE];
	int fd;

	store_file_name(kind, segment, name);
	fd = openat(s->dfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -ENOENT : index_read_fd(fd, index_number(kind, segment), covered, ret);
}

int index_entries(const struct index *x, const struct index_process *q, struct index_entry **ret)
{
	size_t len = q->n * sizeof(**ret);
	CLEANUP(freep) struct index_entry *e = malloc(len + 1);

	if (!e)
		return -ENOMEM;
	if (x->entries)
		memcpy(e, x->entries + q->first, len);
	else if (x->fd < 0 || !x->n_entries ||
		 pread(x->fd, e, len, x->entries_at + (off_t)(q->first * sizeof(*e))) !=
			 (ssize_t)len ||
		 (uint32_t)crc32(0, (const Bytef *)e, (uInt)len) != q->entries_crc)
		return -EBADMSG;
	*ret = TAKE_PTR(e);
	return 0;
}

/* ---- a scan ---------------------------------------------------------------------------------- */

struct found {
	struct header header;
	struct index_entry entry;
};

struct finds {
	struct found *all;
	uint32_t n, cap;
	const struct profile_filter *filter;
};

static int by_process_and_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->header.pid != y->header.pid)
		return x->header.pid < y->header.pid ? -1 : 1;
	if (x->header.start_time != y->header.start_time)
		return x->header.start_time < y->header.start_time ? -1 : 1;
	if (x->entry.begin_real_ns != y->entry.begin_real_ns)
		return x->entry.begin_real_ns < y->entry.begin_real_ns ? -1 : 1;
	return x->entry.at < y->entry.at ? -1 : x->entry.at > y->entry.at;
}

bool index_wants(const struct profile_filter *f, uint32_t pid, uint64_t start_time)
{
	if (!f || !f->n_pids)
		return true;
	for (uint32_t i = 0; i < f->n_pids; i++)
		if (f->pids[i] == pid && (!f->start_times || f->start_times[i] == start_time))
			return true;
	return false;
}

static int index_take(void *userdata, off_t at, const struct header *h)
{
	struct finds *f = userdata;

	if (h->begin_real_ns > h->end_real_ns || !index_wants(f->filter, h->pid, h->start_time))
		return 0;
	if (f->n == f->cap) {
		uint32_t cap = f->cap ? 2 * f->cap : 1024;
		struct found *p =
			f->n < INDEX_ENTRIES_MAX ? realloc(f->all, cap * sizeof(*p)) : NULL;

		if (!p)
			return -ENOMEM;
		f->all = p;
		f->cap = cap;
	}
	f->all[f->n++] =
		(struct found){ *h, { (uint64_t)at, h->begin_real_ns, h->end_real_ns } };
	return 0;
}

/* *ret_end: where the last of them ends. */
static int index_find_all(int fd, off_t from, off_t until, struct finds *f, off_t *ret_end)
{
	struct header h;
	int r = 0;

	*ret_end = from;
	for (off_t at = from; r == 0 && record_next(fd, &at, &h) && record_end(&h, at) <= until;
	     at = *ret_end) {
		bool contents = contents_is(&h);

		*ret_end = record_end(&h, at);
		r = contents ? contents_each(fd, at, &h, until, index_take, f, ret_end)
			     : index_take(f, at, &h);
		r = contents && r == -EBADMSG ? 0 : r; /* then the headers are read */
	}
	if (f->n)
		qsort(f->all, f->n, sizeof(*f->all), by_process_and_time);
	return r;
}

static void add_found(struct index *x, const struct found *f)
{
	struct index_process *q = x->n_processes ? &x->processes[x->n_processes - 1] : NULL;

	if (!q || q->pid != f->header.pid || q->start_time != f->header.start_time) {
		q = &x->processes[x->n_processes++];
		*q = (struct index_process){
			.pid = f->header.pid,
			.start_time = f->header.start_time,
			.tenant = f->header.tenant,
			.begin_real_ns = f->entry.begin_real_ns,
			.first = x->n_entries,
		};
	}
	q->n++;
	q->samples += f->header.samples;
	q->bytes += sizeof(f->header) + f->header.zstd_len;
	if (f->entry.end_real_ns > q->end_real_ns)
		q->end_real_ns = f->entry.end_real_ns;
	x->entries[x->n_entries++] = f->entry;
}

static int scan_for(int fd, off_t from, off_t until, const struct profile_filter *filter,
		    struct index *ret)
{
	struct finds f = { .filter = filter };
	struct index x = INDEX_NULL;
	off_t end;
	int r = index_find_all(fd, from, until, &f, &end);

	if (r == 0) {
		x.processes = calloc((size_t)f.n + 1, sizeof(*x.processes));
		x.entries = calloc((size_t)f.n + 1, sizeof(*x.entries));
		r = x.processes && x.entries ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < f.n; i++)
		add_found(&x, &f.all[i]);
	free(f.all);
	x.covered = (uint64_t)end;
	if (r < 0)
		index_deinit(&x);
	else
		*ret = x;
	return r;
}

int index_scan_between(int fd, off_t from, off_t until, struct index *ret)
{
	return scan_for(fd, from, until, NULL, ret);
}

int index_scan(int fd, const struct profile_filter *f, struct index *ret)
{
	return scan_for(fd, 0, INT64_MAX, f, ret);
}

int index_open(struct store *s, uint64_t segment, int fd, const struct profile_filter *f,
	       struct index *ret)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno
				   : index_read(s, STORE_INDEX, segment, (uint64_t)st.st_size, ret);

	if (r == -ENOENT && s->kept)
		return index_kept_open(s->kept, fd, &st, ret);
	if (r < 0 && r != -ENOMEM)
		r = index_scan(fd, f, ret);
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t add_string(struct index *x, const char *text, size_t *cap)
{
	size_t len = strlen(text) + 1;
	uint32_t at = x->strings_len;

	if (!*text || at + len > INDEX_STRINGS_MAX)
		return 0;
	if (at + len > *cap) {
		char *p = realloc(x->strings, *cap = 2 * (at + len));

		if (!p)
			return 0;
		x->strings = p;
	}
	memcpy(x->strings + at, text, len);
	x->strings_len += (uint32_t)len;
	return at;
}

/* Fills in the names of @q, from its newest window that can be read. */
static int index_describe_segment(struct index *x, struct index_process *q, int fd, size_t *cap)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = 0;

	for (uint32_t i = q->n; i-- > 0 && !p && r == 0;) {
		off_t at = (off_t)x->entries[q->first + i].at;
		CLEANUP(freep) uint8_t *data = NULL;
		struct header h;

		if (record_at(fd, at, &h) && (r = record_read(fd, at, &h, &data)) == 0)
			r = record_decode(&h, data, &p);
		r = r == -ENOMEM ? r : 0;
	}
	for (uint32_t i = 0; p && i < p->n_processes; i++) {
		const struct profile_process *o = &p->processes[i];

		if (o->pid != q->pid || o->start_time != q->start_time)
			continue;
		q->ns_pid = o->ns_pid;
		q->text[INDEX_NAME] = add_string(x, p->strings[o->name], cap);
		q->text[INDEX_CONTAINER_ID] = add_string(x, p->strings[o->container_id], cap);
		q->text[INDEX_CONTAINER] = add_string(x, p->strings[o->container], cap);
		q->text[INDEX_POD] = add_string(x, p->strings[o->pod], cap);
		q->text[INDEX_JDK] = add_string(x, p->strings[o->jdk], cap);
		q->text[INDEX_LABELS] = add_string(x, p->strings[o->labels], cap);
	}
	return r;
}

int index_describe(struct index *x, int segment_fd)
{
	size_t cap = 4096;
	int r = 0;

	if (x->strings)
		return 0;
	x->strings = calloc(1, cap);
	x->strings_len = 1;
	if (!x->strings)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->n_processes && r == 0; i++)
		r = index_describe_segment(x, &x->processes[i], segment_fd, &cap);
	return r;
}

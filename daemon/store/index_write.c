/*
 * Writes the index of a finished segment beside it, with the sum of each process's windows, so that
 * a query over hours need not read them one by one; and for each finished hour the sums of these
 * sums. All of them can be made again at any time: so they are written under another name and
 * renamed, and they contain the length of the data that they cover.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "daemon/profile/profile_priv.h"
#include "daemon/store/index_file.h"

#define SUM_BYTES_MAX (24ul << 20) /* a process that takes more memory has no sum */

struct writer {
	struct store *store;
	int fd;
	uint64_t at; /* where the next bytes of the file go */
};

static int index_write_put(struct writer *w, const void *data, size_t len)
{
	ssize_t n = pwrite(w->fd, data, len, (off_t)w->at);

	if (n != (ssize_t)len)
		return n < 0 ? -errno : -ENOSPC;
	w->at += len;
	return 0;
}

static int index_write_begin(struct writer *w, struct store *s)
{
	w->store = s;
	w->at = sizeof(struct index_header);
	(void)unlinkat(s->dfd, INDEX_TEMP, 0);
	w->fd = openat(s->dfd, INDEX_TEMP, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		       0640);
	return w->fd < 0 ? -errno : 0;
}

/* Writes the table behind the sums, then the header, which makes the file valid. */
static int index_write_finish(struct writer *w, struct index *x, uint32_t number, uint64_t covered)
{
	size_t len = x->n_processes * sizeof(*x->processes);
	struct index_header h = {
		.magic = INDEX_MAGIC,
		.covered = covered,
		.number = number,
		.table_at = w->at,
		.n_processes = x->n_processes,
		.n_entries = x->n_entries,
		.strings_len = x->strings_len,
	};
	int r;

	for (uint32_t i = 0; i < x->n_processes && x->entries; i++) {
		struct index_process *q = &x->processes[i];

		q->entries_crc = (uint32_t)crc32(0, (const Bytef *)(x->entries + q->first),
						 (uInt)(q->n * sizeof(*x->entries)));
	}
	h.table_crc = (uint32_t)crc32(0, (const Bytef *)x->processes, (uInt)len);
	h.table_crc = (uint32_t)crc32(h.table_crc, (const Bytef *)x->strings, x->strings_len);
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
	r = index_write_put(w, x->processes, len);
	if (r == 0)
		r = index_write_put(w, x->strings, x->strings_len);
	if (r == 0 && x->entries)
		r = index_write_put(w, x->entries, x->n_entries * sizeof(*x->entries));
	return r == 0 && pwrite(w->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ? -EIO : r;
}

static int index_write_publish(struct store *s, enum store_file kind, uint64_t segment)
{
	char name[STORE_NAME_SIZE];

	store_file_name(kind, segment, name);
	return renameat(s->dfd, INDEX_TEMP, s->dfd, name) < 0 ? -errno : 0;
}

/* Writes @sum as the record of @q, unless a part of it found no room. */
static int index_write_put_sum(struct writer *w, struct index_process *q, const struct profile *sum,
			       uint64_t overflow)
{
	CLEANUP(freep) uint8_t *record = NULL;
	uint64_t at = w->at;
	size_t len;
	int r;

	if (sum->overflow > overflow)
		return 0;
	r = record_make(sum, 0, &record, &len);
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	r = index_write_put(w, record, len);
	if (r == 0)
		q->sum_at = at;
	return r;
}

static int new_sum(struct profile **ret)
{
	int r = profile_new(ret);

	if (r == 0)
		profile_limit(*ret, SUM_BYTES_MAX, 1);
	return r;
}

/* Adds the window of @q at @at to @sum. A damaged record is skipped, as in every query. */
static int index_write_add_record(struct profile *sum, int fd, uint64_t at,
				  const struct index_process *q, uint64_t *overflow)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) uint8_t *data = NULL;
	struct header h;
	int r;

	if (!record_at(fd, (off_t)at, &h) || h.pid != q->pid || h.start_time != q->start_time)
		return -EBADMSG;
	r = record_read(fd, (off_t)at, &h, &data);
	if (r == 0)
		r = record_decode(&h, data, &p);
	if (r < 0 || !p)
		return r < 0 ? r : -EBADMSG;
	*overflow += p->overflow;
	return profile_merge(sum, p, NULL);
}

static int sum_entries(struct writer *w, struct index *x, struct index_process *q, int fd)
{
	CLEANUP(profile_freep) struct profile *sum = NULL;
	uint64_t overflow = 0;
	int r = q->n > 1 ? new_sum(&sum) : 0;

	for (uint32_t i = 0; sum && i < q->n && r == 0; i++) {
		r = index_write_add_record(sum, fd, x->entries[q->first + i].at, q, &overflow);
		r = r == -EBADMSG ? 0 : r;
	}
	return r == 0 && sum ? index_write_put_sum(w, q, sum, overflow) : r;
}

int index_write(struct store *s, uint64_t segment)
{
	CLEANUP(fd_closep)
	int fd = store_open_segment(s, segment, O_RDONLY);
	CLEANUP(fd_closep) int to = -1;
	uint64_t covered = store_file_bytes(s, STORE_SEGMENT, segment);
	struct index x = INDEX_NULL;
	struct writer w;
	int r = fd < 0 ? -ENOENT : index_scan(fd, NULL, &x);

	if (r == 0)
		r = index_describe(&x, fd);
	if (r == 0)
		r = index_write_begin(&w, s);
	to = r == 0 ? w.fd : -1;
	for (uint32_t i = 0; r == 0 && i < x.n_processes; i++)
		r = atomic_load(&s->hurry) ? -EINTR : sum_entries(&w, &x, &x.processes[i], fd);
	if (r == 0)
		r = index_write_finish(&w, &x, index_number(STORE_INDEX, segment), covered);
	if (r == 0)
		r = index_write_publish(s, STORE_INDEX, segment);
	index_deinit(&x);
	return r;
}

/* ---- an hour --------------------------------------------------------------------------------- */

struct hour {
	struct index parts[PARTS_MAX];
	uint32_t n;
	uint64_t covered;
};

/* Opens the indexes of all segments of an hour; -ENOENT if one has none yet. */
static int open_hour(struct store *s, uint64_t hour, struct hour *ret)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint32_t n;
	int r = 0;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n && r == 0; i++) {
		uint64_t bytes = store_file_bytes(s, STORE_SEGMENT, segments[i]);

		if (segments[i] / PARTS_MAX != hour || ret->n == PARTS_MAX)
			continue;
		r = index_read(s, STORE_INDEX, segments[i], bytes, &ret->parts[ret->n]);
		ret->n += r == 0;
		ret->covered += bytes;
	}
	return segments ? r : -ENOMEM;
}

static uint32_t move_string(struct index *x, const char *text)
{
	size_t len = strlen(text) + 1;
	uint32_t at = x->strings_len;

	if (!*text || at + len > INDEX_STRINGS_MAX)
		return 0;
	memcpy(x->strings + at, text, len);
	x->strings_len += (uint32_t)len;
	return at;
}

/* Adds the process @q of one segment to @to, the same process in the hour. */
static void index_write_add_process(struct index *x, struct index_process *to,
				    const struct index *part, const struct index_process *q)
{
	bool first = to->n == 0;
	uint64_t begin_ns = to->begin_real_ns;

	if (first)
		begin_ns = q->begin_real_ns;
	to->begin_real_ns = q->begin_real_ns < begin_ns ? q->begin_real_ns : begin_ns;
	if (q->end_real_ns > to->end_real_ns)
		to->end_real_ns = q->end_real_ns;
	to->pid = q->pid;
	to->start_time = q->start_time;
	to->ns_pid = q->ns_pid;
	to->tenant = q->tenant;
	to->n += q->n;
	to->samples += q->samples;
	to->bytes += q->bytes;
	for (unsigned t = 0; first && t < INDEX_TEXT_COUNT; t++)
		to->text[t] = move_string(x, index_string(part, q, (enum index_text)t));
}

static int sum_parts(struct writer *w, struct hour *h, struct index_process *to)
{
	CLEANUP(profile_freep) struct profile *sum = NULL;
	uint64_t overflow = 0;
	int r = new_sum(&sum);

	for (uint32_t i = 0; i < h->n && r == 0; i++) {
		const struct index_process *q = index_find(&h->parts[i], to->pid, to->start_time);

		if (q && !q->sum_at)
			return 0; /* one window only, or too large */
		if (q)
			r = index_write_add_record(sum, h->parts[i].fd, q->sum_at, to, &overflow);
	}
	if (r == -EBADMSG)
		return 0;
	return r == 0 ? index_write_put_sum(w, to, sum, overflow) : r;
}

static int by_identity(const void *a, const void *b)
{
	const struct index_process *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->start_time < y->start_time ? -1 : x->start_time > y->start_time;
}

/* Lists the processes of all segments, each once. */
static int index_write_collect(const struct hour *h, struct index *ret)
{
	CLEANUP(freep) struct index_process *all = NULL;
	size_t n = 0, strings = 1;

	for (uint32_t i = 0; i < h->n; i++) {
		n += h->parts[i].n_processes;
		strings += h->parts[i].strings_len;
	}
	all = calloc(n + 1, sizeof(*all));
	ret->processes = calloc(n + 1, sizeof(*all));
	ret->strings = calloc(1, strings);
	if (!all || !ret->processes || !ret->strings)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < h->n; i++)
		for (uint32_t k = 0; k < h->parts[i].n_processes; k++) {
			all[n] = h->parts[i].processes[k];
			all[n++].first = i; /* the part whose strings it refers to */
		}
	qsort(all, n, sizeof(*all), by_identity);
	ret->strings_len = 1;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_identity(&all[i - 1], &all[i]) != 0)
			ret->n_processes++;
		index_write_add_process(ret, &ret->processes[ret->n_processes - 1],
					&h->parts[all[i].first], &all[i]);
	}
	return 0;
}

int index_write_hour(struct store *s, uint64_t hour)
{
	CLEANUP(freep) struct hour *h = calloc(1, sizeof(*h));
	CLEANUP(fd_closep) int to = -1;
	struct index x = INDEX_NULL;
	struct writer w;
	int r = h ? open_hour(s, hour, h) : -ENOMEM;

	if (r == 0)
		r = index_write_collect(h, &x);
	if (r == 0)
		r = index_write_begin(&w, s);
	to = r == 0 ? w.fd : -1;
	for (uint32_t i = 0; r == 0 && i < x.n_processes; i++)
		r = atomic_load(&s->hurry) ? -EINTR : sum_parts(&w, h, &x.processes[i]);
	if (r == 0)
		r = index_write_finish(&w, &x, index_number(STORE_SUMS, hour * PARTS_MAX),
				       h->covered);
	if (r == 0)
		r = index_write_publish(s, STORE_SUMS, hour * PARTS_MAX);
	for (uint32_t i = 0; h && i < h->n; i++)
		index_deinit(&h->parts[i]);
	index_deinit(&x);
	return r == -ENOENT ? 0 : r;
}

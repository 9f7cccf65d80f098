/*
 * Windows by process and time. A whole hour is read from the hour's sums, whole ten minutes from
 * the sums in their index, the rest window by window. The functions read files by their current
 * names and nothing else: a segment that is removed meanwhile is skipped, one that is rewritten is
 * read as it was when it was opened.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct visit;

/* A segment with its index, or the sums of an hour, which are in their index's file. */
struct part {
	struct index index;
	int fd; /* of the segment; -1 = an hour's sums */
	uint64_t segment;
};

/* Called for each process of each part that overlaps the span. 0, -errno, or VISIT_DAMAGED: an
 * hour's sum cannot be read. */
#define VISIT_DAMAGED 1
typedef int visit_fn(struct visit *v, struct part *part, const struct index_process *q);

struct visit {
	struct store *store;
	uint64_t from, to;
	const struct profile_filter *filter; /* selects processes; NULL = all */
	bool windows; /* do not use the sums of hours */
	visit_fn *fn;
	void *userdata;
};

static bool query_touches(const struct visit *v, uint64_t begin_ns, uint64_t end_ns)
{
	return begin_ns < v->to && end_ns > v->from;
}

static bool is_inside(const struct visit *v, const struct index_process *q)
{
	return q->begin_real_ns >= v->from && q->end_real_ns <= v->to;
}

/* ---- segments and hours ---------------------------------------------------------------------- */

/* @sums: of the segment's hour; processes that have a sum there are skipped. NULL = there are
 * none. */
static int visit_segment(struct visit *v, uint64_t segment, const struct index *sums)
{
	CLEANUP(fd_closep)
	int fd = store_open_segment(v->store, segment, O_RDONLY);
	struct part part = { INDEX_NULL, fd, segment };
	int r;

	if (fd < 0 || record_is_foreign(fd))
		return 0;
	r = index_open(v->store, segment, fd, v->filter, &part.index);
	for (uint32_t i = 0; i < part.index.n_processes && r >= 0; i++) {
		const struct index_process *q = &part.index.processes[i], *sum;

		if (!index_wants(v->filter, q->pid, q->start_time) ||
		    !query_touches(v, q->begin_real_ns, q->end_real_ns))
			continue;
		sum = sums ? index_find(sums, q->pid, q->start_time) : NULL;
		if (!sum || !sum->sum_at)
			r = v->fn(v, &part, q);
	}
	index_deinit(&part.index);
	return r;
}

/* Visits an hour's sums. Returns how many selected processes have none there, or -errno. */
static int visit_sums(struct visit *v, struct part *part)
{
	int r = 0, others = 0;

	for (uint32_t i = 0; i < part->index.n_processes && r >= 0; i++) {
		struct index_process *q = &part->index.processes[i];

		if (!index_wants(v->filter, q->pid, q->start_time))
			continue;
		r = q->sum_at ? v->fn(v, part, q) : 0;
		if (r == VISIT_DAMAGED)
			q->sum_at = 0;
		others += !q->sum_at;
	}
	return r < 0 ? r : others;
}

/* @segments: the @n segments of one hour */
static int visit_hour(struct visit *v, const uint64_t *segments, uint32_t n)
{
	uint64_t begin_ns = segments[0] / PARTS_MAX * HOUR_NS, bytes = 0;
	struct part part = { INDEX_NULL, -1, segments[0] };
	const struct index *sums = NULL;
	int r = 1;

	/* the hour's last window may reach into the next hour */
	if (!v->windows && begin_ns >= v->from && begin_ns + HOUR_NS <= v->to) {
		for (uint32_t i = 0; i < n; i++)
			bytes += store_file_bytes(v->store, STORE_SEGMENT, segments[i]);
		if (index_read(v->store, STORE_SUMS, segments[0], bytes, &part.index) == 0) {
			sums = &part.index;
			r = visit_sums(v, &part);
		}
	}
	for (uint32_t i = 0; i < n && r > 0; i++) {
		uint64_t slot_ns = store_segment_begin_ns(segments[i]);
		int e = 0;

		/* a window is in the ten minutes in which it begins, and may reach into the next
		 * ten */
		if (slot_ns < v->to && slot_ns + 2 * SLOT_NS > v->from)
			e = visit_segment(v, segments[i], sums);
		r = e < 0 ? e : r;
	}
	index_deinit(&part.index);
	return r < 0 ? r : 0;
}

static int visit_all(struct visit *v)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint32_t n, of_hour;
	int r = 0;

	segments = store_segments(v->store, &n);
	if (!segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && r >= 0; i += of_hour) {
		uint64_t hour = segments[i] / PARTS_MAX;

		for (of_hour = 1; i + of_hour < n && segments[i + of_hour] / PARTS_MAX == hour;)
			of_hour++;
		if ((hour + 1) * HOUR_NS + SLOT_NS > v->from && hour * HOUR_NS < v->to)
			r = visit_hour(v, segments + i, of_hour);
	}
	return r;
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* Reads the window at @at. *ret is NULL if it is damaged or another process's. */
static int read_window(int fd, uint64_t at, const struct index_process *q, struct profile **ret)
{
	CLEANUP(freep) uint8_t *data = NULL;
	struct header h;
	int r;

	*ret = NULL;
	if (!record_at(fd, (off_t)at, &h) || h.pid != q->pid || h.start_time != q->start_time)
		return 0;
	r = record_read(fd, (off_t)at, &h, &data);
	if (r == 0)
		r = record_decode(&h, data, ret);
	return r == -EBADMSG ? 0 : r;
}

static int merge_at(struct visit *v, int fd, uint64_t at, const struct index_process *q,
		    bool *ret_merged)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = read_window(fd, at, q, &p);

	*ret_merged = p != NULL;
	return r < 0 || !p ? r : profile_merge(v->userdata, p, v->filter);
}

typedef int window_fn(struct visit *v, int fd, const struct index_process *q,
		      const struct index_entry *e);

static int each_entry(struct visit *v, const struct part *part, const struct index_process *q,
		      window_fn *fn)
{
	CLEANUP(freep) struct index_entry *entries = NULL;
	struct index scanned = INDEX_NULL;
	int r = index_entries(&part->index, q, &entries);

	if (r == -EBADMSG) { /* the sum is damaged: the segment has the same data */
		r = index_scan(part->fd, v->filter, &scanned);
		q = r == 0 ? index_find(&scanned, q->pid, q->start_time) : NULL;
		r = r == 0 && q ? index_entries(&scanned, q, &entries) : r;
	}
	for (uint32_t i = 0; entries && i < q->n && r >= 0; i++)
		r = fn(v, part->fd, q, &entries[i]);
	index_deinit(&scanned);
	return r;
}

static int merge_entry(struct visit *v, int fd, const struct index_process *q,
		       const struct index_entry *e)
{
	bool merged;

	return query_touches(v, e->begin_real_ns, e->end_real_ns)
		       ? merge_at(v, fd, e->at, q, &merged)
		       : 0;
}

static int merge_process(struct visit *v, struct part *part, const struct index_process *q)
{
	bool merged = false;
	int r = 0;

	if (q->sum_at && (part->fd < 0 || is_inside(v, q)))
		r = merge_at(v, part->index.fd, q->sum_at, q, &merged);
	if (r < 0 || merged)
		return r;
	return part->fd >= 0 ? each_entry(v, part, q, merge_entry) : VISIT_DAMAGED;
}

/* Announces the tenant, so that the first processes leave room for later ones. */
static int note_tenant(struct visit *v, struct part *part, const struct index_process *q)
{
	(void)part;
	profile_payer(v->userdata, q->tenant);
	return 0;
}

int store_query(struct store *s, uint64_t from, uint64_t to, const struct profile_filter *filter,
		struct profile *dst)
{
	struct visit v = { s, from, to, filter, false, note_tenant, dst };
	int r = 0;

	/* a single process shares with nobody */
	if (!filter || filter->n_pids != 1)
		r = visit_all(&v);
	v.fn = merge_process;
	return r < 0 ? r : visit_all(&v);
}

/* ---- one by one ------------------------------------------------------------------------------ */

struct window_call {
	store_window_fn *fn;
	void *userdata;
};

static int call_entry(struct visit *v, int fd, const struct index_process *q,
		      const struct index_entry *e)
{
	const struct window_call *call = v->userdata;
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = 0;

	if (e->begin_real_ns >= v->from && e->begin_real_ns < v->to)
		r = read_window(fd, e->at, q, &p);
	return p && r == 0 ? call->fn(call->userdata, p) : r;
}

static int call_process(struct visit *v, struct part *part, const struct index_process *q)
{
	return each_entry(v, part, q, call_entry);
}

int store_each_window(struct store *s, uint32_t pid, uint64_t start_time, uint64_t from,
		      uint64_t to, store_window_fn *fn, void *userdata)
{
	const struct profile_filter f = { .pids = &pid, .start_times = &start_time, .n_pids = 1 };
	struct window_call call = { fn, userdata };
	struct visit v = { s, from, to, &f, true, call_process, &call };

	return visit_all(&v);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct processes {
	struct store_process *list;
	uint32_t n, cap;
};

static struct store_process *query_find_process(const struct processes *all,
						const struct index_process *q)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->list[i].pid == q->pid && all->list[i].start_time == q->start_time)
			return &all->list[i];
	return NULL;
}

static struct store_process *new_process(struct processes *all)
{
	if (all->n == all->cap) {
		uint32_t cap = all->cap ? 2 * all->cap : 64;
		struct store_process *p =
			cap <= STORE_PROCESSES_MAX ? realloc(all->list, cap * sizeof(*p)) : NULL;

		if (!p)
			return NULL;
		all->list = p;
		all->cap = cap;
	}
	all->list[all->n] = (struct store_process){ 0 };
	return &all->list[all->n++];
}

/* Replaces a text by a newer one, if that is known. */
static void take_text(char **text, const char *new)
{
	char *copy = *new || !*text ? strdup(new) : NULL;

	if (!copy)
		return;
	free(*text);
	*text = copy;
}

static int query_add_process(struct visit *v, struct part *part, const struct index_process *q)
{
	struct processes *all = v->userdata;
	struct store_process *p = q->pid ? query_find_process(all, q) : NULL;

	(void)part;
	if (!p && q->pid)
		p = new_process(all);
	if (!p)
		return q->pid ? -ENOMEM : 0; /* pid 0: counters that belong to no process */
	if (!p->windows || q->begin_real_ns < p->begin_real_ns)
		p->begin_real_ns = q->begin_real_ns;
	if (q->end_real_ns > p->end_real_ns)
		p->end_real_ns = q->end_real_ns;
	p->pid = q->pid;
	p->start_time = q->start_time;
	p->ns_pid = q->ns_pid;
	p->tenant = q->tenant;
	p->windows += q->n;
	p->samples += q->samples;
	p->bytes += q->bytes;
	return 0;
}

static int query_add_named(struct visit *v, struct part *part, const struct index_process *q)
{
	struct store_process *p;
	int r = query_add_process(v, part, q);

	if (r == 0 && part->fd >= 0)
		r = index_describe(&part->index, part->fd);
	if (r < 0 || !q->pid)
		return r;
	p = query_find_process(v->userdata, q);
	take_text(&p->name, index_string(&part->index, q, INDEX_NAME));
	take_text(&p->container_id, index_string(&part->index, q, INDEX_CONTAINER_ID));
	take_text(&p->container, index_string(&part->index, q, INDEX_CONTAINER));
	take_text(&p->pod, index_string(&part->index, q, INDEX_POD));
	take_text(&p->jdk, index_string(&part->index, q, INDEX_JDK));
	take_text(&p->labels, index_string(&part->index, q, INDEX_LABELS));
	return p->name && p->container_id && p->container && p->pod && p->jdk && p->labels
		       ? 0
		       : -ENOMEM;
}

void store_processes_free(struct store_process *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(list[i].name);
		free(list[i].container_id);
		free(list[i].container);
		free(list[i].pod);
		free(list[i].jdk);
		free(list[i].labels);
	}
	free(list);
}

static int query_processes(struct store *s, uint64_t from, uint64_t to, visit_fn *fn,
			   struct store_process **ret, uint32_t *ret_n)
{
	struct processes all = { 0 };
	struct visit v = { s, from, to, NULL, false, fn, &all };
	int r = visit_all(&v);

	if (r < 0) {
		store_processes_free(all.list, all.n);
		return r;
	}
	*ret = all.list;
	*ret_n = all.n;
	return 0;
}

int store_processes(struct store *s, uint64_t from, uint64_t to, struct store_process **ret,
		    uint32_t *ret_n)
{
	return query_processes(s, from, to, query_add_named, ret, ret_n);
}

int store_processes_unnamed(struct store *s, uint64_t from, uint64_t to, struct store_process **ret,
			    uint32_t *ret_n)
{
	return query_processes(s, from, to, query_add_process, ret, ret_n);
}

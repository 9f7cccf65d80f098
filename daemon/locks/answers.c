/* See locks.h: queries, which change nothing. */
#include "daemon/locks/locks_priv.h"

#include <errno.h>
#include <string.h>

#define ANSWER_ROWS_MAX 8192u
#define CLASS_ROWS_MAX	(2 * ANSWER_ROWS_MAX) /* rows that are added up by class */

/* The first slice that overlaps [now - last, now], and the moment at which it begins. */
static uint64_t first_slice(const struct locks *l, uint64_t now_ns, uint64_t last_ns,
			    uint64_t *ret_from)
{
	uint64_t oldest = now_ns / LOCKS_SLICE_NS, first;

	oldest = oldest < LOCKS_SLICES ? 0 : oldest - LOCKS_SLICES + 1;
	first = last_ns < now_ns ? (now_ns - last_ns) / LOCKS_SLICE_NS : 0;
	if (first < oldest)
		first = oldest;
	*ret_from = first * LOCKS_SLICE_NS;
	if (*ret_from < l->first_ns)
		*ret_from = l->first_ns;
	return first;
}

static uint32_t answers_class_of(const struct locks *l, uint32_t class_number, uint32_t identity)
{
	const struct known_class *known;

	if (class_number || !identity || !l->known)
		return class_number;
	known = &l->known[identity % KNOWN_CLASSES];
	return known->identity == identity ? known->class_number : 0;
}

/* The key under which a lock is known now: its first waits may have come without its class. */
static struct lock_key key_now(const struct locks *l, struct lock_key key)
{
	key.class_number = answers_class_of(l, key.class_number, key.identity);
	return key;
}

static void add_rows(const struct locks *l, struct lock_table *to, const struct lock_row *rows,
		     uint32_t n, bool idle)
{
	for (uint32_t i = 0; i < n; i++) {
		struct lock_key key = key_now(l, rows[i].key);

		if ((rows[i].waits || rows[i].open) && (idle || !key.idle))
			lock_row_add(lock_table_row(to, &key, ANSWER_ROWS_MAX), &rows[i]);
	}
}

static void answers_add_rest(struct lock_table *to, const struct lock_row *row, bool idle)
{
	if (idle || !row->key.idle)
		lock_row_add(lock_table_rest(to, &row->key), row);
}

/*
 * @o as of now, with the lock's present owner. The owner was read when the wait began; but if a
 * thread has finished a wait for the same lock since, it is the owner now. Waits below the
 * threshold are not reported, so an owner that got the lock by one of them is missed.
 */
static struct locks_open open_now(const struct locks *l, const struct open_wait *o, uint64_t now_ns)
{
	const struct lock_key key = { o->class_number, o->wait.identity, o->wait.wait, false };
	struct locks_open w = opens_wait(&l->opens, o);
	uint32_t class_number = answers_class_of(l, o->class_number, o->wait.identity);
	uint64_t slice = now_ns / LOCKS_SLICE_NS, begin = o->wait.begin_ns / LOCKS_SLICE_NS;

	w.class_name = classes_name(&l->classes, class_number);
	for (uint32_t i = 0; w.owner_tid && w.identity && i < SLICES_LATE && slice >= begin;
	     i++, slice--) {
		const struct slice *s = &l->slices[slice % LOCKS_SLICES];
		const struct lock_row *row =
			s->table && s->number == slice ? lock_table_find(s->table, &key) : NULL;

		if (row && row->last_ns > w.begin_ns && row->last_tid != w.tid) {
			w.owner_tid = row->last_tid;
			w.owner_node = 0;
			break;
		}
	}
	return w;
}

struct asking {
	const struct locks *locks;
	struct lock_table *table;
	uint64_t from_ns, now_ns;
	bool idle;
};

static void answers_add_packed(void *userdata, const struct lock_row *row, bool is_rest)
{
	struct asking *a = userdata;

	if (is_rest)
		answers_add_rest(a->table, row, a->idle);
	else
		add_rows(a->locks, a->table, row, 1, a->idle);
}

static void answers_add_slice(struct asking *a, const struct slice *s)
{
	uint32_t epoch = a->locks->epoch;

	if (s->packed)
		packed_each(s->packed, epoch, answers_add_packed, a);
	if (!s->table)
		return;
	lock_table_turn(s->table, epoch);
	add_rows(a->locks, a->table, s->table->rows, s->table->n, a->idle);
	for (uint32_t i = 0; i < s->table->n_rest; i++)
		answers_add_rest(a->table, &s->table->rest[i], a->idle);
	add_rows(a->locks, a->table, &s->table->other[0][0], 2 * WIRE_WAIT_COUNT, a->idle);
}

static struct site answers_site_of(uint32_t frame, uint32_t node, uint64_t ns)
{
	uint32_t us = ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000);

	return (struct site){ frame, node, us, us };
}

static void add_open_row(void *userdata, const struct open_wait *o)
{
	struct asking *a = userdata;
	const struct locks_open w = opens_wait(&a->locks->opens, o);
	struct lock_key key = { o->class_number, o->wait.identity, o->wait.wait, o->wait.idle };
	uint64_t begin = o->wait.begin_ns > a->from_ns ? o->wait.begin_ns : a->from_ns;
	struct lock_row row = { .key = key, .open = 1 };

	row.total_ns = begin < a->now_ns ? a->now_ns - begin : 0;
	row.longest_ns = o->wait.begin_ns < a->now_ns ? a->now_ns - o->wait.begin_ns : 0;
	tid_set_add(&row.waiters, o->wait.tid, row.total_ns);
	tid_set_add(&row.owners, open_now(a->locks, o, a->now_ns).owner_tid, row.total_ns);
	row.waiting.sites[0] = answers_site_of(o->frame, w.node, row.total_ns);
	row.holding.sites[0] = answers_site_of(o->owner_frame, w.owner_node, row.total_ns);
	add_rows(a->locks, a->table, &row, 1, a->idle);
}

static int most_first(const void *a, const void *b)
{
	const struct locks_tid *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

static int answers_longest_first(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return x->us < y->us ? 1 : x->us > y->us ? -1 : 0;
}

static uint32_t give_sites(const struct locks *l, struct site_set *from, struct locks_site *to)
{
	uint32_t n = 0;

	qsort(from->sites, LOCKS_SITES, sizeof(*from->sites), answers_longest_first);
	for (uint32_t i = 0; i < LOCKS_SITES; i++)
		if (from->sites[i].frame)
			to[n++] = (struct locks_site){
				.frame = sites_name(&l->sites, from->sites[i].frame),
				.node = from->sites[i].node,
				.ns = from->sites[i].us * 1000ull,
			};
	return n;
}

static void give_row(const struct locks *l, struct lock_row *from, struct locks_row *to)
{
	qsort(from->waiters.tids, from->waiters.n, sizeof(struct locks_tid), most_first);
	qsort(from->owners.tids, from->owners.n, sizeof(struct locks_tid), most_first);
	*to = (struct locks_row){
		.class_name = classes_name(&l->classes, from->key.class_number),
		.identity = from->key.identity,
		.locks = from->locks ? from->locks : 1,
		.more_locks = from->more_locks,
		.wait = from->key.wait,
		.idle = from->key.idle,
		.other = from->key.class_number == OTHER_CLASS,
		.waits = from->waits,
		.open = from->open,
		.total_ns = from->total_ns,
		.longest_ns = from->longest_ns,
		.n_waiters = from->waiters.n,
		.n_owners = from->owners.n,
		.more_waiters = from->waiters.more,
		.more_owners = from->owners.more,
	};
	memcpy(to->waiters, from->waiters.tids, sizeof(to->waiters));
	memcpy(to->owners, from->owners.tids, sizeof(to->owners));
	to->n_waiting = give_sites(l, &from->waiting, to->waiting);
	to->n_holding = give_sites(l, &from->holding, to->holding);
}

static int answers_by_total(const void *a, const void *b)
{
	const struct locks_row *x = a, *y = b;

	if (x->other != y->other)
		return x->other ? 1 : -1;
	return x->total_ns < y->total_ns ? 1 : x->total_ns > y->total_ns ? -1 : 0;
}

static int give_rows(const struct locks *l, struct lock_table *t, struct locks_rows *ret)
{
	ret->n = 0;
	ret->rows = calloc(t->n + 2u * WIRE_WAIT_COUNT + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		give_row(l, &t->rows[i], &ret->rows[ret->n++]);
	for (uint32_t i = 0; i < 2u * WIRE_WAIT_COUNT; i++) {
		struct lock_row *other = &t->other[i / 2][i % 2];

		if (other->waits || other->open)
			give_row(l, other, &ret->rows[ret->n++]);
	}
	qsort(ret->rows, ret->n, sizeof(*ret->rows), answers_by_total);
	return 0;
}

static struct lock_row *row_of_class(struct lock_table *to, const struct lock_row *r)
{
	const struct lock_key key = { r->key.class_number, 0, r->key.wait, r->key.idle };

	return lock_table_row(to, &key, CLASS_ROWS_MAX);
}

/* Adds rows of locks up to rows of classes. Locks without an identity share one row, so they may
 * be several. */
static void add_up_classes(const struct lock_table *locks, struct lock_table *to)
{
	for (uint32_t i = 0; i < locks->n; i++) {
		struct lock_row *row = row_of_class(to, &locks->rows[i]);

		lock_row_add(row, &locks->rows[i]);
		row->locks++;
		row->more_locks |= !locks->rows[i].key.identity;
	}
	for (uint32_t i = 0; i < locks->n_rest; i++) {
		struct lock_row *row = row_of_class(to, &locks->rest[i]);

		lock_row_add(row, &locks->rest[i]);
		row->more_locks = true;
	}
	for (uint32_t i = 0; i < 2u * WIRE_WAIT_COUNT; i++) {
		const struct lock_row *other = &locks->other[i / 2][i % 2];
		struct lock_row *row = &to->other[i / 2][i % 2];

		if (!other->waits && !other->open)
			continue;
		row->key = other->key;
		lock_row_add(row, other);
		row->more_locks = true;
	}
}

static int give_classes(const struct locks *l, struct lock_table *locks, struct locks_rows *ret)
{
	struct lock_table classes = { .seed = l->seed };
	int r;

	add_up_classes(locks, &classes);
	r = give_rows(l, &classes, ret);
	lock_table_clear(&classes);
	return r;
}

static void answers_add_counts(struct locks_counts *to, const struct locks_counts *from)
{
	to->shorter += from->shorter;
	to->shorter_ns += from->shorter_ns;
	to->idle += from->idle;
	to->idle_ns += from->idle_ns;
	to->lost += from->lost;
	to->lost_ns += from->lost_ns;
}

int locks_query(const struct locks *l, uint64_t now_ns, uint64_t last_ns, bool idle,
		enum locks_by by, struct locks_rows *ret)
{
	struct lock_table table = { .seed = l->seed };
	struct locks_counts seen = { 0 };
	struct asking asking = { .locks = l, .table = &table, .now_ns = now_ns, .idle = idle };
	uint64_t first = first_slice(l, now_ns, last_ns, &asking.from_ns);
	int r;

	memset(&ret->counts, 0, sizeof(ret->counts));
	for (uint32_t i = 0; i < LOCKS_SLICES; i++) {
		const struct slice *s = &l->slices[i];

		if (s->number < first)
			continue;
		answers_add_counts(&ret->counts, &s->counts);
		answers_add_counts(&seen, &s->seen);
		answers_add_slice(&asking, s);
	}
	/* agents of an older version do not count the waits for work, but report the long ones */
	if (seen.idle > ret->counts.idle) {
		ret->counts.idle = seen.idle;
		ret->counts.idle_ns = seen.idle_ns;
	}
	opens_each(&l->opens, add_open_row, &asking);
	ret->span_ns = now_ns > asking.from_ns ? now_ns - asking.from_ns : 0;
	if (by == LOCKS_BY_LOCK)
		lock_table_forget_classes(&table);
	r = by == LOCKS_BY_CLASS ? give_classes(l, &table, ret) : give_rows(l, &table, ret);
	lock_table_clear(&table);
	return r;
}

void locks_rows_free(struct locks_rows *r)
{
	free(r->rows);
	r->rows = NULL;
	r->n = 0;
}

const char *locks_class_of(const struct locks *l, uint32_t identity)
{
	return classes_name(&l->classes, answers_class_of(l, 0, identity));
}

const char *locks_thread_name(const struct locks *l, uint32_t tid)
{
	const struct thread *t = tid ? threads_find(&l->threads, tid) : NULL;

	return t && t->name ? t->name : "";
}

struct listing {
	const struct locks *locks;
	struct locks_thread_rows *to;
	uint64_t first, last, from_ns, to_ns, now_ns;
};

static void give_thread(void *userdata, const struct thread *t)
{
	struct listing *x = userdata;
	const struct open_wait *open =
		t->tid && !t->retired ? opens_of(&x->locks->opens, t->tid) : NULL;
	struct locks_thread_row *row = &x->to->rows[x->to->n];
	uint64_t times[3], begin;

	thread_times(t, x->first, x->last, times);
	if (open) { /* only the part within the span */
		begin = open->wait.begin_ns > x->from_ns ? open->wait.begin_ns : x->from_ns;
		times[open->wait.idle ? TIMES_IDLE : TIMES_WAIT] +=
			x->to_ns > begin ? x->to_ns - begin : 0;
	}
	/* leaves out ended threads that did nothing in the span */
	if ((t->flags & WIRE_THREAD_ENDED || !t->tid) && !times[0] && !times[1] && !times[2])
		return;
	*row = (struct locks_thread_row){
		.tid = t->tid,
		.flags = t->flags,
		.java_id = t->java_id,
		.name = t->tid ? (t->name ? t->name : "") : "[other threads]",
		.cpu_ns = times[TIMES_CPU],
		.wait_ns = times[TIMES_WAIT],
		.idle_ns = times[TIMES_IDLE],
		.state = t->state,
		.sample_ns = t->sample_ns,
		.last_end_ns = t->last_end_ns,
		.last_class = classes_name(&x->locks->classes, t->last_class),
		.last_identity = t->last_identity,
		.last_wait = t->last_wait,
		.waits = open != NULL,
	};
	if (open)
		row->open = open_now(x->locks, open, x->now_ns);
	x->to->n++;
}

static void give_virtuals(const struct locks *l, struct locks_thread_rows *to)
{
	to->virtuals_known = l->virtuals.mono_ns != 0;
	to->n_virtuals = 0;
	for (uint32_t i = 0; i <= LOCKS_VIRTUAL_ROWS; i++)
		if (l->virtuals.rows[i].count)
			to->virtuals[to->n_virtuals++] = (struct locks_virtual_row){
				.container =
					classes_name(&l->classes, l->virtuals.rows[i].container),
				.class_name =
					classes_name(&l->classes, l->virtuals.rows[i].class_number),
				.state = l->virtuals.rows[i].state,
				.count = l->virtuals.rows[i].count,
				.mounted = l->virtuals.rows[i].mounted,
			};
}

int locks_threads(const struct locks *l, uint64_t now_ns, uint64_t back_ns, uint64_t last_ns,
		  struct locks_thread_rows *ret)
{
	uint64_t to_ns = now_ns > back_ns ? now_ns - back_ns : 0;
	struct listing x = { .locks = l,
			     .to = ret,
			     .now_ns = now_ns,
			     .to_ns = back_ns ? (to_ns / LOCKS_SLICE_NS + 1) * LOCKS_SLICE_NS
					      : now_ns,
			     .last = to_ns / LOCKS_SLICE_NS };

	ret->n = 0;
	ret->rows = calloc(l->threads.n + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	if (x.to_ns > now_ns)
		x.to_ns = now_ns;
	x.first = first_slice(l, now_ns, back_ns + last_ns, &x.from_ns);
	ret->span_ns = x.to_ns > x.from_ns ? x.to_ns - x.from_ns : 0;
	threads_each(&l->threads, give_thread, &x);
	give_thread(&x, &l->threads.other);
	give_virtuals(l, ret);
	return 0;
}

void locks_thread_rows_free(struct locks_thread_rows *r)
{
	free(r->rows);
	r->rows = NULL;
	r->n = 0;
}

struct collecting {
	const struct locks *locks;
	struct locks_open *to;
	uint32_t n;
	uint64_t now_ns;
};

static void answers_collect(void *userdata, const struct open_wait *w)
{
	struct collecting *c = userdata;

	c->to[c->n++] = open_now(c->locks, w, c->now_ns);
}

static int first_begun(const void *a, const void *b)
{
	const struct locks_open *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

int locks_open(const struct locks *l, uint64_t now_ns, struct locks_open **ret, uint32_t *ret_n)
{
	struct collecting c = { .locks = l, .now_ns = now_ns };

	c.to = calloc(l->opens.n + 1, sizeof(*c.to));
	if (!c.to)
		return -ENOMEM;
	opens_each(&l->opens, answers_collect, &c);
	qsort(c.to, c.n, sizeof(*c.to), first_begun);
	*ret = c.to;
	*ret_n = c.n;
	return 0;
}

void locks_lost(const struct locks *l, struct locks_lost *ret)
{
	*ret = (struct locks_lost){ l->opens.refused, l->threads.refused, l->folded };
	for (uint32_t i = 0; i < LOCKS_SLICES; i++) {
		if (l->slices[i].table)
			ret->folded += l->slices[i].table->folded;
		if (l->slices[i].packed)
			ret->folded += l->slices[i].packed->folded;
	}
}

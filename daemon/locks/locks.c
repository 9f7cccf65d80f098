/* See locks.h: brings the stream's events into slices, threads and open waits. */
#include "daemon/locks/locks_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* earlier ends are of another clock (a time namespace) */
#define LATE_MAX_NS (SLICES_LATE * LOCKS_SLICE_NS)

int locks_new(uint64_t now_ns, struct locks **ret)
{
	CLEANUP(locks_freep) struct locks *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	(void)!getrandom(&l->seed, sizeof(l->seed), GRND_NONBLOCK);
	l->first_ns = now_ns;
	l->classes.seed = l->threads.seed = l->opens.seed = l->seed;
	r = threads_init(&l->threads);
	if (r == 0)
		r = opens_init(&l->opens);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

static void locks_free_table(struct locks *l, struct slice *s)
{
	l->tables_bytes -= lock_table_bytes(s->table);
	lock_table_clear(s->table);
	free(s->table);
	s->table = NULL;
}

static void clear_slice(struct locks *l, struct slice *s)
{
	if (s->table) {
		l->folded += s->table->folded;
		locks_free_table(l, s);
	}
	if (s->packed) {
		l->folded += s->packed->folded;
		l->tables_bytes -= packed_bytes(s->packed);
		free(s->packed);
		s->packed = NULL;
	}
}

static void shrink_slice(struct locks *l, struct slice *s)
{
	if (!s->table)
		return;
	l->tables_bytes -= lock_table_bytes(s->table);
	lock_table_shrink(s->table);
	l->tables_bytes += lock_table_bytes(s->table);
}

/* Packs the slice if it gets no more waits; without memory its table stays. */
static void locks_pack(struct locks *l, struct slice *s)
{
	if (s->packed || s->number + SLICES_LATE >= l->newest)
		return;
	s->packed = packed_new(s->table);
	if (!s->packed)
		return;
	l->tables_bytes += packed_bytes(s->packed);
	locks_free_table(l, s);
}

/* A newer slice has begun: the others get few waits more, or none. */
static void locks_pack_older(struct locks *l)
{
	for (uint32_t i = 0; i < LOCKS_SLICES; i++) {
		struct slice *s = &l->slices[i];

		if (s->table && s->number < l->newest) {
			shrink_slice(l, s);
			locks_pack(l, s);
		}
	}
}

struct locks *locks_free(struct locks *l)
{
	if (!l)
		return NULL;
	for (uint32_t i = 0; i < LOCKS_SLICES; i++)
		clear_slice(l, &l->slices[i]);
	opens_deinit(&l->opens);
	threads_deinit(&l->threads);
	classes_deinit(&l->classes);
	sites_deinit(&l->sites);
	free(l->known);
	free(l);
	return NULL;
}

void locks_session(struct locks *l)
{
	memset(&l->virtuals, 0, sizeof(l->virtuals));
	memset(&l->counted, 0, sizeof(l->counted));
	locks_reset(l);
	for (uint32_t i = 0; i < LOCKS_SLICES; i++)
		shrink_slice(l, &l->slices[i]);
	opens_clear(&l->opens);
	threads_end_all(&l->threads);
}

void locks_reset(struct locks *l)
{
	sites_forget_nodes(&l->sites);
	l->opens.epoch = l->threads.epoch = ++l->epoch;
}

size_t locks_bytes(const struct locks *l)
{
	size_t bytes = sizeof(*l) + l->classes.bytes + l->sites.names.bytes + l->threads.bytes +
		       opens_bytes(&l->opens) + l->tables_bytes;

	bytes += l->known ? KNOWN_CLASSES * sizeof(*l->known) : 0;
	bytes += l->sites.cache ? SITES_CACHE * sizeof(*l->sites.cache) : 0;
	return bytes;
}

/* ---- input from the stream ---- */

/* Limits a moment to what is possible: not in the future, and not of another clock. */
static uint64_t locks_believed(uint64_t ns, uint64_t now_ns)
{
	return ns > now_ns || now_ns - ns > LATE_MAX_NS ? now_ns : ns;
}

/* The slice of a moment. Empties its slot if it holds a slice that is ten minutes older. */
static struct slice *slice_at(struct locks *l, uint64_t ns)
{
	uint64_t number = ns / LOCKS_SLICE_NS;
	struct slice *s = &l->slices[number % LOCKS_SLICES];

	if (s->number != number) {
		clear_slice(l, s);
		memset(&s->counts, 0, sizeof(s->counts));
		memset(&s->seen, 0, sizeof(s->seen));
		s->number = number;
	}
	if (number > l->newest) {
		l->newest = number;
		locks_pack_older(l);
	}
	return s;
}

/* The table of the slice of a moment; NULL without memory. */
static struct lock_table *table_at(struct locks *l, uint64_t ns)
{
	struct slice *s = slice_at(l, ns);

	if (!s->table) {
		s->table = calloc(1, sizeof(*s->table));
		if (s->table) {
			s->table->seed = l->seed;
			l->tables_bytes += lock_table_bytes(s->table);
		}
	}
	if (s->table)
		lock_table_turn(s->table, l->epoch);
	return s->table;
}

/* The class of the lock, or, if the record has none, the one that earlier records of the lock
 * had. */
static uint32_t locks_class_number_of(struct locks *l, const struct stream_lock *w)
{
	uint32_t number = classes_number(&l->classes, w->class_name);
	struct known_class *known;

	if (!l->known && number > CLASSES_OTHER)
		l->known = calloc(KNOWN_CLASSES, sizeof(*l->known));
	if (!w->identity || !l->known)
		return number;
	known = &l->known[w->identity % KNOWN_CLASSES];
	if (number > CLASSES_OTHER)
		*known = (struct known_class){ w->identity, number };
	return number || known->identity != w->identity ? number : known->class_number;
}

static struct lock_key locks_key_of(struct locks *l, const struct stream_lock *w, bool idle)
{
	return (struct lock_key){ locks_class_number_of(l, w), w->identity, w->wait, idle };
}

/* There may be millions of virtual threads, so those without a name share one number. */
static struct thread *locks_thread_of(struct locks *l, uint32_t tid, uint64_t now_ns)
{
	if (tid > WIRE_VIRTUAL_TID && !threads_find(&l->threads, tid))
		tid = WIRE_VIRTUAL_TID;
	return threads_get(&l->threads, tid, now_ns);
}

static struct site locks_site_of(struct locks *l, const struct stream *s, uint32_t node,
				 uint64_t ns)
{
	uint32_t us = ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000);

	return (struct site){ sites_frame(&l->sites, s, node), node, us, us };
}

static bool is_within(uint64_t ns, const struct stream_lock *w)
{
	return ns >= w->begin_ns && ns - w->begin_ns <= w->duration_ns;
}

/*
 * The stack of the owner: as the record has it (of an owner that waited itself, or slept); else of
 * its sample during the wait; else where the owner waited for this lock before it got it.
 */
static uint32_t owner_node(const struct locks *l, const struct stream_lock *w,
			   uint32_t class_number)
{
	const struct thread *owner = w->owner_tid ? threads_find(&l->threads, w->owner_tid) : NULL;

	if (w->owner_node || !owner)
		return w->owner_node;
	if (is_within(owner->sample_ns, w))
		return owner->sample_node;
	if (is_within(owner->before_ns, w))
		return owner->before_node;
	if (w->identity && owner->last_identity == w->identity && owner->last_class == class_number)
		return owner->last_node;
	return 0;
}

static void add_sites(struct locks *l, struct lock_row *row, const struct stream *s,
		      const struct stream_lock *w)
{
	struct site site = locks_site_of(l, s, w->node, w->duration_ns);

	site_set_add(&row->waiting, &site);
	site = locks_site_of(l, s, owner_node(l, w, row->key.class_number), w->duration_ns);
	site_set_add(&row->holding, &site);
}

static void seen_idle(struct locks_counts *to, const struct stream_lock *w)
{
	to->idle += w->waits;
	to->idle_ns += w->duration_ns;
}

static struct lock_row *row_in(struct locks *l, struct lock_table *table,
			       const struct lock_key *key)
{
	size_t before = lock_table_bytes(table);
	struct lock_row *row = lock_table_row(table, key, LOCKS_ROWS_MAX);

	l->tables_bytes += lock_table_bytes(table) - before;
	return row;
}

static void add_ended(struct locks *l, const struct stream *s, const struct stream_lock *w,
		      bool idle, uint64_t now_ns)
{
	uint64_t end_ns, duration_ns = w->duration_ns;
	struct lock_key key = locks_key_of(l, w, idle);
	struct thread *thread = locks_thread_of(l, w->tid, now_ns);
	struct lock_table *table;
	struct lock_row *row;

	end_ns = locks_believed(duration_ns > UINT64_MAX - w->begin_ns ? UINT64_MAX
								       : w->begin_ns + duration_ns,
				now_ns);
	if (idle)
		seen_idle(&slice_at(l, end_ns)->seen, w);
	table = table_at(l, end_ns);
	if (table) {
		row = row_in(l, table, &key);
		row->waits += w->waits;
		row->total_ns += duration_ns;
		if (!(w->flags & WIRE_LOCK_SUM) && duration_ns > row->longest_ns)
			row->longest_ns = duration_ns;
		tid_set_add(&row->waiters, w->tid, duration_ns);
		tid_set_add(&row->owners, w->owner_tid, duration_ns);
		add_sites(l, row, s, w);
		if ((w->owner_tid || w->wait == WIRE_WAIT_ENTER) && end_ns >= row->last_ns) {
			row->last_tid = w->tid;
			row->last_ns = end_ns;
		}
	}
	if (thread->tid) {
		thread->last_class = key.class_number;
		thread->last_identity = w->identity;
		thread->last_node = w->node;
		thread->last_wait = w->wait;
		thread->last_end_ns = end_ns;
	}
	threads_spend(&l->threads, thread, idle ? TIMES_IDLE : TIMES_WAIT,
		      duration_ns < end_ns ? end_ns - duration_ns : 0, end_ns, now_ns);
}

static void add_open(struct locks *l, const struct stream *s, const struct stream_lock *w,
		     bool idle, uint64_t now_ns)
{
	struct open_wait *o = opens_put(&l->opens, w->tid, w->begin_ns);

	(void)locks_thread_of(l, w->tid, now_ns);
	if (!o)
		return;
	if (!o->wait.begin_ns) { /* its first report: if its begin is implausible, it began
				    @duration ago by our clock */
		o->wait.begin_ns = w->duration_ns < now_ns ? now_ns - w->duration_ns : 1;
		if (now_ns >= w->begin_ns && now_ns - w->begin_ns < w->duration_ns + LATE_MAX_NS)
			o->wait.begin_ns = w->begin_ns ? w->begin_ns : 1;
	}
	o->class_number = locks_class_number_of(l, w);
	o->frame = sites_frame(&l->sites, s, w->node);
	o->owner_frame = sites_frame(&l->sites, s, owner_node(l, w, o->class_number));
	o->wait.owner_tid = w->owner_tid;
	o->wait.wait = w->wait;
	o->wait.flags = w->flags;
	o->wait.idle = idle;
	o->wait.identity = w->identity;
	o->wait.node = w->node;
	o->wait.owner_node = w->owner_node;
	o->wait.class_name = classes_name(&l->classes, o->class_number);
}

void locks_add(struct locks *l, const struct stream *s, const struct stream_lock *w, bool idle,
	       uint64_t now_ns)
{
	struct stream_lock ended;

	if (w->wait >= WIRE_WAIT_COUNT)
		return;
	if (w->flags & WIRE_LOCK_OPEN) {
		add_open(l, s, w, idle, now_ns);
		return;
	}
	ended = *w;
	if (!ended.owner_node) /* the owner's stack, which only reports of the open wait have */
		ended.owner_node = opens_owner_node(&l->opens, w->tid, w->begin_ns);
	opens_end(&l->opens, w->tid, w->begin_ns);
	if (!(w->flags & WIRE_LOCK_CLOSED))
		add_ended(l, s, &ended, idle, now_ns);
}

static void add_more(uint64_t *to, uint64_t now, uint64_t before)
{
	*to += now > before ? now - before : 0;
}

void locks_count(struct locks *l, const struct locks_counts *now, uint64_t now_ns)
{
	struct locks_counts *to = &slice_at(l, now_ns)->counts, *before = &l->counted;

	add_more(&to->shorter, now->shorter, before->shorter);
	add_more(&to->shorter_ns, now->shorter_ns, before->shorter_ns);
	add_more(&to->idle, now->idle, before->idle);
	add_more(&to->idle_ns, now->idle_ns, before->idle_ns);
	add_more(&to->lost, now->lost, before->lost);
	add_more(&to->lost_ns, now->lost_ns, before->lost_ns);
	*before = *now;
}

void locks_sample(struct locks *l, const struct stream_sample *s, uint64_t now_ns)
{
	struct thread *thread = threads_get(&l->threads, s->tid, now_ns);
	uint64_t at_ns = locks_believed(s->mono_ns, now_ns);

	if (at_ns > thread->sample_ns) {
		thread->before_ns = thread->sample_ns;
		thread->before_node = thread->sample_node;
		thread->sample_ns = at_ns;
		thread->sample_node = s->node;
	}
	threads_book(&l->threads, thread, TIMES_CPU, at_ns, s->weight_ns, now_ns);
}

void locks_thread(struct locks *l, const struct wire_thread *t, const char *name, uint64_t now_ns)
{
	if (t->flags & WIRE_THREAD_ENDED)
		opens_end_thread(&l->opens, t->tid);
	threads_reported(&l->threads, t, name, now_ns);
}

void locks_state(struct locks *l, const struct wire_state *w, uint64_t now_ns)
{
	struct thread *thread = threads_get(&l->threads, w->tid, now_ns);

	if (thread->tid)
		thread->state = w->state;
}

/* Rows of the same moment belong to one report, which replaces the previous one. */
void locks_virtual(struct locks *l, const struct stream_virtual *v)
{
	struct virtuals *all = &l->virtuals;
	uint32_t i;

	if (!all->mono_ns || all->mono_ns != v->mono_ns)
		*all = (struct virtuals){ .mono_ns = v->mono_ns ? v->mono_ns : 1 };
	if (!v->count)
		return;
	if (all->n < LOCKS_VIRTUAL_ROWS) {
		i = all->n++;
		all->rows[i].container = classes_number(&l->classes, v->container);
		all->rows[i].class_number = classes_number(&l->classes, v->class_name);
		all->rows[i].state = v->state;
	} else {
		i = LOCKS_VIRTUAL_ROWS;
	}
	all->rows[i].count += v->count;
	all->rows[i].mounted += v->mounted;
}

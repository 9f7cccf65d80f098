/*
 * See locks_priv.h. A thread that has ended stays for ten minutes, or until there is no room,
 * because its time belongs in answers. The ends of virtual threads are not reported, and there are
 * thousands of them: the newest are kept.
 */
#include "daemon/locks/locks_priv.h"

#include <errno.h>
#include <string.h>

#define BUCKETS 1024u /* a power of two */
#define KEEP_NS (LOCKS_SLICES * LOCKS_SLICE_NS)

int threads_init(struct threads *t)
{
	t->buckets = calloc(BUCKETS, sizeof(struct thread *));
	t->other.times = calloc(LOCKS_SLICES, sizeof(*t->other.times));
	t->other.n_times = LOCKS_SLICES;
	return t->buckets && t->other.times ? 0 : -ENOMEM;
}

static struct thread **locks_threads_bucket_of(const struct threads *t, uint32_t tid)
{
	return &t->buckets[locks_hash(tid, t->seed) & (BUCKETS - 1)];
}

static struct thread *in_epoch(const struct threads *t, struct thread *thread)
{
	if (thread->epoch != t->epoch)
		thread->sample_node = thread->before_node = thread->last_node = 0;
	thread->epoch = t->epoch;
	return thread;
}

struct thread *threads_find(const struct threads *t, uint32_t tid)
{
	struct thread *thread = *locks_threads_bucket_of(t, tid);

	while (thread && thread->tid != tid)
		thread = thread->next;
	return thread ? in_epoch(t, thread) : NULL;
}

static size_t locks_threads_bytes_of(const struct thread *thread)
{
	return sizeof(*thread) + (thread->name ? strlen(thread->name) + 1 : 0) +
	       thread->n_times * sizeof(*thread->times);
}

static void locks_threads_drop(struct threads *t, struct thread **link)
{
	struct thread *thread = *link;

	*link = thread->next;
	t->bytes -= locks_threads_bytes_of(thread);
	t->n--;
	t->n_virtual -= thread->tid >= WIRE_VIRTUAL_TID;
	free(thread->name);
	free(thread->times);
	free(thread);
}

void threads_deinit(struct threads *t)
{
	for (uint32_t i = 0; t->buckets && i < BUCKETS; i++)
		while (t->buckets[i])
			locks_threads_drop(t, &t->buckets[i]);
	while (t->retired)
		locks_threads_drop(t, &t->retired);
	free(t->buckets);
	free(t->other.times);
	t->buckets = NULL;
	t->other.times = NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

enum pressure { OLD, ENDED, VIRTUAL };

static bool may_go(const struct threads *t, const struct thread *thread, enum pressure pressure,
		   uint64_t now_ns)
{
	bool ended = thread->flags & WIRE_THREAD_ENDED;
	bool virtual = thread->tid >= WIRE_VIRTUAL_TID;

	if (thread == t->held)
		return false;
	if (pressure == VIRTUAL)
		return virtual && thread->heard_ns + LOCKS_SLICE_NS < now_ns;
	if (pressure == ENDED)
		return ended;
	return (ended || virtual) && thread->heard_ns + KEEP_NS < now_ns;
}

static void sweep_chain(struct threads *t, struct thread **link, enum pressure pressure,
			uint64_t now_ns)
{
	while (*link) {
		if (may_go(t, *link, pressure, now_ns))
			locks_threads_drop(t, link);
		else
			link = &(*link)->next;
	}
}

static void locks_threads_sweep(struct threads *t, enum pressure pressure, uint64_t now_ns)
{
	sweep_chain(t, &t->retired, pressure, now_ns);
	for (uint32_t i = 0; i < BUCKETS; i++)
		sweep_chain(t, &t->buckets[i], pressure, now_ns);
}

/*
 * Is there room for another thread? Makes some at most once in a slice: making room visits all
 * threads, and a flood of new threads must not cost that for each of them.
 */
static bool locks_threads_has_room(struct threads *t, size_t bytes, bool virtual, uint64_t now_ns)
{
	static const enum pressure pressures[] = { OLD, ENDED };

	uint64_t slice = now_ns / LOCKS_SLICE_NS;

	if (virtual && t->n_virtual >= LOCKS_VIRTUAL_MAX && t->swept_virtual < slice) {
		t->swept_virtual = slice;
		locks_threads_sweep(t, VIRTUAL, now_ns);
	}
	if (virtual && t->n_virtual >= LOCKS_VIRTUAL_MAX)
		return false;
	if (t->n < LOCKS_THREADS_MAX && t->bytes + bytes <= LOCKS_THREAD_BYTES_MAX)
		return true;
	if (t->swept >= slice)
		return false;
	t->swept = slice;
	for (size_t i = 0; i < ARRAY_SIZE(pressures); i++) {
		locks_threads_sweep(t, pressures[i], now_ns);
		if (t->n < LOCKS_THREADS_MAX * 3 / 4 &&
		    t->bytes + bytes <= LOCKS_THREAD_BYTES_MAX / 4 * 3)
			break;
	}
	return t->n < LOCKS_THREADS_MAX && t->bytes + bytes <= LOCKS_THREAD_BYTES_MAX;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

struct thread *threads_get(struct threads *t, uint32_t tid, uint64_t now_ns)
{
	struct thread *thread = threads_find(t, tid), **bucket;
	bool virtual = tid >= WIRE_VIRTUAL_TID;

	if (thread) {
		thread->heard_ns = now_ns;
		return thread;
	}
	if (!tid)
		return &t->other;
	thread = locks_threads_has_room(t, sizeof(*thread), virtual, now_ns)
			 ? calloc(1, sizeof(*thread))
			 : NULL;
	if (!thread) {
		t->refused++;
		return &t->other;
	}
	thread->tid = tid;
	thread->flags = virtual ? WIRE_THREAD_VIRTUAL : 0;
	thread->heard_ns = now_ns;
	thread->epoch = t->epoch;
	bucket = locks_threads_bucket_of(t, tid);
	thread->next = *bucket;
	*bucket = thread;
	t->n++;
	t->n_virtual += virtual;
	t->bytes += sizeof(*thread);
	return thread;
}

/* Another thread has the number now: the ended one keeps its times, but no number. */
static void locks_threads_retire(struct threads *t, struct thread *thread)
{
	struct thread **link = locks_threads_bucket_of(t, thread->tid);

	while (*link != thread)
		link = &(*link)->next;
	*link = thread->next;
	thread->retired = true;
	thread->next = t->retired;
	t->retired = thread;
}

static void set_name(struct threads *t, struct thread *thread, const char *name, uint64_t now_ns)
{
	size_t bytes = strlen(name) + 1;
	char *copy;

	if (thread->name && strcmp(thread->name, name) == 0)
		return;
	t->held = thread;
	copy = locks_threads_has_room(t, bytes, false, now_ns) ? strdup(name) : NULL;
	t->held = NULL;
	if (!copy)
		return;
	t->bytes += bytes - (thread->name ? strlen(thread->name) + 1 : 0);
	free(thread->name);
	thread->name = copy;
}

void threads_reported(struct threads *t, const struct wire_thread *w, const char *name,
		      uint64_t now_ns)
{
	struct thread *thread = w->tid ? threads_find(t, w->tid) : NULL;

	if (w->flags & WIRE_THREAD_ENDED) {
		if (thread)
			thread->flags |= WIRE_THREAD_ENDED;
		return;
	}
	if (thread && thread->flags & WIRE_THREAD_ENDED)
		locks_threads_retire(t, thread);
	thread = threads_get(t, w->tid, now_ns);
	if (thread == &t->other)
		return;
	thread->flags = w->flags | (w->tid >= WIRE_VIRTUAL_TID ? WIRE_THREAD_VIRTUAL : 0);
	thread->java_id = w->java_id;
	set_name(t, thread, name, now_ns);
}

void threads_end_all(struct threads *t)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct thread *thread = t->buckets[i]; thread; thread = thread->next)
			thread->flags |= WIRE_THREAD_ENDED;
}

void threads_each(const struct threads *t,
		  void (*each)(void *userdata, const struct thread *thread), void *userdata)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct thread *thread = t->buckets[i]; thread; thread = thread->next)
			each(userdata, thread);
	for (const struct thread *thread = t->retired; thread; thread = thread->next)
		each(userdata, thread);
}

/* ---- times ----------------------------------------------------------------------------------- */

static uint32_t locks_threads_add_us(uint32_t a, uint64_t ns)
{
	uint64_t us = (ns + 500) / 1000;

	return us > UINT32_MAX - a ? UINT32_MAX : a + (uint32_t)us;
}

/* The times of @slice, which are 0 for slices after the newest one so far; NULL = it is too old. */
static struct times *locks_threads_times_at(struct thread *thread, uint64_t slice)
{
	if (slice > thread->slice) {
		uint64_t n = slice - thread->slice;

		for (uint64_t i = 0; i < n && i < thread->n_times; i++)
			thread->times[(slice - i) % thread->n_times] = (struct times){ 0 };
		thread->slice = slice;
	}
	if (thread->slice - slice >= thread->n_times)
		return NULL;
	if (slice < thread->first)
		thread->first = slice;
	return &thread->times[slice % thread->n_times];
}

/* How many slices to allocate so that @slice has room. Most threads live for seconds only. */
static uint32_t times_for(const struct thread *thread, uint64_t slice)
{
	uint64_t newest = slice > thread->slice ? slice : thread->slice;
	uint64_t oldest = slice < thread->first ? slice : thread->first;

	if (!thread->n_times)
		return 8;
	if (newest - slice >= LOCKS_SLICES)
		return thread->n_times; /* too old: it is not counted */
	return newest - oldest < 8 ? 8 : newest - oldest < 32 ? 32 : LOCKS_SLICES;
}

static struct thread *with_times(struct threads *t, struct thread *thread, uint64_t slice,
				 uint64_t now_ns)
{
	uint32_t n = times_for(thread, slice);
	struct times *times;

	if (n <= thread->n_times)
		return thread;
	t->held = thread;
	times = locks_threads_has_room(t, n * sizeof(*times), false, now_ns)
			? calloc(n, sizeof(*times))
			: NULL;
	t->held = NULL;
	if (!times) {
		t->refused++;
		return &t->other;
	}
	if (!thread->n_times)
		thread->slice = thread->first = slice;
	for (uint64_t s = thread->first; thread->n_times && s <= thread->slice; s++)
		times[s % n] = thread->times[s % thread->n_times];
	free(thread->times);
	thread->times = times;
	t->bytes += (n - thread->n_times) * sizeof(*times);
	thread->n_times = n;
	return thread;
}

void threads_book(struct threads *t, struct thread *thread, enum times_of what, uint64_t at_ns,
		  uint64_t ns, uint64_t now_ns)
{
	struct times *times;
	uint32_t *field;

	thread = with_times(t, thread, at_ns / LOCKS_SLICE_NS, now_ns);
	times = locks_threads_times_at(thread, at_ns / LOCKS_SLICE_NS);
	if (!times)
		return;
	field = what == TIMES_CPU    ? &times->cpu_us
		: what == TIMES_WAIT ? &times->wait_us
				     : &times->idle_us;
	*field = locks_threads_add_us(*field, ns);
}

void threads_spend(struct threads *t, struct thread *thread, enum times_of what, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t now_ns)
{
	uint64_t oldest = now_ns / LOCKS_SLICE_NS;

	oldest = oldest < LOCKS_SLICES ? 0 : oldest - LOCKS_SLICES + 1;
	if (begin_ns / LOCKS_SLICE_NS < oldest)
		begin_ns = oldest * LOCKS_SLICE_NS;
	while (begin_ns < end_ns) {
		uint64_t slice_end = (begin_ns / LOCKS_SLICE_NS + 1) * LOCKS_SLICE_NS;
		uint64_t until = slice_end < end_ns ? slice_end : end_ns;

		threads_book(t, thread, what, begin_ns, until - begin_ns, now_ns);
		begin_ns = until;
	}
}

void thread_times(const struct thread *t, uint64_t first, uint64_t last, uint64_t ret[3])
{
	ret[TIMES_CPU] = ret[TIMES_WAIT] = ret[TIMES_IDLE] = 0;
	if (!t->n_times)
		return;
	if (last > t->slice)
		last = t->slice;
	if (first + t->n_times <= t->slice)
		first = t->slice - t->n_times + 1;
	for (uint64_t s = first; s <= last; s++) {
		const struct times *times = &t->times[s % t->n_times];

		ret[TIMES_CPU] += times->cpu_us * 1000ull;
		ret[TIMES_WAIT] += times->wait_us * 1000ull;
		ret[TIMES_IDLE] += times->idle_us * 1000ull;
	}
}

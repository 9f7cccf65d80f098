/*
 * See locks_priv.h: open waits, in a hash table. A thread waits for one thing at a time, so its
 * number is the key; where several threads share a number, the begin of the wait is part of the
 * key. Each function looks at one chain only, whatever numbers the target makes up.
 */
#include "daemon/locks/locks_priv.h"

#include <errno.h>

#define BUCKETS_FIRST 64u /* a power of two; doubled as waits are added */

int opens_init(struct opens *o)
{
	o->n_buckets = BUCKETS_FIRST;
	o->buckets = calloc(o->n_buckets, sizeof(struct open_wait *));
	return o->buckets ? 0 : -ENOMEM;
}

static bool is_many(uint32_t tid)
{
	return tid == WIRE_VIRTUAL_TID;
}

static struct open_wait **locks_open_bucket_of(const struct opens *o, uint32_t tid,
					       uint64_t begin_ns)
{
	uint32_t hash = locks_hash(tid, o->seed);

	if (is_many(tid))
		hash = locks_hash(begin_ns ^ hash, o->seed);
	return &o->buckets[hash & (o->n_buckets - 1)];
}

static bool locks_open_is_it(const struct open_wait *w, uint32_t tid, uint64_t begin_ns)
{
	return w->wait.tid == tid && (!is_many(tid) || w->key_ns == begin_ns);
}

/* The link to the wait, or the NULL at the end of its chain. */
static struct open_wait **locks_open_find(const struct opens *o, uint32_t tid, uint64_t begin_ns)
{
	struct open_wait **link = locks_open_bucket_of(o, tid, begin_ns);

	while (*link && !locks_open_is_it(*link, tid, begin_ns))
		link = &(*link)->next;
	return link;
}

static void unlink_wait(struct opens *o, struct open_wait **link)
{
	struct open_wait *w = *link;

	*link = w->next;
	free(w);
	o->n--;
}

void opens_clear(struct opens *o)
{
	for (uint32_t i = 0; o->n && i < o->n_buckets; i++)
		while (o->buckets[i])
			unlink_wait(o, &o->buckets[i]);
}

void opens_deinit(struct opens *o)
{
	if (o->buckets)
		opens_clear(o);
	free(o->buckets);
	o->buckets = NULL;
}

size_t opens_bytes(const struct opens *o)
{
	return o->n_buckets * sizeof(*o->buckets) + o->n * sizeof(struct open_wait);
}

/* Doubles the buckets. Without memory the chains grow instead. */
static void locks_open_grow(struct opens *o)
{
	struct opens bigger = *o;

	bigger.n_buckets = 2 * o->n_buckets;
	bigger.buckets = calloc(bigger.n_buckets, sizeof(*bigger.buckets));
	if (!bigger.buckets)
		return;
	for (uint32_t i = 0; i < o->n_buckets; i++)
		while (o->buckets[i]) {
			struct open_wait *w = o->buckets[i];
			struct open_wait **bucket =
				locks_open_bucket_of(&bigger, w->wait.tid, w->key_ns);

			o->buckets[i] = w->next;
			w->next = *bucket;
			*bucket = w;
		}
	free(o->buckets);
	*o = bigger;
}

struct locks_open opens_wait(const struct opens *o, const struct open_wait *w)
{
	struct locks_open wait = w->wait;

	if (w->epoch != o->epoch)
		wait.node = wait.owner_node = 0;
	return wait;
}

/* Does the entry take this wait: the same, or a later one that replaces it? An earlier one comes
 * too late. */
static bool locks_open_takes(struct open_wait *w, uint64_t begin_ns)
{
	if (begin_ns < w->key_ns)
		return false;
	if (begin_ns == w->key_ns)
		return true;
	*w = (struct open_wait){ .wait.tid = w->wait.tid, .key_ns = begin_ns, .next = w->next };
	return true;
}

struct open_wait *opens_put(struct opens *o, uint32_t tid, uint64_t begin_ns)
{
	struct open_wait *w = *locks_open_find(o, tid, begin_ns), **bucket;

	if (w && !locks_open_takes(w, begin_ns))
		return NULL;
	if (!w) {
		w = o->n < LOCKS_OPEN_MAX ? calloc(1, sizeof(*w)) : NULL;
		if (!w) {
			o->refused++;
			return NULL;
		}
		if (o->n >= o->n_buckets)
			locks_open_grow(o);
		w->wait.tid = tid;
		w->key_ns = begin_ns;
		bucket = locks_open_bucket_of(o, tid, begin_ns);
		w->next = *bucket;
		*bucket = w;
		o->n++;
	}
	w->epoch = o->epoch;
	return w;
}

uint32_t opens_owner_node(const struct opens *o, uint32_t tid, uint64_t begin_ns)
{
	const struct open_wait *w = *locks_open_find(o, tid, begin_ns);

	return w && w->key_ns == begin_ns && w->epoch == o->epoch ? w->wait.owner_node : 0;
}

void opens_end(struct opens *o, uint32_t tid, uint64_t begin_ns)
{
	struct open_wait **link = locks_open_find(o, tid, begin_ns);

	if (*link && (*link)->key_ns <= begin_ns)
		unlink_wait(o, link);
}

void opens_end_thread(struct opens *o, uint32_t tid)
{
	struct open_wait **link = is_many(tid) ? NULL : locks_open_find(o, tid, 0);

	if (link && *link)
		unlink_wait(o, link);
}

const struct open_wait *opens_of(const struct opens *o, uint32_t tid)
{
	return is_many(tid) ? NULL : *locks_open_find(o, tid, 0);
}

uint32_t opens_each(const struct opens *o, void (*each)(void *userdata, const struct open_wait *w),
		    void *userdata)
{
	for (uint32_t i = 0; o->n && i < o->n_buckets; i++)
		for (const struct open_wait *w = o->buckets[i]; w; w = w->next)
			each(userdata, w);
	return o->n;
}

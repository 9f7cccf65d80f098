/*
 * See waits.h. The table: keys in lines of eight, so that a look at a line is one load from memory;
 * a few lines serve most JVMs, the larger parts of the table are touched when the ones before are
 * full. One thread fills and clears a place, the agent's own only copies: between two waits at a
 * place begin_ns is 0, so a copy with the same begin before and after is whole.
 *
 * The table's memory stays mapped for ever, given back to the kernel: a thread that comes late
 * finds zeros.
 */
#include "agent/events/waits.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/events/open.h"
#include "agent/events/virtual_name.h"

#define LINE	    8u /* keys of one cache line */
#define PART_SMALL  (WAITS_MAX / 32)
#define PART_MIDDLE (WAITS_MAX / 4)
#define SHARDS	    16u

struct table {
	uint64_t keys[WAITS_MAX]; /* 0 = free */
	struct wait waits[WAITS_MAX];
};

static struct table *table;
static uint32_t used; /* places that were in use before here; grows by parts */

/* Counters that many threads add to at once: each has its own line most of the time. */
static struct {
	uint64_t short_waits, short_ns, unpaired;
	uint64_t pad[5];
} shards[SHARDS] __attribute__((aligned(64)));

/* ---- places ---- */

/* The table in three parts, each used when the lines of a key in the one before are full. */
static const struct part {
	uint32_t first, end; /* places */
	uint32_t lines; /* in which a key may be, one behind the other */
} parts[] = {
	{ 0, PART_SMALL, 2 },
	{ PART_SMALL, PART_MIDDLE, 2 },
	{ PART_MIDDLE, WAITS_MAX, 4 },
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32);
}

/* The @i-th line of a key in a part: its first place. */
static uint32_t line_of(const struct part *p, uint32_t hash, uint32_t i)
{
	return p->first + (hash + i) % ((p->end - p->first) / LINE) * LINE;
}

static int32_t find_in(const uint64_t *keys, uint32_t first, uint64_t key)
{
	for (uint32_t k = first; k < first + LINE; k++)
		if (__atomic_load_n(&keys[k], __ATOMIC_ACQUIRE) == key)
			return (int32_t)k;
	return -1;
}

/* The place of @key, or -1. */
static int32_t find(const struct table *t, uint64_t key)
{
	uint32_t hash = hash_of(key), limit = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (const struct part *p = parts; p < parts + PARTS && p->end <= limit; p++)
		for (uint32_t i = 0; i < p->lines; i++) {
			int32_t place = find_in(t->keys, line_of(p, hash, i), key);

			if (place >= 0)
				return place;
		}
	return -1;
}

static int32_t claim_in(uint64_t *keys, uint32_t first, uint64_t key)
{
	for (uint32_t k = first; k < first + LINE; k++) {
		uint64_t none = 0;

		if (__atomic_load_n(&keys[k], __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&keys[k], &none, key, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return (int32_t)k;
	}
	return -1;
}

static void now_used(uint32_t end)
{
	uint32_t seen = __atomic_load_n(&used, __ATOMIC_RELAXED);

	while (seen < end && !__atomic_compare_exchange_n(&used, &seen, end, false,
							  __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static int32_t claim(struct table *t, uint64_t key)
{
	uint32_t hash = hash_of(key);

	for (const struct part *p = parts; p < parts + PARTS; p++)
		for (uint32_t i = 0; i < p->lines; i++) {
			int32_t place = claim_in(t->keys, line_of(p, hash, i), key);

			if (place >= 0) {
				now_used(p->end);
				return place;
			}
		}
	return -1;
}

static void release(struct table *t, uint32_t place)
{
	__atomic_store_n(&t->waits[place].begin_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&t->keys[place], 0, __ATOMIC_RELEASE);
}

/* ---- begin and end ---- */

static int32_t enter(struct table *t, const struct wait *from)
{
	int32_t place = find(t, from->key); /* of a wait whose end was not told */
	struct wait *w;

	if (place >= 0)
		__atomic_store_n(&t->waits[place].begin_ns, 0, __ATOMIC_RELEASE);
	else
		place = claim(t, from->key);
	if (place < 0)
		return -1; /* its end is counted as unpaired */
	w = &t->waits[place];
	__atomic_thread_fence(__ATOMIC_RELEASE);
	w->java_thread = from->java_thread;
	w->key = from->key;
	w->lock = from->lock;
	w->number = from->number;
	w->how = from->how;
	w->flags = from->flags;
	__atomic_store_n(&w->begin_ns, mono_ns(), __ATOMIC_RELEASE);
	return place;
}

void wait_begin(uint64_t java_thread, uint64_t key, enum wire_wait how, uint8_t flags,
		const struct wait_lock *lock)
{
	struct wait w = {
		.java_thread = java_thread,
		.key = key,
		.lock = *lock,
		.how = (uint8_t)how,
		.flags = flags,
	};
	struct table *t = table;

	if (!events_on(WIRE_EVENT_LOCK) || !t || !key)
		return;
	w.number = virtual_number(java_thread);
	(void)enter(t, &w);
}

static void send(uint64_t java_thread, const struct wait *w, uint64_t duration_ns, uint32_t place)
{
	struct ring_sample head = {
		.mono_ns = w->begin_ns,
		.weight = duration_ns,
		.class_handle = w->lock.class_handle,
		.identity = w->lock.identity,
		.owner_tid = w->lock.owner_tid,
		.waker_tid = 0,
		.event = WIRE_EVENT_LOCK,
		.wait = w->how,
		.flags = w->flags,
		.place = place,
	};

	(void)events_push(&head, java_thread);
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

void wait_end(uint64_t java_thread, uint64_t key, enum wire_wait how,
	      void (*look)(void *context, struct wait_lock *lock), void *context)
{
	struct table *t = table;
	uint32_t shard = hash_of(java_thread) % SHARDS;
	uint64_t duration_ns;
	struct wait w;
	int32_t place;

	if (!events_on(WIRE_EVENT_LOCK) || !t || !key)
		return;
	place = find(t, key);
	w.begin_ns = 0;
	if (place >= 0)
		w = t->waits[place];
	if (!w.begin_ns || w.how != how) {
		add(&shards[shard].unpaired, 1);
		if (place >= 0)
			release(t, (uint32_t)place);
		return;
	}
	duration_ns = mono_ns() - w.begin_ns;
	if (duration_ns < events.lock_min_ns) {
		release(t, (uint32_t)place);
		add(&shards[shard].short_waits, 1);
		add(&shards[shard].short_ns, duration_ns);
		return;
	}
	if (look)
		look(context, &w.lock);
	send(java_thread, &w, duration_ns, (uint32_t)place);
	release(t, (uint32_t)place); /* last: until then it is not missed */
}

void waits_counts(uint64_t *ret_short, uint64_t *ret_short_ns, uint64_t *ret_unpaired)
{
	*ret_short = *ret_short_ns = *ret_unpaired = 0;
	for (uint32_t i = 0; i < SHARDS; i++) {
		*ret_short += __atomic_load_n(&shards[i].short_waits, __ATOMIC_RELAXED);
		*ret_short_ns += __atomic_load_n(&shards[i].short_ns, __ATOMIC_RELAXED);
		*ret_unpaired += __atomic_load_n(&shards[i].unpaired, __ATOMIC_RELAXED);
	}
}

/* ---- the agent's thread ---- */

bool waits_copy(uint32_t i, struct wait *ret)
{
	const struct wait *w = waits_at(i);

	if (!w)
		return false;
	ret->begin_ns = __atomic_load_n(&w->begin_ns, __ATOMIC_ACQUIRE);
	if (!ret->begin_ns)
		return false;
	*ret = *w;
	return __atomic_load_n(&table->keys[i], __ATOMIC_ACQUIRE) == ret->key &&
	       waits_is_same(i, ret);
}

bool waits_is_same(uint32_t i, const struct wait *copy)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&table->waits[i].begin_ns, __ATOMIC_ACQUIRE) == copy->begin_ns;
}

int32_t waits_find(uint64_t key)
{
	return table ? find(table, key) : -1;
}

int32_t waits_add(uint64_t java_thread, uint64_t key, enum wire_wait how,
		  const struct wait_lock *lock)
{
	struct wait w = {
		.java_thread = java_thread,
		.key = key,
		.lock = *lock,
		.how = (uint8_t)how,
	};

	return table && find(table, key) < 0 ? enter(table, &w) : -1;
}

void waits_remove(uint32_t i, uint64_t begin_ns)
{
	if (__atomic_compare_exchange_n(&table->waits[i].begin_ns, &begin_ns, 0, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_store_n(&table->keys[i], 0, __ATOMIC_RELEASE);
}

struct wait *waits_at(uint32_t i)
{
	return table ? &table->waits[i] : NULL;
}

uint32_t waits_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_ACQUIRE);
}

uint64_t waits_bytes(void)
{
	return (uint64_t)used * (sizeof(struct wait) + sizeof(uint64_t));
}

static void empty(void)
{
	open_waits_forget();
	__atomic_store_n(&used, 0, __ATOMIC_RELEASE);
	(void)syscall(SYS_madvise, table, sizeof(*table), MADV_DONTNEED);
}

static int begin(const struct wire_start *start, const char **note)
{
	void *p;

	(void)start;
	if (table)
		return 0;
	p = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		*note = "no memory for the table of waits";
		return -ENOMEM;
	}
	__atomic_store_n(&table, p, __ATOMIC_RELEASE);
	return 0;
}

static void end(void)
{
	empty();
}

const struct events_source waits_source = {
	.step = "waits",
	.event = WIRE_EVENT_LOCK,
	.begin = begin,
	.end = end,
	.tick = open_waits_look,
};

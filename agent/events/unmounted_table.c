/*
 * See unmounted_table.h. Four entries share a cache line, so that one load from memory checks four.
 * The table has three parts, like the one in waits.c: the memory of a larger part is touched only
 * when the lines that an id has in the smaller ones are full.
 */
#include "agent/events/unmounted_table.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/clock.h"

#define LINE	 4u
#define COUNTERS 64u

struct line {
	struct {
		uint64_t id; /* 0 = free */
		uint64_t begin_ns;
	} at[LINE];
};
_Static_assert(sizeof(struct line) == 64, "a line of the cache");

static const struct part {
	uint32_t first, end; /* lines */
	uint32_t tries; /* consecutive lines in which an id may be */
} parts[] = {
	{ 0, 512, 2 },
	{ 512, 8192, 2 },
	{ 8192, 65536, 4 },
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))
#define LINES 65536u

static struct line *table;
static uint32_t used; /* parts that have been in use */
static uint64_t since_ns; /* entries from before are another session's */

/* Each carrier mostly has a line of counters for itself. */
static struct counter {
	uint64_t short_waits, short_ns, long_waits, unseen;
} __attribute__((aligned(64))) counters[COUNTERS];

static struct line *unmounted_line(const struct part *p, uint64_t id, uint32_t i)
{
	uint32_t hash = (uint32_t)(id * 0x9e3779b97f4a7c15ull >> 32), n = p->end - p->first;
	uint32_t line = (uint32_t)((uint64_t)hash * n >> 32) + i;

	return &table[p->first + (line < n ? line : line - n)];
}

static struct counter *unmounted_counter(uint64_t any)
{
	return &counters[any * 0x9e3779b97f4a7c15ull >> 58];
}

/* ---- a virtual thread's own ---- */

static bool unmounted_claim(struct line *line, uint64_t id, uint64_t now_ns)
{
	for (uint32_t k = 0; k < LINE; k++) {
		uint64_t none = 0;

		if (__atomic_load_n(&line->at[k].id, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&line->at[k].id, &none, id, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			__atomic_store_n(&line->at[k].begin_ns, now_ns, __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}

static bool unmounted_claim_in(const struct part *p, uint64_t id, uint64_t now_ns)
{
	for (uint32_t i = 0; i < p->tries; i++)
		if (unmounted_claim(unmounted_line(p, id, i), id, now_ns))
			return true;
	return false;
}

static void unmounted_use(uint32_t n)
{
	uint32_t seen = __atomic_load_n(&used, __ATOMIC_RELAXED);

	while (seen < n && !__atomic_compare_exchange_n(&used, &seen, n, false, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED))
		;
}

/* The largest part in use has the most room, so it comes first. */
void unmounted_add(uint64_t id, uint64_t now_ns)
{
	uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	if (!__atomic_load_n(&table, __ATOMIC_ACQUIRE) || !id)
		return;
	for (uint32_t p = n; p-- > 0;)
		if (unmounted_claim_in(&parts[p], id, now_ns))
			return;
	for (; n < PARTS; n++) {
		/* before the claim: the thread may mount on another CPU right after it */
		unmounted_use(n + 1);
		if (unmounted_claim_in(&parts[n], id, now_ns))
			return;
	}
	__atomic_fetch_add(&unmounted_counter(id)->unseen, 1, __ATOMIC_RELAXED);
}

static uint64_t unmounted_take(struct line *line, uint64_t id)
{
	uint64_t begin_ns;

	for (uint32_t k = 0; k < LINE; k++) {
		if (__atomic_load_n(&line->at[k].id, __ATOMIC_ACQUIRE) != id)
			continue;
		begin_ns = __atomic_load_n(&line->at[k].begin_ns, __ATOMIC_RELAXED);
		__atomic_store_n(&line->at[k].id, 0, __ATOMIC_RELEASE);
		return begin_ns;
	}
	return 0;
}

uint64_t unmounted_remove(uint64_t id)
{
	uint64_t begin_ns = 0;

	if (!__atomic_load_n(&table, __ATOMIC_ACQUIRE) || !id)
		return 0;
	for (uint32_t p = __atomic_load_n(&used, __ATOMIC_ACQUIRE); !begin_ns && p-- > 0;)
		for (uint32_t i = 0; !begin_ns && i < parts[p].tries; i++)
			begin_ns = unmounted_take(unmounted_line(&parts[p], id, i), id);
	return begin_ns >= __atomic_load_n(&since_ns, __ATOMIC_RELAXED) ? begin_ns : 0;
}

void unmounted_count_short(uint64_t carrier, uint64_t duration_ns)
{
	struct counter *c = unmounted_counter(carrier);

	__atomic_fetch_add(&c->short_waits, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->short_ns, duration_ns, __ATOMIC_RELAXED);
}

void unmounted_count_long(uint64_t carrier)
{
	__atomic_fetch_add(&unmounted_counter(carrier)->long_waits, 1, __ATOMIC_RELAXED);
}

/* ---- the agent's thread ---- */

void unmounted_table_counts(struct unmounted_counts *ret)
{
	*ret = (struct unmounted_counts){ 0 };
	for (uint32_t i = 0; i < COUNTERS; i++) {
		ret->short_waits += __atomic_load_n(&counters[i].short_waits, __ATOMIC_RELAXED);
		ret->short_ns += __atomic_load_n(&counters[i].short_ns, __ATOMIC_RELAXED);
		ret->long_waits += __atomic_load_n(&counters[i].long_waits, __ATOMIC_RELAXED);
		ret->unseen += __atomic_load_n(&counters[i].unseen, __ATOMIC_RELAXED);
	}
}

void unmounted_table_renew(void)
{
	__atomic_store_n(&since_ns, mono_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&used, 0, __ATOMIC_RELEASE);
	(void)syscall(SYS_madvise, table, LINES * sizeof(*table), MADV_DONTNEED);
}

int unmounted_table_begin(void)
{
	void *p;

	if (!table) {
		p = mmap(NULL, LINES * sizeof(*table), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return -ENOMEM;
		__atomic_store_n(&table, p, __ATOMIC_RELEASE);
	}
	unmounted_table_renew();
	return 0;
}

void unmounted_table_end(void)
{
	if (table)
		unmounted_table_renew();
}

uint64_t unmounted_table_bytes(void)
{
	uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	return n ? parts[n - 1].end * sizeof(*table) : 0;
}

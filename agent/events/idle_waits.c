/*
 * See idle_waits.h. Each waiting thread has a slot in the table, which no other thread writes to,
 * with one exception: a slot that was not used for a minute is given to a thread that needs one. If
 * its owner still lives and wakes at that moment, a wait or two are counted for the wrong thread;
 * the totals stay exact.
 */
#include "agent/events/idle_waits.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/base/events.h"
#include "agent/events/push.h"
#include "agent/walker/walker.h"

/* threads; idle waits of further threads are counted, and each is reported by itself */
#define SLOTS	  1024u
#define PROBES	  8u
#define SITES	  2u /* kept for each thread */
#define UNUSED_NS (60 * NS_PER_S)
#define REPORT_NS NS_PER_S /* shortest time between two reports of one thread's sums */
#define PACE_NS	  (NS_PER_S / 50) /* shortest time between two reports of any threads */
#define BURST	  64u /* long waits that are reported at once: a pool's threads may end together */

/* Two cache lines. */
struct idler {
	uint64_t java_thread; /* 0 = free */
	uint64_t seen_ns; /* the end of its last wait */
	uint64_t waits, ns; /* not reported yet */
	uint64_t reported_ns; /* when its sum was reported last */
	/* waits that were not idle and below the threshold; the agent's thread takes them away */
	uint32_t short_us[WIRE_WAIT_COUNT];
	struct walk_mark sites[SITES]; /* sp 0 = none */
	uint8_t is_idle[SITES];
	uint8_t next; /* the site to be replaced next */
	uint16_t version; /* idle_version() of is_idle */
} __attribute__((aligned(128)));
_Static_assert(sizeof(struct idler) == 128, "two lines");

/* Counters of all threads, spread over cache lines so that few threads share one. */
#define LANES 16u
struct lane {
	uint64_t waits, ns;
} __attribute__((aligned(64)));

static struct idler *table;
static uint32_t n_slots; /* number of slots that have been in use */
static uint64_t next_report_ns, next_alone_ns;
static struct lane lanes[LANES];

static uint32_t idle_waits_hash_of(uint64_t java_thread)
{
	return (uint32_t)((java_thread >> 4) * 0x9e3779b97f4a7c15ull >> 40);
}

/* ---- slots ---- */

static struct idler *idle_waits_find(uint64_t java_thread)
{
	struct idler *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; t && i < PROBES; i++) {
		struct idler *p = &t[(idle_waits_hash_of(java_thread) + i) % SLOTS];

		if (__atomic_load_n(&p->java_thread, __ATOMIC_RELAXED) == java_thread)
			return p;
	}
	return NULL;
}

static bool idle_waits_is_free(const struct idler *p, uint64_t owner, uint64_t now_ns)
{
	return !owner || now_ns > __atomic_load_n(&p->seen_ns, __ATOMIC_RELAXED) + UNUSED_NS;
}

/* NULL = no slot is free. */
static struct idler *idle_waits_claim(uint64_t java_thread, uint64_t now_ns)
{
	struct idler *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; t && i < PROBES; i++) {
		struct idler *p = &t[(idle_waits_hash_of(java_thread) + i) % SLOTS];
		uint64_t owner = __atomic_load_n(&p->java_thread, __ATOMIC_RELAXED);

		if (!idle_waits_is_free(p, owner, now_ns) ||
		    !__atomic_compare_exchange_n(&p->java_thread, &owner, java_thread, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (!owner)
			__atomic_fetch_add(&n_slots, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&p->seen_ns, now_ns, __ATOMIC_RELAXED);
		p->waits = p->ns = p->reported_ns = 0;
		memset(p->short_us, 0, sizeof(p->short_us));
		memset(p->sites, 0, sizeof(p->sites));
		return p;
	}
	return NULL;
}

static struct idler *idle_waits_slot_of(uint64_t java_thread, uint64_t now_ns)
{
	struct idler *p = idle_waits_find(java_thread);

	return p ? p : idle_waits_claim(java_thread, now_ns);
}

/* ---- is it idle? ---- */

bool idle_wait_known(uint64_t java_thread, bool *ret_idle)
{
	const struct idler *p = idle_waits_find(java_thread);
	bool valid = p && p->version == idle_version();
	uint64_t sp = valid ? walk_anchor_sp_sig(java_thread) : 0;

	for (uint32_t i = 0; sp && i < SITES; i++) {
		const struct walk_mark *mark = &p->sites[i];

		if (mark->sp == sp && walk_mark_hash_sig(mark, java_thread) == mark->hash) {
			*ret_idle = p->is_idle[i];
			return true;
		}
	}
	return false;
}

/* A walk in progress, and what the frames so far show. */
struct idle_walk {
	struct walk walk;
	struct walk_mark mark;
	uint32_t seen, slots; /* frames read; slots in the mark */
	uint16_t version; /* idle_version() from before the walk */
	enum idle_sight sight;
	bool no_mark; /* two interpreted frames may differ in more than their return addresses */
};

static bool idle_waits_enough(struct walk *w, uint64_t sp)
{
	struct idle_walk *l =
		(struct idle_walk *)(void *)((char *)w - offsetof(struct idle_walk, walk));
	uint64_t slot = (sp - l->mark.sp) / 8 - 1;

	for (; l->seen < w->n && l->seen < IDLE_FRAMES_MAX && l->sight == IDLE_UNDECIDED;
	     l->seen++) {
		const struct walk_frame *f = &w->frames[l->seen];

		l->no_mark |= f->kind == WIRE_KIND_INTERPRETED;
		if (wire_kind_is_method(f->kind))
			l->sight = walker_method_idle(f->where);
	}
	if (l->sight != IDLE_UNDECIDED || l->seen == IDLE_FRAMES_MAX)
		return true;
	l->no_mark |= l->slots == WALK_MARK_SLOTS || slot > UINT16_MAX;
	if (!l->no_mark)
		l->mark.slots[l->slots++] = (uint16_t)slot;
	return false;
}

static void idle_waits_remember(uint64_t java_thread, struct idle_walk *l)
{
	struct idler *p = idle_waits_slot_of(java_thread, mono_ns());

	if (!p || l->no_mark || !l->mark.sp)
		return;
	if (p->version != l->version)
		memset(p->sites, 0, sizeof(p->sites));
	p->version = l->version;
	l->mark.hash = walk_mark_hash_sig(&l->mark, java_thread);
	p->next = (uint8_t)((p->next + 1u) % SITES);
	p->sites[p->next] = l->mark;
	p->is_idle[p->next] = l->sight == IDLE_YES;
}

bool idle_wait_classify(uint64_t java_thread)
{
	struct idle_walk l = { .mark.sp = walk_anchor_sp_sig(java_thread),
			       .version = idle_version() };
	int buffer = push_buffer(&l.walk.frames);

	if (buffer < 0)
		return false; /* the wait is reported, and the reader classifies it */
	walk_anchor_until_sig(&l.walk, java_thread, idle_waits_enough);
	(void)idle_waits_enough(&l.walk, 0); /* frames that the end of the stack added */
	push_buffer_done(buffer);
	idle_waits_remember(java_thread, &l);
	return l.sight == IDLE_YES;
}

/* ---- sums ---- */

/* true = no other thread is reporting now, and the pace allows it, with @burst reports at once
 * after a pause. */
static bool idle_may_report(uint64_t *next_ns, uint64_t burst, uint64_t now_ns)
{
	uint64_t next = __atomic_load_n(next_ns, __ATOMIC_RELAXED), saved_ns = burst * PACE_NS;
	uint64_t from = next + saved_ns > now_ns ? next : now_ns - saved_ns;

	return now_ns >= next && __atomic_compare_exchange_n(next_ns, &next, from + PACE_NS, false,
							     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void idle_waits_count(uint64_t java_thread, uint64_t ns)
{
	struct lane *lane = &lanes[idle_waits_hash_of(java_thread) % LANES];

	__atomic_fetch_add(&lane->waits, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lane->ns, ns, __ATOMIC_RELAXED);
}

bool idle_wait_count(uint64_t java_thread, uint64_t duration_ns, uint64_t now_ns,
		     struct idle_sum *ret)
{
	struct idler *p = java_thread ? idle_waits_slot_of(java_thread, now_ns) : NULL;

	idle_waits_count(java_thread, duration_ns);
	*ret = (struct idle_sum){ 1, duration_ns };
	if (p)
		__atomic_store_n(&p->seen_ns, now_ns, __ATOMIC_RELAXED);
	if (!p)
		return idle_may_report(&next_report_ns, 0, now_ns);
	if (duration_ns >= IDLE_ALONE_NS && idle_may_report(&next_alone_ns, BURST, now_ns))
		return true;
	p->waits++;
	p->ns += duration_ns;
	if (now_ns < p->reported_ns + REPORT_NS || !idle_may_report(&next_report_ns, 0, now_ns))
		return false;
	*ret = (struct idle_sum){ p->waits, p->ns };
	p->waits = p->ns = 0;
	p->reported_ns = now_ns;
	return true;
}

void idle_waits_counts(uint64_t *ret_waits, uint64_t *ret_ns)
{
	*ret_waits = *ret_ns = 0;
	for (uint32_t i = 0; i < LANES; i++) {
		*ret_waits += __atomic_load_n(&lanes[i].waits, __ATOMIC_RELAXED);
		*ret_ns += __atomic_load_n(&lanes[i].ns, __ATOMIC_RELAXED);
	}
}

void idle_waits_add_short(uint64_t java_thread, enum wire_wait how, uint64_t duration_ns,
			  uint64_t now_ns)
{
	struct idler *p = idle_waits_slot_of(java_thread, now_ns);

	if (!p)
		return;
	__atomic_store_n(&p->seen_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&p->short_us[how], (uint32_t)((duration_ns + 500) / 1000),
			   __ATOMIC_RELAXED);
}

/* ---- agent's thread ---- */

bool idle_waits_take_short(uint64_t java_thread, uint32_t ret_us[WIRE_WAIT_COUNT])
{
	struct idler *p = idle_waits_find(java_thread);
	bool any = false;

	for (unsigned i = 0; i < WIRE_WAIT_COUNT; i++) {
		ret_us[i] = p ? __atomic_exchange_n(&p->short_us[i], 0, __ATOMIC_RELAXED) : 0;
		any |= ret_us[i] != 0;
	}
	return any;
}

void idle_waits_halve_short(void)
{
	struct idler *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (!t || !__atomic_load_n(&n_slots, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < SLOTS; i++)
		for (unsigned k = 0; k < WIRE_WAIT_COUNT; k++) {
			uint32_t us = __atomic_load_n(&t[i].short_us[k], __ATOMIC_RELAXED);

			if (us) /* the thread may add to it meanwhile */
				__atomic_fetch_sub(&t[i].short_us[k], us - us / 2,
						   __ATOMIC_RELAXED);
		}
}

int idle_waits_begin(void)
{
	void *p;

	if (table)
		return 0;
	p = mmap(NULL, SLOTS * sizeof(*table), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	__atomic_store_n(&table, p, __ATOMIC_RELEASE);
	return 0;
}

void idle_waits_end(void)
{
	if (table)
		(void)syscall(SYS_madvise, table, SLOTS * sizeof(*table), MADV_DONTNEED);
	__atomic_store_n(&n_slots, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&next_report_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&next_alone_ns, 0, __ATOMIC_RELAXED);
}

/* Assumes that each slot in use is on a page of its own. */
uint64_t idle_waits_bytes(void)
{
	uint64_t bytes = 4096ull * __atomic_load_n(&n_slots, __ATOMIC_RELAXED);

	return bytes < SLOTS * sizeof(*table) ? bytes : SLOTS * sizeof(*table);
}

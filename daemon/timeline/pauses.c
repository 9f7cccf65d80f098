/* See pauses.h. */
#include "daemon/timeline/pauses.h"

#include <stdlib.h>

#define LET_GO_NS    500000ull /* after a safepoint its last thread goes on, at the latest */
#define PAUSES_FIRST 16 /* most JVMs have few */

void pauses_forget(struct pauses *p)
{
	free(p->list);
	*p = (struct pauses){ 0 };
}

/* Makes room for one more; false = no memory. */
static bool pauses_grow(struct pauses *p)
{
	uint32_t cap = p->cap ? 2 * p->cap : PAUSES_FIRST;
	struct pauses_one *list;

	_Static_assert(PAUSES_MAX % PAUSES_FIRST == 0, "doubling arrives at it");
	if (p->n < p->cap || p->cap == PAUSES_MAX)
		return true;
	list = realloc(p->list, cap * sizeof(*list));
	if (!list)
		return false;
	p->list = list;
	p->cap = cap;
	return true;
}

/* The @back-th from the newest; NULL = there is none. */
static const struct pauses_one *pauses_at(const struct pauses *p, uint32_t back)
{
	uint32_t kept = p->n < PAUSES_MAX ? p->n : PAUSES_MAX;

	return back < kept ? &p->list[(p->n - 1 - back) % PAUSES_MAX] : NULL;
}

bool pauses_add(struct pauses *p, const struct wire_pause *w)
{
	const struct pauses_one *last = pauses_at(p, 0);
	uint64_t skipped;

	if (w->kind == WIRE_PAUSE_NONE) {
		pauses_forget(p);
		p->known = true;
		p->number = w->number;
		p->since_ns = w->begin_ns;
		return false;
	}
	if (!p->known || w->number <= p->number || w->length_ns > UINT64_MAX - w->begin_ns ||
	    (last && w->begin_ns < last->end_ns))
		return false;
	if (!pauses_grow(p)) {
		pauses_forget(p);
		return false;
	}
	skipped = w->number - p->number - 1;
	p->list[p->n++ % PAUSES_MAX] = (struct pauses_one){
		.begin_ns = w->begin_ns,
		.end_ns = w->begin_ns + w->length_ns,
		.unseen = skipped < UINT32_MAX ? (uint32_t)skipped : UINT32_MAX,
		.collects = w->kind == WIRE_PAUSE_GC,
	};
	if (p->n == 2 * PAUSES_MAX)
		p->n = PAUSES_MAX;
	p->number = w->number;
	p->seen++;
	p->unseen += skipped;
	return true;
}

static uint64_t pauses_common(const struct pauses_one *o, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from = o->begin_ns > begin_ns ? o->begin_ns : begin_ns;
	uint64_t to = o->end_ns < end_ns ? o->end_ns : end_ns;

	return from < to ? to - from : 0;
}

/* The part of that time in which there may have been safepoints that nobody saw: between the one
 * at @back and the one before it. */
static uint64_t pauses_gap(const struct pauses *p, uint32_t back, uint64_t begin_ns,
			   uint64_t end_ns)
{
	const struct pauses_one *o = pauses_at(p, back), *before = pauses_at(p, back + 1);
	const struct pauses_one gap = { .begin_ns = before ? before->end_ns : p->since_ns,
					.end_ns = o->begin_ns };

	return o->unseen ? pauses_common(&gap, begin_ns, end_ns) : 0;
}

enum pauses_answer pauses_during(const struct pauses *p, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t of[2] = { 0 }, unknown_ns = 0;
	const struct pauses_one *o;
	uint32_t back = 0;

	if (!p->known || end_ns <= begin_ns)
		return PAUSES_UNKNOWN;
	for (; (o = pauses_at(p, back)) && o->end_ns > begin_ns; back++) {
		of[o->collects] += pauses_common(o, begin_ns, end_ns);
		unknown_ns += pauses_gap(p, back, begin_ns, end_ns);
	}
	if (2 * (of[0] + of[1]) > end_ns - begin_ns)
		return of[1] >= of[0] ? PAUSES_GC : PAUSES_SAFEPOINT;
	if (!o && p->n >= PAUSES_MAX) /* older pauses are no longer in the list */
		return PAUSES_UNKNOWN;
	if (p->since_ns > begin_ns)
		unknown_ns += (p->since_ns < end_ns ? p->since_ns : end_ns) - begin_ns;
	/* what nobody saw matters only if it could be the greater part */
	return unknown_ns && 2 * (of[0] + of[1] + unknown_ns) >= end_ns - begin_ns ? PAUSES_UNKNOWN
										   : PAUSES_NONE;
}

/* HotSpot 8 and 11 write down when a safepoint ended, and then let their threads go, one by one. */
static bool pauses_ends_with(const struct pauses_one *o, uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns <= o->end_ns ||
	       (end_ns - o->end_ns <= LET_GO_NS &&
		10 * pauses_common(o, begin_ns, end_ns) >= 9 * (end_ns - begin_ns));
}

enum pauses_answer pauses_around(const struct pauses *p, uint64_t begin_ns, uint64_t end_ns)
{
	const struct pauses_one *o;

	for (uint32_t back = 0; p->known && (o = pauses_at(p, back)) && o->end_ns > begin_ns; back++)
		if (o->begin_ns <= begin_ns && pauses_ends_with(o, begin_ns, end_ns))
			return o->collects ? PAUSES_GC : PAUSES_SAFEPOINT;
	return PAUSES_NONE;
}

uint64_t pauses_unseen(const struct pauses *p, uint64_t begin_ns, uint64_t end_ns)
{
	const struct pauses_one *o;
	uint64_t n = 0;

	for (uint32_t back = 0; (o = pauses_at(p, back)); back++) {
		const struct pauses_one *before = pauses_at(p, back + 1);
		uint64_t since = before ? before->end_ns : p->since_ns;

		if (o->begin_ns > begin_ns && since < end_ns)
			n += o->unseen;
	}
	return n;
}

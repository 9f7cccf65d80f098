/* See time_slices.h. Totals are compared in whole microseconds since their beginning, so that
 * rounding errors do not add up. */
#include "daemon/timeline/time_slices.h"

#include <string.h>

#define US	1000ull
#define REASONS TIME_LEDGER_REASONS

enum slice_kind {
	SLICE_OFF, /* the kernel's own reason; from = reason */
	SLICE_EXPLAINED, /* times off the CPU say so */
	SLICE_WAITED, /* the application's locks say so */
	SLICE_KINDS
};
/* Parts of each kind that a slice takes; what has no room keeps the kernel's own reason. */
static const uint8_t slice_most[SLICE_KINDS] = { REASONS, 20, 4 };
#define SLICE_GROWTH 4

/* ---- one slice ------------------------------------------------------------------------------- */

/* The slice of a moment; NULL = the moment is older than the ring. Numbers begin at 1. */
static struct time_slice *slice_at(const struct time_ring *r, uint64_t at_ns)
{
	uint64_t number = at_ns / r->slice_ns + 1;
	struct time_slice *s = &r->slices[number % r->n];

	if (s->number > number)
		return NULL;
	if (s->number != number)
		*s = (struct time_slice){ .number = number,
					  .parts = s->parts,
					  .cap_parts = s->cap_parts };
	return s;
}

static struct time_part *slice_find(const struct time_slice *s, enum slice_kind kind, uint8_t from,
				    uint8_t reason)
{
	for (uint32_t i = 0; i < s->n_parts; i++)
		if (s->parts[i].kind == kind && s->parts[i].from == from &&
		    s->parts[i].reason == reason)
			return &s->parts[i];
	return NULL;
}

static bool slice_grow(const struct time_ring *r, struct time_slice *s)
{
	size_t cap = (size_t)s->cap_parts + SLICE_GROWTH;
	struct time_part *p;

	if (s->n_parts < s->cap_parts)
		return true;
	p = realloc(s->parts, cap * sizeof(*p));
	if (!p)
		return false;
	s->parts = p;
	s->cap_parts = (uint8_t)cap;
	*r->bytes += SLICE_GROWTH * sizeof(*p);
	return true;
}

static void slice_add(const struct time_ring *r, struct time_slice *s, enum slice_kind kind,
		      uint8_t from, uint8_t reason, uint64_t us)
{
	struct time_part *p = slice_find(s, kind, from, reason);
	uint32_t n = 0;

	if (!p) {
		for (uint32_t i = 0; i < s->n_parts; i++)
			n += s->parts[i].kind == kind;
		if (n == slice_most[kind] || !slice_grow(r, s))
			return;
		p = &s->parts[s->n_parts++];
		*p = (struct time_part){ 0, (uint8_t)kind, from, reason };
	}
	p->us += (uint32_t)us;
}

/* Part 0 is the CPU, 1 the run queue, others are reasons. */
static uint64_t slice_part_us(const struct time_slice *s, uint32_t part)
{
	const struct time_part *p;

	if (part < 2)
		return part == 0 ? s->cpu_us : s->runqueue_us;
	p = slice_find(s, SLICE_OFF, (uint8_t)(part - 2), (uint8_t)(part - 2));
	return p ? p->us : 0;
}

/* @us may be negative, as a number modulo 2^32. */
static void slice_part_add(const struct time_ring *r, struct time_slice *s, uint32_t part,
			   uint32_t us)
{
	if (part < 2)
		*(part == 0 ? &s->cpu_us : &s->runqueue_us) += us;
	else if (us)
		slice_add(r, s, SLICE_OFF, (uint8_t)(part - 2), (uint8_t)(part - 2), us);
}

/* ---- a ring ---------------------------------------------------------------------------------- */

void time_ring_deinit(const struct time_ring *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		*r->bytes -= r->slices[i].cap_parts * sizeof(*r->slices[i].parts);
		free(r->slices[i].parts);
	}
}

uint64_t time_us_between(uint64_t before_ns, uint64_t now_ns)
{
	return now_ns / US - (before_ns < now_ns ? before_ns : now_ns) / US;
}

void time_ring_move(const struct time_ring *r, uint64_t at_ns, uint32_t from, uint32_t to,
		    uint64_t us)
{
	uint64_t number = at_ns / r->slice_ns + 1;

	for (uint32_t i = 0; i < r->n && i < number && us; i++) {
		struct time_slice *s = &r->slices[(number - i) % r->n];
		uint64_t has = s->number == number - i ? slice_part_us(s, from) : 0;
		uint32_t moved = (uint32_t)(has < us ? has : us);

		if (!moved)
			continue;
		slice_part_add(r, s, from, -moved);
		slice_part_add(r, s, to, moved);
		us -= moved;
	}
}

/* Moves @part of @whole of *@from to the part of @s. */
static uint32_t passed_take(uint64_t *from, uint64_t part, uint64_t whole)
{
	uint64_t us = part >= whole ? *from : *from * part / whole;

	*from -= us;
	return (uint32_t)us;
}

/* Moves @part of @whole of @p to the slice @s; NULL = it is lost. */
static void passed_give(const struct time_ring *r, struct time_passed *p, uint64_t part,
			uint64_t whole, struct time_slice *s)
{
	struct time_slice lost = { 0 };
	uint32_t us;

	s = s ? s : &lost;
	s->wall_us += passed_take(&p->wall, part, whole);
	s->cpu_us += passed_take(&p->cpu, part, whole);
	s->runqueue_us += passed_take(&p->runqueue, part, whole);
	for (uint32_t i = 0; i < REASONS; i++) {
		us = passed_take(&p->off[i], part, whole);
		if (s != &lost)
			slice_part_add(r, s, 2 + i, us);
	}
}

void time_ring_spread(const struct time_ring *r, struct time_passed p, uint64_t begin_ns,
		      uint64_t end_ns)
{
	if (end_ns - begin_ns > r->n * r->slice_ns) /* older than all slices */
		return;
	while (begin_ns < end_ns) {
		uint64_t next_ns = (begin_ns / r->slice_ns + 1) * r->slice_ns;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;

		passed_give(r, &p, until_ns - begin_ns, end_ns - begin_ns, slice_at(r, begin_ns));
		begin_ns = until_ns;
	}
}

/* What @why explains of [begin, end), a part of its span. */
static uint64_t reason_us(const struct time_reason *why, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t us = time_us_between(begin_ns, end_ns);

	if (!why->part_ns || why->part_ns >= why->end_ns - why->begin_ns)
		return us;
	return (uint64_t)((unsigned __int128)us * why->part_ns / (why->end_ns - why->begin_ns));
}

void time_ring_explain(const struct time_ring *r, const struct time_reason *why)
{
	uint64_t begin_ns = why->begin_ns;

	if (why->end_ns - begin_ns > r->n * r->slice_ns)
		begin_ns = why->end_ns - r->n * r->slice_ns;
	while (begin_ns < why->end_ns) {
		uint64_t next_ns = (begin_ns / r->slice_ns + 1) * r->slice_ns;
		uint64_t until_ns = next_ns < why->end_ns ? next_ns : why->end_ns;
		/* the totals for this slice may arrive after the reason */
		struct time_slice *s = slice_at(r, begin_ns);

		if (s)
			slice_add(r, s, why->is_wait ? SLICE_WAITED : SLICE_EXPLAINED, why->from,
				  why->reason, reason_us(why, begin_ns, until_ns));
		begin_ns = until_ns;
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

uint32_t time_sum_source(struct time_sum *sum, uint8_t from)
{
	for (uint32_t i = 0; i < sum->n_from; i++)
		if (sum->from[i] == from)
			return i;
	if (sum->n_from == TIME_SOURCES)
		return TIME_SOURCES;
	sum->from[sum->n_from] = from;
	return sum->n_from++;
}

static void sum_add_part(struct time_sum *sum, const struct time_part *p)
{
	uint64_t ns = p->us * US;

	if (p->kind == SLICE_OFF)
		sum->row.off_ns[p->reason] += ns;
	else if (p->kind == SLICE_EXPLAINED)
		sum->explained[time_sum_source(sum, p->from)][p->reason] += ns;
	else
		sum->waited[time_sum_source(sum, p->from)][p->reason] += ns;
}

void time_sum_add(struct time_sum *sum, const struct time_ring *r, uint64_t first, uint64_t last)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct time_slice *s = &r->slices[i];

		if (s->number < first || s->number > last)
			continue;
		sum->row.wall_ns += s->wall_us * US;
		sum->row.cpu_ns += s->cpu_us * US;
		sum->row.runqueue_ns += s->runqueue_us * US;
		for (uint32_t k = 0; k < s->n_parts; k++)
			sum_add_part(sum, &s->parts[k]);
	}
}

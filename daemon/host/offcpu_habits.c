/* See offcpu_habits.h. A thread's number decides its place, of which the last thread there has it:
 * there are more places as soon as two need the same one. */
#include "daemon/host/offcpu_habits.h"

#include <stdlib.h>

#define PLACES_MIN 256u
#define PLACES_MAX 4096u
#define FRESH_S	   10u /* for so long a thread's next waits are taken for the same */
#define UNSURE	   0x80u /* as if wrong eight waits ago: the next one decides */

struct offcpu_habit {
	uint32_t tid; /* 0 = the place is empty */
	uint32_t at_s;
	uint8_t reason;
	uint8_t wrong; /* a bit for each of the last waits with a stack: 1 = it was another one */
	bool idle;
};

static uint32_t habit_seconds(uint64_t at_ns)
{
	return (uint32_t)(at_ns / 1000000000u);
}

static bool habit_is_fresh(const struct offcpu_habit *one, uint32_t now_s)
{
	return one->tid && now_s <= one->at_s + FRESH_S && now_s + FRESH_S >= one->at_s;
}

/* NULL = nothing is known of any thread. */
static struct offcpu_habit *habit_place(const struct offcpu_habits *h, uint32_t tid)
{
	return h->places ? &h->places[tid % h->n] : NULL;
}

/* Without memory there stay as many places as before. */
static void habits_make_places(struct offcpu_habits *h, unsigned n)
{
	struct offcpu_habit *places = calloc(n, sizeof(*places));

	if (!places)
		return;
	for (unsigned i = 0; i < h->n; i++)
		if (h->places[i].tid)
			places[h->places[i].tid % n] = h->places[i];
	free(h->places);
	h->places = places;
	h->n = n;
}

static bool habit_is_of_another(const struct offcpu_habits *h, uint32_t tid, uint32_t now_s)
{
	const struct offcpu_habit *one = habit_place(h, tid);

	return one && one->tid != tid && habit_is_fresh(one, now_s);
}

static void habit_set(struct offcpu_habits *h, uint32_t tid, uint64_t at_ns,
		      enum offcpu_reason reason, bool idle, bool sure)
{
	uint32_t now_s = habit_seconds(at_ns);
	struct offcpu_habit *one;

	if (!h->places)
		habits_make_places(h, PLACES_MIN);
	else if (h->n < PLACES_MAX && habit_is_of_another(h, tid, now_s))
		habits_make_places(h, 2 * h->n);
	one = habit_place(h, tid);
	if (!one)
		return;
	if (one->tid != tid)
		*one = (struct offcpu_habit){ .tid = tid, .wrong = sure ? 0 : UNSURE };
	one->at_s = now_s;
	one->reason = (uint8_t)reason;
	one->idle = idle;
}

void offcpu_habits_work(struct offcpu_habits *h, uint32_t tid, uint64_t at_ns,
			enum offcpu_reason reason, uint32_t waits)
{
	habit_set(h, tid, at_ns, reason, true, waits > 1);
}

/* The thread's habit at the end of @e; NULL = none. */
static struct offcpu_habit *habit_of(const struct offcpu_habits *h, const struct offcpu_event *e)
{
	struct offcpu_habit *one = habit_place(h, e->tid);

	return one && one->tid == e->tid && habit_is_fresh(one, habit_seconds(e->end_ns)) ? one
											  : NULL;
}

/* Compares the habit with a wait of which the reason is known, then learns from the wait. */
static void habit_learn(struct offcpu_habits *h, struct offcpu_habit *one,
			const struct offcpu_event *e)
{
	bool right = one && one->reason == e->reason && one->idle == e->idle;

	if (one && !one->wrong) {
		h->right += right;
		h->wrong += !right;
	}
	if (one)
		one->wrong = (uint8_t)(one->wrong << 1 | !right);
	if (e->reason == OFFCPU_REASON_SLEEP || (e->idle && e->reason != OFFCPU_REASON_OTHER))
		habit_set(h, e->tid, e->end_ns, e->reason, e->idle, false);
}

void offcpu_habits_apply(struct offcpu_habits *h, struct offcpu_event *e)
{
	struct offcpu_habit *one = habit_of(h, e);

	if (e->kernel_class != OFFCPU_FUTEX || e->lock || e->virtual_tid)
		return;
	if (e->has_stack) {
		/* a safepoint that holds a thread does not say how the thread waits */
		if (e->reason != OFFCPU_REASON_SAFEPOINT && e->reason != OFFCPU_REASON_GC)
			habit_learn(h, one, e);
		return;
	}
	if (!one || one->wrong || e->reason != OFFCPU_REASON_OTHER || e->idle)
		return;
	e->reason = one->reason;
	e->idle = one->idle;
	e->by_habit = true;
	h->told++;
}

size_t offcpu_habits_bytes(const struct offcpu_habits *h)
{
	return h->n * sizeof(*h->places);
}

void offcpu_habits_clear(struct offcpu_habits *h)
{
	free(h->places);
	*h = (struct offcpu_habits){ 0 };
}

/* See offcpu_habits.h. The numbers of a thread and of the kind of waits decide a habit's place, of
 * which the last one there has it: there are more places as soon as two need the same one. */
#include "daemon/host/offcpu_habits.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_MIN 256u
#define PLACES_MAX 8192u
#define FRESH_S	   10u /* for so long a thread's next waits are taken for the same */
#define KNOWN_S	   20u /* so old is the last one when a stack comes: OFFCPU_UNCONFIRMED_NS */
#define LATELY	   0xffu /* the last eight waits */
#define UNSURE	   0x80u /* as if wrong eight waits ago: the next one decides */
#define SURE	   0x100u /* as if wrong nine waits ago: it is relied on, but was not always so */
#define RECORDED   4u
#define UNTOLD	   0xffffffffu /* as if no lock event had told of the last 32 waits */

/* A read with a timeout is a poll for the kernel. HABIT_TOLD: its waits in futexes are lock events.
 * HABIT_READ: its polls are reads of sockets, of whatever kind. */
enum habit_kind { HABIT_FUTEX, HABIT_SOCKET, HABIT_ACCEPT, HABIT_TOLD, HABIT_READ, HABIT_NONE };

struct offcpu_habit {
	/* ends of its last waits in futexes of which the kernel has records, the newest first */
	uint64_t recorded_ns[RECORDED];
	uint32_t key; /* habit_key(); 0 = the place is empty */
	uint32_t at_s;
	uint32_t wrong; /* a bit for each of the last waits with a stack: 1 = it was another one */
	uint8_t reason;
	bool idle;
};

static enum habit_kind habit_kind_of(unsigned kernel_class)
{
	if (kernel_class == OFFCPU_FUTEX)
		return HABIT_FUTEX;
	if (kernel_class == OFFCPU_ACCEPT)
		return HABIT_ACCEPT;
	return kernel_class == OFFCPU_SOCKET || kernel_class == OFFCPU_POLL ? HABIT_SOCKET
									    : HABIT_NONE;
}

static uint32_t habit_key(uint32_t tid, enum habit_kind kind)
{
	return tid * HABIT_NONE + kind; /* as dense as numbers of threads are */
}

static uint32_t habit_seconds(uint64_t at_ns)
{
	return (uint32_t)(at_ns / 1000000000u);
}

static bool habit_is_fresh(const struct offcpu_habit *one, uint32_t now_s, uint32_t for_s)
{
	return one->key && now_s <= one->at_s + for_s && now_s + for_s >= one->at_s;
}

/* NULL = nothing is known of any thread. */
static struct offcpu_habit *habit_place(const struct offcpu_habits *h, uint32_t key)
{
	return h->places ? &h->places[key % h->n] : NULL;
}

/* Without memory there stay as many places as before. */
static void habits_make_places(struct offcpu_habits *h, unsigned n)
{
	struct offcpu_habit *places = calloc(n, sizeof(*places));

	if (!places)
		return;
	for (unsigned i = 0; i < h->n; i++)
		if (h->places[i].key)
			places[h->places[i].key % n] = h->places[i];
	free(h->places);
	h->places = places;
	h->n = n;
}

static bool habit_is_of_another(const struct offcpu_habits *h, uint32_t key, uint32_t now_s)
{
	const struct offcpu_habit *one = habit_place(h, key);

	return one && one->key != key && habit_is_fresh(one, now_s, FRESH_S);
}

/* The place of this key, which a new habit has with @wrong; NULL = no memory. */
static struct offcpu_habit *habit_take(struct offcpu_habits *h, uint32_t key, uint64_t at_ns,
				       uint32_t wrong)
{
	uint32_t now_s = habit_seconds(at_ns);
	struct offcpu_habit *one;

	if (!h->places)
		habits_make_places(h, PLACES_MIN);
	else if (h->n < PLACES_MAX && habit_is_of_another(h, key, now_s))
		habits_make_places(h, 2 * h->n);
	one = habit_place(h, key);
	if (!one)
		return NULL;
	if (one->key != key)
		*one = (struct offcpu_habit){ .key = key, .wrong = wrong };
	one->at_s = now_s;
	return one;
}

static void habit_set(struct offcpu_habits *h, uint32_t key, uint64_t at_ns,
		      enum offcpu_reason reason, bool idle, bool sure)
{
	struct offcpu_habit *one = habit_take(h, key, at_ns, sure ? SURE : UNSURE);

	if (!one)
		return;
	one->reason = (uint8_t)reason;
	one->idle = idle;
}

static void habit_recorded(struct offcpu_habits *h, uint32_t key, uint64_t end_ns)
{
	struct offcpu_habit *one = habit_place(h, key);

	if (!one || one->key != key)
		return;
	memmove(one->recorded_ns + 1, one->recorded_ns,
		(RECORDED - 1) * sizeof(one->recorded_ns[0]));
	one->recorded_ns[0] = end_ns;
}

void offcpu_habits_recorded(struct offcpu_habits *h, uint32_t tid, unsigned kernel_class,
			    uint64_t end_ns)
{
	enum habit_kind kind = habit_kind_of(kernel_class);

	if (kind != HABIT_FUTEX)
		return;
	habit_recorded(h, habit_key(tid, HABIT_FUTEX), end_ns);
	habit_recorded(h, habit_key(tid, HABIT_TOLD), end_ns);
}

/* Does a record of the kernel end in a wait from @begin_ns to @end_ns? Records come a moment before
 * the lock events of the same time, so there may be some of later waits; if there are only such,
 * the wait is taken to have one. */
static bool habit_has_record(const struct offcpu_habit *one, uint64_t begin_ns, uint64_t end_ns)
{
	for (unsigned i = 0; i < RECORDED; i++)
		if (one->recorded_ns[i] <= end_ns)
			return one->recorded_ns[i] > begin_ns;
	return true;
}

/* The habit with this key, if it is one of a thread whose wait has no record. */
static const struct offcpu_habit *habit_unrecorded(const struct offcpu_habits *h, uint32_t key,
						   uint64_t begin_ns, uint64_t end_ns)
{
	const struct offcpu_habit *one = habit_place(h, key);

	return one && one->key == key && !habit_has_record(one, begin_ns, end_ns) ? one : NULL;
}

bool offcpu_habits_spare(const struct offcpu_habits *h, uint32_t tid, uint64_t begin_ns,
			 uint64_t end_ns, bool work)
{
	const struct offcpu_habit *one;

	if (work) {
		one = habit_unrecorded(h, habit_key(tid, HABIT_FUTEX), begin_ns, end_ns);
		if (one && one->idle)
			return true;
	}
	one = habit_unrecorded(h, habit_key(tid, HABIT_TOLD), begin_ns, end_ns);
	return one && !one->wrong;
}

bool offcpu_habits_told(struct offcpu_habits *h, uint32_t tid, uint64_t end_ns)
{
	uint32_t key = habit_key(tid, HABIT_TOLD), now_s = habit_seconds(end_ns);
	struct offcpu_habit *one = habit_place(h, key);
	bool is_old = one && !habit_is_fresh(one, now_s, KNOWN_S); /* another thread's, maybe */

	one = habit_take(h, key, end_ns, UNTOLD);
	if (!one)
		return false;
	one->wrong = (is_old ? UNTOLD : one->wrong) << 1;
	return !one->wrong;
}

/* The habit with this key at the end of @e, not older than @for_s; NULL = none. */
static struct offcpu_habit *habit_of(const struct offcpu_habits *h, uint32_t key,
				     const struct offcpu_event *e, uint32_t for_s)
{
	struct offcpu_habit *one = habit_place(h, key);

	return one && one->key == key && habit_is_fresh(one, habit_seconds(e->end_ns), for_s)
		       ? one
		       : NULL;
}

static bool habit_is_relied_on(const struct offcpu_habit *one)
{
	return one && !(one->wrong & LATELY);
}

bool offcpu_habits_work(struct offcpu_habits *h, uint32_t tid, uint64_t at_ns,
			enum offcpu_reason reason, uint32_t waits)
{
	uint32_t key = habit_key(tid, HABIT_FUTEX);
	const struct offcpu_habit *one;

	habit_set(h, key, at_ns, reason, true, waits > 1);
	one = habit_place(h, key);
	return waits > 1 && habit_is_relied_on(one);
}

/* Its polls are reads of sockets; NULL = nothing is known of them for so long. */
static struct offcpu_habit *habit_of_reads(const struct offcpu_habits *h,
					   const struct offcpu_event *e, uint32_t for_s)
{
	return habit_of(h, habit_key(e->tid, HABIT_READ), e, for_s);
}

/* Compares a poll with a stack with what would have been said of it without. */
static void habit_judge_read(struct offcpu_habits *h, const struct offcpu_event *e)
{
	if (!habit_is_relied_on(habit_of_reads(h, e, KNOWN_S)))
		return;
	h->right += e->reason == OFFCPU_REASON_SOCKET;
	h->wrong += e->reason != OFFCPU_REASON_SOCKET;
}

/* Learns from a poll with a stack whether its thread polls to read from sockets. */
static void habit_learn_read(struct offcpu_habits *h, const struct offcpu_event *e)
{
	bool reads = e->reason == OFFCPU_REASON_SOCKET;
	struct offcpu_habit *one = habit_of_reads(h, e, KNOWN_S);

	if (one)
		one->wrong = one->wrong << 1 | !reads;
	if (reads)
		habit_set(h, habit_key(e->tid, HABIT_READ), e->end_ns, e->reason, false, false);
}

/* Compares the habit with a wait of which the reason is known, then learns from the wait; sets
 * as_usual and as_always of it. */
static void habit_learn(struct offcpu_habits *h, uint32_t key, struct offcpu_event *e)
{
	struct offcpu_habit *one = habit_of(h, key, e, KNOWN_S);
	bool right = one && one->reason == e->reason && one->idle == e->idle;

	if (habit_is_relied_on(one)) {
		h->right += right;
		h->wrong += !right;
	} else if (e->kernel_class == OFFCPU_POLL) {
		habit_judge_read(h, e);
	}
	if (one)
		one->wrong = one->wrong << 1 | !right;
	e->as_usual = right && e->idle && habit_is_relied_on(one);
	e->as_always = e->as_usual && !one->wrong;
	if (e->reason == OFFCPU_REASON_SLEEP || (e->idle && e->reason != OFFCPU_REASON_OTHER))
		habit_set(h, key, e->end_ns, e->reason, e->idle, false);
}

/* Takes a wait without a stack for one like its thread's last ones; a poll of which nothing else is
 * known also if they were reads of any kind. */
static void habit_tell(struct offcpu_habits *h, uint32_t key, struct offcpu_event *e)
{
	const struct offcpu_habit *one = habit_of(h, key, e, FRESH_S);

	if (e->idle || (e->kernel_class == OFFCPU_FUTEX && e->reason != OFFCPU_REASON_OTHER))
		return;
	if (!habit_is_relied_on(one) && e->reason == OFFCPU_REASON_POLL)
		one = habit_of_reads(h, e, FRESH_S);
	if (!habit_is_relied_on(one))
		return;
	e->reason = one->reason;
	e->idle = one->idle;
	e->by_habit = true;
	h->told++;
}

/* No lock event tells of @e, a wait in a futex. */
static void habit_untold(struct offcpu_habits *h, struct offcpu_event *e)
{
	uint32_t key = habit_key(e->tid, HABIT_TOLD);
	struct offcpu_habit *one = habit_place(h, key);

	if (!one || one->key != key)
		return;
	e->ends_told = !one->wrong;
	one->wrong = one->wrong << 1 | 1;
}

void offcpu_habits_apply(struct offcpu_habits *h, struct offcpu_event *e)
{
	enum habit_kind kind = habit_kind_of(e->kernel_class);
	uint32_t key = habit_key(e->tid, kind);
	bool is_held;

	if (kind == HABIT_NONE || e->lock || e->virtual_tid)
		return;
	/* a safepoint that holds a thread does not say how the thread waits */
	is_held = e->reason == OFFCPU_REASON_SAFEPOINT || e->reason == OFFCPU_REASON_GC;
	if (kind == HABIT_FUTEX && !is_held)
		habit_untold(h, e);
	if (e->has_stack && !is_held) {
		habit_learn(h, key, e);
		if (e->kernel_class == OFFCPU_POLL)
			habit_learn_read(h, e);
	}
	if (!e->has_stack)
		habit_tell(h, key, e);
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

/*
 * See unknown_owner.h. As long as the JVM calls the monitor's owner anonymous, the owner is the
 * same as when the wait began. So the owner is the thread that has the object among its locks: a
 * running thread in the lock stack of its JavaThread, a virtual thread without a carrier in its
 * frozen stack. Searches of all virtual threads have a budget of their own, as even the shortest
 * waits cause them.
 */
#include "agent/events/unknown_owner.h"

#include <errno.h>
#include "agent/base/agent.h"
#include "agent/events/virtual_states.h"
#include "agent/hotspot/frozen_locks.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/owner.h"
#include "agent/hotspot/virtual_price.h"
#include "agent/hotspot/virtual_sets.h"

#define SINCE	 24 /* first JDK in which a virtual thread without a carrier may own a monitor */
#define SLOTS	 64u /* power of two */
#define TAG	 (1u << 30) /* bit of a mark; no thread's number on the wire has it */
#define SHARE	 400 /* searches of each kind may take 1/400 of the time */
#define SAVED_NS (20 * NS_PER_MS) /* searches may take this much at once after a pause */
#define SOON_NS	 NS_PER_MS
#define LATE_NS	 (250 * NS_PER_MS)
#define SLOWER	 4 /* for a wait that has lasted n ms the owner is sought every n/4 ms */
/* longest time between two checks whether there are virtual threads by now */
#define WARM_MAX_NS (8 * NS_PER_S)
#define FORGET_NS   (600 * NS_PER_S) /* the end of the wait was lost */

static struct slot {
	uint64_t answer; /* number << 32 | mark; 0 = free, 1 = being filled in */
	uint64_t monitor, since_ns;
	uint32_t given_up; /* agent's thread: a mark whose owner can no longer be found */
} slots[SLOTS];

static uint32_t generation;
static uint32_t due; /* 1 = there is a new mark */
static bool on;

static struct slot *unknown_owner_slot_of(uint32_t mark)
{
	return &slots[mark % SLOTS];
}

static bool is_mark(uint32_t owner)
{
	return owner & TAG && !(owner & WIRE_VIRTUAL_TID);
}

/* ---- the waiting thread ---- */

/* The owner that was found for another, still open wait for the same monitor is the owner here
 * too. */
static uint32_t unknown_owner_known(uint64_t monitor)
{
	for (struct slot *p = slots; p < slots + SLOTS; p++) {
		uint64_t answer = __atomic_load_n(&p->answer, __ATOMIC_ACQUIRE);

		if (answer >> 32 && __atomic_load_n(&p->monitor, __ATOMIC_RELAXED) == monitor &&
		    __atomic_load_n(&p->answer, __ATOMIC_ACQUIRE) == answer)
			return (uint32_t)(answer >> 32);
	}
	return 0;
}

uint32_t unknown_owner_seek(uint64_t monitor)
{
	uint32_t n = __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED), known;

	if (!__atomic_load_n(&on, __ATOMIC_ACQUIRE))
		return 0;
	known = unknown_owner_known(monitor);
	if (known)
		return known;
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t at = (n + i) % SLOTS;
		uint32_t mark = TAG | ((n * SLOTS + at) & (TAG - 1));
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&slots[at].answer, &none, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&slots[at].monitor, monitor, __ATOMIC_RELAXED);
		slots[at].since_ns = mono_ns();
		__atomic_store_n(&slots[at].answer, mark, __ATOMIC_RELEASE);
		return mark;
	}
	return 0;
}

void unknown_owner_wake_agent(uint32_t owner)
{
	if (is_mark(owner) && !__atomic_exchange_n(&due, 1, __ATOMIC_SEQ_CST))
		agent_wake();
}

uint32_t unknown_owner_answer(uint32_t owner)
{
	uint64_t answer;

	if (!is_mark(owner))
		return owner;
	answer = __atomic_load_n(&unknown_owner_slot_of(owner)->answer, __ATOMIC_ACQUIRE);
	return (uint32_t)answer == owner ? (uint32_t)(answer >> 32) : 0;
}

uint32_t unknown_owner_end(uint32_t owner)
{
	uint64_t answer;

	if (!is_mark(owner))
		return owner;
	answer = __atomic_load_n(&unknown_owner_slot_of(owner)->answer, __ATOMIC_ACQUIRE);
	while ((uint32_t)answer == owner)
		if (__atomic_compare_exchange_n(&unknown_owner_slot_of(owner)->answer, &answer, 0,
						false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return (uint32_t)(answer >> 32);
	return 0;
}

/* ---- the agent's thread ---- */

static struct {
	bool warm;
	uint64_t warm_ns; /* to the next check whether there are virtual threads */
	struct credit {
		int64_t ns; /* CPU time that such searches may take */
		uint64_t at_ns;
	} newest, older;
	uint32_t n; /* still sought in this search: */
	struct seeking {
		struct slot *slot;
		uint32_t mark;
		uint64_t object; /* its address at the last search */
	} seeking[SLOTS];
} search;

/* @number has the lock: the answer, if the owner is still anonymous and the object has not moved.
 */
static void unknown_owner_found(struct seeking *s, uint32_t number)
{
	uint64_t object = 0, answer = s->mark;

	if (!number || !owner_is_unknown(s->slot->monitor, &object) || object != s->object)
		return;
	(void)__atomic_compare_exchange_n(&s->slot->answer, &answer,
					  (uint64_t)number << 32 | s->mark, false, __ATOMIC_ACQ_REL,
					  __ATOMIC_RELAXED);
	*s = search.seeking[--search.n];
}

static void unknown_owner_collect(uint64_t now_ns)
{
	search.n = 0;
	for (struct slot *p = slots; p < slots + SLOTS; p++) {
		uint64_t answer = __atomic_load_n(&p->answer, __ATOMIC_ACQUIRE), object;

		if (answer < TAG)
			continue;
		if (p->since_ns + FORGET_NS < now_ns) {
			(void)unknown_owner_end((uint32_t)answer);
			continue;
		}
		if (answer >> 32 || p->given_up == (uint32_t)answer)
			continue;
		if (owner_is_unknown(p->monitor, &object))
			search.seeking[search.n++] =
				(struct seeking){ p, (uint32_t)answer, object };
		else /* the JVM knows an owner now, but it may be a later one */
			p->given_up = (uint32_t)answer;
	}
}

static void seek_owner_in_running(void)
{
	for (uint32_t i = search.n; i-- > 0;) {
		struct seeking *s = &search.seeking[i];
		uint32_t number = s->object ? owner_by_lock_stack(s->object) : 0;

		if (number)
			unknown_owner_found(s, number);
	}
}

static bool unknown_owner_holds(JNIEnv *env, jobject thread, uint64_t object)
{
	uint64_t locks[FROZEN_LOCKS_MAX];
	uint32_t n = frozen_locks(env, thread, locks);

	for (uint32_t i = 0; i < n; i++)
		if (locks[i] == object)
			return true;
	return false;
}

/* Looks for the objects whose owners are sought among the locks of an unmounted virtual thread.
 * Their addresses are read again, because the collector moves objects. */
static bool seek_owner_in_frozen(JNIEnv *env, jobject thread, void *unused)
{
	uint64_t locks[FROZEN_LOCKS_MAX];

	(void)unused;
	if (!frozen_locks(env, thread, locks))
		return search.n;
	for (uint32_t i = search.n; i-- > 0;) {
		struct seeking *s = &search.seeking[i];

		if (owner_is_unknown(s->slot->monitor, &s->object) && s->object &&
		    unknown_owner_holds(env, thread, s->object) &&
		    unknown_owner_holds(env, thread, s->object))
			unknown_owner_found(s, frozen_number(env, thread));
	}
	return search.n;
}

static bool unknown_owner_holds_at(uint64_t thread, uint64_t object)
{
	uint64_t locks[FROZEN_LOCKS_MAX];
	uint32_t n = frozen_locks_at(thread, locks);

	for (uint32_t i = 0; i < n; i++)
		if (locks[i] == object)
			return true;
	return false;
}

/* The same for a Thread given by the address of its object. */
static bool seek_owner_in_kept(uint64_t thread, void *unused)
{
	uint64_t locks[FROZEN_LOCKS_MAX];
	uint32_t number;

	(void)unused;
	if (!frozen_locks_at(thread, locks))
		return search.n;
	for (uint32_t i = search.n; i-- > 0;) {
		struct seeking *s = &search.seeking[i];

		if (!owner_is_unknown(s->slot->monitor, &s->object) || !s->object ||
		    !unknown_owner_holds_at(thread, s->object))
			continue;
		number = frozen_number_at(thread);
		if (number && unknown_owner_holds_at(thread, s->object))
			unknown_owner_found(s, number);
	}
	return search.n;
}

/* A search may overdraw the budget; later searches wait until it is repaid. */
static bool unknown_owner_has_credit(struct credit *c, uint64_t now_ns, uint64_t more_than_ns)
{
	c->ns += (int64_t)((now_ns - c->at_ns) / SHARE);
	c->at_ns = now_ns;
	if (c->ns > (int64_t)SAVED_NS)
		c->ns = SAVED_NS;
	return c->ns > (int64_t)more_than_ns;
}

/* Searches all virtual threads: those in the JDK's sets, and then, if more than half of the largest
 * budget is left, the rest by calling the JDK's own code. */
static void seek_owner_in_all_virtual(uint64_t now_ns)
{
	virtual_sets_each(seek_owner_in_kept, NULL);
	if (search.n && unknown_owner_has_credit(&search.older, now_ns, SAVED_NS / 2))
		virtual_threads_each(seek_owner_in_frozen, NULL);
}

/* Searches young threads first, with a budget apart from that of searches of thousands. */
static void seek_owner_in_virtual(void)
{
	uint64_t now_ns = mono_ns(), begin_ns;

	/* before there are any, a search would initialise their class */
	if (!virtual_threads_used() || !frozen_locks_init(agent.env))
		return;
	begin_ns = thread_cpu_ns(0); /* CPU time, as this thread may have to wait for a CPU */
	if (unknown_owner_has_credit(&search.newest, now_ns, 0)) {
		virtual_sets_newest(seek_owner_in_kept, NULL);
		search.newest.ns -= (int64_t)(thread_cpu_ns(0) - begin_ns);
	}
	if (!search.n || !unknown_owner_has_credit(&search.older, now_ns, 0))
		return;
	begin_ns = thread_cpu_ns(0);
	seek_owner_in_all_virtual(now_ns);
	search.older.ns -= (int64_t)(thread_cpu_ns(0) - begin_ns);
}

static bool warm_up_thread(JNIEnv *env, jobject thread, void *unused)
{
	uint64_t locks[FROZEN_LOCKS_MAX];

	(void)unused;
	(void)frozen_locks(env, thread, locks);
	return true;
}

/* The first search takes ten times as long as others, so it is made before one is needed. */
static void unknown_owner_warm_up(void)
{
	if (search.warm || !virtual_threads_used())
		return;
	search.warm = true;
	if (frozen_locks_init(agent.env))
		virtual_threads_each(warm_up_thread, NULL);
}

/* When to search again for the owners that were not found. */
static uint64_t unknown_owner_next_ns(uint64_t now_ns)
{
	uint64_t pause_ns = LATE_NS;

	for (uint32_t i = 0; i < search.n; i++) {
		uint64_t age_ns = now_ns - search.seeking[i].slot->since_ns;

		if (age_ns / SLOWER < pause_ns)
			pause_ns = age_ns / SLOWER;
	}
	if (!search.n) {
		search.warm_ns =
			search.warm_ns < WARM_MAX_NS ? 2 * search.warm_ns + NS_PER_S : WARM_MAX_NS;
		return search.warm ? UINT64_MAX : now_ns + search.warm_ns;
	}
	return now_ns + (pause_ns > SOON_NS ? pause_ns : SOON_NS);
}

static uint64_t unknown_owner_tick(uint64_t now_ns)
{
	__atomic_store_n(&due, 0, __ATOMIC_SEQ_CST);
	unknown_owner_collect(now_ns);
	seek_owner_in_running();
	if (search.n)
		seek_owner_in_virtual();
	unknown_owner_warm_up();
	return unknown_owner_next_ns(now_ns);
}

static bool unknown_owner_is_due(void)
{
	return __atomic_load_n(&due, __ATOMIC_SEQ_CST);
}

static int unknown_owner_begin(const struct wire_start *start, const char **note)
{
	(void)note;
	if (start->monitors == WIRE_MONITORS_NEVER || vm_sig.version < SINCE)
		return -ENOTSUP;
	__atomic_store_n(&on, true, __ATOMIC_RELEASE);
	return 0;
}

/* Marks that are left are void from now on. */
static void unknown_owner_end_all(void)
{
	__atomic_store_n(&on, false, __ATOMIC_RELEASE);
	for (struct slot *p = slots; p < slots + SLOTS; p++)
		(void)unknown_owner_end((uint32_t)__atomic_load_n(&p->answer, __ATOMIC_ACQUIRE));
	virtual_states_end();
}

const struct events_source unknown_owner_source = {
	.step = "lock",
	.event = WIRE_EVENT_LOCK,
	.begin = unknown_owner_begin,
	.end = unknown_owner_end_all,
	.tick = unknown_owner_tick,
	.due = unknown_owner_is_due,
};

/* See park_older.h. */
#include "agent/events/park_older.h"

#include <stdbool.h>
#include "agent/events/park_priv.h"
#include "agent/jni_names.h"

#define OLDER_MAX 64u
#define AGAIN_NS  NS_PER_S

struct older {
	uint64_t java_thread, begin_ns;
	uint32_t place;
	bool seen; /* in the pass under way */
};

static struct {
	struct older list[OLDER_MAX];
	uint32_t n;
	bool looked;
} older;

/* Whom the thread waits for; 0 = it does not park for a lock that has an owner. */
static uint32_t owner_of_park(JNIEnv *env, jobject thread)
{
	struct park_self other = { .env = env, .thread = thread };

	return park_owner(&other);
}

static bool is_same(const struct older *o)
{
	return waits_at(o->place)->begin_ns == o->begin_ns;
}

static void find_one(JNIEnv *env, jobject thread, uint64_t java_thread, void *unused)
{
	struct wait_lock lock = { .owner_tid = owner_of_park(env, thread) };
	int32_t place;

	(void)unused;
	if (!lock.owner_tid || older.n == OLDER_MAX)
		return;
	place = waits_add(java_thread, java_thread, WIRE_WAIT_PARK, &lock);
	if (place < 0)
		return; /* it parked when ours was there already */
	older.list[older.n++] = (struct older){
		.java_thread = java_thread,
		.begin_ns = waits_at((uint32_t)place)->begin_ns,
		.place = (uint32_t)place,
	};
}

static void look_again(JNIEnv *env, jobject thread, uint64_t java_thread, void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < older.n; i++)
		if (older.list[i].java_thread == java_thread)
			older.list[i].seen = owner_of_park(env, thread) != 0;
}

/* What was not seen parking is over; where another wait began at its place it is not ours any more.
 */
static void forget_ended(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < older.n; i++) {
		struct older o = older.list[i];

		if (!o.seen)
			waits_remove(o.place, o.begin_ns);
		else if (is_same(&o))
			older.list[kept++] =
				(struct older){ o.java_thread, o.begin_ns, o.place, false };
	}
	older.n = kept;
}

void park_older_begin(void)
{
	older.n = 0;
	older.looked = false;
}

uint64_t park_older_tick(uint64_t now_ns)
{
	if (!older.looked) {
		older.looked = true;
		jni_threads_each(find_one, NULL);
	} else if (older.n) {
		jni_threads_each(look_again, NULL);
		forget_ended();
	}
	return older.n ? now_ns + AGAIN_NS : UINT64_MAX;
}

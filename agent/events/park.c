/*
 * See park.h. Our native method runs in application threads, in native state, at 200,000 calls a
 * second and more. It allocates nothing, never blocks by itself, and keeps errno and the thread's
 * interrupt status.
 *
 * A thread may park before park_stop() and wake after it. So after the wait nothing that
 * park_stop() frees is touched, unless the same generation is still on; and while such memory is in
 * use, the thread is counted in a lane. park_stop() waits for threads that begin or end a wait,
 * never for those that are blocked in between.
 */
#include "agent/events/park.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include "agent/base/agent.h"
#include "agent/events/park_priv.h"
#include "agent/events/waits.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/virtual_name.h"

#define CHECK_NS   (5 * NS_PER_S) /* between two checks that our native method is still called */
#define LANES	   64u /* counters of threads inside, one cache line each */
#define STOP_TRIES 2000
#define STOP_PAUSE NS_PER_MS

park_fn *park_before;
JNIEnv *park_prober;
uint32_t park_probed;

static struct {
	uint32_t generation; /* a new odd number for each start, even = off */
	bool prepared; /* agent's thread: the data that is read when a wait begins or ends has been
			* set up */
} park;

static struct {
	uint32_t inside;
	uint8_t pad[60];
} lanes[LANES] __attribute__((aligned(64)));

static uint32_t *lane_of(const JNIEnv *env)
{
	uint64_t h = (uint64_t)(uintptr_t)env * 0x9e3779b97f4a7c15ull;

	return &lanes[h >> 58].inside;
}
_Static_assert(LANES == 1 << (64 - 58), "the hash's bits are the lanes");

/* Keeps park_stop() from returning until park_leave(). Returns the generation that is on; 0 = off.
 */
static uint32_t park_enter(const JNIEnv *env)
{
	uint32_t generation;

	if (!(__atomic_load_n(&park.generation, __ATOMIC_RELAXED) & 1))
		return 0;
	__atomic_fetch_add(lane_of(env), 1, __ATOMIC_SEQ_CST);
	generation = __atomic_load_n(&park.generation, __ATOMIC_SEQ_CST);
	if (generation & 1)
		return generation;
	__atomic_fetch_sub(lane_of(env), 1, __ATOMIC_RELEASE);
	return 0;
}

static void park_leave(const JNIEnv *env)
{
	__atomic_fetch_sub(lane_of(env), 1, __ATOMIC_RELEASE);
}

static void park_wait_fill(JNIEnv *env, uint8_t flags, struct wait_here *here)
{
	struct wait_lock lock = { 0 };
	struct park_self self;
	uint32_t number = 0;
	int saved = errno;

	park_self_get(env, &self);
	lock.owner_tid = park_owner(&self);
	if (self.is_virtual)
		number = virtual_number(self.java_thread);
	wait_begin_here(here, self.java_thread, number, flags, &lock);
	park_self_put(&self);
	errno = saved;
}

/* Returns the generation in which the wait began; 0 = off, or the park does not wait. park_stop()
 * also waits for threads that hold a slot but have not blocked yet. */
static uint32_t park_wait_begin(JNIEnv *env, jboolean absolute, jlong time, struct wait_here *here)
{
	uint32_t generation = __atomic_load_n(&park.generation, __ATOMIC_RELAXED);
	uint64_t java_thread = java_thread_of_sig(env);

	/* the agent's thread parks to find the permit (park_permit.c): not a wait of the program */
	if (!(generation & 1) || env == agent.env || park_has_permit(java_thread) ||
	    !wait_claim_slot(java_thread, here))
		return 0;
	if (__atomic_load_n(&park.generation, __ATOMIC_SEQ_CST) == generation) {
		park_wait_fill(env, absolute || time > 0 ? WIRE_LOCK_TIMED : 0, here);
		return generation;
	}
	wait_give_back(here);
	return 0;
}

static void park_describe(void *context, struct wait_lock *lock)
{
	struct park_self self;

	park_self_get(context, &self);
	park_read_blocker(&self, lock);
	park_self_put(&self);
}

static void park_report(JNIEnv *env, uint32_t generation, struct wait_here *here)
{
	uint32_t now = park_enter(env);

	if (now == generation)
		wait_report_here(java_thread_of_sig(env), here, park_describe, env);
	if (now)
		park_leave(env);
}

void JNICALL park_ours(JNIEnv *env, jobject unsafe, jboolean absolute, jlong time)
{
	park_fn *before = __atomic_load_n(&park_before, __ATOMIC_ACQUIRE);
	struct wait_here here;
	uint32_t generation;
	int saved;

	if (time < 0 && env == __atomic_load_n(&park_prober, __ATOMIC_RELAXED))
		park_probed = 1;
	generation = park_wait_begin(env, absolute, time, &here);
	before(env, unsafe, absolute, time);
	/* The table stays mapped, so park_stop() need not wait while a short wait is counted. If a
	 * stop and a start fall between this check and the counting, one wait is counted as
	 * unpaired. */
	if (!generation || __atomic_load_n(&park.generation, __ATOMIC_ACQUIRE) != generation ||
	    wait_was_short(java_thread_of_sig(env), &here))
		return;
	saved = errno;
	park_report(env, generation, &here);
	errno = saved;
}

/* ---- the agent's thread ---------------------------------------------------------------------- */

static bool park_anybody_inside(void)
{
	if (waits_are_beginning())
		return true;
	for (uint32_t i = 0; i < LANES; i++)
		if (__atomic_load_n(&lanes[i].inside, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* A JVM that writes a class archive at its end would complain about our class on its output. */
static bool park_archives_classes(void)
{
	const char *mode = layout_flag_text("AOTMode");

	return layout_flag_text("ArchiveClassesAtExit") || layout_flag_text("AOTCacheOutput") ||
	       layout_flag("AutoCreateSharedArchive", false) ||
	       (mode && strcmp(mode, "record") == 0);
}

int park_start(const char **why)
{
	int r;

	if (park.generation & 1)
		return 0;
	if (park_archives_classes()) {
		*why = "parks are left out: this JVM archives its classes when it ends, and would print a warning about the agent's class";
		return -ENOTSUP;
	}
	if (!park.prepared) {
		r = park_blocker_init(agent.env, why);
		if (r < 0)
			return r;
		park.prepared = true;
	}
	r = park_native_put(agent.env, why);
	if (r < 0)
		return r;
	__atomic_fetch_add(&park.generation, 1, __ATOMIC_SEQ_CST);
	return 0;
}

uint64_t park_tick(uint64_t now_ns)
{
	const char *why;

	if (park.generation & 1)
		(void)park_native_put(agent.env, &why);
	return now_ns + CHECK_NS;
}

void park_stop(void)
{
	struct timespec pause = { 0, STOP_PAUSE };

	if (!(park.generation & 1))
		return;
	__atomic_fetch_add(&park.generation, 1, __ATOMIC_SEQ_CST);
	park_native_take_back(agent.env);
	/* begin and end take a microsecond, or as long as a safepoint that falls into them */
	for (int i = 0; i < STOP_TRIES && park_anybody_inside(); i++)
		nanosleep(&pause, NULL);
	if (park_anybody_inside())
		return; /* a thread hangs inside: what it reads is kept for the next start */
	park_blocker_deinit(agent.env);
	park.prepared = false;
}

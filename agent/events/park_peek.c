/*
 * See park_priv.h. Reading a field by JNI changes the thread's state and checks for a safepoint;
 * four such reads cost twice as much as everything else that we do in a park. So the fields are
 * read directly from memory, with collectors that move objects only at safepoints (Serial,
 * Parallel, CMS, G1). The loads may fail, no reference is kept, and the whole chain is read again
 * at the end: if the collector ran meanwhile, the two reads differ and nothing is reported.
 */
#include <string.h>
#include "agent/base/guard.h"
#include "agent/events/park_priv.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/thread_name.h"

#define HANDLE_TAGS 3ull
#define SUPER_DEPTH 1 /* levels from Object down to AbstractOwnableSynchronizer */
#define TRIES	    3

static struct {
	bool usable;
	struct park_fields at;
	uint64_t synchronizer; /* Klass */
	int32_t super; /* in a Klass: the superclass at that depth */
	bool narrow; /* references are compressed */
	uint64_t narrow_base;
	uint32_t narrow_shift;
} peek;

/* Fields are aligned; a compressed reference is half a word. */
static uint64_t park_peek_load(uint64_t address)
{
	return guard_load_raw_sig(address);
}

static uint64_t park_peek_object_at(jobject slot)
{
	return park_peek_load((uint64_t)(uintptr_t)slot & ~HANDLE_TAGS);
}

static uint64_t park_peek_reference_at(uint64_t address)
{
	uint64_t word = park_peek_load(address & ~7ull);

	if (!peek.narrow)
		return word;
	word = (uint32_t)(word >> (address & 4) * 8);
	return word ? peek.narrow_base + (word << peek.narrow_shift) : 0;
}

static bool park_peek_is_synchronizer(uint64_t object)
{
	return load64_sig(object_klass(object) + (uint32_t)peek.super) == peek.synchronizer;
}

/* false = a virtual thread, or one that has ended. */
static bool park_peek_number_of(uint64_t thread, uint32_t *ret)
{
	uint64_t java_thread = load64_sig(thread + (uint32_t)peek.at.eetop);

	if (!java_thread || !java_thread_is_sig(java_thread))
		return false;
	*ret = java_thread_tid_sig(java_thread);
	thread_name_on(java_thread, thread, *ret);
	return *ret != 0;
}

bool park_peek_owner(jobject thread, uint32_t *ret_tid)
{
	uint64_t object, blocker, owner = 0;

	if (!peek.usable || !guard_is_hooked_sig())
		return false;
	object = park_peek_object_at(thread);
	blocker = park_peek_reference_at(object + (uint32_t)peek.at.blocker);
	if (!blocker) {
		*ret_tid = 0;
		return object && park_peek_object_at(thread) == object;
	}
	if (park_peek_is_synchronizer(blocker))
		owner = park_peek_reference_at(blocker + (uint32_t)peek.at.owner);
	*ret_tid = 0;
	if (owner && !park_peek_number_of(owner, ret_tid))
		return false;
	return park_peek_object_at(thread) == object &&
	       park_peek_reference_at(object + (uint32_t)peek.at.blocker) == blocker;
}

/* ---- the agent's thread ---------------------------------------------------------------------- */

static bool park_peek_gc_is_supported(void)
{
	return layout_flag("UseG1GC", false) || layout_flag("UseSerialGC", false) ||
	       layout_flag("UseParallelGC", false) || layout_flag("UseConcMarkSweepGC", false);
}

/* Checks the reads on the agent's own Thread, whose blocker is set to itself for a moment, against
 * what JNI returns. */
static bool park_peek_matches_jni(JNIEnv *env, jobject thread, jfieldID blocker)
{
	uint64_t before = park_peek_object_at(thread), read, java_thread;

	(*env)->SetObjectField(env, thread, blocker, thread);
	read = park_peek_reference_at(before + (uint32_t)peek.at.blocker);
	java_thread = load64_sig(before + (uint32_t)peek.at.eetop);
	(*env)->SetObjectField(env, thread, blocker, NULL);
	return before && before == park_peek_object_at(thread) && read == before &&
	       java_thread == java_thread_of_sig(env) && !park_peek_is_synchronizer(before) &&
	       park_peek_reference_at(before + (uint32_t)peek.at.blocker) == 0;
}

void park_peek_init(JNIEnv *env, jobject thread, jclass synchronizer, jfieldID blocker,
		    const struct park_fields *fields)
{
	bool works = false;

	memset(&peek, 0, sizeof(peek));
	peek.at = *fields;
	peek.super = (int32_t)libjvm_offset("Klass", "_primary_supers[0]") + 8 * SUPER_DEPTH;
	if (!park_peek_gc_is_supported() || peek.super < 8 * SUPER_DEPTH || !guard_is_hooked_sig())
		return;
	object_header_init();
	peek.narrow = continuation_sig.narrow;
	peek.narrow_base = continuation_sig.narrow_base;
	peek.narrow_shift = continuation_sig.narrow_shift;
	/* a collection may have moved objects in between: try again */
	for (int i = 0; !works && i < TRIES; i++) {
		peek.synchronizer = klass_of_class(env, synchronizer);
		works = peek.synchronizer &&
			load64_sig(peek.synchronizer + (uint32_t)peek.super) == peek.synchronizer &&
			park_peek_matches_jni(env, thread, blocker);
	}
	__atomic_store_n(&peek.usable, works, __ATOMIC_RELEASE);
}

/* Calls the walker that walker.c has chosen. */
#include <stddef.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method.h"
#include "agent/walker/java/hotspot.h"
#include "agent/walker/walk_priv.h"

walk_fn *walk_with_sig;

static void walk_clear(struct walk *w)
{
	w->n = 0;
	w->broken = NULL;
	w->virtual_id = 0;
	w->virtual_name[0] = '\0';
}

void walk_sig(struct walk *w, void *ucontext)
{
	walk_clear(w);
	guard_enter_sig();
	walk_with_sig(w, ucontext);
	guard_leave_sig();
}

void walk_anchor_until_sig(struct walk *w, uint64_t java_thread, walk_enough_fn *enough)
{
	walk_clear(w);
	guard_enter_sig();
	if (vm_known_sig)
		hotspot_walk_anchor_sig(w, java_thread, enough);
	else
		w->broken = "walker";
	/* the JVM generates the code of virtual threads with the first one, which may be after the
	 * last walker_refresh(): it must be looked for now */
	if (vm_sig.thread_vthread >= 0 && !code_places_sig.enter_special &&
	    virtual_is_mounted_sig(java_thread ? java_thread : java_thread_address_sig()))
		__atomic_store_n(&code_places_sig.wanted, true, __ATOMIC_RELAXED);
	guard_leave_sig();
}

void walk_anchor_sig(struct walk *w, uint64_t java_thread)
{
	walk_anchor_until_sig(w, java_thread, NULL);
}

/* ---- marks ---- */

static uint64_t walk_word_at(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

uint64_t walk_anchor_sp_sig(uint64_t java_thread)
{
	uint64_t anchor = java_thread + (uint32_t)vm_sig.thread_anchor;

	return vm_known_sig ? walk_word_at(anchor + (uint32_t)vm_sig.anchor_sp) : 0;
}

static uint64_t walk_mixed(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

uint64_t walk_mark_hash_sig(const struct walk_mark *mark, uint64_t java_thread)
{
	uint64_t anchor = java_thread + (uint32_t)vm_sig.thread_anchor;
	uint64_t end = walk_word_at(java_thread + (uint32_t)vm_sig.thread_stack_base);
	uint64_t hash = walk_mixed(mark->sp, walk_word_at(anchor + (uint32_t)vm_sig.anchor_pc));

	for (int i = 0; i < WALK_MARK_SLOTS && mark->slots[i]; i++) {
		uint64_t address = mark->sp + 8ull * mark->slots[i];

		/* a mark may be from an ended thread with a larger stack, whose memory the JVM has
		 * reused for this one: nothing beyond this stack may be read */
		hash = walk_mixed(hash, address < end ? walk_word_at(address) : 0);
	}
	return hash;
}

uint64_t walker_class_sig(void *jclass_ref)
{
	static const sigset_t nothing_blocked;
	const struct method_copy *copy = NULL;

	guard_enter_sig();
	if (vm_known_sig && jclass_ref) {
		(void)guard_begin_sig(&nothing_blocked);
		copy = class_copy_sig(klass_of_mirror_sig(jclass_ref));
	}
	guard_leave_sig();
	return (uint64_t)(uintptr_t)copy;
}

uint64_t walker_class_of_sig(void *jobject_ref)
{
	JNIEnv *env = vm_known_sig ? java_thread_env_sig() : NULL;
	uint64_t handle, itself;
	jclass klass;

	if (!env || !jobject_ref)
		return 0;
	klass = (*env)->GetObjectClass(env, jobject_ref);
	handle = walker_class_sig(klass);
	(*env)->DeleteLocalRef(env, klass);
	if (class_is_int_array_sig(handle) && !(*env)->GetArrayLength(env, jobject_ref))
		return handle | CLASS_INIT_LOCK;
	itself = class_is_mirror_sig(handle) ? walker_class_sig(jobject_ref) : 0;
	return itself ? itself | CLASS_ITSELF : handle;
}

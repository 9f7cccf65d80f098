/* Which of the two walkers it is. */
#include <stddef.h>
#include "agent/walker/guard.h"
#include "agent/walker/hotspot/continuation.h"
#include "agent/walker/hotspot/hotspot.h"
#include "agent/walker/hotspot/layout.h"
#include "agent/walker/hotspot/method.h"
#include "agent/walker/java_thread.h"
#include "agent/walker/walk_priv.h"

walk_fn *walk_with_sig;
bool walk_own_sig;

static void clear(struct walk *w)
{
	w->n = 0;
	w->broken = NULL;
	w->virtual_id = 0;
	w->virtual_name[0] = '\0';
}

void walk_sig(struct walk *w, void *ucontext)
{
	clear(w);
	unwind_enter_sig();
	walk_with_sig(w, ucontext);
	unwind_leave_sig();
}

void walk_anchor_sig(struct walk *w, uint64_t java_thread)
{
	clear(w);
	w->broken = "walker";
	if (!walk_own_sig)
		return;
	unwind_enter_sig();
	hotspot_walk_anchor_sig(w, java_thread);
	unwind_leave_sig();
}

/* The mirror may move while it is looked at: then the word behind the reference changes, or what is
 * found is no class. */
uint64_t walker_class_sig(void *jclass_ref)
{
	static const sigset_t nothing_blocked;
	const struct method_copy *copy = NULL;

	if (!walk_own_sig || !jclass_ref || vm_sig.mirror_klass < 0)
		return 0;
	unwind_enter_sig();
	(void)guard_begin_sig(&nothing_blocked);
	for (int i = 0; i < 3 && !copy; i++) {
		uint64_t mirror = oop_of_handle_sig((uint64_t)(uintptr_t)jclass_ref);

		copy = class_copy_sig(load64_sig(mirror + (uint32_t)vm_sig.mirror_klass));
		if (mirror != oop_of_handle_sig((uint64_t)(uintptr_t)jclass_ref))
			copy = NULL;
	}
	unwind_leave_sig();
	return (uint64_t)(uintptr_t)copy;
}

uint64_t walker_class_of_sig(void *jobject_ref)
{
	JNIEnv *env = walk_own_sig ? java_thread_env_sig() : NULL;
	uint64_t handle;
	jclass klass;

	if (!env || !jobject_ref)
		return 0;
	klass = (*env)->GetObjectClass(env, jobject_ref);
	handle = walker_class_sig(klass);
	(*env)->DeleteLocalRef(env, klass);
	return handle;
}

/* See virtual_entry.h: JavaThread -> ContinuationEntry -> Continuation -> its task -> the Thread.
 */
#include "agent/hotspot/virtual_entry.h"

#include <jni.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"

#define SINCE 21

static struct {
	int32_t task, thread; /* offsets in a Continuation; in the task of a virtual thread */
	uint64_t klass; /* Klass of such a task; 0 = this JDK has a different one */
} jdk;

static jfieldID virtual_entry_field(JNIEnv *env, jclass of, const char *name, const char *type)
{
	jfieldID id = of ? (*env)->GetFieldID(env, of, name, type) : NULL;

	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	return id;
}

static jclass virtual_entry_class_named(JNIEnv *env, const char *name)
{
	jclass c = (*env)->FindClass(env, name);

	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	return c;
}

void virtual_entry_init(void)
{
	jclass continuation, task;
	JNIEnv *env = agent.env;
	jfieldID of, thread;

	if (jdk.klass || vm_sig.version < SINCE || !env || (*env)->PushLocalFrame(env, 8) < 0)
		return;
	/* neither lookup initialises the class VirtualThread; virtual_threads_used() relies on
	 * that */
	continuation = virtual_entry_class_named(env, "jdk/internal/vm/Continuation");
	task = virtual_entry_class_named(env, "java/lang/VirtualThread$VThreadContinuation$1");
	of = virtual_entry_field(env, continuation, "target", "Ljava/lang/Runnable;");
	thread = virtual_entry_field(env, task, "val$vthread", "Ljava/lang/VirtualThread;");
	if (of && thread) {
		jdk.task = field_id_offset(of);
		jdk.thread = field_id_offset(thread);
		__atomic_store_n(&jdk.klass, klass_of_class(env, task), __ATOMIC_RELEASE);
	}
	(*env)->PopLocalFrame(env, NULL);
}

uint64_t virtual_entry_thread(uint64_t java_thread)
{
	uint64_t klass = __atomic_load_n(&jdk.klass, __ATOMIC_ACQUIRE), epoch = oop_epoch_sig();
	uint64_t continuation = continuation_on_sig(java_thread), task, thread;

	if (!klass || !continuation || !epoch)
		return 0;
	task = oop_load_sig(continuation + (uint32_t)jdk.task);
	if (object_klass(task) != klass)
		return 0;
	thread = oop_load_sig(task + (uint32_t)jdk.thread);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return continuation_on_sig(java_thread) == continuation && oop_epoch_sig() == epoch ? thread
											    : 0;
}

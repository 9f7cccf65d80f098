/* See thread_status.h. Finds the offsets of the fields. */
#include "agent/hotspot/thread_status.h"

#include <string.h>
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/libjvm.h"

static int32_t thread_status_field(JNIEnv *env, jclass of, const char *name, const char *type)
{
	jfieldID id = of ? (*env)->GetFieldID(env, of, name, type) : NULL;

	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	return id ? field_id_offset(id) : -1;
}

static jclass thread_status_class(JNIEnv *env, const char *name)
{
	jclass found = (*env)->FindClass(env, name);

	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	return found;
}

void thread_status_init(JNIEnv *env)
{
	struct thread_status_layout layout = { .status = -1, .holder = -1 };
	jclass thread = thread_status_class(env, "java/lang/Thread"), holder = NULL;
	struct libjvm_field object;

	layout.eetop = thread_status_field(env, thread, "eetop", "J");
	layout.status = thread_status_field(env, thread, "threadStatus", "I");
	if (layout.status < 0)
		layout.holder = thread_status_field(env, thread, "holder",
						    "Ljava/lang/Thread$FieldHolder;");
	if (layout.holder >= 0) {
		holder = thread_status_class(env, "java/lang/Thread$FieldHolder");
		layout.status = thread_status_field(env, holder, "threadStatus", "I");
	}
	if (libjvm_field("JavaThread", "_threadObj", &object))
		layout.slot_is_object = strcmp(object.type, "OopHandle") != 0;
	else
		layout.status = -1;
	if (layout.eetop < 0)
		layout.status = -1;
	layout.pending = libjvm_thread_offset("_current_pending_monitor");
	if (holder)
		(*env)->DeleteLocalRef(env, holder);
	if (thread)
		(*env)->DeleteLocalRef(env, thread);
	thread_status_layout_sig = layout;
}

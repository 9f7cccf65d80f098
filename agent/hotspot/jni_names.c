/*
 * See jni_names.h. Thread.getThreads() (private static, JDK 8 to 28) returns all live platform
 * threads. The tid of a Thread object is found by Thread.eetop (the address of the JavaThread) ->
 * _osthread -> _thread_id. The thread may end meanwhile, so these loads are guarded; at worst a
 * name is reported for a tid that no longer exists.
 *
 * A pass keeps no references and makes no system call; it takes 1 to 2 ms for 5,000 threads.
 */
#include "agent/hotspot/jni_names.h"

#include <jvmti.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/libjvm.h"

static struct {
	bool tried, usable;
	jclass thread_class; /* global reference */
	jmethodID get_threads;
	jfieldID name, eetop, tid;
	jfieldID holder, status; /* the field `status` is in Thread (holder NULL) or, from JDK 19
				  * on, in its holder */
	long osthread_at, thread_id_at;
} names;

static void clear_exception(JNIEnv *env)
{
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

static jfieldID jni_names_field(JNIEnv *env, jclass of, const char *name, const char *type)
{
	jfieldID id = (*env)->GetFieldID(env, of, name, type);

	clear_exception(env);
	return id;
}

/* Finds the field threadStatus, a bit set defined by JVMTI, from which Thread.getState() is
 * derived. */
static void find_status(JNIEnv *env, jclass thread)
{
	jclass holder;

	names.status = jni_names_field(env, thread, "threadStatus", "I");
	if (names.status)
		return;
	names.holder = jni_names_field(env, thread, "holder", "Ljava/lang/Thread$FieldHolder;");
	holder = names.holder ? (*env)->FindClass(env, "java/lang/Thread$FieldHolder") : NULL;
	clear_exception(env);
	if (!holder)
		return;
	names.status = jni_names_field(env, holder, "threadStatus", "I");
	(*env)->DeleteLocalRef(env, holder);
}

static bool jni_names_prepare(JNIEnv *env)
{
	jclass local;

	if (names.tried)
		return names.usable;
	names.tried = true;
	names.osthread_at = libjvm_offset("JavaThread", "_osthread");
	if (names.osthread_at < 0)
		names.osthread_at = libjvm_offset("Thread", "_osthread");
	names.thread_id_at = libjvm_offset("OSThread", "_thread_id");
	local = (*env)->FindClass(env, "java/lang/Thread");
	clear_exception(env);
	if (local) {
		names.thread_class = (*env)->NewGlobalRef(env, local);
		names.get_threads = (*env)->GetStaticMethodID(env, local, "getThreads",
							      "()[Ljava/lang/Thread;");
		clear_exception(env);
		names.name = jni_names_field(env, local, "name", "Ljava/lang/String;");
		names.eetop = jni_names_field(env, local, "eetop", "J");
		names.tid = jni_names_field(env, local, "tid", "J");
		find_status(env, local);
		(*env)->DeleteLocalRef(env, local);
	}
	names.usable = names.thread_class && names.get_threads && names.name && names.eetop &&
		       names.tid && names.osthread_at >= 0 && names.thread_id_at >= 0;
	return names.usable;
}

static uint32_t jni_names_tid_of(uint64_t java_thread)
{
	if (!java_thread)
		return 0; /* not started, or ended */
	return load32_sig(load64_sig(java_thread + (uint64_t)names.osthread_at) +
			  (uint64_t)names.thread_id_at);
}

static void name_one(JNIEnv *env, jobject thread, uint32_t tid, jni_name_fn *on_name)
{
	static char buf[WIRE_STRING_MAX];
	jstring name = (*env)->GetObjectField(env, thread, names.name);
	jint chars;

	if (!name)
		return;
	chars = (*env)->GetStringLength(env, name);
	/* a char is at most 3 bytes of (modified) UTF-8 */
	if (chars > (jint)sizeof(buf) / 3 - 1)
		chars = (jint)sizeof(buf) / 3 - 1;
	memset(buf, 0, (size_t)chars * 3 + 1);
	(*env)->GetStringUTFRegion(env, name, 0, chars, buf);
	(*env)->DeleteLocalRef(env, name);
	clear_exception(env);
	on_name(tid, (uint64_t)(*env)->GetLongField(env, thread, names.tid), buf);
}

/* -1 = not known */
static jint status_of(JNIEnv *env, jobject thread)
{
	jobject of = thread;
	jint status;

	if (!names.status)
		return -1;
	if (names.holder)
		of = (*env)->GetObjectField(env, thread, names.holder);
	if (!of)
		return -1;
	status = (*env)->GetIntField(env, of, names.status);
	if (of != thread)
		(*env)->DeleteLocalRef(env, of);
	return status;
}

bool jni_thread_is_timed(JNIEnv *env, jobject thread)
{
	jint status = status_of(env, thread);

	return status >= 0 && status & JVMTI_THREAD_STATE_WAITING_WITH_TIMEOUT;
}

bool jni_thread_is_parked(JNIEnv *env, jobject thread)
{
	jint status = status_of(env, thread);

	return status < 0 || status & JVMTI_THREAD_STATE_PARKED;
}

void jni_threads_each(jni_thread_fn *on, void *context)
{
	JNIEnv *env = agent.env;
	jobjectArray all;
	jsize n;

	if (!env || !jni_names_prepare(env))
		return;
	all = (*env)->CallStaticObjectMethod(env, names.thread_class, names.get_threads);
	clear_exception(env);
	if (!all)
		return;
	n = (*env)->GetArrayLength(env, all);
	for (jsize i = 0; i < n; i++) {
		jobject thread = (*env)->GetObjectArrayElement(env, all, i);

		if (!thread)
			continue;
		on(env, thread, (uint64_t)(*env)->GetLongField(env, thread, names.eetop), context);
		(*env)->DeleteLocalRef(env, thread);
	}
	(*env)->DeleteLocalRef(env, all);
}

struct jni_names_pass {
	jni_name_fn *on_name;
	jni_state_fn *on_state;
};

static void jni_names_on_thread(JNIEnv *env, jobject thread, uint64_t java_thread, void *context)
{
	const struct jni_names_pass *pass = context;
	uint32_t tid = jni_names_tid_of(java_thread);
	jint status;

	if (!tid)
		return;
	name_one(env, thread, tid, pass->on_name);
	status = pass->on_state ? status_of(env, thread) : -1;
	if (status >= 0)
		pass->on_state(tid, java_thread, status);
}

void jni_names_pass(jni_name_fn *on_name, jni_state_fn *on_state)
{
	static const sigset_t nothing_blocked;
	struct jni_names_pass pass = { on_name, on_state };

	(void)guard_begin_sig(&nothing_blocked);
	jni_threads_each(jni_names_on_thread, &pass);
}

void jni_names_free(void)
{
	if (names.thread_class && agent.env)
		(*agent.env)->DeleteGlobalRef(agent.env, names.thread_class);
	memset(&names, 0, sizeof(names));
}

void jni_property(JNIEnv *env, const char *key, char *buf, size_t size)
{
	jclass system = (*env)->FindClass(env, "java/lang/System");
	jmethodID get = NULL;
	jstring k, v = NULL;

	memset(buf, 0, size);
	if (system)
		get = (*env)->GetStaticMethodID(env, system, "getProperty",
						"(Ljava/lang/String;)Ljava/lang/String;");
	clear_exception(env);
	k = get ? (*env)->NewStringUTF(env, key) : NULL;
	if (k)
		v = (*env)->CallStaticObjectMethod(env, system, get, k);
	clear_exception(env);
	if (v) {
		jint chars = (*env)->GetStringLength(env, v);

		if (chars > (jint)size / 3 - 1)
			chars = (jint)size / 3 - 1;
		(*env)->GetStringUTFRegion(env, v, 0, chars, buf);
		(*env)->DeleteLocalRef(env, v);
	}
	if (k)
		(*env)->DeleteLocalRef(env, k);
	if (system)
		(*env)->DeleteLocalRef(env, system);
	clear_exception(env);
}

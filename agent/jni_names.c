/*
 * Thread.getThreads() (private static, JDK 8 to 28) gives all live platform threads. A Thread
 * object leads to its tid by Thread.eetop (the address of the JVM's JavaThread) -> _osthread ->
 * _thread_id. A thread may end while we look, so that path is read with process_vm_readv: stale
 * addresses are errors there, not faults; a wrong tid at the worst names a thread that is gone.
 */
#include "agent/jni_names.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "agent/libjvm.h"
#include "agent/threads.h"

static struct {
	bool tried, usable;
	jclass thread_class; /* global reference */
	jmethodID get_threads, get_name;
	jfieldID eetop, tid;
	long osthread_at, thread_id_at;
} names;

static void clear_exception(JNIEnv *env)
{
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

static bool prepare(JNIEnv *env)
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
	if (local) {
		names.thread_class = (*env)->NewGlobalRef(env, local);
		names.get_threads = (*env)->GetStaticMethodID(env, local, "getThreads",
							      "()[Ljava/lang/Thread;");
		clear_exception(env);
		names.get_name = (*env)->GetMethodID(env, local, "getName", "()Ljava/lang/String;");
		clear_exception(env);
		names.eetop = (*env)->GetFieldID(env, local, "eetop", "J");
		clear_exception(env);
		names.tid = (*env)->GetFieldID(env, local, "tid", "J");
		(*env)->DeleteLocalRef(env, local);
	}
	clear_exception(env);
	names.usable = names.thread_class && names.get_threads && names.get_name && names.eetop &&
		       names.tid && names.osthread_at >= 0 && names.thread_id_at >= 0;
	return names.usable;
}

static bool read_self(uint64_t addr, void *dst, size_t len)
{
	struct iovec local = { dst, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };

	return syscall(SYS_process_vm_readv, (long)getpid(), &local, 1ul, &remote, 1ul, 0ul) ==
	       (long)len;
}

static uint32_t tid_of(uint64_t java_thread)
{
	uint64_t osthread;
	uint32_t tid;

	if (!java_thread ||
	    !read_self(java_thread + (uint64_t)names.osthread_at, &osthread, sizeof(osthread)) ||
	    !osthread || !read_self(osthread + (uint64_t)names.thread_id_at, &tid, sizeof(tid)))
		return 0;
	return tid;
}

static void name_one(JNIEnv *env, jobject thread)
{
	static char buf[WIRE_STRING_MAX];
	uint32_t tid = tid_of((uint64_t)(*env)->GetLongField(env, thread, names.eetop));
	jstring name;
	jint chars;

	if (!tid)
		return;
	name = (*env)->CallObjectMethod(env, thread, names.get_name);
	clear_exception(env);
	if (!name)
		return;
	chars = (*env)->GetStringLength(env, name);
	/* a char is at most 3 bytes of (modified) UTF-8 */
	if (chars > (jint)sizeof(buf) / 3 - 1)
		chars = (jint)sizeof(buf) / 3 - 1;
	memset(buf, 0, sizeof(buf));
	(*env)->GetStringUTFRegion(env, name, 0, chars, buf);
	clear_exception(env);
	(*env)->DeleteLocalRef(env, name);
	threads_java_name(tid, (uint64_t)(*env)->GetLongField(env, thread, names.tid), buf);
}

void jni_names_pass(void)
{
	JNIEnv *env = agent.env;
	jobjectArray all;
	jsize n;

	if (!env || !prepare(env))
		return;
	all = (*env)->CallStaticObjectMethod(env, names.thread_class, names.get_threads);
	clear_exception(env);
	if (!all)
		return;
	n = (*env)->GetArrayLength(env, all);
	for (jsize i = 0; i < n; i++) {
		jobject thread = (*env)->GetObjectArrayElement(env, all, i);

		if (thread) {
			name_one(env, thread);
			(*env)->DeleteLocalRef(env, thread);
		}
	}
	(*env)->DeleteLocalRef(env, all);
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

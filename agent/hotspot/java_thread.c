#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/java_thread_priv.h"
#include "agent/hotspot/libjvm.h"

#define KEYS_MAX 1024 /* PTHREAD_KEYS_MAX of glibc; musl has 128 and gives NULL beyond */

/* The calling thread's JavaThread, from Thread.eetop, in which the JVM stores its address. */
static uint64_t thread_address(JNIEnv *env)
{
	uint64_t address = 0;
	jobject self = NULL;
	jmethodID current;
	jfieldID eetop;
	jclass klass;

	klass = (*env)->FindClass(env, "java/lang/Thread");
	if (!klass)
		goto out;
	current = (*env)->GetStaticMethodID(env, klass, "currentThread", "()Ljava/lang/Thread;");
	eetop = current ? (*env)->GetFieldID(env, klass, "eetop", "J") : NULL;
	if (!eetop)
		goto out;
	self = (*env)->CallStaticObjectMethod(env, klass, current);
	/* -Xcheck:jni complains into the application's output about a call that is not checked */
	if (!(*env)->ExceptionCheck(env) && self)
		address = (uint64_t)(*env)->GetLongField(env, self, eetop);
out:
	(*env)->ExceptionClear(env);
	if (self)
		(*env)->DeleteLocalRef(env, self);
	if (klass)
		(*env)->DeleteLocalRef(env, klass);
	return address;
}

int java_thread_init(JNIEnv *env)
{
	struct java_thread_offsets *p = &java_thread_offsets;
	uint64_t thread = thread_address(env);

	if (!thread || (uint64_t)(uintptr_t)env <= thread)
		return -ENOTSUP;
	p->osthread = (int32_t)libjvm_offset("JavaThread", "_osthread");
	if (p->osthread < 0)
		p->osthread = (int32_t)libjvm_offset("Thread", "_osthread");
	p->number = (int32_t)libjvm_offset("OSThread", "_thread_id");
	/* through dlsym, because it is in libpthread before glibc 2.34 */
	p->getspecific = (getspecific_fn *)dlsym(RTLD_DEFAULT, "pthread_getspecific");
	if (!p->getspecific)
		return -ENOTSUP;
	for (pthread_key_t key = 0; key < KEYS_MAX; key++) {
		if ((uint64_t)(uintptr_t)p->getspecific(key) != thread)
			continue;
		p->key = key;
		p->env_offset = (uint64_t)(uintptr_t)env - thread;
		p->functions = *env;
		return 0;
	}
	return -ENOTSUP;
}

#include <stddef.h>
#include "agent/walker/java_thread.h"
#include "agent/walker/java_thread_priv.h"
#include "agent/walker/unwind.h"

struct java_thread_places java_thread_places;

JNIEnv *java_thread_env_sig(void)
{
	const struct java_thread_places *p = &java_thread_places;
	uint64_t thread, env;

	/* an array access in glibc and musl, no lock */
	thread = (uint64_t)(uintptr_t)p->getspecific(p->key);
	if (!thread)
		return NULL;
	env = thread + p->env_offset;
	/* a GC or VM thread is a smaller object: look before reading past its page */
	if (thread >> 12 != env >> 12 && !unwind_readable_sig(env))
		return NULL;
	if (*(const struct JNINativeInterface_ *const *)env != p->functions)
		return NULL;
	return (JNIEnv *)env;
}

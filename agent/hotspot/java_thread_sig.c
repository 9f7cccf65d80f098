#include <stddef.h>
#include "agent/base/guard.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/java_thread_priv.h"

struct java_thread_offsets java_thread_offsets;

uint64_t java_thread_address_sig(void)
{
	const struct java_thread_offsets *p = &java_thread_offsets;
	uint64_t thread;

	if (!p->getspecific) /* not learnt */
		return 0;
	/* signal-safe: in glibc and musl an array access without a lock */
	thread = (uint64_t)(uintptr_t)p->getspecific(p->key);
	return java_thread_is_sig(thread) ? thread : 0;
}

bool java_thread_is_sig(uint64_t address)
{
	const struct java_thread_offsets *p = &java_thread_offsets;

	/* a GC or VM thread is a smaller object, which has no JNIEnv */
	return address && load64_sig(address + p->env_offset) == (uint64_t)(uintptr_t)p->functions;
}

JNIEnv *java_thread_env_sig(void)
{
	uint64_t thread = java_thread_address_sig();

	return thread ? (JNIEnv *)(thread + java_thread_offsets.env_offset) : NULL;
}

uint64_t java_thread_of_sig(const JNIEnv *env)
{
	return (uint64_t)(uintptr_t)env - java_thread_offsets.env_offset;
}

uint32_t java_thread_tid_sig(uint64_t java_thread)
{
	const struct java_thread_offsets *p = &java_thread_offsets;

	if (p->osthread < 0 || p->number < 0)
		return 0;
	return load32_sig(load64_sig(java_thread + (uint32_t)p->osthread) + (uint32_t)p->number);
}

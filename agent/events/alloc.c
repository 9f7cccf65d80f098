/*
 * Allocation samples: JVMTI SampledObjectAlloc, JDK 11 and later. The JVM samples an object about
 * every `interval` bytes that a thread allocates and calls us in that thread, in native state; the
 * sample stands for alloc_weight() bytes. The JVM (11 to 25) gives these samples to one environment
 * at a time, and the interval applies to the whole JVM: while the samples are ours, nobody else
 * sets it.
 */
#include "agent/events/alloc.h"

#include <errno.h>
#include <string.h>
#include "agent/events/alloc_weight.h"
#include "agent/events/monitors.h"
#include "agent/events/push.h"
#include "agent/hotspot/jvmti_env.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/virtual_price.h"
#include "agent/walker/walker.h"

#define INTERVAL_DEFAULT (512u << 10) /* the JVM's own */
#define INTERVAL_MIN	 (4u << 10)
#define INTERVAL_MAX	 (1u << 30)
#define FIRST_JDK	 11

static struct {
	jvmtiEnv *jvmti; /* NULL = not made yet */
	bool on;
	uint64_t interval;
} alloc;
static const jvmtiCapabilities needed = { .can_generate_sampled_object_alloc_events = 1 };

static void JNICALL alloc_on_sample(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object,
				    jclass klass, jlong size)
{
	struct ring_sample head = { .event = WIRE_EVENT_ALLOC, .size = (uint64_t)size };

	(void)jvmti;
	(void)env;
	(void)thread;
	(void)object;
	if (!events_on(WIRE_EVENT_ALLOC))
		return;
	head.mono_ns = mono_ns();
	head.weight = alloc_weight(head.size, __atomic_load_n(&alloc.interval, __ATOMIC_RELAXED));
	head.class_handle = walker_class_sig(klass);
	(void)push_event(&head, 0);
}

static uint64_t alloc_clamp(uint64_t bytes)
{
	if (bytes == 0)
		return INTERVAL_DEFAULT;
	if (bytes < INTERVAL_MIN)
		return INTERVAL_MIN;
	return bytes > INTERVAL_MAX ? INTERVAL_MAX : bytes;
}

static int alloc_listen(jvmtiEnv *jvmti, const char **note)
{
	jvmtiEventCallbacks callbacks;

	if ((*jvmti)->AddCapabilities(jvmti, &needed) != JVMTI_ERROR_NONE) {
		*note = "no allocation samples: another agent receives them, and the JVM gives them to only one agent at a time; record again when that agent has stopped";
		return -EBUSY;
	}
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.SampledObjectAlloc = alloc_on_sample;
	if ((*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE ||
	    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE,
					       JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
					       NULL) != JVMTI_ERROR_NONE) {
		jvmti_env_rest(jvmti, &needed);
		*note = "no allocation samples: the JVM refuses them";
		return -ENOTSUP;
	}
	return 0;
}

static int alloc_open_env(const char **note)
{
	int r = jvmti_env_make(&alloc.jvmti, JVMTI_VERSION_11);

	if (r < 0) {
		*note = r == -EAGAIN ? "no allocation samples yet: the JVM is still starting"
				     : "no allocation samples: the JVM refuses a JVMTI environment";
		return r;
	}
	r = alloc_listen(alloc.jvmti, note);
	alloc.on = r == 0;
	return r;
}

static void alloc_set_interval(uint64_t interval)
{
	__atomic_store_n(&alloc.interval, interval, __ATOMIC_RELAXED);
	(void)(*alloc.jvmti)->SetHeapSamplingInterval(alloc.jvmti, (jint)interval);
}

/* As for monitors: from JDK 21 on the environment slows down yields of virtual threads until the
 * JVM ends. */
static int alloc_may_begin(const struct wire_start *start, const char **note)
{
	if (!virtual_threads_used())
		return 0;
	if (start->monitors == WIRE_MONITORS_ALWAYS) {
		*note = "allocation samples make each yield of a virtual thread slower in this JVM until it ends";
		return 0;
	}
	*note = "no allocation samples: virtual threads are in use, and these samples would make each of their yields slower until the JVM ends; `events.lock.monitors: always` collects them anyway";
	return -ENOTSUP;
}

static int alloc_begin(const struct wire_start *start, const char **note)
{
	int r = 0;

	if (libjvm_version().feature < FIRST_JDK) {
		*note = "no allocation samples: they need JDK 11 or later";
		return -ENOTSUP;
	}
	if (!alloc.on)
		r = alloc_may_begin(start, note);
	if (!alloc.on && r == 0)
		r = alloc_open_env(note);
	if (r == 0)
		alloc_set_interval(alloc_clamp(start->alloc_interval));
	return r;
}

/* Gives the samples back, and restores the JVM's own interval for the next agent. */
static void alloc_end(void)
{
	jvmtiEnv *jvmti = alloc.jvmti;

	(void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE,
						 JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
	if (alloc.interval != INTERVAL_DEFAULT)
		(void)(*jvmti)->SetHeapSamplingInterval(jvmti, INTERVAL_DEFAULT);
	alloc.on = false;
	jvmti_env_rest(jvmti, &needed);
}

const struct events_source alloc_source = {
	.step = "alloc",
	.event = WIRE_EVENT_ALLOC,
	.begin = alloc_begin,
	.end = alloc_end,
};

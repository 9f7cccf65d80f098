/*
 * See unmounted.h. The JVM calls back outside of its transitions: before an unmount begins and
 * after a mount has ended, so the calling thread is the virtual one, and JNI may be called. A
 * thread that ends is unmounted, too; VirtualThreadEnd, which follows, removes its entry.
 */
#include "agent/events/unmounted.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "agent/events/park.h"
#include "agent/events/push.h"
#include "agent/events/sources.h"
#include "agent/events/unmounted_price.h"
#include "agent/events/waits.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/jvmti_env.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/virtual_name.h"

#define VIRTUAL_SINCE	21
#define LOOK_NS		NS_PER_S /* between two looks at what it costs */
#define PAUSE_NS	(60 * NS_PER_S) /* before another try, where it cost too much */
#define MAX_CPU_DEFAULT 10 /* permille */

/* Of JDK 21; the headers of the build may be older. */
#define EVENT_VIRTUAL_THREAD_END   ((jvmtiEvent)88)
#define CAPABILITY_VIRTUAL_THREADS 44 /* the bit of can_support_virtual_threads */
#define MOUNT			   "com.sun.hotspot.events.VirtualThreadMount"
#define UNMOUNT			   "com.sun.hotspot.events.VirtualThreadUnmount"

static struct {
	jvmtiEnv *jvmti; /* NULL = not created yet */
	jint mount, unmount; /* the numbers of the extension events */
	bool on;
	uint64_t min_ns; /* application threads read it */
	uint64_t asked_ns, permille;
	bool no_budget;
	uint64_t next_ns; /* of a look, or of another try */
	struct unmounted_use last;
	char notes[2][160]; /* by turns: the last one sent is compared with the next */
	uint32_t n_notes;
} unmounted;

/* ---- in the virtual thread ---- */

static void JNICALL on_unmount(jvmtiEnv *ti, ...)
{
	JNIEnv *env;
	va_list a;

	va_start(a, ti);
	env = va_arg(a, JNIEnv *);
	if (events_on(WIRE_EVENT_OFFCPU))
		unmounted_add(virtual_id_of(env, va_arg(a, jthread)), mono_ns());
	va_end(a);
}

/* A contended monitor or Object.wait (JDK 24 and later) that monitors.c reports when it ends. */
static bool unmounted_is_locks(uint64_t id)
{
	return events_on(WIRE_EVENT_LOCK) && waits_find(id) >= 0;
}

static void unmounted_record(JNIEnv *env, jthread thread, uint64_t now_ns, uint64_t duration_ns)
{
	struct wait_lock lock = { 0 };
	struct ring_sample head = {
		.mono_ns = now_ns,
		.weight = duration_ns,
		.event = WIRE_EVENT_OFFCPU,
		.status = WIRE_OFFCPU_UNMOUNTED,
	};

	if (!events_enter(WIRE_EVENT_OFFCPU))
		return;
	virtual_identity_of(env, thread, &head);
	park_read_blocker_of(env, thread, &lock);
	head.class_handle = lock.class_handle;
	head.identity = lock.identity;
	(void)push_event(&head, java_thread_of_sig(env));
	events_leave();
}

static void unmounted_ends(JNIEnv *env, jthread thread)
{
	uint64_t id = virtual_id_of(env, thread), begin_ns = unmounted_remove(id), now_ns, ns;

	if (!begin_ns)
		return;
	now_ns = mono_ns();
	ns = now_ns - begin_ns;
	if (ns < __atomic_load_n(&unmounted.min_ns, __ATOMIC_RELAXED)) {
		unmounted_count_short(java_thread_of_sig(env), ns);
		return;
	}
	unmounted_count_long(java_thread_of_sig(env));
	if (!unmounted_is_locks(id))
		unmounted_record(env, thread, now_ns, ns);
}

static void JNICALL on_mount(jvmtiEnv *ti, ...)
{
	JNIEnv *env;
	va_list a;

	va_start(a, ti);
	env = va_arg(a, JNIEnv *);
	if (events_on(WIRE_EVENT_OFFCPU))
		unmounted_ends(env, va_arg(a, jthread));
	va_end(a);
}

static void JNICALL on_end(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
	(void)ti;
	if (events_on(WIRE_EVENT_OFFCPU))
		(void)unmounted_remove(virtual_id_of(env, thread));
}

/* ---- on and off ---- */

static void unmounted_disable(void)
{
	jvmtiEnv *ti = unmounted.jvmti;

	if (!unmounted.on)
		return;
	unmounted.on = false;
	(void)(*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, (jvmtiEvent)unmounted.unmount,
					      NULL);
	(void)(*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, (jvmtiEvent)unmounted.mount, NULL);
	(void)(*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, EVENT_VIRTUAL_THREAD_END, NULL);
}

/* A mount is known before the first unmount, and an end before both. */
static bool unmounted_enable(void)
{
	jvmtiEnv *ti = unmounted.jvmti;

	unmounted_table_renew();
	unmounted.on = true;
	if ((*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, EVENT_VIRTUAL_THREAD_END, NULL) ==
		    JVMTI_ERROR_NONE &&
	    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, (jvmtiEvent)unmounted.mount, NULL) ==
		    JVMTI_ERROR_NONE &&
	    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, (jvmtiEvent)unmounted.unmount,
					    NULL) == JVMTI_ERROR_NONE)
		return true;
	unmounted_disable();
	return false;
}

/* Frees what GetExtensionEvents returned. */
static void unmounted_free_events(jvmtiEnv *ti, jvmtiExtensionEventInfo *found, jint n)
{
	for (jint i = 0; i < n; i++) {
		for (jint p = 0; p < found[i].param_count; p++)
			(void)(*ti)->Deallocate(ti, (unsigned char *)found[i].params[p].name);
		(void)(*ti)->Deallocate(ti, (unsigned char *)found[i].params);
		(void)(*ti)->Deallocate(ti, (unsigned char *)found[i].id);
		(void)(*ti)->Deallocate(ti, (unsigned char *)found[i].short_description);
	}
	(void)(*ti)->Deallocate(ti, (unsigned char *)found);
}

/* An event that has other parameters than the thread is none that we know. */
static bool unmounted_is_event(const jvmtiExtensionEventInfo *e, const char *id)
{
	return strcmp(e->id, id) == 0 && e->param_count == 2 &&
	       e->params[0].base_type == JVMTI_TYPE_JNIENV &&
	       e->params[1].base_type == JVMTI_TYPE_JTHREAD;
}

static bool unmounted_find_events(jvmtiEnv *ti)
{
	jvmtiExtensionEventInfo *found;
	jint n = 0;

	unmounted.mount = unmounted.unmount = 0;
	if ((*ti)->GetExtensionEvents(ti, &n, &found) != JVMTI_ERROR_NONE)
		return false;
	for (jint i = 0; i < n; i++) {
		if (unmounted_is_event(&found[i], MOUNT))
			unmounted.mount = found[i].extension_event_index;
		if (unmounted_is_event(&found[i], UNMOUNT))
			unmounted.unmount = found[i].extension_event_index;
	}
	unmounted_free_events(ti, found, n);
	return unmounted.mount && unmounted.unmount;
}

/* Registers the callbacks, which stay: no event comes while none is enabled. */
static bool unmounted_prepare(jvmtiEnv *ti)
{
	/* jvmtiEventCallbacks of JDK 21: one pointer for each event, in the order of their numbers
	 */
	void *callbacks[EVENT_VIRTUAL_THREAD_END - JVMTI_MIN_EVENT_TYPE_VAL + 1] = { NULL };
	jvmtiCapabilities needed;

	callbacks[EVENT_VIRTUAL_THREAD_END - JVMTI_MIN_EVENT_TYPE_VAL] = (void *)on_end;
	memset(&needed, 0, sizeof(needed));
	((uint8_t *)&needed)[CAPABILITY_VIRTUAL_THREADS / 8] = 1u << CAPABILITY_VIRTUAL_THREADS % 8;
	return (*ti)->AddCapabilities(ti, &needed) == JVMTI_ERROR_NONE &&
	       unmounted_find_events(ti) &&
	       (*ti)->SetEventCallbacks(ti, (const jvmtiEventCallbacks *)(void *)callbacks,
					sizeof(callbacks)) == JVMTI_ERROR_NONE &&
	       (*ti)->SetExtensionEventCallback(ti, unmounted.mount, on_mount) ==
		       JVMTI_ERROR_NONE &&
	       (*ti)->SetExtensionEventCallback(ti, unmounted.unmount, on_unmount) ==
		       JVMTI_ERROR_NONE;
}

static int unmounted_make(const char **note)
{
	int r = jvmti_env_make(&unmounted.jvmti, JVMTI_VERSION_1_0);

	if (r < 0) {
		*note = r == -EAGAIN
				? "waits of virtual threads are not collected yet: the JVM is still starting"
				: "waits of virtual threads are left out: this JVM refuses a JVMTI environment";
		return r;
	}
	if (!unmounted_prepare(unmounted.jvmti) || !unmounted_enable()) {
		*note = "waits of virtual threads are left out: this JVM does not report them";
		return -ENOTSUP;
	}
	return 0;
}

static void unmounted_used(struct unmounted_use *ret)
{
	struct unmounted_counts counts;

	unmounted_table_counts(&counts);
	ret->at_ns = mono_ns();
	ret->process_ns = process_cpu_ns();
	ret->waits = counts.short_waits + counts.long_waits;
	ret->recorded_ns = agent.counters.of[WIRE_EVENT_OFFCPU].cost_ns;
}

static int unmounted_begin(const struct wire_start *start, const char **note)
{
	unmounted.asked_ns = start->virtual_min_ns;
	unmounted.permille = start->max_cpu_permille ? start->max_cpu_permille : MAX_CPU_DEFAULT;
	unmounted.no_budget = start->flags & WIRE_START_NO_BUDGET;
	__atomic_store_n(&unmounted.min_ns, unmounted.asked_ns, __ATOMIC_RELAXED);
	unmounted.next_ns = mono_ns() + LOOK_NS;
	unmounted_used(&unmounted.last);
	if (unmounted.on)
		return 0;
	if (vm_sig.version < VIRTUAL_SINCE) {
		*note = "waits of virtual threads are left out: this JVM has no virtual threads";
		return -ENOTSUP;
	}
	if (unmounted_table_begin() < 0) {
		*note = "waits of virtual threads are left out: no memory for their table";
		return -ENOMEM;
	}
	return unmounted_make(note);
}

static void unmounted_end(void)
{
	unmounted_disable();
	unmounted_table_end();
}

/* ---- what it costs ---- */

static void unmounted_tell_threshold(void)
{
	char *note = unmounted.notes[unmounted.n_notes++ % 2];

	note[0] = '\0';
	if (!unmounted.on)
		snprintf(
			note, sizeof(unmounted.notes[0]),
			"waits of virtual threads are left out for a minute: they are so many that hearing of each would take more CPU time than max_cpu allows");
	else if (unmounted.min_ns > unmounted.asked_ns)
		snprintf(
			note, sizeof(unmounted.notes[0]),
			"waits of virtual threads below %llu ms are only counted: recording shorter ones would take more CPU time than max_cpu allows",
			(unsigned long long)(unmounted.min_ns / NS_PER_MS));
	sources_note(&unmounted_source, note);
}

static void unmounted_keep_budget(void)
{
	struct unmounted_use now;
	uint64_t min_ns;

	unmounted_used(&now);
	min_ns = unmounted_price_min_ns(&unmounted.last, &now, unmounted.permille,
					unmounted.asked_ns, unmounted.min_ns);
	unmounted.last = now;
	unmounted.next_ns = now.at_ns + (min_ns ? LOOK_NS : PAUSE_NS);
	if (min_ns == unmounted.min_ns)
		return;
	if (!min_ns)
		unmounted_disable();
	__atomic_store_n(&unmounted.min_ns, min_ns ? min_ns : unmounted.asked_ns, __ATOMIC_RELAXED);
	unmounted_tell_threshold();
}

static uint64_t unmounted_tick(uint64_t now_ns)
{
	if (unmounted.no_budget)
		return UINT64_MAX;
	if (now_ns < unmounted.next_ns)
		return unmounted.next_ns;
	if (unmounted.on) {
		unmounted_keep_budget();
		return unmounted.next_ns;
	}
	/* the pause is over */
	unmounted.next_ns = now_ns + LOOK_NS;
	unmounted_used(&unmounted.last);
	if (unmounted_enable())
		unmounted_tell_threshold();
	return unmounted.next_ns;
}

uint64_t unmounted_min_ns(void)
{
	return unmounted.on ? unmounted.min_ns : 0;
}

const struct events_source unmounted_source = {
	.step = "virtual",
	.event = WIRE_EVENT_OFFCPU,
	.begin = unmounted_begin,
	.end = unmounted_end,
	.tick = unmounted_tick,
};

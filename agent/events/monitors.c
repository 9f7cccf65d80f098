/*
 * See monitors.h. The events come in the waiting thread, in native state. Owner and hash of the
 * monitor are read before the thread blocks; its class is read at the end, if the wait was long.
 *
 * Begin and end of a wait are matched by the JavaThread, for virtual threads by their id: from JDK
 * 24 on the wait may end on another carrier (JEP 491).
 */
#include "agent/events/monitors.h"

#include <errno.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/events/sources.h"
#include "agent/events/unknown_owner.h"
#include "agent/events/waits.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/jvmti_env.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/owner.h"
#include "agent/walker/walker.h"

#define VIRTUAL_SINCE 21

typedef jint JNICALL hash_fn(JNIEnv *env, jobject object);

static jvmtiEnv *jvmti; /* NULL = not created yet */
static bool on;
static const jvmtiCapabilities needed = { .can_generate_monitor_events = 1 };
static hash_fn *hash; /* JVM_IHashCode; NULL = JVMTI's */

static const jvmtiEvent kinds[] = {
	JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
	JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
	JVMTI_EVENT_MONITOR_WAIT,
	JVMTI_EVENT_MONITOR_WAITED,
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- in the waiting thread ---- */

static uint64_t monitors_word_at(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

static uint64_t monitors_key_of(uint64_t java_thread)
{
	/* not vm_sig's: JDK 24 does not export it */
	int32_t entry = continuation_sig.entry_in_thread;

	if (vm_sig.thread_monitor_owner < 0 ||
	    (entry >= 0 && !monitors_word_at(java_thread + (uint32_t)entry)))
		return java_thread;
	return monitors_word_at(java_thread + (uint32_t)vm_sig.thread_monitor_owner);
}

/* The same for another thread, which may end meanwhile. */
static uint64_t monitors_key_of_other(uint64_t java_thread)
{
	if (vm_sig.thread_monitor_owner < 0 || !virtual_is_mounted_sig(java_thread))
		return java_thread;
	return virtual_id_sig(java_thread);
}

static uint32_t monitors_identity_of(jvmtiEnv *ti, JNIEnv *env, jobject object)
{
	jint value = 0;

	if (hash)
		return (uint32_t)hash(env, object);
	return (*ti)->GetObjectHashCode(ti, object, &value) == JVMTI_ERROR_NONE ? (uint32_t)value
										: 0;
}

static void JNICALL on_enter(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object)
{
	uint64_t java_thread = java_thread_of_sig(env);
	struct wait_lock lock = { 0 };
	uint64_t unknown = 0, key;

	(void)thread;
	if (!events_on(WIRE_EVENT_LOCK))
		return;
	lock.identity = monitors_identity_of(ti, env, object);
	lock.owner_tid = owner_of_pending(java_thread, object, &unknown);
	if (unknown)
		lock.owner_tid = unknown_owner_seek(unknown);
	key = monitors_key_of(java_thread);
	/* a virtual thread without a carrier cannot be read while it waits */
	if (key != java_thread)
		lock.class_handle = walker_class_of_sig(object);
	wait_begin(java_thread, key, WIRE_WAIT_ENTER, 0, &lock);
	unknown_owner_wake_agent(lock.owner_tid);
}

static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
			    jlong timeout)
{
	static const struct wait_lock nothing_known;
	uint64_t java_thread = java_thread_of_sig(env);

	(void)ti;
	(void)thread;
	(void)object;
	wait_begin(java_thread, monitors_key_of(java_thread), WIRE_WAIT_WAIT,
		   timeout > 0 ? WIRE_LOCK_TIMED : 0, &nothing_known);
}

struct ended {
	jvmtiEnv *ti;
	JNIEnv *env;
	jobject object;
};

static void monitors_describe(void *context, struct wait_lock *lock)
{
	const struct ended *e = context;

	lock->class_handle = walker_class_of_sig(e->object);
	if (!lock->identity)
		lock->identity = monitors_identity_of(e->ti, e->env, e->object);
}

static void monitors_ended(jvmtiEnv *ti, JNIEnv *env, jobject object, enum wire_wait how)
{
	uint64_t java_thread = java_thread_of_sig(env);
	struct ended e = { ti, env, object };

	wait_end(java_thread, monitors_key_of(java_thread), how, monitors_describe, &e);
}

static void JNICALL on_entered(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object)
{
	(void)thread;
	monitors_ended(ti, env, object, WIRE_WAIT_ENTER);
}

static void JNICALL on_waited(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
			      jboolean timed_out)
{
	(void)thread;
	(void)timed_out;
	monitors_ended(ti, env, object, WIRE_WAIT_WAIT);
}

/* ---- waits in progress when the events begin ---- */

/* The ends of such waits do come as events. A thread may stop waiting while it is added here; the
 * check afterwards then finds that it waits for something else, or for nothing. */
static void monitors_add_in_progress(uint64_t java_thread)
{
	struct owner_monitor before, after;
	struct wait_lock lock = { 0 };
	int32_t slot;

	owner_blocked_on(java_thread, &before);
	if (!before.address)
		return;
	lock.owner_tid = before.owner;
	slot = waits_add(java_thread, monitors_key_of_other(java_thread),
			 before.waiting ? WIRE_WAIT_WAIT : WIRE_WAIT_ENTER, &lock);
	if (slot < 0)
		return;
	owner_blocked_on(java_thread, &after);
	if (after.address != before.address || after.waiting != before.waiting)
		waits_remove((uint32_t)slot, waits_at((uint32_t)slot)->begin_ns);
}

/* ---- on and off ---- */

static void monitors_end(void)
{
	if (!on)
		return;
	on = false;
	for (size_t i = 0; i < N_KINDS; i++)
		(void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, kinds[i], NULL);
	jvmti_env_rest(jvmti, &needed);
}

static bool monitors_enable(jvmtiEnv *ti)
{
	jvmtiEventCallbacks callbacks;

	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.MonitorContendedEnter = on_enter;
	callbacks.MonitorContendedEntered = on_entered;
	callbacks.MonitorWait = on_wait;
	callbacks.MonitorWaited = on_waited;
	if ((*ti)->AddCapabilities(ti, &needed) != JVMTI_ERROR_NONE ||
	    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE)
		return false;
	for (size_t i = 0; i < N_KINDS; i++)
		if ((*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, kinds[i], NULL) !=
		    JVMTI_ERROR_NONE)
			return false;
	return true;
}

static int monitors_make(const char **note)
{
	int r;

	hash = (hash_fn *)libjvm_symbol("JVM_IHashCode");
	r = jvmti_env_make(&jvmti, JVMTI_VERSION_1_0);
	if (r < 0) {
		*note = r == -EAGAIN
				? "monitors are not collected yet: the JVM is still starting"
				: "monitors are left out: this JVM refuses a JVMTI environment";
		return r;
	}
	on = true;
	if (monitors_enable(jvmti))
		return 0;
	monitors_end();
	*note = "monitors are left out: this JVM refuses monitor events";
	return -ENOTSUP;
}

/* ---- whether, and when ---- */

#define PRICE_CHECK_NS (60 * NS_PER_S)

static const char left_out[] =
	"monitors are left out: virtual threads are in use, and monitor events would make each of "
	"their yields slower until the JVM ends; `events.lock.monitors: always` collects them "
	"anyway";
static const char not_yet[] =
	"monitors are not collected in a JVM's first minute, because monitor events would make virtual "
	"threads slower if it starts any; `events.lock.monitors: always` collects them at once";
static const char price[] =
	"virtual threads are in use: monitor events make each of their yields about 60 to 120 ns slower "
	"until the JVM ends; `events.lock.monitors: never` avoids that in JVMs that start later";

static struct {
	uint64_t decide_ns; /* when the setting `monitors: auto` takes effect; 0 = it has */
	bool paid_by_others; /* another agent has created such an environment already */
	bool add_in_progress; /* the events have just begun: add the waits in progress */
} plan;

/* "", or the cost of our environment. */
static const char *monitors_price_note(void)
{
	return !plan.paid_by_others && virtual_threads_used() ? price : "";
}

static int monitors_make_now(const char **note)
{
	int r;

	if (!jvmti_env_is_there())
		plan.paid_by_others = virtual_price_is_paid();
	plan.add_in_progress = true;
	r = monitors_make(note);
	if (r == 0)
		*note = monitors_price_note();
	return r;
}

static int monitors_decide(const char **note)
{
	uint64_t wait_ns = virtual_price_wait_ns();

	if (virtual_threads_used()) {
		*note = left_out;
		monitors_end();
		return -ENOTSUP;
	}
	if (!wait_ns)
		return monitors_make_now(note);
	plan.decide_ns = mono_ns() + wait_ns;
	*note = not_yet;
	return 0;
}

static int monitors_begin(const struct wire_start *start, const char **note)
{
	plan.decide_ns = 0;
	if (start->monitors == WIRE_MONITORS_NEVER) {
		monitors_end();
		return -ENOTSUP;
	}
	if (on) {
		*note = monitors_price_note();
		return 0;
	}
	if (start->monitors == WIRE_MONITORS_AUTO && !virtual_price_is_paid())
		return monitors_decide(note);
	return monitors_make_now(note);
}

static void monitors_decide_late(void)
{
	const char *note = "";

	(void)monitors_decide(&note);
	sources_note(&monitors_source, note);
}

static uint64_t monitors_tick(uint64_t now_ns)
{
	if (plan.decide_ns && now_ns >= plan.decide_ns) {
		plan.decide_ns = 0;
		monitors_decide_late();
	}
	if (plan.decide_ns)
		return plan.decide_ns;
	if (!on)
		return UINT64_MAX;
	/* only after the events are on, so that no wait is missed */
	if (plan.add_in_progress)
		owner_each_thread(monitors_add_in_progress);
	plan.add_in_progress = false;
	if (plan.paid_by_others || vm_sig.version < VIRTUAL_SINCE)
		return UINT64_MAX;
	if (!virtual_threads_used())
		return now_ns + PRICE_CHECK_NS;
	sources_note(&monitors_source, price);
	return UINT64_MAX;
}

const struct events_source monitors_source = {
	.step = "lock",
	.event = WIRE_EVENT_LOCK,
	.begin = monitors_begin,
	.end = monitors_end,
	.tick = monitors_tick,
};

/*
 * See monitors.h. The events come in the waiting thread, in native state. Before it blocks: who
 * owns the monitor, and its hash. Its class is asked for at the end, when the wait turned out to be
 * long.
 *
 * A wait is paired by its JavaThread, one of a virtual thread by the thread's id: from 24 on it may
 * end on another carrier (JEP 491).
 */
#include "agent/events/monitors.h"

#include <errno.h>
#include <string.h>
#include "agent/events/jvmti_env.h"
#include "agent/events/owner.h"
#include "agent/events/unknown_owner.h"
#include "agent/events/waits.h"
#include "agent/libjvm.h"
#include "agent/walker/guard.h"
#include "agent/walker/hotspot/continuation.h"
#include "agent/walker/hotspot/layout.h"
#include "agent/walker/hotspot/method.h"
#include "agent/walker/java_thread.h"
#include "agent/walker/walker.h"

#define VIRTUAL_SINCE 21

typedef jint JNICALL hash_fn(JNIEnv *env, jobject object);
typedef jclass JNICALL find_class_fn(JNIEnv *env, const char *name);

static jvmtiEnv *jvmti; /* NULL = not made yet */
static bool on;
static const jvmtiCapabilities needed = { .can_generate_monitor_events = 1 };
static hash_fn *hash; /* JVM_IHashCode; NULL = JVMTI's */
static bool owners;

static const jvmtiEvent kinds[] = {
	JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
	JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
	JVMTI_EVENT_MONITOR_WAIT,
	JVMTI_EVENT_MONITOR_WAITED,
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- in the waiting thread ---- */

static uint64_t word_at(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

static uint64_t key_of(uint64_t java_thread)
{
	int32_t entry = vm_sig.thread_cont_entry;

	if (vm_sig.thread_monitor_owner < 0 ||
	    (entry >= 0 && !word_at(java_thread + (uint32_t)entry)))
		return java_thread;
	return word_at(java_thread + (uint32_t)vm_sig.thread_monitor_owner);
}

/* The same of another thread, which may end. */
static uint64_t key_seen_from_outside(uint64_t java_thread)
{
	if (vm_sig.thread_monitor_owner < 0 || !virtual_is_mounted_sig(java_thread))
		return java_thread;
	return virtual_id_sig(java_thread);
}

static uint32_t identity_of(jvmtiEnv *ti, JNIEnv *env, jobject object)
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
	lock.identity = identity_of(ti, env, object);
	if (owners)
		lock.owner_tid = owner_of_pending(java_thread, object, &unknown);
	if (unknown)
		lock.owner_tid = unknown_owner_seek(unknown);
	key = key_of(java_thread);
	/* one without a carrier cannot be asked while it waits */
	if (key != java_thread)
		lock.class_handle = walker_class_of_sig(object);
	wait_begin(java_thread, key, WIRE_WAIT_ENTER, 0, &lock);
	unknown_owner_hurry(lock.owner_tid);
}

static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
			    jlong timeout)
{
	static const struct wait_lock nothing_known;
	uint64_t java_thread = java_thread_of_sig(env);

	(void)ti;
	(void)thread;
	(void)object;
	wait_begin(java_thread, key_of(java_thread), WIRE_WAIT_WAIT,
		   timeout > 0 ? WIRE_LOCK_TIMED : 0, &nothing_known);
}

struct ended {
	jvmtiEnv *ti;
	JNIEnv *env;
	jobject object;
};

static void look(void *context, struct wait_lock *lock)
{
	const struct ended *e = context;

	lock->class_handle = walker_class_of_sig(e->object);
	if (!lock->identity)
		lock->identity = identity_of(e->ti, e->env, e->object);
}

static void ended(jvmtiEnv *ti, JNIEnv *env, jobject object, enum wire_wait how)
{
	uint64_t java_thread = java_thread_of_sig(env);
	struct ended e = { ti, env, object };

	wait_end(java_thread, key_of(java_thread), how, look, &e);
}

static void JNICALL on_entered(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object)
{
	(void)thread;
	ended(ti, env, object, WIRE_WAIT_ENTER);
}

static void JNICALL on_waited(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
			      jboolean timed_out)
{
	(void)thread;
	(void)timed_out;
	ended(ti, env, object, WIRE_WAIT_WAIT);
}

/* ---- are virtual threads in use? ---- */

/*
 * Has java.lang.VirtualThread been initialised? Nobody does that but who starts one. The class is
 * found without initialising it, as FindClass would.
 */
bool virtual_threads_used(void)
{
	find_class_fn *find_class = (find_class_fn *)libjvm_symbol("JVM_FindClassFromBootLoader");
	long state_at = libjvm_offset("InstanceKlass", "_init_state");
	JNIEnv *env = agent.env;
	uint64_t klass = 0;
	int32_t done;
	jclass found;

	if (vm_sig.version < VIRTUAL_SINCE)
		return false;
	if (!find_class || state_at < 0 ||
	    !libjvm_int_constant("InstanceKlass::fully_initialized", &done))
		return true;
	found = find_class(env, "java/lang/VirtualThread");
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	if (found) {
		klass = klass_of_mirror_sig(found);
		(*env)->DeleteLocalRef(env, found);
	}
	return klass && load8_sig(klass + (uint64_t)state_at) >= done;
}

/* ---- waits older than the events ---- */

/* Their ends come like all others. A thread may stop waiting while it is entered here: then it
 * waits for something else, or for nothing, right afterwards. */
static void add_older(uint64_t java_thread)
{
	struct owner_monitor before, after;
	struct wait_lock lock = { 0 };
	int32_t place;

	owner_blocked_on(java_thread, &before);
	if (!before.address)
		return;
	lock.owner_tid = before.owner;
	place = waits_add(java_thread, key_seen_from_outside(java_thread),
			  before.waiting ? WIRE_WAIT_WAIT : WIRE_WAIT_ENTER, &lock);
	if (place < 0)
		return;
	owner_blocked_on(java_thread, &after);
	if (after.address != before.address || after.waiting != before.waiting)
		waits_remove((uint32_t)place, waits_at((uint32_t)place)->begin_ns);
}

/* Once the events are on. */
static uint64_t tick(uint64_t now_ns)
{
	(void)now_ns;
	if (owners)
		owner_each_thread(add_older);
	return UINT64_MAX;
}

/* ---- on and off ---- */

static void end(void)
{
	if (!on)
		return;
	on = false;
	for (size_t i = 0; i < N_KINDS; i++)
		(void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, kinds[i], NULL);
	jvmti_env_rest(jvmti, &needed);
}

static bool enable(jvmtiEnv *ti)
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

static int make(const char **note)
{
	hash = (hash_fn *)libjvm_symbol("JVM_IHashCode");
	owners = owner_init();
	if (!jvmti_env_make(&jvmti, JVMTI_VERSION_1_0)) {
		*note = "monitors are left out: this JVM gives no JVMTI environment";
		return -ENOTSUP;
	}
	on = true;
	if (enable(jvmti))
		return 0;
	end();
	*note = "monitors are left out: this JVM gives no monitor events";
	return -ENOTSUP;
}

static int begin(const struct wire_start *start, const char **note)
{
	bool wanted = start->monitors != WIRE_MONITORS_NEVER;

	if (start->monitors == WIRE_MONITORS_AUTO && !jvmti && virtual_threads_used()) {
		*note = "monitors are left out: virtual threads are in use, and monitor events would make each of their yields slower until the JVM ends; `events.lock.monitors: always` collects them all the same";
		wanted = false;
	}
	if (!wanted) {
		end();
		return -ENOTSUP;
	}
	return on ? 0 : make(note);
}

const struct events_source monitors_source = {
	.step = "lock",
	.event = WIRE_EVENT_LOCK,
	.begin = begin,
	.end = end,
	.tick = tick,
};

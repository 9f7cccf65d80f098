/*
 * See trace.h: decides when the agent's thread searches for tracers, and in which threads. A search
 * of a dozen threads takes 0.2 ms; searches may take a thousandth of the time. A thread has a
 * context only while it works on a request, so searches are repeated until a tracer is found.
 */
#include "agent/trace/trace.h"

#include <stdio.h>
#include <string.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/base/outlet.h"
#include "agent/hotspot/jni_names.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/oop.h"
#include "agent/hotspot/virtual_price.h"
#include "agent/trace/trace_priv.h"
#include "agent/trace/trace_tls.h"

/* time between two searches, while no tracer is known */
#define SEARCH_NS (NS_PER_S / 2)
/* time between two searches when one is known, because another class loader may bring another
 * tracer */
#define AGAIN_NS (10 * NS_PER_S)
/* shortest time before a search for an unknown class that a handler has met */
#define WANTED_NS    (NS_PER_S / 10)
#define SHARE	     1000u /* searches may take 1/1000 of the time ... */
/* ... and so much before that: the first one runs cold code, and may take 8 ms instead of 1 */
#define BURST_NS     (20 * NS_PER_MS)
#define WANTED_SHARE 100u
#define VIRTUAL_MAX  64u /* virtual threads in one search */

static struct {
	bool usable; /* START asks for trace ids, and this JVM's layout is known */
	uint64_t next_ns, not_before_ns;
	uint64_t debt_ns; /* CPU time of searches above their share ... */
	uint64_t debt_at_ns; /* ... at the last one */
	uint32_t checked; /* virtual threads in this search so far */
	char note[256]; /* the last NOTE */
	uint64_t kinds; /* bits that START asks for */
	char keys[TRACE_MDC_KEYS * TRACE_KEY_BYTES]; /* keys of MDCs that START names */
} trace;

/* ---- one search ---- */

static void trace_is_on(void)
{
	__atomic_fetch_or(&trace_sig.on, TRACE_ON_HEAP, __ATOMIC_RELEASE);
}

/* Adds the hash of a ThreadLocal that holds a context. */
static void trace_add_local(struct trace_locals *l, uint32_t hash)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->hash[i] == hash)
			return;
	if (l->n == TRACE_SLOTS)
		return;
	l->hash[l->n] = hash;
	__atomic_store_n(&l->n, l->n + 1, __ATOMIC_RELEASE);
	trace_is_on();
}

static void trace_check_entry(JNIEnv *env, jobject entry, enum trace_map map)
{
	jobject value = trace_jdk_value(env, entry);
	struct trace_found found = { false, false };
	uint32_t hash;

	if (value)
		found = trace_learn_value(env, value);
	if ((!found.tracer && !found.mdc) || !trace_jdk_local(env, entry, &hash))
		return;
	if (found.tracer)
		trace_add_local(&trace_sig.tracers[map], hash);
	if (found.mdc)
		trace_add_local(&trace_sig.mdc[map], hash);
}

static void trace_check_vertx(JNIEnv *env, jobject thread)
{
	struct trace_found found;

	if ((*env)->PushLocalFrame(env, TRACE_LOCAL_REFS) < 0)
		return;
	found = trace_learn_vertx_thread(env, thread);
	if (found.tracer || found.mdc)
		trace_is_on();
	(*env)->PopLocalFrame(env, NULL);
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

static void trace_check_map(JNIEnv *env, jobject thread, enum trace_map map)
{
	jobjectArray entries = trace_jdk_entries(env, thread, map);
	jsize n = entries ? (*env)->GetArrayLength(env, entries) : 0;

	for (jsize i = 0; i < n; i++) {
		jobject entry = (*env)->GetObjectArrayElement(env, entries, i);

		if (!entry)
			continue;
		if ((*env)->PushLocalFrame(env, TRACE_LOCAL_REFS) == 0) {
			trace_check_entry(env, entry, map);
			(*env)->PopLocalFrame(env, NULL);
		}
		if ((*env)->ExceptionCheck(env))
			(*env)->ExceptionClear(env);
		(*env)->DeleteLocalRef(env, entry);
	}
	if (entries)
		(*env)->DeleteLocalRef(env, entries);
}

static void trace_check_thread(JNIEnv *env, jobject thread)
{
	trace_check_map(env, thread, TRACE_OWN);
	trace_check_map(env, thread, TRACE_INHERITABLE);
	trace_check_vertx(env, thread);
}

static void trace_on_thread(JNIEnv *env, jobject thread, uint64_t java_thread, void *context)
{
	(void)context;
	if (java_thread)
		trace_check_thread(env, thread);
}

static bool trace_on_virtual(JNIEnv *env, jobject thread, void *context)
{
	(void)context;
	trace_check_thread(env, thread);
	return ++trace.checked < VIRTUAL_MAX;
}

static void trace_send_note(void)
{
	const char *what = trace_learn_problem();

	if (strcmp(what, trace.note) != 0 && outlet && outlet->note("trace", what))
		snprintf(trace.note, sizeof(trace.note), "%s", what);
}

/* Adds a search of @took_ns. Returns the time until the next one that the share allows. */
static uint64_t trace_pay(uint64_t now_ns, uint64_t took_ns)
{
	uint64_t paid_ns = (now_ns - trace.debt_at_ns) / SHARE;

	trace.debt_ns = (trace.debt_ns > paid_ns ? trace.debt_ns - paid_ns : 0) + took_ns;
	trace.debt_at_ns = now_ns;
	return trace.debt_ns > BURST_NS ? (trace.debt_ns - BURST_NS) * SHARE : 0;
}

uint64_t trace_tick(uint64_t now_ns, trace_virtual_fn *virtual_threads)
{
	static const sigset_t nothing_blocked;
	bool wanted = __atomic_load_n(&trace_sig.wanted, __ATOMIC_ACQUIRE);
	uint64_t began_ns, took_ns, least_ns, wait_ns;

	took_ns = trace_tls_tick(now_ns);
	if (!trace.usable || now_ns < trace.not_before_ns || (!wanted && now_ns < trace.next_ns))
		return took_ns;
	__atomic_store_n(&trace_sig.wanted, 0, __ATOMIC_RELEASE);
	began_ns = thread_cpu_ns(0) - took_ns;
	(void)guard_begin_sig(&nothing_blocked);
	trace_learn_sweep(agent.env);
	jni_threads_each(trace_on_thread, NULL);
	if (trace_learn_vertx_is_new())
		jni_threads_each(trace_on_thread, NULL);
	trace.checked = 0;
	if (virtual_threads_used())
		virtual_threads(trace_on_virtual, NULL);
	trace_send_note();
	took_ns = thread_cpu_ns(0) - began_ns;
	least_ns = took_ns * WANTED_SHARE;
	trace.not_before_ns = now_ns + (least_ns > WANTED_NS ? least_ns : WANTED_NS);
	least_ns = trace_sig.on & TRACE_ON_HEAP ? AGAIN_NS : SEARCH_NS;
	wait_ns = trace_pay(now_ns, took_ns);
	trace.next_ns = now_ns + (wait_ns > least_ns ? wait_ns : least_ns);
	return took_ns;
}

/* ---- begin and end ---- */

/* "trace_id,traceId" */
static void trace_take_keys(struct wire_str keys)
{
	uint32_t n_keys = 0, from = 0;

	for (uint32_t i = 0; i <= keys.len && n_keys < TRACE_MDC_KEYS; i++) {
		uint32_t n = i - from;

		if (i < keys.len && keys.p[i] != ',')
			continue;
		if (n && n < TRACE_KEY_BYTES) {
			memcpy(trace_sig.mdc_keys[n_keys].text, keys.p + from, n);
			trace_sig.mdc_keys[n_keys].text[n] = '\0';
			trace_sig.mdc_keys[n_keys].len = n;
			trace_sig.mdc_keys[n_keys].hash = trace_jdk_hash(keys.p + from, n);
			n_keys++;
		}
		from = i + 1;
	}
	trace_sig.n_mdc_keys = n_keys;
}

static void trace_forget(void)
{
	__atomic_fetch_and(&trace_sig.on, ~TRACE_ON_HEAP, __ATOMIC_SEQ_CST);
	for (int i = 0; i < TRACE_MAPS; i++) {
		__atomic_store_n(&trace_sig.tracers[i].n, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&trace_sig.mdc[i].n, 0, __ATOMIC_SEQ_CST);
	}
	if (agent.env)
		trace_learn_forget(agent.env);
}

/* Does START ask for the same as the last one? Then what was learnt is kept. */
static bool trace_is_same(const struct wire_start *start)
{
	char keys[sizeof(trace.keys)] = "";
	bool same;

	if (start->mdc_keys.len && start->mdc_keys.len < sizeof(keys))
		memcpy(keys, start->mdc_keys.p, start->mdc_keys.len);
	same = trace.usable && trace.kinds == start->trace && strcmp(keys, trace.keys) == 0;
	trace.kinds = start->trace;
	memcpy(trace.keys, keys, sizeof(keys));
	return same;
}

void trace_begin(const struct wire_start *start)
{
	const char *missing = "";
	static char text[160];

	trace.note[0] = '\0';
	if (trace_is_same(start) && agent.env) {
		trace_learn_sweep(agent.env);
		return;
	}
	trace_forget();
	trace.usable = false;
	trace.next_ns = trace.not_before_ns = 0;
	trace_wanted.otel = start->trace & WIRE_TRACE_OTEL;
	trace_wanted.skywalking = start->trace & WIRE_TRACE_SKYWALKING;
	trace_wanted.brave = start->trace & WIRE_TRACE_BRAVE;
	trace_wanted.mdc = start->mdc_keys.len;
	trace_tls_begin(vm_known_sig && start->trace & WIRE_TRACE_PUBLISHED);
	if (!(start->trace & ~(uint64_t)WIRE_TRACE_PUBLISHED) && !start->mdc_keys.len)
		return;
	if (vm_known_sig && agent.env && trace_jdk_find(agent.env, &missing)) {
		trace_take_keys(start->mdc_keys);
		trace.usable = true;
	} else if (vm_known_sig && outlet) {
		snprintf(text, sizeof(text),
			 "trace ids are not read: the agent did not find %s in this JVM", missing);
		(void)outlet->note("trace", text);
	}
}

void trace_end(void)
{
	trace_tls_begin(false);
	trace.usable = false;
	trace_forget();
}

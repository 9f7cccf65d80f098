/*
 * See trace.h: from the thread to the value of a tracer's ThreadLocal, in the way of
 * ThreadLocalMap.getEntry(), but with loads that may fail.
 */
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/oop.h"
#include "agent/trace/trace_priv.h"
#include "agent/trace/trace_tls.h"

#define PROBES_MAX 64u
#define TABLE_MAX  65536u
#define TRIES	   3 /* attempts, as a collection may interfere */

struct trace_layout trace_sig;

uint64_t trace_ref_sig(uint64_t at, bool *unreadable)
{
	if (!oop_is_followable_sig(at)) {
		*unreadable = true;
		return 0;
	}
	return oop_load_sig(at);
}

uint64_t trace_element_sig(uint64_t array, uint32_t i, bool *unreadable)
{
	return trace_ref_sig(array + continuation_sig.array_references +
				     (uint64_t)i * continuation_sig.reference_bytes,
			     unreadable);
}

const struct trace_class *trace_class_sig(const struct trace_classes *c, uint64_t object)
{
	uint32_t n = __atomic_load_n(&c->n, __ATOMIC_ACQUIRE);
	uint64_t klass = n ? object_klass_sig(object) : 0;

	for (uint32_t i = 0; klass && i < n; i++)
		if (__atomic_load_n(&c->klass[i], __ATOMIC_ACQUIRE) == klass)
			return &c->of[i];
	return NULL;
}

void trace_unknown_sig(void)
{
	if (!__atomic_load_n(&trace_sig.wanted, __ATOMIC_RELAXED))
		__atomic_store_n(&trace_sig.wanted, 1, __ATOMIC_RELEASE);
}

/* ---- the thread ---- */

static uint64_t trace_slot_sig(uint64_t slot, bool *unreadable)
{
	uint64_t handle;

	if (trace_sig.slot_is_object)
		return trace_ref_sig(slot, unreadable);
	handle = load64_sig(slot);
	if (!oop_is_followable_sig(handle)) {
		*unreadable = true;
		return 0;
	}
	return oop_load_wide_sig(handle);
}

/*
 * The Thread that runs on @java_thread. Between two steps of a mount or an unmount the JVM still
 * names the carrier while code of the virtual thread runs (JDK 21); the continuation on the stack
 * then gives the right thread.
 */
static uint64_t trace_thread_sig(uint64_t java_thread, bool *unreadable)
{
	uint64_t own = trace_slot_sig(java_thread + (uint32_t)trace_sig.thread_object, unreadable);
	uint64_t here = own, continuation, task;

	if (vm_sig.thread_vthread >= 0)
		here = trace_slot_sig(java_thread + (uint32_t)vm_sig.thread_vthread, unreadable);
	if (!here || here != own || !trace_sig.task_klass)
		return here;
	continuation = continuation_on_sig(java_thread);
	task = continuation ? trace_ref_sig(continuation + (uint32_t)trace_sig.task, unreadable)
			    : 0;
	if (!task)
		return here;
	if (object_klass_sig(task) != trace_sig.task_klass) {
		*unreadable = true;
		return 0;
	}
	return trace_ref_sig(task + (uint32_t)trace_sig.task_thread, unreadable);
}

/* ---- its ThreadLocals ---- */

static uint64_t trace_table_sig(uint64_t thread, enum trace_map which, uint32_t *ret_length,
				bool *unreadable)
{
	uint64_t map = trace_ref_sig(thread + (uint32_t)trace_sig.thread_locals[which], unreadable);
	uint64_t table;
	uint32_t n;

	*ret_length = 0;
	if (!map)
		return 0;
	table = object_klass_sig(map) == trace_sig.map_klass
			? trace_ref_sig(map + (uint32_t)trace_sig.table, unreadable)
			: 0;
	n = table ? load32_sig(table + (uint32_t)continuation_sig.array_length) : 0;
	if (object_klass_sig(table) != trace_sig.table_klass || !n || n & (n - 1) ||
	    n > TABLE_MAX) {
		*unreadable = true;
		return 0;
	}
	*ret_length = n;
	return table;
}

static uint64_t trace_value_sig(uint64_t table, uint32_t n, uint32_t hash, bool *unreadable)
{
	for (uint32_t i = 0; i < n && i < PROBES_MAX; i++) {
		uint64_t entry = trace_element_sig(table, (hash + i) & (n - 1), unreadable), local;

		if (!entry)
			return 0;
		if (object_klass_sig(entry) != trace_sig.entry_klass) {
			*unreadable = true;
			return 0;
		}
		local = trace_ref_sig(entry + (uint32_t)trace_sig.referent, unreadable);
		if (local && load32_sig(local + (uint32_t)trace_sig.local_hash) == hash)
			return trace_ref_sig(entry + (uint32_t)trace_sig.value, unreadable);
		if (*unreadable)
			return 0;
	}
	return 0;
}

static uint32_t trace_of_value_sig(const struct trace_class *c, uint64_t value, bool mdc,
				   char *text, bool *unreadable)
{
	return c->kind == TRACE_VERTX ? trace_vertx_dispatch_sig(c, value, mdc, text, unreadable)
				      : trace_ids_sig(c, value, text, unreadable);
}

static uint32_t trace_of_locals_sig(const struct trace_locals *locals, uint64_t table, uint32_t n,
				    bool mdc, char *text, bool *unreadable)
{
	uint32_t n_locals = __atomic_load_n(&locals->n, __ATOMIC_ACQUIRE), bytes = 0;

	for (uint32_t i = 0; i < n_locals && !bytes && !*unreadable; i++) {
		uint64_t value = trace_value_sig(table, n, locals->hash[i], unreadable);
		const struct trace_class *c;

		if (!value)
			continue;
		c = trace_class_sig(&trace_sig.values, value);
		if (c)
			bytes = trace_of_value_sig(c, value, mdc, text, unreadable);
		else
			trace_unknown_sig();
		*unreadable |= !c;
	}
	return *unreadable ? 0 : bytes;
}

/* @locals: of each of the thread's maps. */
static uint32_t trace_of_maps_sig(const struct trace_locals *locals, uint64_t thread, bool mdc,
				  char *text, bool *unreadable)
{
	uint32_t bytes = 0, n = 0;

	for (uint32_t i = 0; i < TRACE_MAPS && !bytes && !*unreadable; i++) {
		uint64_t table;

		if (!__atomic_load_n(&locals[i].n, __ATOMIC_ACQUIRE))
			continue;
		table = trace_table_sig(thread, (enum trace_map)i, &n, unreadable);
		if (table)
			bytes = trace_of_locals_sig(&locals[i], table, n, mdc, text, unreadable);
	}
	return bytes;
}

static uint32_t trace_of_thread_sig(uint64_t java_thread, char *text)
{
	bool unreadable = false;
	uint64_t thread = trace_thread_sig(java_thread, &unreadable);
	uint32_t bytes = 0;

	if (!thread || unreadable)
		return 0;
	/* a thread of Vert.x uses its ThreadLocals only while it has no Context */
	for (int mdc = 0; mdc < 2 && !bytes && !unreadable; mdc++) {
		bytes = trace_vertx_thread_sig(thread, mdc, text, &unreadable);
		if (!bytes && !unreadable)
			bytes = trace_of_maps_sig(mdc ? trace_sig.mdc : trace_sig.tracers, thread,
						  mdc, text, &unreadable);
	}
	return unreadable ? 0 : bytes;
}

static uint32_t trace_read_sig(uint64_t java_thread, char *text)
{
	uint64_t epoch, after = 0;
	uint32_t bytes = 0;

	guard_enter_sig();
	/* a thread in native code, or one that waits, does not stop while a collector moves
	 * objects: the result counts only if no collection ran meanwhile */
	for (int i = 0; i < TRIES && (epoch = oop_epoch_sig()) && after != epoch; i++) {
		bytes = trace_of_thread_sig(java_thread, text);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = oop_epoch_sig();
		bytes = after == epoch ? bytes : 0;
	}
	guard_leave_sig();
	return bytes;
}

void trace_into_sig(uint64_t java_thread, struct ring_sample *head, char *text)
{
	uint32_t on = __atomic_load_n(&trace_sig.on, __ATOMIC_ACQUIRE), bytes = 0;

	if (!on)
		return;
	if (!java_thread)
		java_thread = java_thread_address_sig();
	head->context = text;
	/* the heap first: it is right for virtual threads too */
	if (java_thread && on & TRACE_ON_HEAP)
		bytes = trace_read_sig(java_thread, text);
	if (!bytes && on & TRACE_ON_TLS)
		bytes = trace_tls_read_sig(java_thread, text);
	head->context_bytes = (uint16_t)bytes;
}

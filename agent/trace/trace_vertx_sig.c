/*
 * Vert.x, and Quarkus on it: from a thread's current Context to what is kept in its local data. One
 * request may be worked on by several threads in turn, so it is not the thread that has these
 * values:
 *
 *   the Context    VertxThread.context; other threads, also virtual ones:
 * VertxImpl$ContextDispatch.context, the value of a ThreadLocal its data       a ConcurrentHashMap;
 * since 4.5.2 an array, one element of which is that map OpenTelemetry  an ArrayBasedContext in the
 * array (vertx-opentelemetry 5), or in the map under a key that is an Object (4.5),
 * "tracing.context" (4.0 to 4.4) or Quarkus's MDC            Quarkus's: a ConcurrentHashMap in the
 * map
 */
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/object_header.h"
#include "agent/trace/trace_priv.h"

#define CHAIN_MAX 16u
#define SLOTS_MAX 256u /* of a map */
#define DATA_MAX  64u /* elements of an array of local data */

enum trace_vertx_part { VERTX_OTEL, VERTX_MDC };

/* The value's class is compared too, so the hash is enough of a text. */
static bool trace_vertx_is_key_sig(uint64_t node, uint64_t key, enum trace_vertx_part part)
{
	uint32_t hash = load32_sig(node + (uint32_t)trace_sig.concurrent_hash);

	if (part == VERTX_MDC)
		return hash == trace_sig.vertx_mdc_key;
	return hash == trace_sig.vertx_otel_key || hash == trace_sig.quarkus_otel_key ||
	       (__atomic_load_n(&trace_sig.vertx_object_keys, __ATOMIC_RELAXED) &&
		object_klass_sig(key) == trace_sig.object_klass);
}

/* The class of a value, if that is one that is looked for. */
static const struct trace_class *trace_vertx_class_sig(uint64_t value, enum trace_vertx_part part)
{
	const struct trace_class *c = trace_class_sig(&trace_sig.values, value);

	return c && c->kind == (part == VERTX_MDC ? TRACE_MDC_NODES : TRACE_OTEL) ? c : NULL;
}

static const struct trace_class *trace_vertx_node_sig(uint64_t node, enum trace_vertx_part part,
						      uint64_t *ret_value, bool *unreadable)
{
	uint64_t key = trace_ref_sig(node + (uint32_t)trace_sig.concurrent_key, unreadable);

	if (!key || !trace_vertx_is_key_sig(node, key, part))
		return NULL;
	*ret_value = trace_ref_sig(node + (uint32_t)trace_sig.concurrent_value, unreadable);
	return *ret_value ? trace_vertx_class_sig(*ret_value, part) : NULL;
}

static const struct trace_class *trace_vertx_map_sig(uint64_t map, enum trace_vertx_part part,
						     uint64_t *ret_value, bool *unreadable)
{
	uint64_t slots = trace_ref_sig(map + (uint32_t)trace_sig.concurrent_table, unreadable);
	uint32_t n = slots ? load32_sig(slots + (uint32_t)continuation_sig.array_length) : 0;
	const struct trace_class *c = NULL;

	*unreadable |= n > SLOTS_MAX;
	for (uint32_t i = 0; i < n && !c && !*unreadable; i++) {
		uint64_t node = trace_element_sig(slots, i, unreadable);

		for (uint32_t k = 0; node && k < CHAIN_MAX && !c && !*unreadable; k++) {
			c = trace_vertx_node_sig(node, part, ret_value, unreadable);
			node = trace_ref_sig(node + (uint32_t)trace_sig.concurrent_next,
					     unreadable);
		}
	}
	return *unreadable ? NULL : c;
}

static const struct trace_class *trace_vertx_data_sig(uint64_t data, enum trace_vertx_part part,
						      uint64_t *ret_value, bool *unreadable)
{
	uint32_t n = load32_sig(data + (uint32_t)continuation_sig.array_length);
	const struct trace_class *c = NULL;

	for (uint32_t i = 0; i < n && i < DATA_MAX && !c && !*unreadable; i++) {
		uint64_t of = trace_element_sig(data, i, unreadable);

		if (!of)
			continue;
		if (object_klass_sig(of) == trace_sig.concurrent_klass) {
			c = trace_vertx_map_sig(of, part, ret_value, unreadable);
			continue;
		}
		c = part == VERTX_OTEL ? trace_vertx_class_sig(of, part) : NULL;
		*ret_value = of;
	}
	return *unreadable ? NULL : c;
}

static uint32_t trace_vertx_context_sig(uint64_t context, enum trace_vertx_part part, char *text,
					bool *unreadable)
{
	const struct trace_class *of_context, *c;
	uint64_t data, value = 0;

	if (!context)
		return 0;
	of_context = trace_class_sig(&trace_sig.vertx_contexts, context);
	if (!of_context)
		trace_unknown_sig();
	if (!of_context || of_context->kind == TRACE_NO_TRACE)
		return 0;
	data = trace_ref_sig(context + (uint32_t)of_context->at[0], unreadable);
	if (!data)
		return 0;
	if (object_klass_sig(data) == trace_sig.concurrent_klass)
		c = trace_vertx_map_sig(data, part, &value, unreadable);
	else if (object_klass_sig(data) == trace_sig.objects_klass)
		c = trace_vertx_data_sig(data, part, &value, unreadable);
	else
		return 0;
	return c ? trace_ids_sig(c, value, text, unreadable) : 0;
}

uint32_t trace_vertx_dispatch_sig(const struct trace_class *c, uint64_t dispatch, bool mdc,
				  char *text, bool *unreadable)
{
	return trace_vertx_context_sig(trace_ref_sig(dispatch + (uint32_t)c->at[0], unreadable),
				       mdc ? VERTX_MDC : VERTX_OTEL, text, unreadable);
}

uint32_t trace_vertx_thread_sig(uint64_t thread, bool mdc, char *text, bool *unreadable)
{
	const struct trace_class *c = trace_class_sig(&trace_sig.vertx_threads, thread);

	return c ? trace_vertx_dispatch_sig(c, thread, mdc, text, unreadable) : 0;
}

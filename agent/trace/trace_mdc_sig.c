/*
 * From an MDC to the text under one of its keys. Logging frameworks store it in different ways:
 *
 * - a HashMap: logback; slf4j itself, over java.util.logging; in web applications Log4j 2 before
 *   2.24, which wraps it
 * - another table of nodes: Log4j 1 (a Hashtable), JBoss LogManager
 * - an array of keys and one of values: Log4j 2 before 2.24, and later ones that make no garbage
 *   (SortedArrayStringMap)
 * - an array of a number, a key, its value, the next key and so on: Log4j 2 from 2.24 on
 *
 * All but the first have few entries, and every one is compared.
 */
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/object_header.h"
#include "agent/trace/trace_priv.h"

#define CHAIN_MAX     16u
#define MDC_SLOTS_MAX 65536u
#define FEW	      256u /* slots, or entries, that are compared one after the other */

static bool trace_is_mdc_key_sig(uint64_t string, uint32_t key)
{
	uint32_t len = trace_sig.mdc_keys[key].len;
	char name[TRACE_KEY_BYTES];

	return string && trace_string_sig(string, name, len) == len &&
	       trace_same_sig(name, trace_sig.mdc_keys[key].text, len);
}

/* Returns the bytes of the id, with an empty one of a span; 0 = it is no text that can be an id. */
static uint32_t trace_mdc_text_sig(uint64_t string, char *text, bool *unreadable)
{
	uint32_t got = trace_string_sig(string, text, WIRE_TRACE_MAX);

	*unreadable |= !got;
	text[got + 1] = '\0';
	return got ? got + 2 : 0;
}

static uint32_t trace_length_sig(uint64_t array)
{
	return array ? load32_sig(array + (uint32_t)continuation_sig.array_length) : 0;
}

static uint32_t trace_hash_map_sig(uint64_t map, uint32_t key, char *text, bool *unreadable)
{
	uint64_t slots = trace_ref_sig(map + (uint32_t)trace_sig.map_table, unreadable), node;
	uint32_t hash = trace_sig.mdc_keys[key].hash, n = trace_length_sig(slots);

	if (!n || n & (n - 1) || n > MDC_SLOTS_MAX)
		return 0;
	node = trace_element_sig(slots, hash & (n - 1), unreadable);
	for (uint32_t i = 0; node && i < CHAIN_MAX && !*unreadable; i++) {
		if (load32_sig(node + (uint32_t)trace_sig.node_hash) == hash &&
		    trace_is_mdc_key_sig(
			    trace_ref_sig(node + (uint32_t)trace_sig.node_key, unreadable), key))
			return trace_mdc_text_sig(
				trace_ref_sig(node + (uint32_t)trace_sig.node_value, unreadable),
				text, unreadable);
		node = trace_ref_sig(node + (uint32_t)trace_sig.node_next, unreadable);
	}
	return 0;
}

static uint32_t trace_wrapped_sig(const struct trace_class *c, uint64_t wrapper, uint32_t key,
				  char *text, bool *unreadable)
{
	uint64_t map = trace_ref_sig(wrapper + (uint32_t)c->at[0], unreadable);

	return object_klass_sig(map) == trace_sig.hash_map_klass
		       ? trace_hash_map_sig(map, key, text, unreadable)
		       : 0;
}

static uint32_t trace_nodes_sig(const struct trace_class *c, uint64_t map, uint32_t key, char *text,
				bool *unreadable)
{
	uint64_t slots = trace_ref_sig(map + (uint32_t)c->at[0], unreadable), node;
	uint32_t n = trace_length_sig(slots);

	for (uint32_t i = 0; i < n && n <= FEW && !*unreadable; i++) {
		node = trace_element_sig(slots, i, unreadable);
		for (uint32_t k = 0; node && k < CHAIN_MAX && !*unreadable; k++) {
			if (trace_is_mdc_key_sig(
				    trace_ref_sig(node + (uint32_t)c->at[1], unreadable), key))
				return trace_mdc_text_sig(
					trace_ref_sig(node + (uint32_t)c->at[2], unreadable), text,
					unreadable);
			node = c->at[3] < 0 ? 0
					    : trace_ref_sig(node + (uint32_t)c->at[3], unreadable);
		}
	}
	return 0;
}

/* The thread may be moving the entries up or down by one, first the keys and then the values: then
 * a key occurs twice. */
static uint32_t trace_sorted_sig(const struct trace_class *c, uint64_t map, uint32_t key,
				 char *text, bool *unreadable)
{
	uint64_t keys = trace_ref_sig(map + (uint32_t)c->at[0], unreadable), name;
	uint64_t values = trace_ref_sig(map + (uint32_t)c->at[1], unreadable);
	uint32_t n = load32_sig(map + (uint32_t)c->at[2]);

	if (n > FEW || n > trace_length_sig(keys) || n > trace_length_sig(values))
		return 0;
	for (uint32_t i = 0; i < n && !*unreadable; i++) {
		name = trace_element_sig(keys, i, unreadable);
		if (!trace_is_mdc_key_sig(name, key))
			continue;
		*unreadable |= i + 1 < n && trace_element_sig(keys, i + 1, unreadable) == name;
		return *unreadable ? 0
				   : trace_mdc_text_sig(trace_element_sig(values, i, unreadable),
							text, unreadable);
	}
	return 0;
}

/* The array never changes: a new one takes its place. */
static uint32_t trace_pairs_sig(uint64_t array, uint32_t key, char *text, bool *unreadable)
{
	uint32_t n = trace_length_sig(array);

	for (uint32_t i = 1; i + 1 < n && i < 2 * FEW && !*unreadable; i += 2)
		if (trace_is_mdc_key_sig(trace_element_sig(array, i, unreadable), key))
			return trace_mdc_text_sig(trace_element_sig(array, i + 1, unreadable), text,
						  unreadable);
	return 0;
}

static uint32_t trace_mdc_under_sig(const struct trace_class *c, uint64_t value, uint32_t key,
				    char *text, bool *unreadable)
{
	switch (c->kind) {
	case TRACE_MDC:
		return trace_hash_map_sig(value, key, text, unreadable);
	case TRACE_MDC_WRAPPED:
		return trace_wrapped_sig(c, value, key, text, unreadable);
	case TRACE_MDC_NODES:
		return trace_nodes_sig(c, value, key, text, unreadable);
	case TRACE_MDC_SORTED:
		return trace_sorted_sig(c, value, key, text, unreadable);
	case TRACE_MDC_PAIRS:
		return trace_pairs_sig(value, key, text, unreadable);
	default:
		return 0;
	}
}

uint32_t trace_mdc_sig(const struct trace_class *c, uint64_t value, char *text, bool *unreadable)
{
	uint32_t bytes = 0;

	for (uint32_t k = 0; k < trace_sig.n_mdc_keys && !bytes && !*unreadable; k++)
		bytes = trace_mdc_under_sig(c, value, k, text, unreadable);
	return bytes;
}

/*
 * From the value of a ThreadLocal to the ids in it, through the classes of each tracer:
 *   OpenTelemetry  ArrayBasedContext.entries: {key, value, ...}; the value under the span key is a
 *                  span, whose span context has the ids as 32 and 16 hexadecimal digits
 *   SkyWalking     TracingContext.segment.relatedGlobalTraceId.id; the segment's own id and the
 *                  number of the span on top of activeSpanStack identify the span
 *   Brave          TraceContext: two longs, and a long for the span
 * MDCs are read in trace_mdc_sig.c.
 */
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/oop.h"
#include "agent/trace/trace_priv.h"

#define CODER_LATIN1 0
#define ENTRIES_MAX  64u /* entries of an OpenTelemetry context */
#define OTEL_TRACE   32u
#define OTEL_SPAN    16u

static const char span_key[] = "opentelemetry-trace-span-key";

uint32_t trace_string_sig(uint64_t string, char *to, uint32_t most)
{
	const struct continuation_layout *c = &continuation_sig;
	bool chars = c->string_coder < 0, wide = chars, unreadable = false; /* a char[] in JDK 8 */
	uint64_t bytes;
	uint32_t n;

	if (object_klass_sig(string) != trace_sig.string_klass)
		return 0;
	if (!chars)
		wide = load8_sig(string + (uint32_t)c->string_coder) != CODER_LATIN1;
	bytes = trace_ref_sig(string + (uint32_t)c->string_value, &unreadable);
	if (object_klass_sig(bytes) != trace_sig.bytes_klass)
		return 0;
	n = load32_sig(bytes + (uint32_t)c->array_length) / (wide && !chars ? 2 : 1);
	if (!n || n > most)
		return 0;
	for (uint32_t i = 0; i < n;) {
		uint64_t at = bytes + (uint32_t)c->array_data + (wide ? 2 * i : i);
		uint64_t word = load64_sig(at) >> (at & 7) * 8;

		for (uint32_t here = (uint32_t)(8 - (at & 7)); here && i < n; i++) {
			uint32_t value = wide ? word & 0xffff : word & 0xff;

			if (value < 0x21 || value > 0x7e)
				return 0;
			to[i] = (char)value;
			word >>= wide ? 16 : 8;
			here -= wide ? 2 : 1;
		}
	}
	to[n] = '\0';
	return n;
}

static bool trace_is_hex_sig(const char *text, uint32_t n)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
			return false;
		any |= text[i] != '0';
	}
	return any; /* all zeros mark an invalid id */
}

static void trace_put_hex_sig(char *to, uint64_t value)
{
	for (int i = 15; i >= 0; i--, value >>= 4)
		to[i] = "0123456789abcdef"[value & 15];
}

bool trace_same_sig(const char *a, const char *b, uint32_t n)
{
	while (n && a[n - 1] == b[n - 1])
		n--;
	return n == 0;
}

/* ---- OpenTelemetry ---- */

static bool trace_is_span_key_sig(uint64_t key)
{
	const struct trace_class *c = trace_class_sig(&trace_sig.keys, key);
	const uint32_t len = sizeof(span_key) - 1;
	char name[sizeof(span_key)];
	bool unreadable = false;

	return c &&
	       trace_string_sig(trace_ref_sig(key + (uint32_t)c->at[0], &unreadable), name, len) ==
		       len &&
	       trace_same_sig(name, span_key, len);
}

/* The span under the span key; 0 = there is none. */
static uint64_t trace_span_sig(uint64_t context, int32_t entries_at, bool *unreadable)
{
	uint64_t entries = trace_ref_sig(context + (uint32_t)entries_at, unreadable);
	uint32_t n = 0;

	if (object_klass_sig(entries) == trace_sig.objects_klass)
		n = load32_sig(entries + (uint32_t)continuation_sig.array_length);
	if (!n || n > ENTRIES_MAX) {
		*unreadable = true;
		return 0;
	}
	for (uint32_t i = 0; i + 1 < n && !*unreadable; i += 2) {
		uint64_t key = trace_element_sig(entries, i, unreadable), span;

		if (!key || !trace_is_span_key_sig(key))
			continue;
		span = trace_element_sig(entries, i + 1, unreadable);
		*unreadable |= !span;
		return span;
	}
	return 0;
}

static uint32_t trace_otel_sig(const struct trace_class *c, uint64_t context, char *text,
			       bool *unreadable)
{
	uint64_t span = trace_span_sig(context, c->at[0], unreadable), ids;
	const struct trace_class *of_span, *of_ids;

	if (!span || *unreadable)
		return 0;
	of_span = trace_class_sig(&trace_sig.spans, span);
	ids = of_span ? trace_ref_sig(span + (uint32_t)of_span->at[0], unreadable) : 0;
	of_ids = ids ? trace_class_sig(&trace_sig.ids, ids) : NULL;
	*unreadable = true;
	if (!of_ids) {
		trace_unknown_sig();
		return 0;
	}
	if (trace_string_sig(trace_ref_sig(ids + (uint32_t)of_ids->at[0], unreadable), text,
			     OTEL_TRACE) != OTEL_TRACE ||
	    trace_string_sig(trace_ref_sig(ids + (uint32_t)of_ids->at[1], unreadable),
			     text + OTEL_TRACE + 1, OTEL_SPAN) != OTEL_SPAN ||
	    !trace_is_hex_sig(text, OTEL_TRACE) ||
	    !trace_is_hex_sig(text + OTEL_TRACE + 1, OTEL_SPAN))
		return 0;
	*unreadable = false;
	return OTEL_TRACE + 1 + OTEL_SPAN + 1;
}

/* ---- SkyWalking ---- */

/* Writes "-NUMBER" of the span on top of the stack. Returns the bytes with the NUL; 0 = cannot be
 * read. */
static uint32_t trace_span_number_sig(uint64_t stack, char *to, bool *unreadable)
{
	uint64_t node =
		stack ? trace_ref_sig(stack + (uint32_t)trace_sig.list_last, unreadable) : 0;
	const struct trace_class *c;
	char digits[12];
	uint32_t n = 0, number, bytes = 0;
	uint64_t span;

	if (object_klass_sig(node) != trace_sig.list_node_klass)
		return 0;
	span = trace_ref_sig(node + (uint32_t)trace_sig.node_item, unreadable);
	c = trace_class_sig(&trace_sig.spans, span);
	if (!c || c->kind != TRACE_SKYWALKING) {
		trace_unknown_sig();
		return 0;
	}
	number = load32_sig(span + (uint32_t)c->at[0]);
	if (number > INT32_MAX)
		return 0;
	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	to[bytes++] = '-';
	while (n)
		to[bytes++] = digits[--n];
	to[bytes++] = '\0';
	return bytes;
}

static uint32_t trace_skywalking_sig(const struct trace_class *c, uint64_t context, char *text,
				     bool *unreadable)
{
	uint64_t segment = trace_ref_sig(context + (uint32_t)c->at[0], unreadable), id;
	const struct trace_class *of_segment = trace_class_sig(&trace_sig.ids, segment), *of_id;
	uint32_t trace, span, number;

	id = of_segment ? trace_ref_sig(segment + (uint32_t)of_segment->at[0], unreadable) : 0;
	of_id = trace_class_sig(&trace_sig.keys, id);
	*unreadable = true;
	if (!of_id) {
		trace_unknown_sig();
		return 0;
	}
	trace = trace_string_sig(trace_ref_sig(id + (uint32_t)of_id->at[0], unreadable), text,
				 WIRE_TRACE_MAX);
	span = trace_string_sig(trace_ref_sig(segment + (uint32_t)of_segment->at[1], unreadable),
				text + trace + 1, WIRE_TRACE_MAX - 12);
	if (!trace || !span)
		return 0;
	number = trace_span_number_sig(trace_ref_sig(context + (uint32_t)c->at[1], unreadable),
				       text + trace + 1 + span, unreadable);
	if (!number)
		return 0;
	*unreadable = false;
	return trace + 1 + span + number;
}

/* ---- Brave ---- */

static uint32_t trace_brave_sig(const struct trace_class *c, uint64_t context, char *text)
{
	uint64_t high = load64_sig(context + (uint32_t)c->at[0]);
	uint64_t low = load64_sig(context + (uint32_t)c->at[1]);
	uint32_t n = 0;

	if (!low)
		return 0;
	/* as Brave prints it: 16 digits if the upper half is 0 */
	if (high) {
		trace_put_hex_sig(text, high);
		n = 16;
	}
	trace_put_hex_sig(text + n, low);
	n += 16;
	text[n++] = '\0';
	trace_put_hex_sig(text + n, load64_sig(context + (uint32_t)c->at[2]));
	n += 16;
	text[n++] = '\0';
	return n;
}

uint32_t trace_ids_sig(const struct trace_class *c, uint64_t value, char *text, bool *unreadable)
{
	switch (c->kind) {
	case TRACE_NO_TRACE:
		return 0;
	case TRACE_OTEL:
		return trace_otel_sig(c, value, text, unreadable);
	case TRACE_SKYWALKING:
		return trace_skywalking_sig(c, value, text, unreadable);
	case TRACE_BRAVE:
		return trace_brave_sig(c, value, text);
	default:
		return trace_mdc_sig(c, value, text, unreadable);
	}
}

/*
 * See trace_tls.h: from the calling thread to the ids that it publishes. Static storage is at the
 * same distance from the thread pointer in every thread. Dynamic storage is found in the thread's
 * table of glibc (the "DTV" of Drepper's "ELF Handling For Thread-Local Storage"): entries of two
 * words, by the library's number; the entry before the first has their number, entry 0 the
 * generation up to which the table is maintained. A thread that has not used a variable yet has no
 * storage for it, and so no context.
 */
#include "agent/trace/trace_tls.h"

#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"

#define STATIC_MAX     (1 << 20) /* bytes of static storage: no address is as small */
#define TABLE_ENTRY    16u
#define NOT_ALLOCATED  (~0ull)
#define TRACE_ID_BYTES 16u
#define SPAN_ID_BYTES  8u

struct trace_tls_places trace_tls_sig;

/* ---- the records ---- */

/* Packed, without padding; numbers have the processor's byte order, ids that of W3C's trace
 * context. What follows (attributes) is not read. */
struct otep_record {
	uint8_t trace_id[TRACE_ID_BYTES], span_id[SPAN_ID_BYTES];
	uint8_t valid; /* 1; anything else is no record */
	uint8_t trace_flags;
	uint8_t attributes_size[2];
};
_Static_assert(sizeof(struct otep_record) == 28, "no padding");

struct elastic_record {
	uint8_t minor_version[2]; /* 1; larger ones have more behind the same fields */
	uint8_t valid; /* 0 while it is being changed */
	uint8_t trace_present; /* 1, or there is none */
	uint8_t trace_flags;
	uint8_t trace_id[TRACE_ID_BYTES], span_id[SPAN_ID_BYTES], transaction_id[SPAN_ID_BYTES];
};
_Static_assert(sizeof(struct elastic_record) == 37, "no padding");

/* Returns the digits; 0 = the id is all zeros, which marks an invalid one. */
static uint32_t trace_tls_put_id_sig(char *to, const uint8_t *id, uint32_t n)
{
	uint8_t any = 0;

	for (uint32_t i = 0; i < n; i++) {
		any |= id[i];
		to[2 * i] = "0123456789abcdef"[id[i] >> 4];
		to[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
	}
	to[2 * n] = '\0';
	return any ? 2 * n : 0;
}

static uint32_t trace_tls_put_ids_sig(char *to, const uint8_t *trace_id, const uint8_t *span_id)
{
	uint32_t trace = trace_tls_put_id_sig(to, trace_id, TRACE_ID_BYTES);
	uint32_t span = trace ? trace_tls_put_id_sig(to + trace + 1, span_id, SPAN_ID_BYTES) : 0;

	return span ? trace + 1 + span + 1 : 0;
}

uint32_t trace_tls_record_sig(enum trace_tls_form form, uint64_t record, char *text)
{
	struct elastic_record elastic;
	struct otep_record otep;

	if (form == TRACE_TLS_OTEP) {
		guard_copy_sig(&otep, record, sizeof(otep));
		return otep.valid == 1 ? trace_tls_put_ids_sig(text, otep.trace_id, otep.span_id)
				       : 0;
	}
	guard_copy_sig(&elastic, record, sizeof(elastic));
	if (!(elastic.minor_version[0] | elastic.minor_version[1]) || !elastic.valid ||
	    elastic.trace_present != 1)
		return 0;
	return trace_tls_put_ids_sig(text, elastic.trace_id, elastic.span_id);
}

/* ---- the variable ---- */

#if defined(__x86_64__)
#define TABLE_AT 8 /* from the thread pointer */

static uint64_t trace_tls_pointer_sig(void)
{
	uint64_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

static bool trace_tls_is_distance_sig(uint64_t word)
{
	return (int64_t)word < 0 && (int64_t)word >= -STATIC_MAX;
}
#else
#define TABLE_AT 0

static uint64_t trace_tls_pointer_sig(void)
{
	uint64_t pointer;

	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}

static bool trace_tls_is_distance_sig(uint64_t word)
{
	return word && word < STATIC_MAX;
}
#endif

/* The variable's address in the calling thread; 0 = it has none. */
static uint64_t trace_tls_variable_sig(const struct trace_tls_place *p)
{
	uint64_t pointer = trace_tls_pointer_sig(), table, block;
	uint64_t distance = p->distance_at ? load64_sig(p->distance_at) : 0;

	if (load64_sig(p->symbol) != p->symbol_word)
		return 0;
	if (trace_tls_is_distance_sig(distance))
		return pointer + distance;
	table = load64_sig(pointer + TABLE_AT);
	if (p->generation_at == TRACE_TLS_UNKNOWN || load64_sig(table - TABLE_ENTRY) < p->module ||
	    load64_sig(table) < load64_sig(p->generation_at))
		return 0;
	block = load64_sig(table + TABLE_ENTRY * p->module);
	return block && block != NOT_ALLOCATED ? block + p->offset : 0;
}

/* ---- the thread ---- */

/*
 * May the context be that of a virtual thread, or of the carrier below one? The storage is the
 * carrier's, and not every publisher follows what is mounted on it. _vthread alone does not tell:
 * between two steps of a mount it still names the carrier (JDK 21).
 */
static bool trace_tls_is_virtual_sig(uint64_t java_thread)
{
	if (vm_sig.thread_vthread < 0)
		return false;
	return continuation_sig.entry_in_thread < 0 || continuation_on_sig(java_thread) ||
	       virtual_is_mounted_sig(java_thread);
}

uint32_t trace_tls_read_sig(uint64_t java_thread, char *text)
{
	uint32_t turn = __atomic_load_n(&trace_tls_sig.turn, __ATOMIC_ACQUIRE), bytes = 0;
	struct trace_tls_place place;
	uint64_t variable, record;

	if (java_thread &&
	    (java_thread != java_thread_address_sig() || trace_tls_is_virtual_sig(java_thread)))
		return 0;
	for (uint32_t i = 0; i < TRACE_TLS_PLACES && i < trace_tls_sig.n && !bytes; i++) {
		place = trace_tls_sig.of[i];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (turn & 1 || __atomic_load_n(&trace_tls_sig.turn, __ATOMIC_RELAXED) != turn)
			return 0;
		variable = trace_tls_variable_sig(&place);
		record = variable && variable % 8 == 0 ? load64_sig(variable) : 0;
		if (record)
			bytes = trace_tls_record_sig((enum trace_tls_form)place.form, record, text);
	}
	return bytes;
}

/*
 * See code.h. The agent's thread finds the blobs of the continuation stubs and of
 * Continuation.enterSpecial and doYield (JDK 21 and later) by a pass over the code heaps. The VM
 * generates them when it starts, with the first virtual thread and when one yields for the first
 * time, so passes are repeated until all are found.
 */
#include <stddef.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code.h"
#include "agent/hotspot/method.h"

#define CONTINUATION "jdk/internal/vm/Continuation"
#define BLOCK_MAX    (64u << 20)
#define PAUSE_MAX    64 /* calls of code_find_places() between two passes */

static void code_read_text(uint64_t address, char *ret, size_t size)
{
	guard_copy_sig(ret, address, size - 1);
	ret[size - 1] = '\0';
}

static void code_note_place(const struct blob *b)
{
	struct code_places *p = &code_places_sig;
	char name[32];

	if (b->kind == BLOB_NATIVE_NMETHOD) {
		uint64_t method = load64_sig(b->base + (uint32_t)vm_sig.nm_method);

		if (method_is_sig(method, CONTINUATION, "enterSpecial")) {
			p->enter_special_words = b->frame_words;
			p->enter_special = b->base;
		} else if (method_is_sig(method, CONTINUATION, "doYield")) {
			p->do_yield = b->base;
		}
	}
	if (b->kind != BLOB_STUBS)
		return;
	code_read_text(load64_sig(b->base + (uint32_t)vm_sig.blob_name), name, sizeof(name));
	/* "StubRoutines (continuation stubs)"; from JDK 25 on "Stub Generator continuation
	 * stubs" */
	if (strncmp(name, "StubRoutines (cont", 18) == 0 ||
	    strncmp(name, "Stub Generator cont", 19) == 0) {
		p->cont_low = b->code;
		p->cont_high = b->end;
	}
}

static void code_scan_heap(uint64_t heap)
{
	uint64_t memory = heap + (uint32_t)vm_sig.heap_memory;
	uint64_t at = load64_sig(memory + (uint32_t)vm_sig.space_low);
	uint64_t high = load64_sig(memory + (uint32_t)vm_sig.space_high);
	uint32_t log2 = load32_sig(heap + (uint32_t)vm_sig.heap_log2_segment);
	struct blob b;

	while (at < high) {
		/* HeapBlock::Header::_length, in segments; a size_t up to JDK 17 */
		uint64_t length = vm_sig.block_header_size == 8 ? load32_sig(at) : load64_sig(at);

		if (code_blob_sig(at + (uint32_t)vm_sig.block_header_size, &b) &&
		    b.base == at + (uint32_t)vm_sig.block_header_size)
			code_note_place(&b);
		if (!length || length > BLOCK_MAX >> log2)
			return;
		at += length << log2;
	}
}

void code_find_places(bool now)
{
	static uint32_t pause, passed;

	if (vm_sig.version < 21 ||
	    (code_places_sig.cont_low && code_places_sig.enter_special && code_places_sig.do_yield))
		return;
	/* a JVM without virtual threads never generates all, so passes become rarer */
	now |= __atomic_exchange_n(&code_places_sig.wanted, false, __ATOMIC_RELAXED);
	if (!now && ++passed < pause)
		return;
	pause = now ? 1 : pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
	passed = 0;
	for (uint32_t i = 0; i < vm_sig.n_heaps; i++)
		code_scan_heap(vm_sig.heaps[i]);
}

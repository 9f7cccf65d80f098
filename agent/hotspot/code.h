/*
 * Finds the blob of generated code that contains a pc, and its kind, in the JVM's code cache. The
 * rules are those of codeCache.cpp and heap.cpp: the segment map has a byte for each segment, which
 * gives the distance back to the beginning of its block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/hotspot/layout.h"

struct blob {
	uint64_t base; /* address of the CodeBlob */
	uint64_t code; /* address of its first instruction */
	uint64_t end;
	int32_t frame_words; /* size of its frame, return address included; <= 0: no frame of fixed
			      * size */
	int32_t frame_complete; /* offset of the first instruction at which the frame is complete */
	enum blob_kind kind;
};

/* Generated code that walks of virtual threads must recognise; 0 = unknown, or none (before JDK
 * 21). cont_low, cont_high: the continuation stubs, among them the return barrier. */
struct code_places {
	uint64_t cont_low, cont_high;
	uint64_t enter_special; /* CodeBlob of the native wrapper of Continuation.enterSpecial */
	int32_t enter_special_words;
	uint64_t do_yield; /* CodeBlob of the native wrapper of Continuation.doYield */
	bool wanted; /* a walk needed this code and did not know it */
};
extern struct code_places code_places_sig;

/* Agent's thread: fills in code_places; at once if @now, otherwise when the next pass is due. */
void code_find_places(bool now);

bool code_blob_sig(uint64_t pc, struct blob *ret);
/* Is the heap block of the CodeBlob at @base in use? */
bool code_is_used_sig(uint64_t base);
/* "[RuntimeStub name]", or the name of the routine at @pc; the text is never freed. */
const char *code_label_sig(const struct blob *b, uint64_t pc);
static inline bool code_is_nmethod(const struct blob *b)
{
	return b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE_NMETHOD;
}

/*
 * The code cache: which blob of generated code holds a pc, and what kind of blob that is. The rules
 * are codeCache.cpp and heap.cpp: a byte per segment says how far back the block begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/hotspot/layout.h"

struct blob {
	uint64_t base; /* of the CodeBlob */
	uint64_t code; /* its first instruction */
	uint64_t end;
	int32_t frame_words; /* incl. return address; <= 0: no frame of fixed size */
	int32_t frame_complete; /* offset of the first instruction with a complete frame */
	enum blob_kind kind;
};

/* The range of the return barrier's and other continuation stubs; 0 = none (below 21). */
struct code_places {
	uint64_t cont_low, cont_high;
	uint64_t enter_special; /* CodeBlob of Continuation.enterSpecial's wrapper */
	int32_t enter_special_words;
	uint64_t do_yield; /* of Continuation.doYield's */
	bool wanted; /* a walk met the barrier and did not know the frame behind it */
};
extern struct code_places code_places_sig;

/* Agent's thread: look for what code_places names, @now or when it is time to look again. */
void code_find_places(bool now);

bool code_blob_sig(uint64_t pc, struct blob *ret);
/* Is the block of the CodeBlob at @base not free? */
bool code_is_used_sig(uint64_t base);
/* "[RuntimeStub name]", or that of the routine at @pc; a text that lives for ever. */
const char *code_label_sig(const struct blob *b, uint64_t pc);
static inline bool code_is_nmethod(const struct blob *b)
{
	return b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE_NMETHOD;
}

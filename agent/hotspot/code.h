/*
 * The code cache: which blob of generated code contains a pc, and of what kind the blob is. The
 * rules are those of codeCache.cpp and heap.cpp: a byte for each segment says how far back the
 * block begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/hotspot/layout.h"

struct blob {
	uint64_t base; /* of the CodeBlob */
	uint64_t code; /* its first instruction */
	uint64_t end;
	int32_t frame_words; /* with the return address; <= 0: no frame of fixed size */
	int32_t frame_complete; /* offset of the first instruction at which the frame is complete */
	enum blob_kind kind;
};

/* The address range of the continuation stubs, the return barrier among them; 0 = none (before JDK
 * 21). */
struct code_places {
	uint64_t cont_low, cont_high;
	uint64_t enter_special; /* CodeBlob of the native wrapper of Continuation.enterSpecial */
	int32_t enter_special_words;
	uint64_t do_yield; /* CodeBlob of that of Continuation.doYield */
	bool wanted; /* a walk has met the barrier and did not know the frame after it */
};
extern struct code_places code_places_sig;

/* Agent's thread: looks for what code_places names; at once with @now, else when the next pass is
 * due. */
void code_find_places(bool now);

bool code_blob_sig(uint64_t pc, struct blob *ret);
/* Is the block of the CodeBlob at @base in use? */
bool code_is_used_sig(uint64_t base);
/* "[RuntimeStub name]", or the name of the routine at @pc; the text is never freed. */
const char *code_label_sig(const struct blob *b, uint64_t pc);
static inline bool code_is_nmethod(const struct blob *b)
{
	return b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE_NMETHOD;
}

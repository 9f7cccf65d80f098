/* Finds the methods that are inlined at a pc of an nmethod (its scopes), with a memo of recently
 * decoded ones. */
#pragma once

#include "agent/walker/java/hotspot_priv.h"

struct scopes_memo {
	uint64_t base; /* address of the nmethod */
	int32_t frame_words;
	uint32_t n; /* number of frames, already written behind w->n but not counted in it */
	bool exact, behind;
};

/* Pushes the methods inlined at @pc in @b, innermost first; sets h->exact and h->behind. */
void scopes_push_sig(struct hot *h, const struct blob *b, uint64_t pc);
/* Is there debug information for exactly this pc? */
bool scopes_are_exact_sig(const struct blob *b, uint64_t pc);
bool scopes_memo_sig(struct hot *h, uint64_t pc, struct scopes_memo *ret);
/* Agent's thread: invalidates the memo, because the copies of methods were dropped. */
void scopes_forget(void);
uint64_t scopes_bytes(void);

/*
 * Safepoints as they come: a handler that finds that there was one since the last look notes it
 * down, and so does the agent's thread when it wakes up. A look costs one load, and nobody is woken
 * for a safepoint. Only where safepoints are found to have been missed, because nothing was sampled
 * between two of them, does the agent's thread wake up by itself for a while to look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/hotspot/safepoints.h"

/* Handlers look from now on; @ret: the state now. false = this JVM's safepoints cannot be read.
 * Agent's thread, as all below. */
bool pauses_begin(uint64_t *ret_number);
void pauses_end(void);
bool pauses_are_on(void);
/* Looks; when it is to be called again, ns, is pauses_next_ns() (UINT64_MAX = no need). */
void pauses_tick(uint64_t now_ns);
uint64_t pauses_next_ns(void);
/* Are there so many that they should be taken now? */
bool pauses_are_many(void);
/* The oldest one that was not taken yet. */
bool pauses_take(struct safepoint *ret);

/* Handler. */
void pauses_look_sig(void);

/*
 * Records safepoints as they happen. Every sample's handler, and the agent's thread when it wakes
 * up, check whether there was one since the last check, and record it. A check costs one load, and
 * no thread is woken for a safepoint. Only if safepoints were missed, because nothing was sampled
 * between two of them, does the agent's thread wake up for checks by itself, for a while.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/hotspot/safepoints.h"

/* Handlers check from now on. @ret_number: the number of safepoints so far. false = this JVM's
 * safepoints cannot be read. Agent's thread, as all functions up to pauses_take(). */
bool pauses_begin(uint64_t *ret_number);
void pauses_end(void);
/* Checks. Call it again at pauses_next_ns(), CLOCK_MONOTONIC (UINT64_MAX = no need). */
void pauses_tick(uint64_t now_ns);
uint64_t pauses_next_ns(void);
/* Is the buffer of recorded safepoints nearly full, so that they should be taken now? */
bool pauses_are_many(void);
/* Takes the oldest recorded safepoint; false = there is none. */
bool pauses_take(struct safepoint *ret);

/* Handler: checks. */
void pauses_check_sig(void);
/* Has a safepoint ended since the last check? */
bool pauses_is_new_sig(void);

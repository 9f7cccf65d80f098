/*
 * The only code that puts events into the ring, for signal handlers and application threads alike.
 * Each event counted in `taken` is then counted in either `pushed` or one drop[cause]. Functions
 * whose names end in _sig may be called in a signal handler.
 */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

/* Counts @s as taken; must come first. */
void producer_take_sig(const struct ring_sample *s);
/* Counts @s, which is counted as taken, as dropped. */
void producer_drop_sig(const struct ring_sample *s, enum wire_drop cause);
/* Puts @s, which is counted as taken, into the ring and counts it as pushed. false = the ring is
 * full; @s is counted as dropped. */
bool producer_put_sig(const struct ring_sample *s, const struct walk_frame *frames);
/* Wakes the agent's thread to read the ring. While that thread rests (rest.h), only an @urgent
 * event or a ring that fills up wakes it. */
void producer_wake_sig(bool urgent);

/* ---- application threads and the agent's ---- */

/* Counts an event with known frames, puts it into the ring and wakes the agent's thread. false =
 * dropped, or the event is off. */
bool producer_push(const struct ring_sample *head, const struct walk_frame *frames);
/* Puts a RING_NAME, which is not counted, before the event that needs it. false = no event is on,
 * or the ring is full. */
bool producer_push_name(const struct ring_sample *head, const struct walk_frame *text);

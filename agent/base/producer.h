/*
 * The one way into the ring, for signal handlers and application threads alike. Exactly one of
 * pushed and drop[cause] is added to for every event counted in taken. Functions that end in _sig
 * may be called in a signal handler.
 */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

/* Counts @s as taken: before anything else is done with it. */
void producer_take_sig(const struct ring_sample *s);
/* Counts @s, which was taken, as dropped. */
void producer_drop_sig(const struct ring_sample *s, enum wire_drop cause);
/* Puts @s, which was taken, into the ring and counts it. false = the ring is full: dropped. */
bool producer_put_sig(const struct ring_sample *s, const struct walk_frame *frames);
/* The agent's thread shall read the ring. While it rests (rest.h) only what is @urgent, or a ring
 * that fills up, wakes it. */
void producer_wake_sig(bool urgent);

/* ---- application threads and the agent's ---- */

/* An event whose frames are at hand: taken, put into the ring and announced, if it is on. false =
 * dropped, or off. */
bool producer_push(const struct ring_sample *head, const struct walk_frame *frames);
/* A RING_NAME, ahead of the event that it is for; not counted. false = not now. */
bool producer_push_name(const struct ring_sample *head, const struct walk_frame *text);

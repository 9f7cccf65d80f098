/* Called by application threads in native state: puts an event into the ring, with the stack from
 * the last Java frame. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/events.h"

/* @head: everything but the frames; the tid is set to that of @java_thread (0 = the calling
 * thread), its virtual thread is filled in unless the caller has done that. Counts the event,
 * unless it is off. false = dropped, or off. */
bool push_event(struct ring_sample *head, uint64_t java_thread);
/* Between events_enter() and events_leave(): a buffer of WALK_FRAMES_MAX frames. -1 = all are in
 * use. */
int push_buffer(struct walk_frame **ret);
void push_buffer_done(int buffer);
uint64_t push_bytes(void);
/* Agent's thread: allocates the buffers. 0 or -ENOMEM. */
int push_init(void);
void push_free(void);

/*
 * Waits for work: a worker of a pool at an empty queue, a timer between two ticks, an event loop
 * with nothing to do. They would make up most of all waiting time, and nobody wants to shorten
 * them: reports leave them out unless asked. They are recognised by the stack alone, by the rules
 * of proto/idle.h.
 */
#pragma once

#include "daemon/stream/stream.h"
#include "proto/idle.h"

/* Is the stack that ends in @node such a wait? Cached by node after the first time. */
bool idle_stack(const struct stream *stream, uint32_t node);
/* The same for a wait: a thread that waits for a monitor owned by another thread is not idle. */
bool idle_wait(const struct stream *stream, const struct stream_lock *wait);
/* The same for a wall-clock sample: the JVM's own service threads are recognised by name, because
 * they have no frames. */
bool idle_sample(const struct stream *stream, const struct stream_sample *sample);

/*
 * Waits for work: a worker of a pool at an empty queue, a timer between two ticks, an event loop
 * with nothing to do. They would be most of all waiting time, and nobody wants to shorten them:
 * reports leave them out unless asked. Recognised by the stack alone, by the rules of
 * proto/idle.h.
 */
#pragma once

#include "daemon/stream/stream.h"
#include "proto/idle.h"

/* Is the stack that ends in @node such a wait? Known per node after the first time. */
bool idle_stack(const struct stream *stream, uint32_t node);
/* The same of a wait: for a monitor that another holds nobody waits out of idleness. */
bool idle_wait(const struct stream *stream, const struct stream_lock *wait);
/* And of a wall-clock sample: the JVM's own threads for services have no frame to tell them by. */
bool idle_sample(const struct stream *stream, const struct stream_sample *sample);

/*
 * Waits for work: a pool's thread at an empty queue, a timer between two ticks, an event loop with
 * nothing to do. They would make up most of all waiting time, and nobody wants to shorten them; so
 * reports leave them out unless asked. They are recognised by their stack, by the rules of
 * proto/idle.h.
 */
#pragma once

#include "daemon/stream/stream.h"
#include "proto/idle.h"

/* Does the stack that ends in @node show such a wait? The answer is cached in the node's mark. */
bool idle_stack(const struct stream *stream, uint32_t node);
/* The same for a wait. A thread that waits for a monitor which another thread holds is not idle. */
bool idle_wait(const struct stream *stream, const struct stream_lock *wait);
/* Is this the name of one of the JVM's own threads, such as those of collectors and compilers, as
 * the kernel has it? They wait in futexes, for work or for each other. */
bool idle_vm_thread(const char *name);
/* The same for a wall-clock sample. The JVM's own threads, which have no frames, are recognized by
 * name. */
bool idle_sample(const struct stream *stream, const struct stream_sample *sample);

/*
 * Owners that the JVM itself does not know when a wait begins. From JDK 24 on a virtual thread may
 * give up its carrier inside `synchronized`. The first thread that contends for the lock then
 * creates a monitor with an anonymous owner, and the JVM learns the owner only when it unlocks. So
 * the wait gets a mark instead of an owner's number, and the agent's thread searches for the owner
 * while the wait goes on. It reports an owner only if it is certain.
 */
#pragma once

#include <stdint.h>
#include "agent/base/events.h"

/* In the waiting thread: asks for the owner of @monitor. Returns a mark, or 0 = too many are sought
 * already. */
uint32_t unknown_owner_seek(uint64_t monitor);
/* After the wait has begun: wakes the agent's thread for a search, if @owner is a mark. */
void unknown_owner_wake_agent(uint32_t owner);
/* The answer to a mark, 0 = not known; any other number unchanged. */
uint32_t unknown_owner_answer(uint32_t owner);
/* The same at the end of the wait: the mark is void afterwards. */
uint32_t unknown_owner_end(uint32_t owner);

extern const struct events_source unknown_owner_source;

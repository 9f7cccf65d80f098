/*
 * Owners that the JVM itself does not know when a wait begins: from 24 on a virtual thread may give
 * up its carrier inside `synchronized`. The first that contends makes a monitor then, "owned by
 * somebody", and that is all the JVM says until the owner comes to let go. So the wait gets a mark
 * in place of its owner's number, and the agent's thread looks for who that is while it goes on. An
 * answer is certain, or there is none.
 */
#pragma once

#include <stdint.h>
#include "agent/base/events.h"

/* The waiting thread: who holds @monitor shall be found out. A mark, or 0 = no room. */
uint32_t unknown_owner_seek(uint64_t monitor);
/* ... once the wait has begun: the agent's thread begins to look, if that is a mark. */
void unknown_owner_hurry(uint32_t owner);
/* An owner's number as it is, or the answer to a mark; 0 = not known. */
uint32_t unknown_owner_answer(uint32_t owner);
/* The same at the end of its wait: a mark means nothing any more. */
uint32_t unknown_owner_end(uint32_t owner);

extern const struct events_source unknown_owner_source;

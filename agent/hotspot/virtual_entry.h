/*
 * Finds the virtual thread whose frames are on a carrier by its continuation. For up to a tenth of
 * a millisecond the JVM identifies such a thread as the carrier: while it passes on its timer, and
 * while it tries to unmount and cannot, because it holds a monitor (up to JDK 23).
 */
#pragma once

#include <stdint.h>

void virtual_entry_init(void); /* Agent's thread; may be called again. */
/* The present address of the Thread, by guarded loads; it may be wrong a moment later. 0 = there is
 * none, or it cannot be read now. */
uint64_t virtual_entry_thread(uint64_t java_thread);

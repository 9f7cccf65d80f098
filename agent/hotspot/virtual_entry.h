/*
 * Finds the virtual thread whose frames are on a carrier by its continuation. For up to a tenth of
 * a millisecond the JVM reports the carrier as the current thread although the virtual thread runs:
 * while that schedules its timeout, and while it tries to unmount but cannot, because it holds a
 * monitor (up to JDK 23).
 */
#pragma once

#include <stdint.h>

void virtual_entry_init(void); /* Agent's thread; may be called again. */
/* The current address of its Thread, by guarded loads; the object may move a moment later. 0 =
 * there is none, or it cannot be read now. */
uint64_t virtual_entry_thread(uint64_t java_thread);

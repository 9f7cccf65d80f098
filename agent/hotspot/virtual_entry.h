/*
 * The virtual thread whose frames lie on a carrier, by its continuation. The JVM calls it by the
 * carrier's name for moments of up to a tenth of a millisecond: while it hands its timer over, and
 * while it tries to give up its carrier and may not, because it holds a monitor (up to 23).
 */
#pragma once

#include <stdint.h>

void virtual_entry_init(void); /* agent's thread; may be called again */
/* Loads that may fail: the Thread, an address that may be wrong a moment later; 0 = there is none,
 * or it is not to be had now. */
uint64_t virtual_entry_thread(uint64_t java_thread);

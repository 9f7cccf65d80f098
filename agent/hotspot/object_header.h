/* What an object's header says, read past the JVM with loads that may fail: its class and hash. */
#pragma once

#include <stdint.h>

void object_header_init(void); /* agent's thread; may be called again */
/* The Klass of the object at that address; 0 = unknown. Not checked: a Klass or anything. */
uint64_t object_klass(uint64_t object);
/* The hash of an object whose monitor that is, where somebody asked for it before; 0 = unknown. */
uint32_t monitor_hash(uint64_t monitor, uint64_t object);

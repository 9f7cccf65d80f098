/* Reads the class and the hash in an object's header, by loads that may fail, without the JVM. */
#pragma once

#include <stdint.h>

void object_header_init(void); /* Agent's thread; may be called again. */
/* The Klass of the object at that address; 0 = unknown. Unchecked: it may not be a Klass. */
uint64_t object_klass(uint64_t object);
/* The identity hash of the object that a monitor belongs to, if the program has asked for it
 * before; 0 = unknown. */
uint32_t monitor_hash(uint64_t monitor, uint64_t object);

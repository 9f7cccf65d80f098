/* Reads the class and the hash in an object's header, by loads that may fail, without the JVM. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct object_header_layout {
	bool compact; /* the class is a part of the mark word */
	bool narrow;
	uint64_t narrow_base;
	uint32_t narrow_shift;
};
extern struct object_header_layout object_header_sig;

void object_header_init(void); /* Agent's thread; may be called again. */
/* The Klass of the object at that address; 0 = unknown. Not checked: if there is no object, the
 * result is arbitrary. */
uint64_t object_klass(uint64_t object);
uint64_t object_klass_sig(uint64_t object); /* The same, for handlers. */
/* The identity hash of the object that a monitor belongs to; 0 = unknown, or none, because the
 * program has never asked for it. @object: its address, 0 = unknown. */
uint32_t monitor_hash(uint64_t monitor, uint64_t object);

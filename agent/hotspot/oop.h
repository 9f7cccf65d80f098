/*
 * References to Java objects, followed as the JVM's own code would where a collector moves objects
 * while they are used: ZGC's forwarding tables, the new place in the header of what Shenandoah has
 * moved. Only loads that may fault; nothing is written, so what the collector would heal stays as
 * it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct oop_layout {
	bool header_forwards; /* Shenandoah: mark & 3 == 3, and the rest is the new place */
	/* ZGC; without tables (11) only colours that are good now can be followed */
	bool tables, generational;
	const uint64_t *good;
	uint64_t offset_mask, remapped; /* remapped: its colour in the ZGC without generations */
	uint64_t maps[2], granules; /* young (or the only one), old: granule -> ZForwarding */
	uint32_t start, shift, length, entries; /* in a ZForwarding */
	/* collectors that stop the world */
	const uint8_t *active;
	const uint32_t *count;
};
extern struct oop_layout oop_sig;

/* Agent's thread, after continuation_init(). */
void oop_init(void);

/* Handler: a reference in an object's field; 0 = null, or not to be had now. */
uint64_t oop_load_sig(uint64_t at);
/* The same of a word outside the heap (an OopHandle's), where references are never compressed. */
uint64_t oop_load_wide_sig(uint64_t at);
/* Is there a reference which oop_load_sig() cannot follow now? */
bool oop_is_unreadable_sig(uint64_t at);
/* Generational ZGC: has the reference in that field the colour of now? Elsewhere always. */
bool oop_is_good_sig(uint64_t at);
/* The object behind a JNI reference, as an address that may be wrong a moment later. */
uint64_t oop_of_handle_sig(uint64_t handle);

/* Threads in native code and blocked ones are not held while a collector moves objects. What was
 * read is right if this was the same before and after, and not 0. */
uint64_t oop_calm_sig(void);

/*
 * Follows references to Java objects while a concurrent collector moves objects. As the JVM's own
 * code does, it uses ZGC's forwarding tables, or the new address that Shenandoah stores in the
 * header of a moved object. All loads are guarded. Nothing is written: stale references, which the
 * JVM's code would update (heal), stay as they are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct oop_layout {
	bool header_forwards; /* Shenandoah: if (mark & 3) == 3, the other bits of the mark word are
			       * the new address */
	/* ZGC: the forwarding tables are known; otherwise (JDK 11) only references of the current
	 * colour can be followed */
	bool tables, generational;
	const uint64_t *good;
	uint64_t offset_mask, remapped; /* @remapped: the colour "remapped" of the ZGC without
					 * generations */
	uint64_t maps[2], granules; /* forwarding tables of the young (or only) and the old
				     * generation: granule -> ZForwarding */
	uint32_t start, shift, length, entries; /* in a ZForwarding */
	/* of collectors that stop the world: is a pause in progress, and the number of pauses */
	const uint8_t *active;
	const uint32_t *count;
};
extern struct oop_layout oop_sig;

/* Agent's thread, after continuation_init(). */
void oop_init(void);

/* Handler: the address of the object that the field at @at refers to; 0 = null, or the reference
 * cannot be followed now. */
uint64_t oop_load_sig(uint64_t at);
/* The same for a word outside the heap (of an OopHandle), where references are never compressed. */
uint64_t oop_load_wide_sig(uint64_t at);
/* Does the field hold a reference that oop_load_sig() cannot follow now? */
bool oop_is_unreadable_sig(uint64_t at);
/* Is the result of oop_load_sig() for that field reliable? Not if the collector moves objects
 * concurrently, has not processed this reference yet, and its tables of new addresses are
 * unknown. */
bool oop_is_followable_sig(uint64_t at);
/* Generational ZGC: does the reference in that field have the current colour? True with other
 * collectors. */
bool oop_is_good_sig(uint64_t at);
/* The current address of the object behind a JNI reference; it may be outdated a moment later. */
uint64_t oop_of_handle_sig(uint64_t handle);

/* Identifies the time between two stop-the-world pauses; 0 = a pause is in progress. Collectors do
 * not wait for threads that are blocked or in native code, so data that such a thread reads is
 * right only if this value is the same before and after, and not 0. */
uint64_t oop_epoch_sig(void);

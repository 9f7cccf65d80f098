/* See oop.h. Finds the collectors' tables of moved objects, mostly through VMStructs. */
#include "agent/hotspot/oop.h"

#include <stdio.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"

#define OLD_JVMS_PREFIX 'X' /* of names of the ZGC without generations in JDK 21 to 23 */
#define GENERATIONS	2

static char prefix; /* 'Z' or 'X' */

/* "?Heap" -> "ZHeap" or "XHeap"; up to three results are valid at a time. */
static const char *oop_z(const char *name)
{
	static char texts[4][48];
	static unsigned next;
	char *text = texts[next++ % 4];

	snprintf(text, sizeof(texts[0]), "%s", name);
	for (char *p = text; *p; p++)
		if (*p == '?')
			*p = prefix;
	return text;
}

static uint64_t oop_pointer_at(const void *address)
{
	uint64_t value = 0;

	if (address)
		memcpy(&value, address, sizeof(value));
	return value;
}

/* A variable to which ZGlobalsForVMStructs points. */
static const uint64_t *oop_global(const char *name)
{
	const char *globals = (const char *)(uintptr_t)oop_pointer_at(
		libjvm_static(oop_z("?GlobalsForVMStructs"), "_instance_p"));
	long at = libjvm_offset(oop_z("?GlobalsForVMStructs"), oop_z(name));

	return globals && at >= 0 ? (const uint64_t *)(uintptr_t)oop_pointer_at(globals + at)
				  : NULL;
}

/* The offset of a field inside a field; -1 = unknown. */
static long oop_nested(const char *type, const char *field, const char *type2, const char *field2)
{
	long a = libjvm_offset(oop_z(type), oop_z(field)),
	     b = libjvm_offset(oop_z(type2), oop_z(field2));

	return a < 0 || b < 0 ? -1 : a + b;
}

static bool read_forwarding(void)
{
	long start = oop_nested("?Forwarding", "_virtual", "?VirtualMemory", "_start");
	long shift = libjvm_offset(oop_z("?Forwarding"), "_object_alignment_shift");
	long length =
		oop_nested("?Forwarding", "_entries", "?AttachedArrayForForwarding", "_length");
	size_t size = libjvm_type_size(oop_z("?Forwarding")); /* the entries follow the header */

	if (start < 0 || shift < 0 || length < 0 || !size)
		return false;
	oop_sig.start = (uint32_t)start;
	oop_sig.shift = (uint32_t)shift;
	oop_sig.length = (uint32_t)length;
	oop_sig.entries = (uint32_t)size;
	return true;
}

static bool read_only_table(uint64_t heap)
{
	long at = libjvm_offset(oop_z("?Heap"), "_forwarding_table");
	long map = oop_nested("?ForwardingTable", "_map", "?GranuleMapForForwarding", "_map");

	if (at < 0 || map < 0)
		return false;
	oop_sig.granules = (oop_sig.offset_mask + 1) >> 21;
	oop_sig.maps[0] = load64_sig(heap + (uint64_t)at + (uint64_t)map);
	return oop_sig.maps[0];
}

/*
 * No table gives the addresses of the generations in the heap object. Each generation contains, one
 * after the other, pointers to the heap's page allocator and page table, then its forwarding table:
 * its size in granules, and the map. The byte before these words is the number of the generation.
 * The result is trusted if exactly one of each generation is found.
 */
static bool read_generations(uint64_t heap)
{
	long allocator = libjvm_offset("ZHeap", "_page_allocator");
	long table = libjvm_offset("ZHeap", "_page_table");
	uint64_t end = heap + libjvm_type_size("ZHeap"), most = (oop_sig.offset_mask + 1) >> 21;
	unsigned found = 0;

	for (uint64_t at = heap; allocator >= 0 && table >= 0 && at + 32 <= end; at += 8) {
		uint64_t granules = load64_sig(at + 16), map = load64_sig(at + 24);
		uint8_t id = load8_sig(at - 8);

		if (load64_sig(at) != heap + (uint64_t)allocator ||
		    load64_sig(at + 8) != heap + (uint64_t)table || !granules || granules > most ||
		    map < GUARD_LOW || map % 8 || id >= GENERATIONS)
			continue;
		if (oop_sig.maps[id])
			return false;
		oop_sig.maps[id] = map;
		oop_sig.granules = granules;
		found++;
	}
	return found == GENERATIONS;
}

static void read_z(uint64_t collected)
{
	struct oop_layout *o = &oop_sig;
	const uint64_t *mask, *finalizable;
	long heap_at;

	o->generational = continuation_sig.z_shift;
	prefix = !o->generational && libjvm_static("XGlobalsForVMStructs", "_instance_p")
			 ? OLD_JVMS_PREFIX
			 : 'Z';
	mask = oop_global("_?AddressOffsetMask");
	o->good = oop_global(o->generational ? "_?PointerLoadGoodMask" : "_?AddressGoodMask");
	finalizable = o->generational ? NULL : oop_global("_?AddressMetadataFinalizable");
	heap_at = libjvm_offset(oop_z("?CollectedHeap"), "_heap");
	if (!mask || !o->good || !collected || heap_at < 0 || (!finalizable && !o->generational))
		return;
	o->offset_mask = *mask;
	o->remapped = finalizable ? *finalizable >> 1 : 0;
	o->tables = read_forwarding() &&
		    (o->generational ? read_generations(collected + (uint64_t)heap_at)
				     : read_only_table(collected + (uint64_t)heap_at));
}

void oop_init(void)
{
	static const sigset_t nothing_blocked;
	uint64_t collected = oop_pointer_at(libjvm_static("Universe", "_collectedHeap"));
	long active = libjvm_offset("CollectedHeap", "_is_stw_gc_active");
	long count = libjvm_offset("CollectedHeap", "_total_collections");

	memset(&oop_sig, 0, sizeof(oop_sig));
	oop_sig.header_forwards = layout_flag("UseShenandoahGC", false);
	if (active < 0)
		active = libjvm_offset("CollectedHeap", "_is_gc_active");
	if (collected && active >= 0 && count >= 0) {
		oop_sig.active = (const uint8_t *)(uintptr_t)collected + active;
		oop_sig.count = (const uint32_t *)(uintptr_t)(collected + (uint64_t)count);
	}
	(void)guard_begin_sig(&nothing_blocked);
	if (layout_flag("UseZGC", false))
		read_z(collected);
}

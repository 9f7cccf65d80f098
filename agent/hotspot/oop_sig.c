/*
 * See oop.h. Sources: zAddress.hpp, zBarrier.inline.hpp, zForwarding.inline.hpp,
 * zForwardingTable.inline.hpp, shenandoahForwarding.inline.hpp. An object without a forwarding
 * entry is still at its old address; the old copy of a moved object stays intact until its whole
 * region is reclaimed.
 */
#include "agent/hotspot/oop.h"

#include <stddef.h>
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/machine.h"

#define HEADER_FORWARDED 3ull
#define GRANULE_SHIFT	 21 /* ZGranuleSizeShift */
#define PROBES_MAX	 64
#define ENTRIES_MAX	 (1u << 24)
/* position of the four remap bits, which give the phase of each generation in which the reference
 * was valid */
#define REMAP_SHIFT    12
#define Z_REMEMBERED   0x30ull /* both bits: an old object in a field of an old one */
#define Z_ADDRESS_FROM 16 /* the bits below are colours */

struct oop_layout oop_sig;

/* ---- ZGC ------------------------------------------------------------------------------------ */

/* ZHash::uint32_to_uint32() */
static uint32_t oop_hash(uint32_t key)
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ key >> 16;
}

/* The table of what moves, or has moved, away from the page of @offset; 0 = none. */
static uint64_t oop_table(uint64_t map, uint64_t offset)
{
	uint64_t granule = offset >> GRANULE_SHIFT;

	return map && granule < oop_sig.granules ? load64_sig(map + 8 * granule) : 0;
}

/* The new heap offset of the object that was at @offset; @offset itself if it has not moved. */
static uint64_t oop_forwarded(uint64_t map, uint64_t offset)
{
	const struct oop_layout *o = &oop_sig;
	uint64_t page = oop_table(map, offset), n, index;

	n = page ? load64_sig(page + o->length) : 0;
	if (!n || n & (n - 1) || n > ENTRIES_MAX)
		return offset;
	index = (offset - load64_sig(page + o->start)) >> (load64_sig(page + o->shift) & 63);
	for (uint32_t i = 0, at = oop_hash((uint32_t)index); i < PROBES_MAX; i++, at++) {
		uint64_t entry = load64_sig(page + o->entries + 8 * (at & (n - 1)));

		/* bit 0: populated, 1 to 45: the new offset, above: the index of the object */
		if (!(entry & 1))
			return offset;
		if (entry >> 46 == index)
			return entry >> 1 & ((1ull << 45) - 1);
	}
	return offset;
}

static uint64_t follow_old(uint64_t value)
{
	const struct oop_layout *o = &oop_sig;
	uint64_t good = *o->good, offset = value & o->offset_mask;

	/* a reference with a colour to the offset 0 is one to the first object of the heap */
	if (!value)
		return 0;
	/* the table is needed unless the reference has the current colour, or was remapped in the
	 * last cycle and the current cycle has not begun to move objects */
	if (!(value & good) && (!(value & o->remapped) || good & o->remapped))
		offset = oop_forwarded(o->maps[0], offset);
	return offset | good;
}

static unsigned remap_index(uint64_t value)
{
	unsigned bits = machine_z_remap(value >> REMAP_SHIFT & 15);

	return bits & 1 ? 0 : bits & 2 ? 1 : bits & 4 ? 2 : 3;
}

/* The index of the remap bit gives the phases in which the reference was valid: bit 0 of the index
 * is that of the young generation, bit 1 that of the old one. A phase that has changed since means
 * that objects of that generation may have moved. */
static uint64_t follow_generational(uint64_t value)
{
	const struct oop_layout *o = &oop_sig;
	unsigned then = remap_index(value), now = remap_index(*o->good);
	uint64_t offset =
		value >> machine_z_shift(then, *continuation_sig.z_shift) & o->offset_mask;
	bool young = (then ^ now) & 1, old = (then ^ now) & 2;

	/* an address may have a table in both generations, of two pages one after the other:
	 * ZBarrier::remap_generation() */
	if (young && old)
		young = (value & Z_REMEMBERED) != Z_REMEMBERED && oop_table(o->maps[0], offset);
	if (young || old)
		offset = oop_forwarded(o->maps[young ? 0 : 1], offset);
	return offset | (o->offset_mask + 1);
}

static uint64_t follow_z(uint64_t value)
{
	const struct continuation_layout *c = &continuation_sig;

	if (c->z_shift) {
		if (!(value >> Z_ADDRESS_FROM))
			return 0;
		if (!(value & *c->z_bad_mask))
			return value >> *c->z_shift;
		return oop_sig.tables ? follow_generational(value) : 0;
	}
	return oop_sig.tables ? follow_old(value) : value;
}

/* ---- all collectors -------------------------------------------------------------------------- */

static uint64_t oop_resolve(uint64_t object)
{
	uint64_t header;

	if (!oop_sig.header_forwards || !object)
		return object;
	header = load64_sig(object);
	return (header & HEADER_FORWARDED) == HEADER_FORWARDED ? header & ~HEADER_FORWARDED
							       : object;
}

uint64_t oop_load_wide_sig(uint64_t at)
{
	uint64_t value = load64_sig(at);

	return oop_sig.good || continuation_sig.z_shift ? follow_z(value) : oop_resolve(value);
}

uint64_t oop_load_sig(uint64_t at)
{
	const struct continuation_layout *c = &continuation_sig;
	uint64_t value;

	if (!c->narrow)
		return oop_load_wide_sig(at);
	value = load32_sig(at);
	return value ? oop_resolve(c->narrow_base + (value << c->narrow_shift)) : 0;
}

bool oop_is_unreadable_sig(uint64_t at)
{
	return continuation_sig.z_shift && !oop_load_sig(at) && load64_sig(at) >> Z_ADDRESS_FROM;
}

bool oop_is_followable_sig(uint64_t at)
{
	const struct continuation_layout *c = &continuation_sig;
	const struct oop_layout *o = &oop_sig;
	uint64_t value;

	if (c->narrow || o->tables || (!c->z_shift && !o->good))
		return true;
	value = load64_sig(at);
	if (c->z_shift)
		return !(value >> Z_ADDRESS_FROM) || !(value & *c->z_bad_mask);
	return !value || value & *o->good;
}

bool oop_is_good_sig(uint64_t at)
{
	const struct continuation_layout *c = &continuation_sig;

	return !c->z_shift || !(load64_sig(at) & *c->z_bad_mask);
}

#define HANDLE_TAGS 3ull /* tag of a weak or global reference; local ones have none */

/* With generational ZGC local references hold plain addresses (jniHandles.inline.hpp); all other
 * references have the collector's form. */
uint64_t oop_of_handle_sig(uint64_t handle)
{
	if (continuation_sig.z_shift && !(handle & HANDLE_TAGS))
		return load64_sig(handle);
	return oop_load_wide_sig(handle & ~HANDLE_TAGS);
}

uint64_t oop_epoch_sig(void)
{
	const struct oop_layout *o = &oop_sig;

	if (!o->active || !o->count)
		return 1;
	if (__atomic_load_n(o->active, __ATOMIC_ACQUIRE))
		return 0;
	return 1ull + __atomic_load_n(o->count, __ATOMIC_ACQUIRE);
}

/*
 * See object_header.h. While an object has a monitor, the monitor holds the object's mark word (up
 * to JDK 21 in `_header`, later in `_metadata`), unless a table maps objects to monitors
 * (UseObjectMonitorTable). With compact headers the mark word includes the class.
 */
#include "agent/hotspot/object_header.h"

#include <stdbool.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"

#define HASH_MASK 0x7fffffffu

static struct {
	int64_t hash_shift; /* position of the identity hash in the mark word, in bits; -1 =
			     * unknown */
	int32_t mark_in_monitor; /* -1 = unknown */
	bool table;
} vm;

static uint64_t object_header_value_of(const char *field, const char *field2)
{
	static const char *const types[] = { "CompressedKlassPointers", "Universe" };
	const void *at = NULL;
	uint64_t value = 0;

	for (int i = 0; i < 2 && !at; i++) {
		at = libjvm_static(types[i], field);
		if (!at)
			at = libjvm_static(types[i], field2);
	}
	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

void object_header_init(void)
{
	if (!libjvm_long_constant("markWord::hash_shift", &vm.hash_shift) &&
	    !libjvm_long_constant("markOopDesc::hash_shift", &vm.hash_shift))
		vm.hash_shift = -1;
	vm.mark_in_monitor = (int32_t)libjvm_offset("ObjectMonitor", "_metadata");
	if (vm.mark_in_monitor < 0)
		vm.mark_in_monitor = (int32_t)libjvm_offset("ObjectMonitor", "_header");
	object_header_sig = (struct object_header_layout){
		.compact = layout_flag("UseCompactObjectHeaders", false),
		.narrow = layout_flag("UseCompressedClassPointers", vm_sig.version >= 25),
		.narrow_base = object_header_value_of("_base", "_narrow_klass._base"),
		.narrow_shift =
			(uint32_t)object_header_value_of("_shift", "_narrow_klass._shift") & 31,
	};
	vm.table = object_header_sig.compact || layout_flag("UseObjectMonitorTable", false);
}

uint64_t object_klass(uint64_t object)
{
	return object_klass_sig(object);
}

uint32_t monitor_hash(uint64_t monitor, uint64_t object)
{
	uint64_t mark;

	if (vm.hash_shift < 0 || (vm.table ? !object : vm.mark_in_monitor < 0))
		return 0;
	mark = load64_sig(vm.table ? object : monitor + (uint32_t)vm.mark_in_monitor);
	return (uint32_t)(mark >> vm.hash_shift) & HASH_MASK;
}

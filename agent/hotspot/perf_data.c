/* See perf_data.h. */
#include "agent/hotspot/perf_data.h"

#include <stddef.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/libjvm.h"

#define MAGIC	     0xc0c0fecau /* the bytes ca fe c0 c0 */
#define ENTRIES_MAX  4096u
#define CAPACITY_MAX (64u << 20)
#define NAME_MAX     64u

/* What the memory begins with. */
struct head {
	uint32_t magic;
	uint8_t order, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t changed;
	uint32_t first, entries;
};
/* What each counter begins with. */
struct entry {
	uint32_t length, name_at, elements;
	uint8_t type, flags, unit, variability;
	uint32_t value_at;
};

/* The address of the counters, and their bytes; 0 = there are none. */
static uint64_t perf_data_memory(struct head *ret, uint64_t *ret_size)
{
	const uint64_t *start = libjvm_static("PerfMemory", "_start");
	const uint64_t *capacity = libjvm_static("PerfMemory", "_capacity");
	uint64_t at = start ? __atomic_load_n(start, __ATOMIC_RELAXED) : 0;

	if (!at || at % 8 || !capacity || *capacity < sizeof(*ret) || *capacity > CAPACITY_MAX)
		return 0;
	guard_copy_sig(ret, at, sizeof(*ret));
	*ret_size = *capacity;
	return ret->magic == MAGIC && ret->entries <= ENTRIES_MAX ? at : 0;
}

static bool perf_data_is(const struct entry *e, uint64_t at, const char *name)
{
	char here[NAME_MAX] = { 0 };
	size_t n = strlen(name) + 1;

	if (n > sizeof(here) || e->name_at >= e->length || e->length - e->name_at < n)
		return false;
	guard_copy_sig(here, at + e->name_at, n);
	return memcmp(here, name, n) == 0;
}

/* The address of the value, and its bytes; 0 = there is no such counter of @type. */
static uint64_t perf_data_find(const char *name, char type, uint32_t *ret_n)
{
	struct head h = { 0 };
	struct entry e;
	uint64_t size, memory = perf_data_memory(&h, &size);

	for (uint64_t at = h.first; memory && h.entries; h.entries--, at += e.length) {
		if (at > size - sizeof(e))
			return 0;
		guard_copy_sig(&e, memory + at, sizeof(e));
		if (e.length < sizeof(e) || e.length > size - at)
			return 0;
		if (!perf_data_is(&e, memory + at, name))
			continue;
		*ret_n = e.value_at < e.length ? e.length - e.value_at : 0;
		return e.type == type ? memory + at + e.value_at : 0;
	}
	return 0;
}

uint64_t perf_data_number(const char *name)
{
	uint32_t n = 0;
	uint64_t at = perf_data_find(name, 'J', &n);

	return n >= sizeof(uint64_t) && at % sizeof(uint64_t) == 0 ? at : 0;
}

bool perf_data_text(const char *name, char ret[PERF_DATA_TEXT_MAX])
{
	uint32_t n = 0;
	uint64_t at = perf_data_find(name, 'B', &n);

	if (!at)
		return false;
	memset(ret, 0, PERF_DATA_TEXT_MAX);
	guard_copy_sig(ret, at, n < PERF_DATA_TEXT_MAX ? n : PERF_DATA_TEXT_MAX);
	return ret[0] && !ret[PERF_DATA_TEXT_MAX - 1];
}

/* See stub_names.h. */
#include "agent/hotspot/stub_names.h"

#include <stddef.h>
#include "agent/hotspot/stub_table.h"

struct stub_table *stub_table_sig;

uint64_t stub_name_sig(uint64_t pc)
{
	const struct stub_table *t = __atomic_load_n(&stub_table_sig, __ATOMIC_ACQUIRE);
	uint32_t low = 0, high;
	uint64_t at;

	if (!t || pc < t->code)
		return 0;
	at = pc - t->code;
	for (high = t->n; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		const struct stub_name *s = &t->stub[middle];

		if (at < s->begin)
			high = middle;
		else if (at >= s->end)
			low = middle + 1;
		else
			return t->image + s->name;
	}
	return 0;
}

/* See table.h. */
#include "daemon/symbols/table.h"

#include <errno.h>
#include <string.h>

int table_check(const void *bytes, size_t len, struct symbol_table *ret)
{
	const struct table_header *h = bytes;
	const struct table_entry *e = (const void *)(h + 1);
	size_t entries;

	if (len < sizeof(*h) || h->magic != TABLE_MAGIC || h->n_entries > TABLE_ENTRIES_MAX)
		return -EBADMSG;
	entries = h->n_entries * sizeof(*e);
	if (len != sizeof(*h) + entries + h->names_bytes || h->names_bytes == 0 ||
	    ((const char *)bytes)[len - 1] != '\0')
		return -EBADMSG;
	for (uint32_t i = 0; i < h->n_entries; i++)
		if (e[i].name >= h->names_bytes || (i && e[i].offset < e[i - 1].offset))
			return -EBADMSG;
	ret->entries = e;
	ret->n_entries = h->n_entries;
	ret->flags = h->flags;
	ret->names = (const char *)(e + h->n_entries);
	return 0;
}

const char *table_find(const struct symbol_table *t, uint64_t offset)
{
	uint32_t low = 0, high = t->n_entries;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (t->entries[mid].offset <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return NULL;
	/* the end counts as inside: after a call that never returns, as the function's last
	 * instruction, it is the return address */
	if (offset - t->entries[low - 1].offset > t->entries[low - 1].size)
		return NULL;
	return t->names + t->entries[low - 1].name;
}

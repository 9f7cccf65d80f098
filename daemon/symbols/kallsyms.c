/* See kallsyms.h. */
#include "daemon/symbols/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct symbol {
	uint64_t address;
	uint32_t name; /* in names */
};

struct kallsyms {
	struct symbol *symbols;
	char *names;
	uint32_t n, cap;
	uint32_t names_len, names_cap;
};

static bool reserve(struct kallsyms *k)
{
	uint32_t want = k->cap ? 2 * k->cap : 1u << 14;
	void *p;

	if (k->n == k->cap) {
		p = want > KALLSYMS_MAX ? NULL : realloc(k->symbols, want * sizeof(*k->symbols));
		if (!p)
			return false;
		k->symbols = p;
		k->cap = want;
	}
	if (k->names_cap - k->names_len > KALLSYMS_NAME_MAX)
		return true;
	want = k->names_cap ? 2 * k->names_cap : 1u << 18;
	p = want > KALLSYMS_NAMES_MAX ? NULL : realloc(k->names, want);
	if (!p)
		return false;
	k->names = p;
	k->names_cap = want;
	return true;
}

/* "ffffffff81000000 T _text\t[module]"; *ret_name has no end yet, its length is returned. */
static size_t parse(const char *line, uint64_t *ret_address, const char **ret_name)
{
	char *end;
	size_t len;

	*ret_address = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return 0;
	*ret_name = end + 3;
	for (len = 0; end[3 + len] > ' ' && end[3 + len] < 0x7f; len++)
		;
	return len > KALLSYMS_NAME_MAX ? KALLSYMS_NAME_MAX : len;
}

static bool add(struct kallsyms *k, uint64_t address, const char *name, size_t len)
{
	if (!reserve(k))
		return false;
	k->symbols[k->n++] = (struct symbol){ address, k->names_len };
	memcpy(k->names + k->names_len, name, len);
	k->names[k->names_len + len] = '\0';
	k->names_len += (uint32_t)len + 1;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

int kallsyms_read(FILE *from, struct kallsyms **ret)
{
	CLEANUP(kallsyms_freep) struct kallsyms *k = calloc(1, sizeof(*k));
	bool begins = true, hidden = false;
	const char *name = NULL;
	char line[512];
	uint64_t address;
	size_t len;

	if (!k)
		return -ENOMEM;
	while (fgets(line, sizeof(line), from)) {
		bool is_line = begins;

		begins = strchr(line, '\n'); /* what follows belongs to a line that is too long */
		len = is_line ? parse(line, &address, &name) : 0;
		hidden |= len && !address;
		if (len && address && !add(k, address, name, len))
			break;
	}
	if (!k->n)
		return hidden ? -EACCES : -ENODATA;
	qsort(k->symbols, k->n, sizeof(*k->symbols), compare);
	*ret = TAKE_PTR(k);
	return 0;
}

struct kallsyms *kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return NULL;
	free(k->symbols);
	free(k->names);
	free(k);
	return NULL;
}

const char *kallsyms_name(const struct kallsyms *k, uint64_t address)
{
	uint32_t low = 0, high = k ? k->n : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (k->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - k->symbols[low - 1].address > KALLSYMS_REACH)
		return NULL;
	return k->names + k->symbols[low - 1].name;
}

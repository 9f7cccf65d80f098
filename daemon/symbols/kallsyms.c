/*
 * See kallsyms.h. While it is read the whole file is in memory, some 5 MB. A fifth of that remains:
 * addresses as offsets of two bytes from the first one of their run, and packed names.
 */
#include "daemon/symbols/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct run {
	uint64_t address;
	uint32_t first; /* number of its first symbol */
};

struct kallsyms {
	uint16_t *offsets; /* by symbol, sorted by address */
	struct run *runs; /* the last one is the end */
	uint32_t n_runs;
	struct packed_names *names; /* by symbol */
};

/* ---- reading --------------------------------------------------------------------------------- */

struct symbol {
	uint64_t address;
	uint32_t name; /* position in names */
};

struct listing {
	struct symbol *symbols;
	char *names;
	uint32_t n, cap;
	uint32_t names_len, names_cap;
};

static void listing_deinit(struct listing *l)
{
	free(l->symbols);
	free(l->names);
}

static bool kallsyms_reserve(struct listing *l)
{
	uint32_t want = l->cap ? 2 * l->cap : 1u << 14;
	void *p;

	if (l->n == l->cap) {
		p = want > KALLSYMS_MAX ? NULL : realloc(l->symbols, want * sizeof(*l->symbols));
		if (!p)
			return false;
		l->symbols = p;
		l->cap = want;
	}
	if (l->names_cap - l->names_len > KALLSYMS_NAME_MAX)
		return true;
	want = l->names_cap ? 2 * l->names_cap : 1u << 18;
	p = want > KALLSYMS_NAMES_MAX ? NULL : realloc(l->names, want);
	if (!p)
		return false;
	l->names = p;
	l->names_cap = want;
	return true;
}

/* Parses "ffffffff81000000 T _text\t[module]". Returns the length of the name, which is not
 * terminated. */
static size_t kallsyms_parse(const char *line, uint64_t *ret_address, const char **ret_name)
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

static bool kallsyms_add(struct listing *l, uint64_t address, const char *name, size_t len)
{
	if (!kallsyms_reserve(l))
		return false;
	l->symbols[l->n++] = (struct symbol){ address, l->names_len };
	memcpy(l->names + l->names_len, name, len);
	l->names[l->names_len + len] = '\0';
	l->names_len += (uint32_t)len + 1;
	return true;
}

static int kallsyms_compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Sorts by address and keeps one name for each address: the last one in the file. */
static void kallsyms_sort(struct listing *l)
{
	uint32_t n = 0;

	qsort(l->symbols, l->n, sizeof(*l->symbols), kallsyms_compare);
	for (uint32_t i = 0; i < l->n; i++) {
		if (i + 1 < l->n && l->symbols[i].address == l->symbols[i + 1].address)
			continue;
		l->symbols[n++] = l->symbols[i];
	}
	l->n = n;
}

static int kallsyms_list(FILE *from, struct listing *l)
{
	bool begins = true, hidden = false;
	const char *name = NULL;
	char line[512];
	uint64_t address;
	size_t len;

	while (fgets(line, sizeof(line), from)) {
		bool is_line = begins;

		begins = strchr(line, '\n'); /* skips the rest of a line that is too long */
		len = is_line ? kallsyms_parse(line, &address, &name) : 0;
		hidden |= len && !address;
		if (len && address && !kallsyms_add(l, address, name, len))
			break;
	}
	if (!l->n)
		return hidden ? -EACCES : -ENODATA;
	kallsyms_sort(l);
	return 0;
}

static const char *kallsyms_name_of(void *userdata, uint32_t i)
{
	const struct listing *l = userdata;

	return l->names + l->symbols[i].name;
}

static bool begins_run(const struct listing *l, uint32_t i, uint64_t run_address)
{
	return i == 0 || l->symbols[i].address - run_address > UINT16_MAX;
}

static uint32_t count_runs(const struct listing *l)
{
	uint64_t address = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n; i++)
		if (begins_run(l, i, address)) {
			address = l->symbols[i].address;
			n++;
		}
	return n;
}

static int keep_addresses(struct kallsyms *k, const struct listing *l)
{
	uint64_t address = 0;

	k->offsets = malloc(l->n * sizeof(*k->offsets));
	k->runs = calloc(count_runs(l) + 1u, sizeof(*k->runs));
	if (!k->offsets || !k->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		if (begins_run(l, i, address)) {
			address = l->symbols[i].address;
			k->runs[k->n_runs++] = (struct run){ address, i };
		}
		k->offsets[i] = (uint16_t)(l->symbols[i].address - address);
	}
	k->runs[k->n_runs].first = l->n;
	return 0;
}

int kallsyms_read(FILE *from, struct kallsyms **ret)
{
	CLEANUP(kallsyms_freep) struct kallsyms *k = calloc(1, sizeof(*k));
	CLEANUP(listing_deinit) struct listing l = { 0 };
	int r;

	if (!k)
		return -ENOMEM;
	r = kallsyms_list(from, &l);
	if (r == 0)
		r = keep_addresses(k, &l);
	if (r == 0)
		r = packed_names_new(kallsyms_name_of, &l, l.n, &k->names);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(k);
	return 0;
}

struct kallsyms *kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return NULL;
	free(k->offsets);
	free(k->runs);
	packed_names_free(k->names);
	free(k);
	return NULL;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* The last run that begins at or before @address; NULL = there is none. */
static const struct run *run_of(const struct kallsyms *k, uint64_t address)
{
	uint32_t low = 0, high = k->n_runs;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (k->runs[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &k->runs[low - 1] : NULL;
}

/* The last symbol of @run at or before @offset; every run has one at 0. */
static uint32_t symbol_in(const struct kallsyms *k, const struct run *run, uint64_t offset)
{
	uint32_t low = run->first + 1, high = run[1].first;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (k->offsets[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

const char *kallsyms_name(struct kallsyms *k, uint64_t address)
{
	const struct run *run = k ? run_of(k, address) : NULL;
	uint32_t i;

	if (!run)
		return NULL;
	i = symbol_in(k, run, address - run->address);
	if (address - run->address - k->offsets[i] > KALLSYMS_REACH)
		return NULL;
	return packed_names_get(k->names, i);
}

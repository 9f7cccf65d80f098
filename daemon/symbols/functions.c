/* See functions.h: libelf for the parsing, the C++ runtime for the names. */
#include "daemon/symbols/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_BYTES_MAX 200
/* A hostile name of a few bytes can demangle into gigabytes: names longer than this are not
 * demangled, nor are any after this time. */
#define MANGLED_BYTES_MAX 2048
#define DEMANGLE_S_MAX	  3
#define VDSO_PREFIX	  "__vdso_"

char *__cxa_demangle(const char *mangled, char *buf, size_t *len, int *status);

/* ---- offsets --------------------------------------------------------------------------------- */

void functions_segments(struct functions *f, Elf *elf)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) != 0)
		return;
	for (size_t i = 0; i < n && f->n_loads < SEGMENTS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &f->loads[f->n_loads]) &&
		    f->loads[f->n_loads].p_type == PT_LOAD)
			f->n_loads++;
}

/* Converts an address in memory, as symbols have, to an offset in the file, as samples have. */
static bool file_offset(const struct functions *f, uint64_t address, uint64_t *ret)
{
	for (int i = 0; i < f->n_loads; i++) {
		const GElf_Phdr *p = &f->loads[i];

		if (address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz) {
			*ret = address - p->p_vaddr + p->p_offset;
			return true;
		}
	}
	return false;
}

/* ---- collecting ----------------------------------------------------------------------------- */

static int functions_add(struct functions *f, const struct function *one)
{
	if (f->n >= TABLE_ENTRIES_MAX)
		return 0;
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 4096;
		struct function *p = realloc(f->all, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		f->all = p;
		f->cap = cap;
	}
	f->all[f->n++] = *one;
	return 0;
}

/* The size of a symbol that has none: up to the end of its section. */
static uint32_t size_to_section_end(Elf *elf, const GElf_Sym *s)
{
	Elf_Scn *section = elf_getscn(elf, s->st_shndx);
	GElf_Shdr h;
	uint64_t rest;

	if (!section || !gelf_getshdr(section, &h) || s->st_value < h.sh_addr ||
	    s->st_value - h.sh_addr >= h.sh_size)
		return 1;
	rest = h.sh_size - (s->st_value - h.sh_addr);
	return rest > UINT32_MAX ? UINT32_MAX : (uint32_t)rest;
}

static int add_symbol(struct functions *f, Elf *elf, const GElf_Sym *s, const char *name)
{
	uint64_t offset;

	if (!name || !*name || !file_offset(f, s->st_value, &offset))
		return 0;
	return functions_add(f, &(struct function){
					.offset = offset,
					.size = s->st_size == 0 ? size_to_section_end(elf, s)
						: s->st_size > UINT32_MAX ? UINT32_MAX
									  : (uint32_t)s->st_size,
					.sized = s->st_size != 0,
					.global = GELF_ST_BIND(s->st_info) != STB_LOCAL,
					.name = name,
				});
}

static int read_section(struct functions *f, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < n && i < TABLE_ENTRIES_MAX; i++) {
		GElf_Sym s;
		int type, e;

		if (!gelf_getsym(data, (int)i, &s))
			break;
		type = GELF_ST_TYPE(s.st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s.st_shndx == SHN_UNDEF)
			continue;
		e = add_symbol(f, elf, &s, elf_strptr(elf, header->sh_link, s.st_name));
		if (e < 0)
			return e;
	}
	return 0;
}

int functions_read(struct functions *f, Elf *elf, uint32_t wanted)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		int e;

		if (!gelf_getshdr(section, &header) || header.sh_type != wanted)
			continue;
		e = read_section(f, elf, section, &header);
		if (e < 0)
			return e;
	}
	return 0;
}

int functions_add_known(struct functions *f, uint64_t offset, uint64_t size, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i].offset < offset + size &&
		    offset < f->all[i].offset + f->all[i].size && f->all[i].sized)
			return 0;
	if (!size || size > UINT32_MAX)
		return 0;
	return functions_add(f, &(struct function){ offset, (uint32_t)size, true, true, name });
}

const struct function *functions_named(const struct functions *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->all[i].name, name) == 0)
			return &f->all[i];
	return NULL;
}

void functions_deinit(struct functions *f)
{
	free(f->all);
	f->all = NULL;
	f->n = f->cap = 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool is_vdso(const char *name)
{
	return strncmp(name, VDSO_PREFIX, sizeof(VDSO_PREFIX) - 1) == 0;
}

/* Sorts by offset; of several names the best comes first: one with a size, a public one, not
 * that of the libc function that calls it, a short one. */
static int by_offset(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	size_t x_len, y_len;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->sized != y->sized)
		return x->sized ? -1 : 1;
	if (x->global != y->global)
		return x->global ? -1 : 1;
	if (is_vdso(x->name) != is_vdso(y->name))
		return is_vdso(x->name) ? -1 : 1;
	x_len = strlen(x->name);
	y_len = strlen(y->name);
	if (x_len != y_len)
		return x_len < y_len ? -1 : 1;
	return strcmp(x->name, y->name);
}

static char *functions_demangle(const char *name)
{
	/* only mangled names: "i" is a name in C, and the type int to the demangler */
	if (strncmp(name, "_Z", 2) != 0 || strnlen(name, MANGLED_BYTES_MAX) == MANGLED_BYTES_MAX ||
	    clock() > DEMANGLE_S_MAX * CLOCKS_PER_SEC)
		return NULL;
	return __cxa_demangle(name, NULL, NULL, NULL);
}

/* Writes the demangled name, with "?" for characters that a terminal or a page would interpret. */
static size_t clean_name(const char *name, char *buf)
{
	char *plain = functions_demangle(name);
	const char *p = plain ? plain : name;
	size_t n = 0;

	for (; *p && n < NAME_BYTES_MAX; p++)
		buf[n++] = *p < 0x20 || *p > 0x7e ? '?' : *p;
	buf[n++] = '\0';
	free(plain);
	return n;
}

static size_t sort_and_thin(struct functions *f)
{
	size_t n = 0;

	if (f->n) /* qsort(NULL, 0) is undefined */
		qsort(f->all, f->n, sizeof(*f->all), by_offset);
	for (size_t i = 0; i < f->n; i++)
		if (n == 0 || f->all[n - 1].offset != f->all[i].offset)
			f->all[n++] = f->all[i];
	return n;
}

struct names {
	char *text;
	size_t len, cap;
};

static int add_name(struct names *to, const char *name)
{
	if (to->len + NAME_BYTES_MAX + 1 > to->cap) {
		size_t cap = to->cap + to->cap / 2 + (64u << 10);
		char *p = realloc(to->text, cap);

		if (!p)
			return -ENOMEM;
		to->text = p;
		to->cap = cap;
	}
	to->len += clean_name(name, to->text + to->len);
	return to->len > TABLE_BYTES_MAX ? -EFBIG : 0;
}

/* Makes the header and the entries; the names follow them in the table. */
static struct table_header *make_entries(const struct functions *f, size_t n, struct names *names,
					 size_t *ret_len)
{
	size_t len = sizeof(struct table_header) + n * sizeof(struct table_entry);
	struct table_header *h = len < TABLE_BYTES_MAX ? calloc(1, len) : NULL;
	struct table_entry *e = (struct table_entry *)(h + 1);

	for (size_t i = 0; h && i < n; i++) {
		e[i] = (struct table_entry){ f->all[i].offset, f->all[i].size,
					     (uint32_t)names->len };
		if (add_name(names, f->all[i].name) < 0) {
			free(h);
			return NULL;
		}
	}
	*ret_len = len;
	return h;
}

int functions_table(struct functions *f, uint32_t flags, uint8_t **ret, size_t *ret_len)
{
	size_t n = sort_and_thin(f), len = 0;
	struct names names = { 0 };
	struct table_header *h = make_entries(f, n, &names, &len);
	uint8_t *bytes = NULL;

	if (h && names.len == 0)
		names.len = 1; /* just a NUL */
	if (h && len + names.len <= TABLE_BYTES_MAX)
		bytes = realloc(h, len + names.len);
	if (!bytes) {
		free(h);
		free(names.text);
		return -EFBIG;
	}
	h = (struct table_header *)bytes;
	*h = (struct table_header){ TABLE_MAGIC, (uint32_t)n, (uint32_t)names.len, flags, 0 };
	if (names.text)
		memcpy(bytes + len, names.text, names.len);
	else
		bytes[len] = '\0';
	free(names.text);
	*ret = bytes;
	*ret_len = len + names.len;
	return 0;
}

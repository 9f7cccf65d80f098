/* See read_elf.h: libelf for the parsing, the C++ runtime for the names. */
#include "daemon/symbols/read_elf.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 200
#define SEGMENTS_MAX   64

char *__cxa_demangle(const char *mangled, char *buf, size_t *len, int *status);

struct function {
	uint64_t offset;
	uint32_t size;
	bool global, sized;
	const char *name;
};

struct reader {
	Elf *elf;
	GElf_Phdr loads[SEGMENTS_MAX];
	int n_loads;
	struct function *functions;
	size_t n, cap;
};

/* Samples say where in the file, symbols where in memory. */
static bool file_offset(const struct reader *r, uint64_t address, uint64_t *ret)
{
	for (int i = 0; i < r->n_loads; i++) {
		const GElf_Phdr *p = &r->loads[i];

		if (address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz) {
			*ret = address - p->p_vaddr + p->p_offset;
			return true;
		}
	}
	return false;
}

/* Where a symbol without a size must end: with its section. */
static uint32_t size_to_section_end(const struct reader *r, const GElf_Sym *s)
{
	Elf_Scn *section = elf_getscn(r->elf, s->st_shndx);
	GElf_Shdr h;
	uint64_t rest;

	if (!section || !gelf_getshdr(section, &h) || s->st_value < h.sh_addr ||
	    s->st_value - h.sh_addr >= h.sh_size)
		return 1;
	rest = h.sh_size - (s->st_value - h.sh_addr);
	return rest > UINT32_MAX ? UINT32_MAX : (uint32_t)rest;
}

static int add_function(struct reader *r, const GElf_Sym *s, const char *name)
{
	uint64_t offset;

	if (!name || !*name || !file_offset(r, s->st_value, &offset) || r->n >= TABLE_ENTRIES_MAX)
		return 0;
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 4096;
		struct function *p = realloc(r->functions, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		r->functions = p;
		r->cap = cap;
	}
	r->functions[r->n++] = (struct function){
		.offset = offset,
		.size = s->st_size == 0		  ? size_to_section_end(r, s)
			: s->st_size > UINT32_MAX ? UINT32_MAX
						  : (uint32_t)s->st_size,
		.sized = s->st_size != 0,
		.global = GELF_ST_BIND(s->st_info) != STB_LOCAL,
		.name = name,
	};
	return 0;
}

static int read_section(struct reader *r, Elf_Scn *section, const GElf_Shdr *header)
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
		e = add_function(r, &s, elf_strptr(r->elf, header->sh_link, s.st_name));
		if (e < 0)
			return e;
	}
	return 0;
}

static int read_sections(struct reader *r, uint32_t wanted)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(r->elf, section))) {
		GElf_Shdr header;
		int e;

		if (!gelf_getshdr(section, &header) || header.sh_type != wanted)
			continue;
		e = read_section(r, section, &header);
		if (e < 0)
			return e;
	}
	return 0;
}

static void read_segments(struct reader *r)
{
	size_t n;

	if (elf_getphdrnum(r->elf, &n) != 0)
		return;
	for (size_t i = 0; i < n && r->n_loads < SEGMENTS_MAX; i++)
		if (gelf_getphdr(r->elf, (int)i, &r->loads[r->n_loads]) &&
		    r->loads[r->n_loads].p_type == PT_LOAD)
			r->n_loads++;
}

/* Of several names for one place the first stays: it says where it ends, is public, is short. */
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
	x_len = strlen(x->name);
	y_len = strlen(y->name);
	if (x_len != y_len)
		return x_len < y_len ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The name a person knows; what a terminal or a page would act upon is replaced. */
static size_t clean_name(const char *name, char *buf)
{
	/* without the prefix it would read C's "i" as the type int */
	char *plain = strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;
	const char *p = plain ? plain : name;
	size_t n = 0;

	for (; *p && n < NAME_BYTES_MAX; p++)
		buf[n++] = *p < 0x20 || *p > 0x7e ? '?' : *p;
	buf[n++] = '\0';
	free(plain);
	return n;
}

static int make_table(struct reader *r, uint8_t **ret, size_t *ret_len)
{
	size_t cap = sizeof(struct table_header) +
		     r->n * (sizeof(struct table_entry) + NAME_BYTES_MAX + 1) + 1;
	struct table_header *h;
	struct table_entry *e;
	size_t n = 0, names = 0;
	uint8_t *bytes;
	char *text;

	if (r->n) /* qsort(NULL, 0) is undefined */
		qsort(r->functions, r->n, sizeof(*r->functions), by_offset);
	for (size_t i = 0; i < r->n; i++)
		if (n == 0 || r->functions[n - 1].offset != r->functions[i].offset)
			r->functions[n++] = r->functions[i];
	bytes = calloc(1, cap);
	if (!bytes)
		return -ENOMEM;
	h = (struct table_header *)bytes;
	e = (struct table_entry *)(h + 1);
	text = (char *)(e + n);
	for (size_t i = 0; i < n; i++) {
		e[i] = (struct table_entry){ r->functions[i].offset, r->functions[i].size,
					     (uint32_t)names };
		names += clean_name(r->functions[i].name, text + names);
		if (sizeof(*h) + n * sizeof(*e) + names > TABLE_BYTES_MAX) {
			free(bytes);
			return -EFBIG;
		}
	}
	if (names == 0)
		names = 1; /* one NUL */
	*h = (struct table_header){ TABLE_MAGIC, (uint32_t)n, (uint32_t)names };
	*ret = bytes;
	*ret_len = sizeof(*h) + n * sizeof(*e) + names;
	return 0;
}

int read_elf(int fd, uint8_t **ret, size_t *ret_len)
{
	struct reader r = { 0 };
	int e = -ENOEXEC;

	elf_version(EV_CURRENT);
	r.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (r.elf && elf_kind(r.elf) == ELF_K_ELF) {
		read_segments(&r);
		e = read_sections(&r, SHT_SYMTAB);
		if (e == 0 && r.n == 0)
			e = read_sections(&r, SHT_DYNSYM);
		if (e == 0)
			e = make_table(&r, ret, ret_len);
	}
	free(r.functions);
	elf_end(r.elf);
	return e;
}

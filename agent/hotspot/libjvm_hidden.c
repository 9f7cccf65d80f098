/*
 * See libjvm.h. Finds variables that libjvm does not export, in the symbol table (.symtab) that
 * most builds keep in their file. The table has megabytes, so it is read in windows. After an
 * upgrade of the package the file may be a different one, so callers check the values.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include "agent/base/guard.h"
#include "agent/hotspot/libjvm.h"

#define WINDOW	     65536
#define SECTIONS_MAX 256
#define TABLE_MAX    (256ull << 20)

static _Alignas(16) char window[WINDOW];

struct sought {
	const char *const *names;
	uint32_t n;
	uint64_t at[LIBJVM_HIDDEN_MAX]; /* offset of the name in the strings; UINT64_MAX = not
					 * found */
};

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
	return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

/* The symbol table and its string section. */
static bool find_sections(int fd, ElfW(Shdr) * ret_symbols, ElfW(Shdr) * ret_strings)
{
	ElfW(Shdr) *sections = (void *)window;
	ElfW(Ehdr) head;

	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_shentsize != sizeof(*sections) || head.e_shnum > SECTIONS_MAX ||
	    !read_at(fd, sections, head.e_shnum * sizeof(*sections), head.e_shoff))
		return false;
	for (uint32_t i = 0; i < head.e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= head.e_shnum)
			continue;
		*ret_symbols = sections[i];
		*ret_strings = sections[sections[i].sh_link];
		return sections[i].sh_size < TABLE_MAX && ret_strings->sh_size < TABLE_MAX;
	}
	return false;
}

/* Compares the complete names in a window of the string section with the names sought. Returns the
 * bytes of these complete names. */
static size_t libjvm_hidden_match_names(struct sought *s, const char *text, size_t n, uint64_t base)
{
	size_t at = 0, len;

	for (; at < n; at += len + 1) {
		for (len = 0; at + len < n && text[at + len]; len++)
			;
		if (at + len == n)
			break;
		for (uint32_t i = 0; i < s->n; i++)
			if (strcmp(text + at, s->names[i]) == 0)
				s->at[i] = base + at;
	}
	return at;
}

static bool find_names(int fd, const ElfW(Shdr) * strings, struct sought *s)
{
	size_t whole;

	for (uint64_t at = 0; at < strings->sh_size; at += whole) {
		uint64_t left = strings->sh_size - at;
		size_t n = left < WINDOW ? (size_t)left : WINDOW;

		if (!read_at(fd, window, n, strings->sh_offset + at))
			return false;
		whole = libjvm_hidden_match_names(s, window, n, at);
		if (!whole)
			whole = n; /* the window holds a part of one name, which is longer than any
				    * that is sought */
	}
	return true;
}

static void libjvm_hidden_take(const struct sought *s, const ElfW(Sym) * symbol, uint64_t *ret)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (symbol->st_name == s->at[i] && symbol->st_shndx != SHN_UNDEF)
			ret[i] = symbol->st_value;
}

static bool libjvm_hidden_find_values(int fd, const ElfW(Shdr) * symbols, const struct sought *s,
				      uint64_t *ret)
{
	const ElfW(Sym) *list = (const void *)window;
	const size_t whole = WINDOW / sizeof(*list) * sizeof(*list);

	for (uint64_t at = 0; at < symbols->sh_size; at += whole) {
		uint64_t left = symbols->sh_size - at;
		size_t n = left < whole ? (size_t)left : whole;

		if (!read_at(fd, window, n, symbols->sh_offset + at))
			return false;
		for (size_t i = 0; i < n / sizeof(*list); i++)
			libjvm_hidden_take(s, &list[i], ret);
	}
	return true;
}

static bool libjvm_hidden_find_in(int fd, struct sought *s, uint64_t *ret_values)
{
	ElfW(Shdr) symbols, strings;

	return find_sections(fd, &symbols, &strings) && find_names(fd, &strings, s) &&
	       libjvm_hidden_find_values(fd, &symbols, s, ret_values);
}

bool libjvm_hidden(const char *const *names, uint32_t n, const void **ret)
{
	uint64_t values[LIBJVM_HIDDEN_MAX] = { 0 }, base;
	struct sought s = { .names = names, .n = n };
	struct libjvm_image image;
	const char *path;
	int fd;
	bool ok;

	if (n > LIBJVM_HIDDEN_MAX || !libjvm_image(&image) || !libjvm_file(&path, &base))
		return false;
	memset(s.at, 0xff, sizeof(s.at));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK, because the file may have
							     * been replaced by anything */
	if (fd < 0)
		return false;
	ok = libjvm_hidden_find_in(fd, &s, values);
	close(fd);
	for (uint32_t i = 0; ok && i < n; i++) {
		/* if the file is another build, the address may be in a gap between the loaded
		 * segments */
		ok = values[i] && base + values[i] >= image.low &&
		     base + values[i] + 8 <= image.high && guard_readable_sig(base + values[i]) &&
		     guard_readable_sig(base + values[i] + 7);
		ret[i] = (const void *)(uintptr_t)(base + values[i]);
	}
	return ok;
}

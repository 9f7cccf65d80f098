/* See vmmemory.h. */
#include "injector/vmmemory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DYNAMIC_MAX	    128
#define SYMBOLS_MAX	    200000
#define PROGRAM_HEADERS_MAX 64

/* ---- memory --------------------------------------------------------------------------------- */

bool vmmemory_read_now(const struct vmmemory *m, uint64_t address, void *ret, size_t size)
{
	return address && pread(m->fd, ret, size, (off_t)address) == (ssize_t)size;
}

/* The bytes at an address, up to the end of its page; @len is lowered to that. NULL = not
 * mapped. */
static const uint8_t *vmmemory_bytes_at(struct vmmemory *m, uint64_t address, size_t *len)
{
	size_t at = address % VMMEMORY_PAGE;
	uint64_t start = address - at;
	size_t slot = start / VMMEMORY_PAGE % VMMEMORY_PAGES;

	if (start == 0) /* page 0 is never mapped */
		return NULL;
	if (m->addresses[slot] != start) {
		m->addresses[slot] = 0;
		if (!vmmemory_read_now(m, start, m->pages[slot], VMMEMORY_PAGE))
			return NULL;
		m->addresses[slot] = start;
	}
	if (*len > VMMEMORY_PAGE - at)
		*len = VMMEMORY_PAGE - at;
	return m->pages[slot] + at;
}

bool vmmemory_read(struct vmmemory *m, uint64_t address, void *ret, size_t size)
{
	for (size_t done = 0, n; done < size; done += n) {
		const uint8_t *bytes;

		n = size - done;
		bytes = vmmemory_bytes_at(m, address + done, &n);
		if (!bytes)
			return false;
		memcpy((uint8_t *)ret + done, bytes, n);
	}
	return true;
}

bool vmmemory_is(struct vmmemory *m, uint64_t address, const char *wanted)
{
	for (size_t size = strlen(wanted) + 1, done = 0, n; done < size; done += n) {
		const uint8_t *bytes;

		n = size - done;
		bytes = vmmemory_bytes_at(m, address + done, &n);
		if (!bytes || memcmp(bytes, wanted + done, n) != 0)
			return false;
	}
	return true;
}

uint64_t vmmemory_word(struct vmmemory *m, uint64_t address)
{
	uint64_t value;

	return vmmemory_read(m, address, &value, sizeof(value)) ? value : 0;
}

/* ---- libjvm's symbols ----------------------------------------------------------------------- */

static uint64_t find_dynamic(struct vmmemory *m)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	if (!vmmemory_read(m, m->base, &ehdr, sizeof(ehdr)) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_phnum > PROGRAM_HEADERS_MAX)
		return 0;
	for (unsigned i = 0; i < ehdr.e_phnum; i++)
		if (vmmemory_read(m, m->base + ehdr.e_phoff + i * sizeof(phdr), &phdr,
				  sizeof(phdr)) &&
		    phdr.p_type == PT_DYNAMIC)
			return m->base + phdr.p_vaddr;
	return 0;
}

static bool find_symbols(struct vmmemory *m)
{
	uint64_t at = find_dynamic(m);
	Elf64_Dyn dyn;

	m->symtab = m->strtab = 0;
	for (int i = 0; at && i < DYNAMIC_MAX && vmmemory_read(m, at, &dyn, sizeof(dyn)) &&
			dyn.d_tag != DT_NULL;
	     i++, at += sizeof(dyn)) {
		/* glibc has turned these offsets into addresses in memory, musl has not */
		uint64_t p = dyn.d_un.d_ptr < m->base ? m->base + dyn.d_un.d_ptr : dyn.d_un.d_ptr;

		if (dyn.d_tag == DT_SYMTAB)
			m->symtab = p;
		else if (dyn.d_tag == DT_STRTAB)
			m->strtab = p;
	}
	/* in every libjvm the strings follow the symbols: the symbols end where the strings
	 * begin */
	if (!m->symtab || m->strtab <= m->symtab)
		return false;
	m->symbols = (m->strtab - m->symtab) / sizeof(Elf64_Sym);
	return m->symbols <= SYMBOLS_MAX;
}

void vmmemory_variables(struct vmmemory *m, const char *const names[], uint64_t ret[], size_t n)
{
	Elf64_Sym symbol;

	memset(ret, 0, n * sizeof(*ret));
	for (size_t i = 1; i < m->symbols; i++) {
		if (!vmmemory_read(m, m->symtab + i * sizeof(symbol), &symbol, sizeof(symbol)))
			return;
		if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT)
			continue;
		for (size_t k = 0; k < n; k++)
			if (vmmemory_is(m, m->strtab + symbol.st_name, names[k]))
				ret[k] = m->base + symbol.st_value;
	}
}

/* ---- open and close ------------------------------------------------------------------------- */

int vmmemory_of(struct inject *in, struct vmmemory **ret)
{
	static struct vmmemory memory; /* large */
	int r = 0;

	if (in->memory) {
		*ret = in->memory;
		return 0;
	}
	if (!in->maps.libjvm)
		r = maps_read(in->proc_dfd, &in->maps);
	if (r < 0 || !in->maps.libjvm)
		return r < 0 ? r : -ENOENT;
	memset(memory.addresses, 0, sizeof(memory.addresses));
	memory.base = in->maps.libjvm;
	memory.fd = openat(in->proc_dfd, "mem", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (memory.fd < 0)
		return -errno;
	in->memory = &memory;
	if (!find_symbols(&memory)) {
		vmmemory_close(in);
		return -EPROTO;
	}
	*ret = in->memory;
	return 0;
}

void vmmemory_close(struct inject *in)
{
	if (in->memory)
		in->memory->fd = fd_close(in->memory->fd);
	in->memory = NULL;
}

/* See vmmemory.h. */
#include "injector/vmmemory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/core/mem.h"

#define MAPS_BYTES_MAX	    (8u << 20)
#define DYNAMIC_MAX	    128
#define SYMBOLS_MAX	    200000
#define NAME_MAX_BYTES	    64
#define PROGRAM_HEADERS_MAX 64

/* ---- memory --------------------------------------------------------------------------------- */

static const struct vmmemory_window *window_at(struct vmmemory *m, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(VMMEMORY_WINDOW - 1);
	struct vmmemory_window *w = &m->windows[start / VMMEMORY_WINDOW % VMMEMORY_WINDOWS];

	if (start == 0) /* the first page is nobody's */
		return NULL;
	if (w->address != start) {
		w->address = 0;
		if (pread(m->fd, w->bytes, VMMEMORY_WINDOW, (off_t)start) != VMMEMORY_WINDOW)
			return NULL;
		w->address = start;
	}
	return w;
}

bool vmmemory_read(struct vmmemory *m, uint64_t address, void *ret, size_t size)
{
	size_t at = address % VMMEMORY_WINDOW;
	const struct vmmemory_window *w = NULL;

	if (at + size <= VMMEMORY_WINDOW)
		w = window_at(m, address);
	if (!w) /* across two windows, or at the edge of a mapping */
		return address && pread(m->fd, ret, size, (off_t)address) == (ssize_t)size;
	memcpy(ret, w->bytes + at, size);
	return true;
}

uint64_t vmmemory_word(struct vmmemory *m, uint64_t address)
{
	uint64_t value;

	return vmmemory_read(m, address, &value, sizeof(value)) ? value : 0;
}

bool vmmemory_is(struct vmmemory *m, uint64_t address, const char *wanted)
{
	char text[NAME_MAX_BYTES];
	size_t size = strlen(wanted) + 1;

	return size <= sizeof(text) && vmmemory_read(m, address, text, size) &&
	       memcmp(text, wanted, size) == 0;
}

/* ---- libjvm's symbols ----------------------------------------------------------------------- */

/* The lowest address of the first libjvm.so, from one line of maps. */
static bool base_from_line(const char *line, uint64_t *ret)
{
	const char *name = strstr(line, "/libjvm.so");
	uint64_t start, end, offset;

	if (!name ||
	    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3)
		return false;
	*ret = start - offset;
	return offset == 0;
}

static int find_base(int proc_dfd, uint64_t *ret)
{
	CLEANUP(fd_closep) int fd = openat(proc_dfd, "maps", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *maps = fd >= 0 ? fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 3), "re") : NULL;
	char line[4096 + 128];
	size_t total = 0;
	int r = -ENOENT;

	while (maps && r < 0 && total < MAPS_BYTES_MAX && fgets(line, sizeof(line), maps)) {
		total += strlen(line);
		if (base_from_line(line, ret))
			r = 0;
	}
	if (maps)
		fclose(maps);
	return r;
}

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

static bool open_symbols(struct vmmemory *m)
{
	uint64_t at = find_dynamic(m);
	Elf64_Dyn dyn;

	for (int i = 0; at && i < DYNAMIC_MAX && vmmemory_read(m, at, &dyn, sizeof(dyn)) &&
			dyn.d_tag != DT_NULL;
	     i++, at += sizeof(dyn)) {
		/* glibc has made addresses of them, musl leaves offsets */
		uint64_t p = dyn.d_un.d_ptr < m->base ? m->base + dyn.d_un.d_ptr : dyn.d_un.d_ptr;

		if (dyn.d_tag == DT_SYMTAB)
			m->symtab = p;
		else if (dyn.d_tag == DT_STRTAB)
			m->strtab = p;
	}
	/* the strings lie behind the symbols in every libjvm: that is where these end */
	if (!m->symtab || m->strtab <= m->symtab)
		return false;
	m->symbols = (m->strtab - m->symtab) / sizeof(Elf64_Sym);
	return m->symbols <= SYMBOLS_MAX;
}

/* What the vmmemory_variable @name of libjvm holds; 0 = there is none. */
uint64_t vmmemory_variable(struct vmmemory *m, const char *name)
{
	Elf64_Sym symbol;

	for (size_t i = 1; i < m->symbols; i++) {
		if (!vmmemory_read(m, m->symtab + i * sizeof(symbol), &symbol, sizeof(symbol)))
			return 0;
		if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
		    vmmemory_is(m, m->strtab + symbol.st_name, name))
			return vmmemory_word(m, m->base + symbol.st_value);
	}
	return 0;
}

void vmmemory_fields(struct vmmemory *m, struct vmmemory_field *fields, size_t n)
{
	uint64_t row = vmmemory_variable(m, "gHotSpotVMStructs");
	uint64_t stride = vmmemory_variable(m, "gHotSpotVMStructEntryArrayStride");
	uint64_t type_at = vmmemory_variable(m, "gHotSpotVMStructEntryTypeNameOffset");
	uint64_t field_at = vmmemory_variable(m, "gHotSpotVMStructEntryFieldNameOffset");
	uint64_t offset_at = vmmemory_variable(m, "gHotSpotVMStructEntryOffsetOffset");
	uint64_t address_at = vmmemory_variable(m, "gHotSpotVMStructEntryAddressOffset");

	for (int i = 0; row && stride && i < VMMEMORY_ROWS; i++, row += stride) {
		uint64_t type = vmmemory_word(m, row + type_at);
		uint64_t field = vmmemory_word(m, row + field_at);

		if (!type)
			return;
		for (size_t k = 0; k < n; k++) {
			if (!vmmemory_is(m, type, fields[k].type) ||
			    !vmmemory_is(m, field, fields[k].field))
				continue;
			fields[k].found = true;
			fields[k].offset = vmmemory_word(m, row + offset_at);
			fields[k].address = vmmemory_word(m, row + address_at);
		}
	}
}

bool vmmemory_constant(struct vmmemory *m, const char *name, int32_t *ret)
{
	uint64_t row = vmmemory_variable(m, "gHotSpotVMIntConstants");
	uint64_t stride = vmmemory_variable(m, "gHotSpotVMIntConstantEntryArrayStride");
	uint64_t name_at = vmmemory_variable(m, "gHotSpotVMIntConstantEntryNameOffset");
	uint64_t value_at = vmmemory_variable(m, "gHotSpotVMIntConstantEntryValueOffset");

	for (int i = 0; row && stride && i < VMMEMORY_ROWS; i++, row += stride) {
		uint64_t at = vmmemory_word(m, row + name_at);

		if (!at)
			return false;
		if (vmmemory_is(m, at, name))
			return vmmemory_read(m, row + value_at, ret, sizeof(*ret));
	}
	return false;
}

/* ---- open and close ---- */

int vmmemory_open(int proc_dfd, struct vmmemory *m)
{
	int r;

	memset(m, 0, sizeof(*m));
	m->fd = openat(proc_dfd, "mem", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (m->fd < 0)
		return -errno;
	r = find_base(proc_dfd, &m->base);
	if (r == 0 && !open_symbols(m))
		r = -EPROTO;
	if (r < 0)
		m->fd = fd_close(m->fd);
	return r;
}

void vmmemory_close(struct vmmemory *m)
{
	m->fd = fd_close(m->fd);
}

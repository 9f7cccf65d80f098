/*
 * The values of a JVM's flags, read from its memory: the one place where all sources of options
 * meet (command line, variables, @files, -XX:Flags, the code of a program that made its own JVM).
 * HotSpot exports where its flags lie (gHotSpotVMStructs), for debuggers; 8 to 28 alike.
 *
 * It is a hostile process's memory: every address is only ever handed to pread() on /proc/PID/mem,
 * every loop has an end, nothing is followed further than this file says. At worst we believe a
 * wrong value about a process that lies about itself.
 */
#include "injector/vmflags.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAPS_BYTES_MAX	    (8u << 20)
#define WINDOW_BYTES	    16384 /* of memory that is kept: names lie close together */
#define WINDOWS		    64
#define DYNAMIC_MAX	    128
#define SYMBOLS_MAX	    200000
#define ROWS_MAX	    20000
#define FLAGS_MAX	    10000
#define NAME_MAX_BYTES	    64
#define PROGRAM_HEADERS_MAX 64

struct window {
	uint64_t address; /* 0 = empty */
	uint8_t bytes[WINDOW_BYTES];
};

struct memory {
	int fd;
	uint64_t base; /* of libjvm.so */
	uint64_t symtab, strtab;
	size_t symbols;
	struct window windows[WINDOWS];
};

/* ---- memory --------------------------------------------------------------------------------- */

static const struct window *window_at(struct memory *m, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(WINDOW_BYTES - 1);
	struct window *w = &m->windows[start / WINDOW_BYTES % WINDOWS];

	if (start == 0) /* the first page is nobody's */
		return NULL;
	if (w->address != start) {
		w->address = 0;
		if (pread(m->fd, w->bytes, WINDOW_BYTES, (off_t)start) != WINDOW_BYTES)
			return NULL;
		w->address = start;
	}
	return w;
}

static bool read_bytes(struct memory *m, uint64_t address, void *ret, size_t size)
{
	size_t at = address % WINDOW_BYTES;
	const struct window *w = NULL;

	if (at + size <= WINDOW_BYTES)
		w = window_at(m, address);
	if (!w) /* across two windows, or at the edge of a mapping */
		return address && pread(m->fd, ret, size, (off_t)address) == (ssize_t)size;
	memcpy(ret, w->bytes + at, size);
	return true;
}

static uint64_t read_word(struct memory *m, uint64_t address)
{
	uint64_t value;

	return read_bytes(m, address, &value, sizeof(value)) ? value : 0;
}

static bool is_string(struct memory *m, uint64_t address, const char *wanted)
{
	char text[NAME_MAX_BYTES];
	size_t size = strlen(wanted) + 1;

	return size <= sizeof(text) && read_bytes(m, address, text, size) &&
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

static uint64_t find_dynamic(struct memory *m)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	if (!read_bytes(m, m->base, &ehdr, sizeof(ehdr)) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_phnum > PROGRAM_HEADERS_MAX)
		return 0;
	for (unsigned i = 0; i < ehdr.e_phnum; i++)
		if (read_bytes(m, m->base + ehdr.e_phoff + i * sizeof(phdr), &phdr, sizeof(phdr)) &&
		    phdr.p_type == PT_DYNAMIC)
			return m->base + phdr.p_vaddr;
	return 0;
}

static bool open_symbols(struct memory *m)
{
	uint64_t at = find_dynamic(m);
	Elf64_Dyn dyn;

	for (int i = 0;
	     at && i < DYNAMIC_MAX && read_bytes(m, at, &dyn, sizeof(dyn)) && dyn.d_tag != DT_NULL;
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

/* What the variable @name of libjvm holds; 0 = there is none. */
static uint64_t variable(struct memory *m, const char *name)
{
	Elf64_Sym symbol;

	for (size_t i = 1; i < m->symbols; i++) {
		if (!read_bytes(m, m->symtab + i * sizeof(symbol), &symbol, sizeof(symbol)))
			return 0;
		if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
		    is_string(m, m->strtab + symbol.st_name, name))
			return read_word(m, m->base + symbol.st_value);
	}
	return 0;
}

/* ---- HotSpot's tables ----------------------------------------------------------------------- */

struct flag_table {
	uint64_t first, count, size;
	uint64_t name_at, address_at; /* offsets in a flag */
};

/* "Flag" in JDK 8, "JVMFlag" later. */
static bool is_flag_type(struct memory *m, uint64_t name)
{
	return is_string(m, name, "JVMFlag") || is_string(m, name, "Flag");
}

/* The static int Abstract_VM_Version::@field, as it is copied to @ret. */
struct version_field {
	const char *field;
	bool found;
	int32_t value;
};

static void read_version(struct memory *m, struct version_field *fields, size_t n)
{
	uint64_t row = variable(m, "gHotSpotVMStructs");
	uint64_t stride = variable(m, "gHotSpotVMStructEntryArrayStride");
	uint64_t type_at = variable(m, "gHotSpotVMStructEntryTypeNameOffset");
	uint64_t field_at = variable(m, "gHotSpotVMStructEntryFieldNameOffset");
	uint64_t address_at = variable(m, "gHotSpotVMStructEntryAddressOffset");

	for (int i = 0; row && stride && i < ROWS_MAX; i++, row += stride) {
		uint64_t type = read_word(m, row + type_at), field = read_word(m, row + field_at);

		if (!type)
			return;
		if (!is_string(m, type, "Abstract_VM_Version"))
			continue;
		for (size_t k = 0; k < n; k++)
			if (is_string(m, field, fields[k].field))
				fields[k].found = read_bytes(m, read_word(m, row + address_at),
							     &fields[k].value, sizeof(int32_t));
	}
}

static bool read_structs(struct memory *m, struct flag_table *t)
{
	uint64_t row = variable(m, "gHotSpotVMStructs");
	uint64_t stride = variable(m, "gHotSpotVMStructEntryArrayStride");
	uint64_t type_at = variable(m, "gHotSpotVMStructEntryTypeNameOffset");
	uint64_t field_at = variable(m, "gHotSpotVMStructEntryFieldNameOffset");
	uint64_t offset_at = variable(m, "gHotSpotVMStructEntryOffsetOffset");
	uint64_t address_at = variable(m, "gHotSpotVMStructEntryAddressOffset");
	int found = 0;

	if (!row || !stride)
		return false;
	for (int i = 0; i < ROWS_MAX && found < 4; i++, row += stride) {
		uint64_t type = read_word(m, row + type_at), field = read_word(m, row + field_at);

		if (!type)
			break;
		if (!is_flag_type(m, type))
			continue;
		found++;
		if (is_string(m, field, "flags"))
			t->first = read_word(m, read_word(m, row + address_at));
		else if (is_string(m, field, "numFlags"))
			t->count = read_word(m, read_word(m, row + address_at));
		else if (is_string(m, field, "_name"))
			t->name_at = read_word(m, row + offset_at);
		else if (is_string(m, field, "_addr"))
			t->address_at = read_word(m, row + offset_at);
		else
			found--;
	}
	return found == 4 && t->first && t->count && t->count <= FLAGS_MAX;
}

static bool read_size(struct memory *m, struct flag_table *t)
{
	uint64_t row = variable(m, "gHotSpotVMTypes");
	uint64_t stride = variable(m, "gHotSpotVMTypeEntryArrayStride");
	uint64_t name_at = variable(m, "gHotSpotVMTypeEntryTypeNameOffset");
	uint64_t size_at = variable(m, "gHotSpotVMTypeEntrySizeOffset");

	for (int i = 0; row && stride && i < ROWS_MAX; i++, row += stride) {
		uint64_t name = read_word(m, row + name_at);

		if (!name)
			return false;
		if (is_flag_type(m, name)) {
			t->size = read_word(m, row + size_at);
			return t->size > 0 && t->size < 1024;
		}
	}
	return false;
}

static void read_flags(struct memory *m, const struct flag_table *t, struct vmflag *flags, size_t n)
{
	for (uint64_t i = 0; i < t->count; i++) {
		uint64_t flag = t->first + i * t->size;
		uint64_t name = read_word(m, flag + t->name_at);

		for (size_t k = 0; name && k < n; k++)
			if (is_string(m, name, flags[k].name)) {
				uint64_t at = read_word(m, flag + t->address_at);

				flags[k].found = read_bytes(m, at, &flags[k].value, flags[k].size);
			}
	}
}

static int open_memory(int proc_dfd, struct memory *m)
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

static struct memory memory;

int vmflags_read(int proc_dfd, struct vmflag *flags, size_t n)
{
	int r = open_memory(proc_dfd, &memory);
	struct flag_table t = { 0 };

	if (r < 0)
		return r;
	if (read_structs(&memory, &t) && read_size(&memory, &t))
		read_flags(&memory, &t, flags, n);
	else
		r = -EPROTO;
	memory.fd = fd_close(memory.fd);
	return r;
}

int vmflags_version(int proc_dfd, struct jdk_version *ret)
{
	struct version_field fields[] = {
		{ "_vm_major_version", false, 0 },
		{ "_vm_minor_version", false, 0 },
		{ "_vm_security_version", false, 0 },
	};
	int r = open_memory(proc_dfd, &memory);

	if (r < 0)
		return r;
	read_version(&memory, fields, ARRAY_SIZE(fields));
	memory.fd = fd_close(memory.fd);
	if (!fields[0].found || !fields[1].found)
		return -EPROTO;
	*ret = jdk_version_of(fields[0].value, fields[1].value,
			      fields[2].found ? &fields[2].value : NULL);
	return 0;
}

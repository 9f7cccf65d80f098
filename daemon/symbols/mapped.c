/* See mapped.h. */
#include "daemon/symbols/mapped.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/ground/hash.h"
#include "daemon/ground/mem.h"

#define VDSO_BYTES_MAX (1u << 20)

/* The size with the section headers at the end; the kernel's library is trusted. */
static size_t vdso_bytes(const uint8_t *p)
{
	const Elf64_Ehdr *h = (const void *)p;
	size_t end;

	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	end = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
	return end <= VDSO_BYTES_MAX ? end : 0;
}

static bool has_note(const uint8_t *notes, size_t len, const uint8_t *id, unsigned id_len)
{
	for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= len;) {
		const Elf64_Nhdr *n = (const void *)(notes + at);
		size_t name = at + sizeof(*n), desc = name + ((n->n_namesz + 3u) & ~3u);

		at = desc + ((n->n_descsz + 3u) & ~3u);
		if (n->n_type == NT_GNU_BUILD_ID && at <= len && n->n_namesz == sizeof("GNU") &&
		    memcmp(notes + name, "GNU", sizeof("GNU")) == 0)
			return n->n_descsz == id_len && memcmp(notes + desc, id, id_len) == 0;
	}
	return false;
}

static bool mapped_has_build_id(const uint8_t *p, const uint8_t *id, unsigned id_len)
{
	const Elf64_Ehdr *h = (const void *)p;
	const Elf64_Phdr *segments = (const void *)(p + h->e_phoff);

	for (unsigned i = 0; i < h->e_phnum; i++)
		if (segments[i].p_type == PT_NOTE &&
		    has_note(p + segments[i].p_offset, segments[i].p_filesz, id, id_len))
			return true;
	return false;
}

static ino_t sum_of(const uint8_t *p, size_t len)
{
	return (ino_t)hash_bytes(HASH_BEGIN, p, len);
}

static const uint8_t *our_vdso(size_t *ret_len)
{
	const uint8_t *p = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

	*ret_len = p ? vdso_bytes(p) : 0;
	return *ret_len ? p : NULL;
}

bool mapped_is_our_vdso(uint64_t bytes, const uint8_t *build_id, unsigned build_id_len)
{
	size_t len, page = (size_t)sysconf(_SC_PAGESIZE);
	const uint8_t *own = our_vdso(&len);

	if (!own)
		return false;
	return build_id_len ? mapped_has_build_id(own, build_id, build_id_len)
			    : bytes == ((len + page - 1) & ~(page - 1));
}

int mapped_open_vdso(struct stat *ret)
{
	CLEANUP(fd_closep) int fd = -1;
	size_t len;
	const uint8_t *own = our_vdso(&len);

	if (!own)
		return -1;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, own, len) != (ssize_t)len)
		return -1;
	*ret = (struct stat){ .st_size = (off_t)len, .st_ino = sum_of(own, len) };
	return TAKE_FD(fd);
}

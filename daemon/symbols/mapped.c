/* See mapped.h. */
#include "daemon/symbols/mapped.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/core/mem.h"

#define FILE_BYTES_MAX ((off_t)1 << 30)
#define VDSO_BYTES_MAX (1u << 20)

/* ---- files ---------------------------------------------------------------------------------- */

/* Opened for reading only when it is a file: opening a device can do things. */
static int reopen_file(int path_fd, struct stat *ret)
{
	char name[40];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX)
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		*ret = st;
	return fd;
}

int mapped_root(int pid)
{
	char name[40];

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	return open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int mapped_open(int pid, uint64_t begin, uint64_t end, const char *path, struct stat *ret)
{
	CLEANUP(fd_closep) int root = -1, file = -1;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char name[80];

	snprintf(name, sizeof(name), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)begin,
		 (unsigned long long)end);
	file = open(name, O_PATH | O_CLOEXEC);
	if (file < 0) {
		root = mapped_root(pid);
		if (root >= 0)
			file = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	}
	return file < 0 ? -1 : reopen_file(file, ret);
}

/* ---- the vDSO ------------------------------------------------------------------------------- */

/* All of it, section headers at the end included; the kernel's word is believed. */
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

static bool has_build_id(const uint8_t *p, const uint8_t *id, unsigned id_len)
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
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return (ino_t)h;
}

int mapped_open_vdso(uint64_t bytes, const uint8_t *build_id, unsigned build_id_len,
		     struct stat *ret)
{
	const uint8_t *own = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	size_t len = own ? vdso_bytes(own) : 0, page = (size_t)sysconf(_SC_PAGESIZE);
	CLEANUP(fd_closep) int fd = -1;

	if (!len || (build_id_len ? !has_build_id(own, build_id, build_id_len)
				  : bytes != ((len + page - 1) & ~(page - 1))))
		return -1;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, own, len) != (ssize_t)len)
		return -1;
	*ret = (struct stat){ .st_size = (off_t)len, .st_ino = sum_of(own, len) };
	return TAKE_FD(fd);
}

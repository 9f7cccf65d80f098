/* See debug_file.h. */
#include "daemon/symbols/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/ground/mem.h"
#include "daemon/symbols/sections.h"

#define DEBUG_DIR "/usr/lib/debug"

/* What identifies the debug file of a library. */
struct wanted {
	uint8_t id[BUILD_ID_MAX];
	size_t id_len;
	char link[NAME_MAX + 1]; /* .gnu_debuglink; "" = none */
	uint32_t crc;
};

/* Reads .gnu_debuglink: a file name, NUL, zeros up to a multiple of four, the checksum. */
static void read_link(Elf *elf, struct wanted *w)
{
	const Elf_Data *data = section_named(elf, ".gnu_debuglink");
	size_t len = data && data->d_buf ? strnlen(data->d_buf, data->d_size) : 0;
	size_t crc_at = (len + 4) & ~(size_t)3;

	if (!len || len > NAME_MAX || crc_at + sizeof(w->crc) > data->d_size ||
	    memchr(data->d_buf, '/', len) || ((const char *)data->d_buf)[0] == '.')
		return;
	memcpy(w->link, data->d_buf, len);
	memcpy(&w->crc, (const uint8_t *)data->d_buf + crc_at, sizeof(w->crc));
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool debug_file_has_build_id(int fd, const struct wanted *w)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	uint8_t id[BUILD_ID_MAX];
	bool same = elf && elf_kind(elf) == ELF_K_ELF && section_build_id(elf, id) == w->id_len &&
		    memcmp(id, w->id, w->id_len) == 0;

	elf_end(elf);
	return same;
}

static bool has_crc(int fd, off_t size, uint32_t crc)
{
	void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	bool same;

	if (p == MAP_FAILED)
		return false;
	same = lzma_crc32(p, (size_t)size, 0) == crc;
	munmap(p, (size_t)size);
	return same;
}

/* Opens regular files only: opening a container's device or pipe may have effects, or block. */
static int open_regular(int root_fd, uint64_t resolve, const char *path, struct stat *ret)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	CLEANUP(fd_closep) int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	char name[40];

	if (fd < 0 || fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode) || ret->st_size <= 0 ||
	    ret->st_size > DEBUG_FILE_BYTES_MAX)
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int debug_file_try(int root_fd, uint64_t resolve, const char *path, const struct wanted *w)
{
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	fd = open_regular(root_fd, resolve, path, &st);
	if (fd < 0 ||
	    !(w->id_len ? debug_file_has_build_id(fd, w) : has_crc(fd, st.st_size, w->crc)))
		return -1;
	return TAKE_FD(fd);
}

/* ---- places to look -------------------------------------------------------------------------- */

static int by_build_id(int root_fd, uint64_t resolve, const struct wanted *w)
{
	char path[sizeof(DEBUG_DIR) + 2 * BUILD_ID_MAX + 40];
	size_t n;

	if (root_fd < 0 || w->id_len < 2)
		return -1;
	n = (size_t)snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", w->id[0]);
	for (size_t i = 1; i < w->id_len; i++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "%02x", w->id[i]);
	snprintf(path + n, sizeof(path) - n, ".debug");
	return debug_file_try(root_fd, resolve, path, w);
}

/* Searches beside the library, in .debug beside it, and in the same place below /usr/lib/debug. */
static int by_link(int root_fd, uint64_t resolve, const char *library, const struct wanted *w)
{
	static const struct {
		const char *above, *below;
	} dirs[] = { { "", "" }, { "", "/.debug" }, { DEBUG_DIR, "" } };
	const char *slash = library ? strrchr(library, '/') : NULL;
	char path[PATH_MAX];
	int fd = -1;

	if (root_fd < 0 || !slash || !w->link[0])
		return -1;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && fd < 0; i++) {
		int n = snprintf(path, sizeof(path), "%s%.*s%s/%s", dirs[i].above,
				 (int)(slash - library), library, dirs[i].below, w->link);

		if (n > 0 && (size_t)n < sizeof(path))
			fd = debug_file_try(root_fd, resolve, path, w);
	}
	return fd;
}

int debug_file_open(Elf *elf, const struct debug_places *places)
{
	struct wanted w = { 0 };
	int fd;

	w.id_len = section_build_id(elf, w.id);
	read_link(elf, &w);
	/* no crossing of mounts: a file system mounted in a container may be a server that
	 * blocks readers */
	fd = by_build_id(places->target_fd, RESOLVE_NO_XDEV, &w);
	if (fd < 0)
		fd = by_link(places->target_fd, RESOLVE_NO_XDEV, places->path, &w);
	if (fd < 0)
		fd = by_build_id(places->host_fd, 0, &w);
	return fd < 0 ? -ENOENT : fd;
}

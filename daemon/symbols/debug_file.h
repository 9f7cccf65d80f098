/*
 * Finds the file that has the symbols which a distribution has split off from a library, by its
 * build-id or its .gnu_debuglink, in the container or on the host. Like any file of a container it
 * is opened below the given root only, and only if it is a regular file of a bounded size. It is
 * used only if its build-id matches, or, for libraries without one, its checksum.
 */
#pragma once

#include <libelf.h>

#define DEBUG_FILE_BYTES_MAX (512ll << 20)

struct debug_places {
	int target_fd, host_fd; /* root directories, -1 = none */
	const char *path; /* of the library in the target's root; NULL = unknown */
};

/* Returns an fd, or -ENOENT. */
int debug_file_open(Elf *elf, const struct debug_places *places);

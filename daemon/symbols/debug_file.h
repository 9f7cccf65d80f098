/*
 * Finds the symbols that distributions split off from a library: a file of its own, named after the
 * build-id or by .gnu_debuglink, in the container or on the host. It is opened with the same
 * precautions as any file of a container: below the given root only, regular files only, of a
 * bounded size; and it is used only if its build-id (or, if the library has none, its checksum)
 * matches.
 */
#pragma once

#include <libelf.h>

#define DEBUG_FILE_BYTES_MAX (512ll << 20)

struct debug_places {
	int target_fd, host_fd; /* root directories, -1 = none */
	const char *path; /* of the library in the target's root, or NULL */
};

/* An fd, or -ENOENT. */
int debug_file_open(Elf *elf, const struct debug_places *places);

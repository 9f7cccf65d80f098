/*
 * Names for native frames. Once per file (build-id, else path+size+mtime) a short-lived child reads
 * the ELF file with libelf and writes a sorted table (address, size, demangled name) into
 * <state_dir>/symbols/, which is mapped read-only for lookups. A file from a container is hostile:
 * only the child parses it, under rlimits and a deadline; what it wrote is bounds-checked.
 */
#pragma once

#include <stdint.h>
#include "daemon/core/loop.h"

struct symbols;
int symbols_new(struct loop *loop, const char *dir, struct symbols **ret);
struct symbols *symbols_free(struct symbols *s);
DEFINE_FREEP(struct symbols, symbols_free);

/*
 * Make the names of a mapped file known: @pid is a live process that maps it at [start, end).
 * Opens it through /proc/PID/map_files, starts a child when no table exists yet. Calls may repeat.
 * @build_id may be NULL/0. At most 4 children at once; more wait in a bounded queue.
 */
void symbols_want(struct symbols *s, int pid, uint64_t start, uint64_t end, const char *path,
		  const uint8_t *build_id, unsigned build_id_len);
/* The name at @offset of the file @path, or NULL (no table yet, stripped, or none there). Valid
 * until symbols_free(). The file is known by @path as last wanted; two containers with different
 * files at one path are kept apart by @pid. With pid 0 the answer is a name only where all files
 * wanted at @path agree on it. */
const char *symbols_lookup(struct symbols *s, int pid, const char *path, uint64_t offset);

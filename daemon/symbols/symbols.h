/*
 * Names for native frames. Once per file a short-lived child reads the ELF file with libelf and
 * writes a sorted table (address, size, demangled name) into <state_dir>/symbols/, which is mapped
 * read-only for lookups. A file from a container is hostile: only the child parses it, under limits
 * and a deadline; what it wrote is bounds-checked, and names nothing but that very file in that
 * container: what a file says of itself, its build-id, is not believed. Equal tables of several
 * containers are kept once.
 *
 * Tenants (tenant.h) share fairly: one child each at a time and a budget of CPU time; of the
 * directory's bytes, which are bounded, those of who has the most go first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/core/loop.h"

struct symbols;
/* Tests: the program of the build tree; NULL = the one beside the running program. No variable of the
 * environment says what root runs. */
extern const char *symbols_program;
/* @max_bytes: of all tables. */
int symbols_new(struct loop *loop, const char *dir, uint64_t max_bytes, struct symbols **ret);
struct symbols *symbols_free(struct symbols *s);
DEFINE_FREEP(struct symbols, symbols_free);

/* A process, and whose it is. */
struct symbols_process {
	int pid;
	uint64_t start_time; /* with the pid: identity */
	const char *tenant; /* tenant_name(), borrowed for the call */
};

/*
 * Make the names of a mapped file known: @p is a live process that maps it at [begin, end). Opens
 * it through /proc/PID/map_files, starts a child when no table exists yet. Calls may repeat. A file
 * beyond the bounds of its process or its tenant is refused, and counted.
 * @build_id may be NULL/0; it tells the vDSO from others.
 */
void symbols_want(struct symbols *s, const struct symbols_process *p, uint64_t begin, uint64_t end,
		  const char *path, const uint8_t *build_id, unsigned build_id_len);
/* The process has ended: what is known of its files is forgotten, some minutes later. */
void symbols_end(struct symbols *s, int pid, uint64_t start_time);
/* The name at @offset of the file @path as the process last mapped it, or NULL (not known, no table
 * yet, stripped, or none there). Valid until the loop goes on. */
const char *symbols_lookup(struct symbols *s, int pid, uint64_t start_time, const char *path,
			   uint64_t offset);

struct symbols_counts {
	uint64_t refused; /* files beyond a bound, since the start */
	uint64_t failed; /* children that made no table: no ELF file, limits, the deadline */
	uint64_t table_bytes; /* on disk */
	unsigned tables, waiting, reading;
};
void symbols_counts(const struct symbols *s, struct symbols_counts *ret);

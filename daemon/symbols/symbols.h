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
#include <sys/stat.h>
#include "daemon/core/loop.h"

#define SYMBOLS_CHILDREN_MAX 512 /* including those that hang, one for each tenant */

struct symbols;
/* Tests: the program of the build tree; NULL = the one beside the running program. No environment
 * variable may choose a program that root runs. */
extern const char *symbols_program;
/* A process and its tenant. */
struct symbols_process {
	int pid;
	uint64_t start_time; /* with the pid: identity */
	const char *tenant; /* tenant_name(), borrowed for the call */
};

/*
 * The opener finds the files of processes: the room itself opens none, because looking up a name,
 * stat and even close(2) may block on the file's owner.
 */
struct symbols_opener {
	/*
	 * The file that @p has mapped at [begin, end), or has at @path. 0: symbols_opened() will be
	 * called for it; -EAGAIN: ask again later; other errors: that file is not opened.
	 */
	int (*ask)(void *userdata, uint64_t ticket, const struct symbols_process *p, uint64_t begin,
		   uint64_t end, const char *path);
	void (*cancel)(void *userdata, uint64_t ticket); /* its answer is no longer needed */
};

/* @opener is borrowed, as @userdata for it; @max_bytes: of all tables. */
int symbols_new(struct loop *loop, const char *dir, uint64_t max_bytes,
		const struct symbols_opener *opener, void *userdata, struct symbols **ret);
struct symbols *symbols_free(struct symbols *s);
DEFINE_FREEP(struct symbols, symbols_free);

/*
 * The answer to ask(). @result: 0 or -errno. @file_fd: the file, O_PATH, and a regular one by
 * @st; @root_fd: the root directory of the process, O_PATH, or -1. Takes both. @took_ns: the time
 * that it took to find out.
 */
void symbols_opened(struct symbols *s, uint64_t ticket, int result, int file_fd, int root_fd,
		    const struct stat *st, uint64_t took_ns);

/*
 * Requests the names of a mapped file: @p is a running process that maps it at [begin, end). The
 * opener is asked for it when its tenant has its turn, and a child is started if no table exists
 * yet. Repeated calls are cheap. A file beyond the limits of its process or its tenant is refused,
 * and counted. @build_id may be NULL/0; it distinguishes the vDSO from other files.
 */
void symbols_want(struct symbols *s, const struct symbols_process *p, uint64_t begin, uint64_t end,
		  const char *path, const uint8_t *build_id, unsigned build_id_len);
/* The process has ended: its files are forgotten some minutes later. */
void symbols_end(struct symbols *s, int pid, uint64_t start_time);
/* The name at @offset of the file @path as the process last mapped it, or NULL (not known, no table
 * yet, stripped, or none there). Valid until the loop goes on. */
const char *symbols_lookup(struct symbols *s, int pid, uint64_t start_time, const char *path,
			   uint64_t offset);
/* A batch of lookups has ended: gives back the pages of tables that they brought into memory. */
void symbols_give_back(struct symbols *s);

struct symbols_counts {
	uint64_t refused; /* files beyond a bound, since the start */
	uint64_t failed; /* files that did not open in time; children that made no table: not an ELF
			  * file, limits, the deadline */
	uint64_t table_bytes; /* on disk */
	unsigned tables, waiting, reading, opening;
};
void symbols_counts(const struct symbols *s, struct symbols_counts *ret);

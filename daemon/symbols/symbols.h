/*
 * Names native frames. For each file a short-lived child reads the ELF file with libelf and writes
 * a sorted table (address, size, demangled name) into <state_dir>/symbols/, which is mapped
 * read-only for lookups. A container's file is hostile: only the child parses it, under limits and
 * a deadline. The table is checked, and it names only that very file in that container: what a file
 * says of itself, such as its build-id, is not believed. Equal tables of several containers are
 * stored once.
 *
 * Tenants (tenant.h) share fairly: each has one child at a time and a budget of CPU time. The
 * directory is bounded in bytes; the tenant that has the most loses tables first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "daemon/core/loop.h"

#define SYMBOLS_CHILDREN_MAX 512 /* including those that hang, of which a tenant has one */

struct symbols;
/* The program, for tests; NULL = the one beside the running program. No environment variable
 * chooses it, because root runs it. */
extern const char *symbols_program;
/* A process and its tenant. */
struct symbols_process {
	int pid;
	uint64_t start_time; /* ticks since boot; together with the pid it identifies the process */
	const char *tenant; /* tenant_name(); borrowed during the call */
};

/*
 * The opener finds the files that processes map. This room opens none itself: looking up a path,
 * stat and even close(2) may block if the file's owner wants that.
 */
struct symbols_opener {
	/*
	 * Asks for the file that @p has mapped at [begin, end), or has at @path. 0:
	 * symbols_opened() will be called; -EAGAIN: try again later; other errors: the file is not
	 * opened.
	 */
	int (*ask)(void *userdata, uint64_t ticket, const struct symbols_process *p, uint64_t begin,
		   uint64_t end, const char *path);
	void (*cancel)(void *userdata, uint64_t ticket); /* the answer is no longer needed */
};

/* @opener and its @userdata are borrowed. @max_bytes: of all tables together. 0 or -errno. */
int symbols_new(struct loop *loop, const char *dir, uint64_t max_bytes,
		const struct symbols_opener *opener, void *userdata, struct symbols **ret);
struct symbols *symbols_free(struct symbols *s);
DEFINE_FREEP(struct symbols, symbols_free);

/*
 * The answer to opener.ask(). @result: 0 or -errno. @file_fd: the file, O_PATH, a regular one
 * according to @st. @root_fd: the process's root directory, O_PATH, or -1. Takes both. @took_ns:
 * how long the opener needed.
 */
void symbols_opened(struct symbols *s, uint64_t ticket, int result, int file_fd, int root_fd,
		    const struct stat *st, uint64_t took_ns);

/*
 * Asks for the names of a file that the running process @p maps at [begin, end). The opener is
 * asked when it is the tenant's turn, and a child is started if there is no table yet. Repeated
 * calls cost little. A file beyond the limits of its process or tenant is refused, and counted.
 * @build_id may be NULL/0; only that of the vDSO matters.
 */
void symbols_want(struct symbols *s, const struct symbols_process *p, uint64_t begin, uint64_t end,
		  const char *path, const uint8_t *build_id, unsigned build_id_len);
/* The process has ended: its files are forgotten some minutes later. */
void symbols_end(struct symbols *s, int pid, uint64_t start_time);
/* The name at @offset of the file @path, as the process last mapped it. NULL: not known, no table
 * yet, stripped, or nothing there. Valid until the loop goes on. */
const char *symbols_lookup(struct symbols *s, int pid, uint64_t start_time, const char *path,
			   uint64_t offset);
/* Ends a batch of lookups: drops the pages of tables that it brought into memory. */
void symbols_give_back(struct symbols *s);

struct symbols_counts {
	uint64_t refused; /* files beyond a limit, since the start */
	uint64_t failed; /* files that could not be opened in time, and children that made no table
			  */
	uint64_t table_bytes; /* on disk */
	unsigned tables, waiting, reading, opening;
};
void symbols_counts(const struct symbols *s, struct symbols_counts *ret);

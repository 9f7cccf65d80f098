/* Reads the history from the directory in which kindlingd writes it. */
#pragma once

#include "daemon/profile/profile.h"

struct source;
int source_open(const char *state_dir, struct source **ret);
struct source *source_free(struct source *s);

struct store_process;
/* Lists the processes of [from, to) with names and labels; free with store_processes_free(). 0
 * or -ENOMEM. */
int source_processes(struct source *s, uint64_t from_real_ns, uint64_t to_real_ns,
		     struct store_process **ret, uint32_t *ret_n);

struct source_process {
	uint32_t pid;
	uint64_t start_time;
};
/* Lists the processes of [from, to), malloc'ed. 0, -ENOMEM, or -errno of the store. */
int source_list(struct source *s, uint64_t from_real_ns, uint64_t to_real_ns,
		struct source_process **ret, uint32_t *ret_n);
/* When the first window begins of those that are not over before @from; @to if there is none before
 * that, or the history cannot be read. */
uint64_t source_next(struct source *s, uint64_t from, uint64_t to);
/* A profile of one of them, without waits for work, of @events only (bits; 0 = all). 0 or
 * -errno. */
int source_profile(struct source *s, uint64_t from_real_ns, uint64_t to_real_ns,
		   const struct source_process *p, unsigned events, struct profile **ret);

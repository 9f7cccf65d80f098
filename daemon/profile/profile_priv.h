/* What encode.c and live.c know of a profile beside profile.h. */
#pragma once

#include "daemon/profile/profile.h"

/* of each table, for the entries that say "[profile full]" */
#define PROFILE_SPARE	   4096u
#define PROFILE_STRING_MAX 8000u /* bytes; longer ones are cut */

struct profile_set {
	uint32_t *slots; /* position + 1; 0 = empty */
	uint32_t size; /* power of two, 0 at first */
};

struct profile_index {
	struct profile_set strings, frames, processes, threads, nodes, rows;
	uint32_t cap_strings, cap_frames, cap_processes, cap_threads, cap_nodes, cap_rows;
	uint64_t seed; /* of the hashes: names are the targets' to choose */
	size_t bytes, bytes_max; /* of all tables */
	bool spare; /* no limit now but the tables' own */
	uint32_t full_name, full_node; /* "[profile full]", 0 = not made yet */
};

/* mutable views of the read-only tables */
#define STRINGS(p)   ((const char **)(uintptr_t)(p)->strings)
#define FRAMES(p)    ((struct profile_frame *)(uintptr_t)(p)->frames)
#define PROCESSES(p) ((struct profile_process *)(uintptr_t)(p)->processes)
#define THREADS(p)   ((struct profile_thread *)(uintptr_t)(p)->threads)
#define NODES(p)     ((struct profile_node *)(uintptr_t)(p)->nodes)
#define ROWS(p)	     ((struct profile_row *)(uintptr_t)(p)->rows)

/* Where weights go whose stack, or whose thread, does not fit; 0, UINT32_MAX without any memory. */
uint32_t profile_full_node(struct profile *p);
uint32_t profile_full_thread(struct profile *p, uint32_t process);
/* @b of the events that @f wants is added to @a. */
void profile_sum_books(struct profile_books *a, const struct profile_books *b,
		       const struct profile_filter *f);
/* Does @f (NULL = all) take this event? */
static inline bool profile_wants(const struct profile_filter *f, unsigned event)
{
	return !f || !f->events || f->events & 1u << event;
}

/* Memory that @p may take; beyond it everything new is "[profile full]". */
void profile_limit(struct profile *p, size_t bytes);
/* Find "[profile full]" among entries that were decoded. */
void profile_adopt_full(struct profile *p);

/* profile_string() that tells a string without room from the empty one. */
static inline uint32_t profile_text(struct profile *p, const char *s, bool *full)
{
	uint32_t id = profile_string(p, s);

	*full |= id == 0 && s && *s;
	return id;
}

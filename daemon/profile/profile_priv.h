/*
 * Inside the profile room, shared by the files of a profile: profile.c (life cycle, rows,
 * accounting), table.c (interning), full.c (entries without room), symbolize.c, merge.c, parts.c,
 * encode.c; the live end uses some of it.
 */
#pragma once

#include "daemon/profile/profile.h"

/* entries of each table reserved for "[profile full]" */
#define PROFILE_SPARE	   4096u
#define PROFILE_STRING_MAX 8000u /* bytes; longer ones are cut */

struct profile_set {
	uint32_t *slots; /* position + 1; 0 = empty */
	uint32_t size; /* power of two, 0 at first */
};

/* Bytes of one tenant's entries. */
struct profile_account {
	uint64_t tenant;
	size_t bytes;
};

struct profile_index {
	struct profile_set strings, frames, processes, threads, nodes, rows;
	uint32_t cap_strings, cap_frames, cap_processes, cap_threads, cap_nodes, cap_rows;
	uint64_t seed; /* seed of the hashes: the targets choose the names */
	size_t bytes; /* bytes of all tables */
	/* Charged bytes of entries, at most bytes_max: an upper bound of what they take, however
	 * tables grow. */
	size_t paid, bytes_max;
	struct profile_account *accounts; /* [0] belongs to no tenant */
	uint32_t n_accounts, payer;
	uint32_t tenants; /* number of tenants expected, at least */
	bool spare; /* no limit for now except the tables' own */
	bool as_is; /* entries are appended as they come, without lookup */
	bool distinct; /* likewise frames, nodes and rows: of one profile, each comes once */
	char *text; /* decoded strings, one after the other */
	size_t text_len, text_max;
	uint32_t full_name, full_node; /* "[profile full]", 0 = not created yet */
};

/* mutable views of the read-only tables */
#define STRINGS(p)   ((const char **)(uintptr_t)(p)->strings)
#define FRAMES(p)    ((struct profile_frame *)(uintptr_t)(p)->frames)
#define PROCESSES(p) ((struct profile_process *)(uintptr_t)(p)->processes)
#define THREADS(p)   ((struct profile_thread *)(uintptr_t)(p)->threads)
#define NODES(p)     ((struct profile_node *)(uintptr_t)(p)->nodes)
#define ROWS(p)	     ((struct profile_row *)(uintptr_t)(p)->rows)

/* table.c. Borrows what is interned; ids are positions. UINT32_MAX = no room (profile.h turns that
 * into "[profile full]"). 0 or -ENOMEM; _deinit also frees a half-made one. */
int profile_tables_init(struct profile *p);
void profile_tables_deinit(struct profile *p);
uint32_t profile_intern_thread(struct profile *p, const struct profile_thread *t);
uint32_t profile_intern_node(struct profile *p, uint32_t parent, uint32_t frame);
/* A new row is empty. */
uint32_t profile_intern_row(struct profile *p, const struct profile_row *r);
/* Makes room for the strings of a decoded profile: @bytes with their NULs. 0 or -ENOMEM. */
int profile_text_room(struct profile *p, size_t bytes);
/* Appends the next one; false = no room. */
bool profile_add_text(struct profile *p, const void *bytes, size_t len);
/* Rebuilds the index of the frames after they changed; false = two of them are equal. */
bool profile_index_frames(struct profile *p);

/* full.c. The node, the thread of @process and the row (of the process and the kind of @r) for
 * entries without room; 0, UINT32_MAX, UINT32_MAX without any memory. */
uint32_t profile_full_node(struct profile *p);
uint32_t profile_full_thread(struct profile *p, uint32_t process);
uint32_t profile_full_row(struct profile *p, struct profile_row r);
/* Is one of the two such an entry? */
bool profile_is_full(const struct profile *p, uint32_t thread, uint32_t node);
/* Finds "[profile full]" among decoded entries. */
void profile_adopt_full(struct profile *p);

/* profile.c */
/* Adds those counters of @b whose events @f wants to @a. */
void profile_sum_accounts(struct profile_accounts *a, const struct profile_accounts *b,
			  const struct profile_filter *f);
/* profile_add_row(), but returns the position of the row; UINT32_MAX = none. */
uint32_t profile_put_row(struct profile *p, const struct profile_row *row);
/* Counts the samples of a row as arrived. */
void profile_book_row(struct profile *p, const struct profile_row *r);
/* Does @f (NULL = all) take this event? */
static inline bool profile_wants(const struct profile_filter *f, unsigned event)
{
	return !f || !f->events || f->events & 1u << event;
}

/* merge.c: the entries of one profile in another */
#define PROFILE_NOT_MAPPED UINT32_MAX
struct profile_map { /* ids in the other profile; PROFILE_NOT_MAPPED = none yet */
	uint32_t *threads, *strings, *frames, *nodes;
};
int profile_map_init(struct profile_map *m, const struct profile *src);
void profile_map_deinit(struct profile_map *m);
uint32_t profile_map_thread(struct profile *dst, const struct profile *src, uint32_t id);
/* @parent: its parent's id in @dst */
uint32_t profile_map_node(struct profile *dst, const struct profile *src, uint32_t id,
			  uint32_t parent, const struct profile_map *m);
/* Merges the span of @src, and the counters and CPU time of @process. */
void profile_map_head(struct profile *dst, const struct profile *src, uint32_t process);

/* The account of @tenant, for profile_index.payer. */
uint32_t profile_account(struct profile *p, uint64_t tenant);

/* profile_string() that distinguishes a string without room from the empty one. */
static inline uint32_t profile_text(struct profile *p, const char *s, bool *full)
{
	uint32_t id = profile_string(p, s);

	*full |= id == 0 && s && *s;
	return id;
}

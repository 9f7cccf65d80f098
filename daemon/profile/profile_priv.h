/*
 * Shared by the files of a profile: profile.c (life, rows, accounting), table.c (interning), full.c
 * (entries without room), symbolize.c, merge.c, parts.c, encode.c. The live end uses some of it,
 * too.
 */
#pragma once

#include "daemon/profile/profile.h"

/* entries of each table that only "[profile full]" may use */
#define PROFILE_SPARE	   4096u
#define PROFILE_STRING_MAX 8000u /* bytes; longer strings are cut */

/* A slot holds a position + 1 (0 = it is empty) and, above that, bits of the entry's hash: another
 * entry's slot is passed over without a look at the entry, which is rarely in the CPU's cache. */
#define PROFILE_SLOT_BITS 22
_Static_assert(PROFILE_NODES_MAX < 1u << PROFILE_SLOT_BITS, "a position + 1 fits");
_Static_assert(PROFILE_ROWS_MAX < 1u << PROFILE_SLOT_BITS, "a position + 1 fits");

struct profile_set {
	uint32_t *slots;
	uint32_t size; /* power of two, 0 at first */
};

/* What one tenant's entries take. */
struct profile_account {
	uint64_t tenant;
	size_t bytes;
};

struct profile_bits {
	uint64_t *words;
	uint32_t n;
};

/* The entries of a window that its slices had so far (encode.c); of strings, frames and nodes there
 * is a bit for each, so it takes a fraction of what they do. */
struct profile_reported {
	struct profile_bits strings, frames, threads, nodes, spans;
};
void profile_reported_free(struct profile_reported *t);

#define PROFILE_ACCOUNT_HINTS 64

struct profile_index {
	struct profile_reported reported;
	struct profile_set strings, frames, processes, threads, nodes, rows, spans;
	uint32_t cap_strings, cap_frames, cap_processes, cap_threads, cap_nodes, cap_rows,
		cap_spans;
	uint64_t seed; /* of the hashes; random, because targets choose the names */
	size_t bytes; /* bytes of all tables */
	/* what entries were charged, an upper bound of what they take, however the tables grow;
	 * and its limit */
	size_t paid, bytes_max;
	struct profile_account *accounts; /* [0] is that of no tenant */
	uint32_t n_accounts, payer;
	/* by tenant modulo their number: the account that was found last, to be compared first */
	uint16_t account_hints[PROFILE_ACCOUNT_HINTS];
	uint32_t tenants; /* expected number of tenants, at least */
	bool find_only; /* for now nothing is added */
	bool spare; /* for now only the tables' own limits apply */
	bool as_is; /* entries are appended without a lookup */
	bool distinct; /* likewise strings, frames, nodes and rows: they come from one profile,
			  each once */
	bool borrows; /* strings are not copied; the caller keeps them valid as long as the profile
		       */
	struct profile *names; /* has the strings, frames, nodes and the order of the processes,
				  and others use them too; NULL = they are this profile's own */
	uint32_t sharers; /* profiles that use the names of this one */
	char *text; /* all strings of a decoded profile */
	size_t text_len, text_max;
	uint32_t next_frame; /* comes after the frame that a merge found last */
	uint32_t full_name, full_node; /* ids of "[profile full]"; 0 = not made yet */
	bool no_room; /* of names: a frame, a stack or a process found no room */
};

/* writable views of the tables */
#define STRINGS(p)   ((const char **)(uintptr_t)(p)->strings)
#define FRAMES(p)    ((struct profile_frame *)(uintptr_t)(p)->frames)
#define PROCESSES(p) ((struct profile_process *)(uintptr_t)(p)->processes)
#define THREADS(p)   ((struct profile_thread *)(uintptr_t)(p)->threads)
#define NODES(p)     ((struct profile_node *)(uintptr_t)(p)->nodes)
#define ROWS(p)	     ((struct profile_row *)(uintptr_t)(p)->rows)
#define SPANS(p)     ((struct profile_span *)(uintptr_t)(p)->spans)

/* names.c: a profile whose strings, frames and nodes are those of @names, to which it adds its own:
 * what several profiles need is looked up and kept once. @names is freed after all of them and its
 * owner have freed it. An entry that one of them adds may move the tables, so
 * profile_names_refresh() comes before another reads them; profile_merge() does it by itself. All
 * do nothing in a profile with names of its own. */
int profile_new_sharing(struct profile *names, struct profile **ret);
/* profile.c: without taking part in the ownership of @names, which may be NULL. */
int profile_new_of(struct profile *names, struct profile **ret);
void profile_names_refresh(const struct profile *p);
/* For table.c: the profile to add a name to, on behalf of the tenant that pays in @p. */
struct profile *profile_names_of(struct profile *p);
/* The process's id, the same in all profiles with these names; UINT32_MAX = no room. */
uint32_t profile_names_process(struct profile *p, const struct profile_process *q);

/* table.c. Ids are positions in the tables; what is interned is borrowed. UINT32_MAX = no room,
 * which the functions of profile.h turn into "[profile full]". profile_tables_init(): 0 or
 * -ENOMEM; _deinit also frees half-made tables. */
int profile_tables_init(struct profile *p, struct profile *names);
void profile_tables_deinit(struct profile *p);
uint32_t profile_intern_process(struct profile *p, const struct profile_process *q);
/* Appends a process without a lookup; false = no room. */
bool profile_append_process(struct profile *p, const struct profile_process *q);
uint32_t profile_intern_thread(struct profile *p, const struct profile_thread *t);
uint32_t profile_intern_node(struct profile *p, uint32_t parent, uint32_t frame);
uint32_t profile_intern_span(struct profile *p, const struct profile_span *s);
/* The row equal to @r, except for its sums; a new one has sums of 0. */
uint32_t profile_intern_row(struct profile *p, const struct profile_row *r);
/* Makes room for the strings of a decoded profile, @bytes with their NULs. 0 or -ENOMEM. */
int profile_text_room(struct profile *p, size_t bytes);
/* Appends a string to a table that has room for it. */
void profile_add_text(struct profile *p, const void *bytes, size_t len);
/* Makes a table exactly as large as the @n entries that a decoded profile has in it; false = no
 * memory. The limits are the caller's. */
#define profile_room(p, table, n) \
	profile_table_room(p, (void **)&(p)->table, &(p)->index->cap_##table, n, sizeof(*(p)->table))
bool profile_table_room(struct profile *p, void **array, uint32_t *cap, uint32_t n, size_t size);
/* Builds the index of the frames again after they changed; false = two of them are equal. */
bool profile_index_frames(struct profile *p);

/* full.c. The entries for what has no room: a node, a thread of @process, and a row of the
 * process and kind of @r. Without any memory 0, UINT32_MAX and UINT32_MAX. */
uint32_t profile_full_node(struct profile *p);
uint32_t profile_full_thread(struct profile *p, uint32_t process);
uint32_t profile_full_row(struct profile *p, struct profile_row r);
/* Is @thread or @node an entry of profile_full_thread() or profile_full_node()? */
bool profile_is_full(const struct profile *p, uint32_t thread, uint32_t node);
/* Finds these entries in a decoded profile. */
void profile_adopt_full(struct profile *p);

/* profile.c */
/* Adds the counters of @b to @a, for the events that @f wants. */
void profile_sum_accounts(struct profile_accounts *a, const struct profile_accounts *b,
			  const struct profile_filter *f);
/* Like profile_add_row(); returns the row's position, UINT32_MAX = none. */
uint32_t profile_put_row(struct profile *p, const struct profile_row *row);
/* Counts a row's samples as arrived. */
void profile_book_row(struct profile *p, const struct profile_row *r);
/* Does @f want this event? NULL wants all. */
static inline bool profile_wants(const struct profile_filter *f, unsigned event)
{
	return !f || !f->events || f->events & 1u << event;
}

/* merge.c. profile_copy() of the @rows that are true (NULL = all); the accounts stay whole, and the
 * others are not counted as left out. */
int profile_copy_rows(const struct profile *src, const bool *rows, struct profile **ret);
/* Maps the entries of one profile to those of another. */
#define PROFILE_NOT_MAPPED UINT32_MAX
struct profile_map { /* ids in the other profile; PROFILE_NOT_MAPPED = none yet */
	uint32_t *threads, *strings, *frames, *nodes, *spans, *processes;
};
int profile_map_init(struct profile_map *m, const struct profile *src);
void profile_map_deinit(struct profile_map *m);
uint32_t profile_map_thread(struct profile *dst, const struct profile *src, uint32_t id,
			    const struct profile_map *m);
/* @parent: the id in @dst of the node's parent */
uint32_t profile_map_node(struct profile *dst, const struct profile *src, uint32_t id,
			  uint32_t parent, const struct profile_map *m);
/* The span of a row, as in struct profile_row. */
uint32_t profile_map_span(struct profile *dst, const struct profile *src, uint32_t span,
			  const struct profile_map *m);
/* Merges the span of time of @src, and the counters and CPU time of @process. */
void profile_map_head(struct profile *dst, const struct profile *src, uint32_t process,
		      const struct profile_map *m);

/* The number of @tenant's account, for profile_index.payer. */
uint32_t profile_account(struct profile *p, uint64_t tenant);

/* Like profile_string(), but distinguishes a string without room from the empty one. */
static inline uint32_t profile_text(struct profile *p, const char *s, bool *full)
{
	uint32_t id = profile_string(p, s);

	*full |= id == 0 && s && *s;
	return id;
}

/* Shared by the files of the locks room: classes.c, sites.c, slices.c (locks), packed.c (locks
 * of slices that are over), threads.c, open.c (open waits), locks.c (input), answers.c. */
#pragma once

#include "daemon/ground/hash.h"
#include "daemon/locks/locks.h"

#define OTHER_CLASS UINT32_MAX /* class of the row "[other locks]" */

/* Hashes with a random seed, because the target chooses its tids and identities. */
static inline uint32_t locks_hash(uint64_t key, uint32_t seed)
{
	uint64_t h = (key ^ ((uint64_t)seed << 32 | seed)) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)((h ^ h >> 29) * 0xbf58476d1ce4e5b9ull >> 32);
}

/* ---- classes.c: names by number; 0 = "", 1 = a class that found no room ---- */

#define CLASSES_OTHER 1u

struct classes {
	char **names;
	uint32_t n, cap, bytes, seed;
	struct hash_index index; /* by name */
};
uint32_t classes_number(struct classes *c, const char *name);
const char *classes_name(const struct classes *c, uint32_t number);
void classes_deinit(struct classes *c);

/* ---- sites.c: methods in which threads waited ---- */

#define SITES_CACHE 1024u

struct sites {
	struct classes names; /* of methods */
	struct {
		uint32_t node, frame;
	} * cache; /* SITES_CACHE; NULL = empty */
};
/* The number of the application's method in which the stack waits; 0 = unknown. */
uint32_t sites_frame(struct sites *p, const struct stream *s, uint32_t node);
const char *sites_name(const struct sites *p, uint32_t frame);
void sites_forget_nodes(struct sites *p);
void sites_deinit(struct sites *p);

struct site {
	uint32_t frame; /* 0 = free */
	uint32_t node; /* leaf of the stack of the longest wait there; 0 = none, or a stack from
			  before a RESET */
	uint32_t us, longest_us;
};
struct site_set {
	struct site sites[LOCKS_SITES];
};
void site_set_add(struct site_set *s, const struct site *p);
void site_set_join(struct site_set *to, const struct site_set *from);
void site_set_forget_nodes(struct site_set *s);

/* ---- slices.c: ended waits by lock ---- */

struct tid_set {
	struct locks_tid tids[LOCKS_TIDS];
	uint32_t n;
	bool more;
};
void tid_set_add(struct tid_set *s, uint32_t tid, uint64_t ns);

struct lock_key {
	uint32_t class_number, identity;
	uint8_t wait;
	bool idle;
};

struct lock_row {
	struct lock_key key;
	uint64_t waits, open, total_ns, longest_ns;
	struct tid_set waiters, owners;
	struct site_set waiting, holding; /* the methods of its waiters and of its owners */
	uint32_t last_tid; /* the last thread that got the lock, and when */
	uint32_t locks; /* in an answer's row of a class: how many locks, */
	bool more_locks; /* and whether there are more */
	uint64_t last_ns;
};

/*
 * Rows by key. When there are @max, the half with the least time is added to one row for each
 * class, or, if there are too many classes, to the other rows.
 */
struct lock_table {
	struct lock_row *rows;
	uint32_t n, cap, seed;
	struct hash_index index; /* of rows */
	uint64_t folded;
	uint32_t epoch; /* of its nodes, see struct locks */
	struct lock_row *rest; /* rows of classes: identity 0, number of locks unknown */
	uint32_t n_rest;
	struct lock_row other[WIRE_WAIT_COUNT][2]; /* by kind of wait, and whether idle */
};
/* The row of @key; if there is no room for it, the row of @other that collects such locks. Never
 * NULL. */
struct lock_row *lock_table_row(struct lock_table *t, const struct lock_key *key, uint32_t max);
const struct lock_row *lock_table_find(const struct lock_table *t, const struct lock_key *key);
/* The row that sums up the locks of @key's class that have no row of their own; without room for
 * it, the row of all other locks. */
struct lock_row *lock_table_rest(struct lock_table *t, const struct lock_key *key);
/* For answers by lock: adds the rows of classes to the other rows. */
void lock_table_forget_classes(struct lock_table *t);
void lock_row_add(struct lock_row *to, const struct lock_row *from);
size_t lock_table_bytes(const struct lock_table *t);
/* Frees unused memory of a table to which hardly anything is added any more. */
void lock_table_shrink(struct lock_table *t);
/* Clears nodes of earlier epochs. */
void lock_table_turn(struct lock_table *t, uint32_t epoch);
void lock_table_clear(struct lock_table *t); /* the seed stays */

/* ---- packed.c: the rows of a slice that is over ---- */

struct packed_table {
	uint64_t folded;
	size_t len; /* of rows */
	uint32_t epoch; /* of its nodes */
	uint8_t rows[];
};
/* The rows of @t without what only open waits ask for: the last thread that got the lock. NULL = no
 * memory; the caller frees it. */
struct packed_table *packed_new(const struct lock_table *t);
size_t packed_bytes(const struct packed_table *p);
/* Calls @each for every row, without nodes if they are not of @epoch. @is_rest: a row of
 * lock_table_rest(). */
void packed_each(const struct packed_table *p, uint32_t epoch,
		 void (*each)(void *userdata, const struct lock_row *row, bool is_rest),
		 void *userdata);

/* ---- threads.c ------------------------------------------------------------------------------- */

struct times {
	uint32_t cpu_us, wait_us, idle_us;
};

struct thread {
	uint32_t tid, flags;
	uint64_t java_id;
	char *name; /* NULL = unknown */
	uint64_t heard_ns; /* when something was last reported about it */
	uint64_t sample_ns, before_ns; /* its last two samples */
	uint32_t sample_node, before_node; /* their stacks; 0 = from before a RESET */
	uint64_t last_end_ns;
	uint32_t last_class, last_identity, last_node;
	uint8_t last_wait;
	uint8_t state; /* enum wire_thread_state */
	uint32_t epoch; /* of its nodes, see struct locks */
	bool retired; /* it has ended, and another thread may have its number */
	uint64_t slice, first; /* the newest slice, and the oldest one, that times has */
	struct times
		*times; /* at the slice's number modulo n_times; slices without time are zero */
	uint32_t n_times; /* grows with the thread's age up to LOCKS_SLICES */
	struct thread *next; /* the next one in its bucket, or in the list of retired threads */
};

struct threads {
	struct thread **buckets; /* hash table by tid */
	struct thread *retired;
	struct thread other; /* takes times that find no room; tid 0 */
	uint32_t n, n_virtual, seed, epoch;
	size_t bytes;
	uint64_t refused;
	uint64_t swept, swept_virtual; /* the slice in which room was last made */
	const struct thread *held; /* must stay while room is made for it */
};
int threads_init(struct threads *t);
void threads_deinit(struct threads *t);
/* The thread, or NULL. Here and below, nodes of earlier epochs are cleared. */
struct thread *threads_find(const struct threads *t, uint32_t tid);
/* The thread; a new one if it is not known; `other` if there is no room. */
struct thread *threads_get(struct threads *t, uint32_t tid, uint64_t now_ns);
void threads_reported(struct threads *t, const struct wire_thread *w, const char *name,
		      uint64_t now_ns);
void threads_end_all(struct threads *t);
void threads_each(const struct threads *t,
		  void (*each)(void *userdata, const struct thread *thread), void *userdata);
/* Adds the time of [begin, end) to the slices that it overlaps, except those over ten minutes
 * old. */
enum times_of { TIMES_CPU, TIMES_WAIT, TIMES_IDLE };
void threads_spend(struct threads *t, struct thread *thread, enum times_of what, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t now_ns);
/* Adds @ns to the slice of one moment. */
void threads_book(struct threads *t, struct thread *thread, enum times_of what, uint64_t at_ns,
		  uint64_t ns, uint64_t now_ns);
/* Sums over the slices from @first to @last, by enum times_of. */
void thread_times(const struct thread *t, uint64_t first, uint64_t last, uint64_t ret[3]);

/* ---- open.c ---------------------------------------------------------------------------------- */

struct open_wait {
	struct locks_open wait; /* first, because it is copied into answers */
	uint64_t key_ns; /* the begin as the target reported it */
	uint32_t class_number, frame, owner_frame;
	uint32_t epoch; /* of its nodes; in a later epoch they mean nothing */
	struct open_wait *next; /* the next one in its bucket */
};

struct opens {
	struct open_wait **buckets;
	uint32_t n, n_buckets, seed, epoch;
	uint64_t refused;
};
int opens_init(struct opens *o);
void opens_deinit(struct opens *o);
void opens_clear(struct opens *o);
size_t opens_bytes(const struct opens *o);
/* A copy for answers, without nodes of earlier epochs. */
struct locks_open opens_wait(const struct opens *o, const struct open_wait *w);
/* The entry of an open wait: the known one, or a new one that replaces an earlier wait of the
 * thread. NULL = no room, or a later wait of the thread is known. */
struct open_wait *opens_put(struct opens *o, uint32_t tid, uint64_t begin_ns);
/* The owner's stack that was reported while the wait lasted; 0 = none, or from before a RESET. */
uint32_t opens_owner_node(const struct opens *o, uint32_t tid, uint64_t begin_ns);
/* Ends the wait that began at @begin_ns, or an earlier one of @tid: a thread waits for one thing
 * at a time. */
void opens_end(struct opens *o, uint32_t tid, uint64_t begin_ns);
void opens_end_thread(struct opens *o, uint32_t tid);
/* The thread's open wait; NULL = none. */
const struct open_wait *opens_of(const struct opens *o, uint32_t tid);
uint32_t opens_each(const struct opens *o, void (*each)(void *userdata, const struct open_wait *w),
		    void *userdata);

/* So many slices, a minute, back from the newest one get late waits, and are searched for an owner
 * that came later. */
#define SLICES_LATE 12u

/* ---- locks.c --------------------------------------------------------------------------------- */

struct slice {
	uint64_t number; /* moment / LOCKS_SLICE_NS */
	struct lock_table *table; /* NULL = no waits, or they are packed */
	struct packed_table *packed; /* once the slice is over; NULL = no waits yet */
	struct locks_counts counts;
	struct locks_counts seen; /* waits for work that were reported one by one */
};

/* The classes of locks by identity, for records of waits in which the class is missing. */
#define KNOWN_CLASSES 4096u
struct known_class {
	uint32_t identity, class_number;
};

/* A report about all virtual threads; its last row is for those without a row of their own. */
struct virtuals {
	uint64_t mono_ns; /* 0 = none yet */
	uint32_t n;
	struct {
		uint32_t container, class_number, count, mounted;
		uint8_t state;
	} rows[LOCKS_VIRTUAL_ROWS + 1];
};

struct locks {
	uint64_t first_ns; /* before it nothing is known */
	struct classes classes;
	struct sites sites;
	struct known_class *known; /* KNOWN_CLASSES entries; NULL = not allocated yet */
	struct locks_counts counted; /* as last reported, since the session began */
	struct slice slices[LOCKS_SLICES];
	uint64_t newest; /* number of the newest slice */
	size_t tables_bytes; /* of the tables of all slices, packed or not; asked for ten times a
				second */
	struct threads threads;
	struct opens opens;
	struct virtuals virtuals;
	uint64_t folded; /* rows folded in slices that have expired */
	uint32_t seed;
	/* Grows with each RESET of the stream. Nodes from earlier epochs are cleared only when
	 * they are next used, because a RESET is a short frame and must not cost a walk over
	 * everything. */
	uint32_t epoch;
};

/* Inside the locks room: classes.c, slices.c (locks), threads.c, open.c (waits that go on), locks.c
 * (what comes in), answers.c. */
#pragma once

#include "daemon/ground/hash.h"
#include "daemon/locks/locks.h"

#define OTHER_CLASS UINT32_MAX /* of a row: "[other locks]" */

/* Tables by number are seeded: a process chooses its tids and identities. */
static inline uint32_t locks_hash(uint64_t key, uint32_t seed)
{
	uint64_t h = (key ^ ((uint64_t)seed << 32 | seed)) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)((h ^ h >> 29) * 0xbf58476d1ce4e5b9ull >> 32);
}

/* ---- classes.c: names by number; 0 = "", all that found no room are number 1 ---- */

#define CLASSES_OTHER 1u

struct classes {
	char **names;
	uint32_t n, cap, bytes, seed;
	struct hash_index index; /* of names */
};
uint32_t classes_number(struct classes *c, const char *name);
const char *classes_name(const struct classes *c, uint32_t number);
void classes_deinit(struct classes *c);

/* ---- places.c: where waits were ---- */

#define PLACES_CACHE 1024u

struct places {
	struct classes names; /* of methods */
	struct {
		uint32_t node, frame;
	} * cache; /* PLACES_CACHE; NULL = empty */
};
/* The method in which the application waits, by number; 0 = not known. */
uint32_t places_frame(struct places *p, const struct stream *s, uint32_t node);
const char *places_name(const struct places *p, uint32_t frame);
void places_forget_nodes(struct places *p);
void places_deinit(struct places *p);

struct place {
	uint32_t frame; /* 0 = free */
	uint32_t node; /* of the longest wait there; 0 = none, or of an epoch that is over */
	uint32_t us, longest_us;
};
struct place_set {
	struct place places[LOCKS_PLACES];
};
void place_set_add(struct place_set *s, const struct place *p);
void place_set_join(struct place_set *to, const struct place_set *from);
void place_set_forget_nodes(struct place_set *s);

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
	struct place_set waiting, holding; /* where they were meanwhile */
	uint32_t last_tid; /* who got it last, and when that was */
	uint32_t locks; /* of a class's row in an answer, */
	bool more_locks; /* and whether there are more */
	uint64_t last_ns;
};

/*
 * Rows by key. At @max the smaller half of them is folded, into one row for each class, and where
 * there are too many classes into the other rows.
 */
struct lock_table {
	struct lock_row *rows;
	uint32_t n, cap, seed;
	struct hash_index index; /* of rows */
	uint64_t folded;
	uint32_t epoch; /* of its nodes */
	struct lock_row *rest; /* classes' rows: identity 0, their number of locks unknown */
	uint32_t n_rest;
	struct lock_row other[WIRE_WAIT_COUNT][2]; /* by wait and idle */
};
/* The row of @key, or an other row when there is no room (and never NULL). */
struct lock_row *lock_table_row(struct lock_table *t, const struct lock_key *key, uint32_t max);
const struct lock_row *lock_table_find(const struct lock_table *t, const struct lock_key *key);
/* The row for what is left of a class, or an other row. */
struct lock_row *lock_table_rest(struct lock_table *t, const struct lock_key *key);
/* Where locks are asked for one by one: what is left of each class is among the others. */
void lock_table_forget_classes(struct lock_table *t);
void lock_row_add(struct lock_row *to, const struct lock_row *from);
size_t lock_table_bytes(const struct lock_table *t);
/* Hardly anything is added to it any more. */
void lock_table_shrink(struct lock_table *t);
/* Nodes of an older epoch are forgotten. */
void lock_table_turn(struct lock_table *t, uint32_t epoch);
void lock_table_clear(struct lock_table *t); /* keeps its seed */

/* ---- threads.c ---- */

struct times {
	uint32_t cpu_us, wait_us, idle_us;
};

struct thread {
	uint32_t tid, flags;
	uint64_t java_id;
	char *name; /* NULL = not known */
	uint64_t heard_ns; /* something was said of it */
	uint64_t sample_ns, before_ns; /* its last two samples */
	uint32_t sample_node, before_node; /* their stacks; 0 = of an epoch that is over */
	uint64_t last_end_ns;
	uint32_t last_class, last_identity, last_node;
	uint8_t last_wait;
	uint8_t state; /* enum wire_thread_state */
	uint32_t epoch; /* of its nodes */
	bool retired; /* ended, and its number may be another's now */
	uint64_t slice, first; /* the newest and the oldest in times */
	struct times *times; /* by slice modulo; others than these are zero */
	uint32_t n_times; /* grows with the thread's time, to LOCKS_SLICES */
	struct thread *next; /* of the same place, or of the retired ones */
};

struct threads {
	struct thread **places; /* hash table by tid */
	struct thread *retired;
	struct thread other; /* what found no room; tid 0 */
	uint32_t n, n_virtual, seed, epoch;
	size_t bytes;
	uint64_t refused;
	uint64_t swept, swept_virtual; /* in which slice room was made */
	const struct thread *held; /* while room is made for it */
};
int threads_init(struct threads *t);
void threads_deinit(struct threads *t);
/* NULL = not known. Nodes of an epoch that is over are forgotten by that, here and below. */
struct thread *threads_find(const struct threads *t, uint32_t tid);
/* That one, a new one, or `other`. */
struct thread *threads_get(struct threads *t, uint32_t tid, uint64_t now_ns);
void threads_told(struct threads *t, const struct wire_thread *w, const char *name,
		  uint64_t now_ns);
void threads_end_all(struct threads *t);
void threads_each(const struct threads *t,
		  void (*each)(void *userdata, const struct thread *thread), void *userdata);
/* Time of [begin, end) to the slices it is in; those that are over ten minutes old have none. */
enum times_of { TIMES_CPU, TIMES_WAIT, TIMES_IDLE };
void threads_spend(struct threads *t, struct thread *thread, enum times_of what, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t now_ns);
/* All of it at one moment. */
void threads_book(struct threads *t, struct thread *thread, enum times_of what, uint64_t at_ns,
		  uint64_t ns, uint64_t now_ns);
/* Sums over the slices from @first to @last. */
void thread_times(const struct thread *t, uint64_t first, uint64_t last, uint64_t ret[3]);

/* ---- open.c ---- */

struct open_wait {
	struct locks_open wait; /* first: given out as such */
	uint64_t key_ns; /* its begin, as the process said */
	uint32_t class_number, frame, owner_frame;
	uint32_t epoch; /* of its nodes: in an older one than that of all they mean nothing */
	struct open_wait *next; /* of the same place */
};

struct opens {
	struct open_wait **places;
	uint32_t n, n_places, seed, epoch;
	uint64_t refused;
};
int opens_init(struct opens *o);
void opens_deinit(struct opens *o);
void opens_clear(struct opens *o);
size_t opens_bytes(const struct opens *o);
/* As it is given out: without nodes of an epoch that is over. */
struct locks_open opens_wait(const struct opens *o, const struct open_wait *w);
/* Is told again, or new, in the place of one of the thread that began before; NULL = no room, or a
 * later one is known. */
struct open_wait *opens_put(struct opens *o, uint32_t tid, uint64_t begin_ns);
/* Where its owner was, as told while it lasted; 0 = not told, or of an epoch that is over. */
uint32_t opens_owner_node(const struct opens *o, uint32_t tid, uint64_t begin_ns);
/* The wait that began then, or one of @tid that began before: a thread waits for one thing. */
void opens_end(struct opens *o, uint32_t tid, uint64_t begin_ns);
void opens_end_thread(struct opens *o, uint32_t tid);
/* NULL = none. */
const struct open_wait *opens_of(const struct opens *o, uint32_t tid);
uint32_t opens_each(const struct opens *o, void (*each)(void *userdata, const struct open_wait *w),
		    void *userdata);

/* ---- locks.c ---- */

struct slice {
	uint64_t number; /* moment / LOCKS_SLICE_NS */
	struct lock_table *table; /* NULL = nothing in it */
	struct locks_counts counts;
	struct locks_counts seen; /* of idle waits, those that came one by one */
};

/* The class of a lock by its identity, for waits that end or go on before somebody knew it. */
#define KNOWN_CLASSES 4096u
struct known_class {
	uint32_t identity, class_number;
};

/* One look at all virtual threads; the last row is what had no room. */
struct virtuals {
	uint64_t mono_ns; /* 0 = none yet */
	uint32_t n;
	struct {
		uint32_t container, class_number, count, mounted;
		uint8_t state;
	} rows[LOCKS_VIRTUAL_ROWS + 1];
};

struct locks {
	uint64_t first_ns; /* nothing is known of before */
	struct classes classes;
	struct places places;
	struct known_class *known; /* KNOWN_CLASSES; NULL = none was told yet */
	struct locks_counts counted; /* of this session, as it was told last */
	struct slice slices[LOCKS_SLICES];
	struct threads threads;
	struct opens opens;
	struct virtuals virtuals;
	uint64_t folded; /* of slices that are gone */
	uint32_t seed;
	/* Grows with each RESET of the stream. What was noted in an older one is forgotten when it
	 * is looked at: a RESET is short, and must not cost a walk over all there is. */
	uint32_t epoch;
};

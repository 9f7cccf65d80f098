/*
 * The waits of one target, now and in the last ten minutes: which threads waited, for which lock,
 * how long, and which thread held it. Ended waits are added up by lock in slices of 5 s; open ones
 * are kept one by one; threads have their CPU and waiting time by slice. Pure memory. The input
 * comes from a possibly hostile process: so everything has a maximum (LOCKS_*_MAX), times are
 * limited to the range of the slices, and events without room are added to "[other locks]" or
 * "[other threads]", which keeps the sums true.
 *
 * All times are CLOCK_MONOTONIC. @now_ns is the daemon's clock and never goes back; times in the
 * stream are accepted between it and ten minutes before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "daemon/stream/stream.h"

#define LOCKS_SLICE_NS 5000000000ull
#define LOCKS_SLICES   120u
#define LOCKS_ROWS_MAX 256u /* locks of one slice */
/* Rows in one slice of classes, for locks that have no row of their own. */
#define LOCKS_REST_MAX	       64u
#define LOCKS_OPEN_MAX	       16384u
#define LOCKS_CLASSES_MAX      4096u
#define LOCKS_CLASS_BYTES_MAX  (512u << 10)
#define LOCKS_THREADS_MAX      16384u
#define LOCKS_VIRTUAL_MAX      2048u /* virtual threads among them; the oldest are dropped first */
#define LOCKS_THREAD_BYTES_MAX (24u << 20)
#define LOCKS_VIRTUAL_ROWS     64u /* rows of a report about virtual threads */
#define LOCKS_TIDS	       6u /* waiters and owners that a lock's row names */
#define LOCKS_SITES	       3u /* methods that it names for each of the two */

struct locks;

int locks_new(uint64_t now_ns, struct locks **ret);
struct locks *locks_free(struct locks *l);
DEFINE_FREEP(struct locks, locks_free);
/* A session ends or begins: all open waits are dropped, and threads are unknown. The past stays. */
void locks_session(struct locks *l);
/* From now on the stream's node ids have new meanings. */
void locks_reset(struct locks *l);
size_t locks_bytes(const struct locks *l);

/* Adds a wait. @idle: a wait for work, counted apart. @s: the stream of its stacks, NULL = none. */
void locks_add(struct locks *l, const struct stream *s, const struct stream_lock *w, bool idle,
	       uint64_t now_ns);
/* Waits that were not reported one by one since the session began. */
struct locks_counts {
	uint64_t shorter, shorter_ns; /* shorter than the threshold */
	uint64_t idle, idle_ns; /* waits for work */
	uint64_t lost, lost_ns; /* between agent and daemon */
};
void locks_count(struct locks *l, const struct locks_counts *counts, uint64_t now_ns);
void locks_sample(struct locks *l, const struct stream_sample *s, uint64_t now_ns);
void locks_thread(struct locks *l, const struct wire_thread *t, const char *name, uint64_t now_ns);
void locks_state(struct locks *l, const struct wire_state *w, uint64_t now_ns);
void locks_virtual(struct locks *l, const struct stream_virtual *v);

/* ---- queries: strings stay valid until the next call that takes a struct locks without const
 * ---- */

/* A wait in progress. Its owner is the thread that has the lock now, as far as that is known. */
struct locks_open {
	uint32_t tid, owner_tid;
	uint64_t begin_ns;
	uint8_t wait, flags; /* as in struct wire_lock */
	bool idle;
	const char *class_name; /* of the lock; "" unknown */
	uint32_t identity;
	uint32_t node, owner_node; /* 0 = none, or stacks from before a RESET */
};

struct locks_tid {
	uint32_t tid;
	uint64_t ns; /* time of its waits, or of waits that it caused as the owner */
};

/* A method of the application, such as "org.shop.Main.sell". */
struct locks_site {
	const char *frame;
	uint32_t node; /* leaf of the stack of the longest wait there; 0 = no longer available */
	uint64_t ns;
};

/* One lock; or all locks of a class; or locks without a row of their own ("[other locks]",
 * identity 0). */
struct locks_row {
	const char *class_name;
	uint32_t identity;
	uint32_t locks; /* rows of classes: number of known locks, at least one */
	bool more_locks; /* rows of classes: there may be further locks, without a row or an
			    identity */
	uint8_t wait; /* enum wire_wait */
	bool idle;
	bool other;
	uint64_t waits; /* waits that ended in the span */
	uint64_t open; /* waits in progress */
	uint64_t total_ns; /* of both; of those in progress only the part within the span */
	uint64_t longest_ns; /* whole length, which may begin before the span */
	struct locks_tid waiters[LOCKS_TIDS],
		owners[LOCKS_TIDS]; /* those with the most time first */
	uint32_t n_waiters, n_owners;
	bool more_waiters, more_owners; /* there were others */
	struct locks_site waiting[LOCKS_SITES],
		holding[LOCKS_SITES]; /* those with the most time first */
	uint32_t n_waiting, n_holding;
};

struct locks_rows {
	struct locks_row *rows; /* most time first; "[other locks]" last */
	uint32_t n;
	uint64_t span_ns; /* length of the span: shorter than asked for if less is known */
	struct locks_counts counts; /* of the span; these waits are in no row */
};
enum locks_by { LOCKS_BY_LOCK, LOCKS_BY_CLASS };
/* The waits of the last @last_ns, by lock or by class; @idle: with waits for work. Free *ret
 * with locks_rows_free(). 0 or -ENOMEM. */
int locks_query(const struct locks *l, uint64_t now_ns, uint64_t last_ns, bool idle,
		enum locks_by by, struct locks_rows *ret);
void locks_rows_free(struct locks_rows *r);

struct locks_thread_row {
	uint32_t tid; /* 0 = "[other threads]" */
	uint32_t flags; /* WIRE_THREAD_x */
	uint64_t java_id;
	const char *name; /* "" unknown */
	uint64_t cpu_ns, wait_ns, idle_ns; /* in the span */
	uint8_t state; /* enum wire_thread_state, from the last report */
	uint64_t sample_ns; /* time of its last sample of CPU time; 0 = none */
	uint64_t last_end_ns; /* end of its last wait; 0 = none was seen */
	const char *last_class;
	uint32_t last_identity;
	uint8_t last_wait;
	bool waits; /* it waits now, and: */
	struct locks_open open;
};

/* Virtual threads of one container in the same state. */
struct locks_virtual_row {
	const char *container; /* "" = started without a container */
	const char *class_name; /* of the object that they wait for; "" none or unknown */
	uint8_t state; /* enum wire_thread_state */
	uint32_t count, mounted;
};

struct locks_thread_rows {
	struct locks_thread_row
		*rows; /* in no order; ended ones only if they used time in the span */
	uint32_t n;
	uint64_t span_ns;
	struct locks_virtual_row virtuals[LOCKS_VIRTUAL_ROWS + 1];
	uint32_t n_virtuals;
	bool virtuals_known; /* a report about virtual threads has come */
};
/* The times of the @last_ns that ended @back_ns before @now_ns (0 = now), and how the threads are
 * now. 0 or -ENOMEM. */
int locks_threads(const struct locks *l, uint64_t now_ns, uint64_t back_ns, uint64_t last_ns,
		  struct locks_thread_rows *ret);
void locks_thread_rows_free(struct locks_thread_rows *r);
/* The class of the lock with this identity; "" = unknown. */
const char *locks_class_of(const struct locks *l, uint32_t identity);
/* The name of a thread, which may have ended lately; "" = unknown. */
const char *locks_thread_name(const struct locks *l, uint32_t tid);

/* Lists the open waits, those that began first at the beginning; malloc'ed. 0 or -ENOMEM. */
int locks_open(const struct locks *l, uint64_t now_ns, struct locks_open **ret, uint32_t *ret_n);
/* What was left out because a table was full, since the start. */
struct locks_lost {
	uint64_t open; /* waits that were not kept while they were in progress */
	uint64_t threads; /* times that were added to "[other threads]" */
	uint64_t folded; /* rows that were added to "[other locks]" */
};
void locks_lost(const struct locks *l, struct locks_lost *ret);

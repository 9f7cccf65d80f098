/*
 * Who waits, for what, how long and because of whom: the present and the last ten minutes of one
 * target. Ended waits are added up by lock in slices of 5 s, open ones are kept one by one, threads
 * have their CPU and waiting time by slice. Pure memory. The input comes from a possibly hostile
 * process, so everything has a maximum (LOCKS_*_MAX), times are clamped to the range of the slices,
 * and events that find no room are added to "[other locks]" or "[other threads]": sums stay true.
 *
 * All times are CLOCK_MONOTONIC. @now_ns is the daemon's own clock and never goes back; times from
 * the stream are accepted only between it and ten minutes before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "daemon/stream/stream.h"

#define LOCKS_SLICE_NS 5000000000ull
#define LOCKS_SLICES   120u
#define LOCKS_ROWS_MAX 256u /* locks of one slice */
/* classes in one slice with a row for locks that have no row of their own */
#define LOCKS_REST_MAX	       64u
#define LOCKS_OPEN_MAX	       16384u
#define LOCKS_CLASSES_MAX      4096u
#define LOCKS_CLASS_BYTES_MAX  (512u << 10)
#define LOCKS_THREADS_MAX      16384u
#define LOCKS_VIRTUAL_MAX      2048u /* virtual threads among them; the oldest are dropped */
#define LOCKS_THREAD_BYTES_MAX (24u << 20)
#define LOCKS_VIRTUAL_ROWS     64u /* kinds of virtual threads that are counted separately */
#define LOCKS_TIDS	       6u /* waiters and owners listed by name for each lock */
#define LOCKS_SITES	       3u /* methods listed for them */

struct locks;

int locks_new(uint64_t now_ns, struct locks **ret);
struct locks *locks_free(struct locks *l);
DEFINE_FREEP(struct locks, locks_free);
/* A session ended or begins: no wait continues, and its threads are unknown. The past stays. */
void locks_session(struct locks *l);
/* The stream's node ids have a new meaning from now on. */
void locks_reset(struct locks *l);
size_t locks_bytes(const struct locks *l);

/* @idle: a pool's thread that waits for work, which is counted separately. @s: for stacks; NULL =
 * none. */
void locks_add(struct locks *l, const struct stream *s, const struct stream_lock *w, bool idle,
	       uint64_t now_ns);
/* Waits that were not reported one by one, since the session began. */
struct locks_counts {
	uint64_t shorter, shorter_ns; /* shorter than the threshold */
	uint64_t idle, idle_ns; /* waits for work */
	uint64_t lost, lost_ns; /* lost between agent and daemon */
};
void locks_count(struct locks *l, const struct locks_counts *counts, uint64_t now_ns);
void locks_sample(struct locks *l, const struct stream_sample *s, uint64_t now_ns);
void locks_thread(struct locks *l, const struct wire_thread *t, const char *name, uint64_t now_ns);
void locks_state(struct locks *l, const struct wire_state *w, uint64_t now_ns);
void locks_virtual(struct locks *l, const struct stream_virtual *v);

/* ---- queries: strings live until the next call that takes a struct locks without const ---- */

/* A wait in progress. The owner is the one at its begin, or the thread that got the lock since, if
 * known. */
struct locks_open {
	uint32_t tid, owner_tid;
	uint64_t begin_ns;
	uint8_t wait, flags; /* as in struct wire_lock */
	bool idle;
	const char *class_name; /* "" unknown */
	uint32_t identity;
	uint32_t node, owner_node; /* 0 = none, or of an epoch that has ended */
};

struct locks_tid {
	uint32_t tid;
	uint64_t ns; /* time that it waited, or that others waited because of it */
};

/* A method of the application, such as "org.shop.Main.sell". */
struct locks_site {
	const char *frame;
	uint32_t node; /* the stack of the longest wait there; 0 = no longer available */
	uint64_t ns;
};

/* One lock, or all locks of one class, or the rest that had no room ("[other locks]", identity
 * 0). */
struct locks_row {
	const char *class_name;
	uint32_t identity;
	uint32_t locks; /* of a class: number of known locks, at least one */
	bool more_locks; /* of a class: there may be more, which had no row or no identity */
	uint8_t wait; /* enum wire_wait */
	bool idle;
	bool other;
	uint64_t waits; /* waits that ended in the span */
	uint64_t open; /* waits in progress */
	uint64_t total_ns; /* of both, the latter only the part within the span */
	uint64_t longest_ns; /* from its begin, which may be before the span */
	struct locks_tid waiters[LOCKS_TIDS], owners[LOCKS_TIDS]; /* the longest first */
	uint32_t n_waiters, n_owners;
	bool more_waiters, more_owners; /* there were more */
	struct locks_site waiting[LOCKS_SITES], holding[LOCKS_SITES]; /* the longest first */
	uint32_t n_waiting, n_holding;
};

struct locks_rows {
	struct locks_row *rows; /* by total time, the most first; "[other locks]" last */
	uint32_t n;
	uint64_t span_ns; /* length of the answer's span: shorter than requested if no more is known
			   */
	struct locks_counts counts; /* in the span; not part of the rows */
};
enum locks_by { LOCKS_BY_LOCK, LOCKS_BY_CLASS };
/* 0 or -ENOMEM. */
int locks_query(const struct locks *l, uint64_t now_ns, uint64_t last_ns, bool idle,
		enum locks_by by, struct locks_rows *ret);
void locks_rows_free(struct locks_rows *r);

struct locks_thread_row {
	uint32_t tid; /* 0 = "[other threads]" */
	uint32_t flags; /* WIRE_THREAD_x */
	uint64_t java_id;
	const char *name; /* "" unknown */
	uint64_t cpu_ns, wait_ns, idle_ns; /* in the span */
	uint8_t state; /* enum wire_thread_state, as last reported */
	uint64_t sample_ns; /* when it was last seen on a CPU; 0 = never */
	uint64_t last_end_ns; /* of its last wait; 0 = none was seen */
	const char *last_class;
	uint32_t last_identity;
	uint8_t last_wait;
	bool waits; /* now: */
	struct locks_open open;
};

/* A number of virtual threads of one container in one state. */
struct locks_virtual_row {
	const char *container; /* "" = started without a container */
	const char *class_name; /* the class that they wait for, "" none or unknown */
	uint8_t state; /* enum wire_thread_state */
	uint32_t count, mounted;
};

struct locks_thread_rows {
	struct locks_thread_row
		*rows; /* in no order; ended ones are included only if they used time */
	uint32_t n;
	uint64_t span_ns;
	struct locks_virtual_row virtuals[LOCKS_VIRTUAL_ROWS + 1];
	uint32_t n_virtuals;
	bool virtuals_known; /* the states were reported */
};
int locks_threads(const struct locks *l, uint64_t now_ns, uint64_t last_ns,
		  struct locks_thread_rows *ret);
void locks_thread_rows_free(struct locks_thread_rows *r);
/* The class of the lock with that identity; "" = unknown. */
const char *locks_class_of(const struct locks *l, uint32_t identity);
/* "" if unknown; also of threads that ended lately. */
const char *locks_thread_name(const struct locks *l, uint32_t tid);

/* The open waits, the earliest begin first; malloc'ed. 0 or -ENOMEM. */
int locks_open(const struct locks *l, uint64_t now_ns, struct locks_open **ret, uint32_t *ret_n);
/* What did not fit, since the start. */
struct locks_lost {
	uint64_t open; /* waits that could not be kept while they were in progress */
	uint64_t threads; /* times added to "[other threads]" */
	uint64_t folded; /* rows added to "[other locks]" */
};
void locks_lost(const struct locks *l, struct locks_lost *ret);

/*
 * A profile: weights by process, thread and stack for each kind of event, and everything needed to
 * print them. Windows, segments on disk and answers to queries are all this one structure, so they
 * can be merged. enum wire_event defines the weights: ns of CPU, of waiting or of wall-clock time,
 * or bytes; weights of different events are never added up.
 *
 * Pure memory, bounded by PROFILE_*_MAX. The weight of what does not fit goes to "[profile full]"
 * of its thread or process, and `overflow` counts its samples. Half of the bytes goes to tenants
 * (tenant.h) as they come, at most a quarter to each; the other half is divided equally, so that no
 * tenant lacks room because of another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "proto/wire.h"

#define PROFILE_NODES_MAX   (1u << 21)
#define PROFILE_STRINGS_MAX (1u << 20)
#define PROFILE_ROWS_MAX    (1u << 21)
#define PROFILE_SPANS_MAX   (1u << 16)
#define PROFILE_BYTES_MAX   (80ul << 20) /* usually reached before the limits above */

/* Strings are ids in the profile's own table; id 0 is "". */
struct profile_frame {
	uint8_t kind; /* enum wire_kind */
	int32_t line; /* -1 unknown */
	uint32_t class_name; /* "java.lang.String" */
	uint32_t method; /* method name, native symbol, or label */
	uint32_t signature;
	uint32_t file; /* source file */
	uint32_t module; /* native: path of the file */
	/* native frames without a name yet: index + 1 of the process that mapped the file,
	 * because one path may mean different files in two processes; 0 = unknown.
	 * profile_symbolize() clears it; not encoded */
	uint32_t scope;
	uint64_t offset; /* native: offset in the file */
};

/*
 * Numbers of one kind of event, in every output: taken = delivered + dropped. delivered is the sum
 * of the rows, including those that filters by thread and idle left out.
 */
struct profile_losses {
	uint64_t taken, taken_weight, delivered, delivered_weight, dropped, dropped_weight;
	uint64_t no_ids; /* delivered ones that had trace ids, for which there was no room */
};

struct profile_left_out {
	uint64_t samples, weight;
};

struct profile_accounts {
	struct profile_losses of[WIRE_EVENT_COUNT];
	uint64_t short_waits, short_waits_ns; /* waits below the threshold, which have no rows */
};

/* Where times off the CPU are measured CPU samples come from the host engine, and have no note. */
#define PROFILE_NOTE_OFFCPU                                                                         \
	"times off the CPU were measured for a part of this time only: to measure so many context " \
	"switches all the time would have cost too much"
#define PROFILE_NOTE_SPARED                                                                                \
	"of threads that usually wait for work or locks most times off the CPU are missing, except waits " \
	"for locks, because there were too many; kindling threads adds them up"
#define PROFILE_NOTE_QUEUED                                                                        \
	"short times in the run queue are missing, because there were too many; kindling threads " \
	"adds them up"
#define PROFILE_NOTE_SPARED_QUEUED \
	PROFILE_NOTE_SPARED "; short times in the run queue are missing, too"

struct profile_process {
	uint32_t pid, ns_pid;
	uint64_t start_time; /* ticks since boot; together with the pid it identifies the process */
	uint32_t name, container_id, container, pod, jdk;
	uint32_t labels; /* as labels.h encodes them; 0 = none */
	/* for readers of its times off the CPU, if it is one of the above, or else of its shares of
	 * CPU time; 0 = none */
	uint32_t note;
	uint64_t tenant; /* tenant_number() of the tenant that pays for its entries; 0 = unknown;
			  * not encoded */
	struct profile_accounts
		accounts; /* its part of the profile's, see profile_add_accounts() */
	uint64_t cpu_ns; /* CPU time in the span, by the kernel's clock; see profile_add_cpu() */
};

struct profile_thread {
	uint32_t process; /* index */
	uint32_t tid;
	uint32_t name;
};

struct profile_node {
	uint32_t parent; /* 0 = root; nodes are numbered from 1, parents before children */
	uint32_t frame;
};

/* What a tracer had under way in a thread; ids as the tracer writes them. */
struct profile_span {
	uint32_t trace_id;
	uint32_t span_id; /* 0 = unknown */
};

struct profile_row {
	uint32_t thread; /* index */
	uint32_t node; /* leaf; 0 = no stack */
	uint32_t span; /* index + 1; 0 = none, or the profile is without ids */
	uint8_t event; /* enum wire_event */
	uint8_t wait; /* of locks: enum wire_wait */
	bool idle; /* a wait for work, see idle.h */
	uint64_t samples;
	uint64_t weight;
};

struct profile {
	uint64_t begin_real_ns, end_real_ns; /* its span */
	/* the longest interval that was in use, 0 = unknown: ns or bytes between two samples;
	 * for waits the threshold */
	uint64_t interval[WIRE_EVENT_COUNT];
	bool no_budget; /* recorded while the agent had no CPU budget */
	bool cpu_unknown; /* in part of the span cpu_ns was not stored */
	struct profile_accounts accounts;
	/* what filters left out; not encoded: waits for work, other threads, profile_filter.rows */
	struct profile_left_out idle_left_out[WIRE_EVENT_COUNT], threads_left_out[WIRE_EVENT_COUNT],
		rows_left_out[WIRE_EVENT_COUNT];
	uint64_t overflow; /* samples whose stack or thread did not fit */
	/* the tables and their lengths; read-only for others */
	const char *const *strings;
	const struct profile_frame *frames;
	const struct profile_process *processes;
	const struct profile_thread *threads;
	const struct profile_node *nodes; /* [0] is the root */
	const struct profile_row *rows;
	const struct profile_span *spans;
	uint32_t n_strings, n_frames, n_processes, n_threads, n_nodes, n_rows, n_spans;
	struct profile_index *index; /* hash tables; private */
};

int profile_new(struct profile **ret);
struct profile *profile_free(struct profile *p);
DEFINE_FREEP(struct profile, profile_free);

/* The CPU time of all processes in ns, sampled or not; 0 = unknown. */
uint64_t profile_cpu_ns(const struct profile *p);
/* The number of samples, over all rows. */
uint64_t profile_samples(const struct profile *p);
/* The events of the rows, bits 1 << enum wire_event. */
unsigned profile_events(const struct profile *p);
/* The memory that it takes, in bytes. */
size_t profile_bytes(const struct profile *p);

/* Limits the bytes that @p may take, which at least @tenants share; beyond it new entries become
 * "[profile full]". */
void profile_limit(struct profile *p, size_t bytes, uint32_t tenants);
/* Makes room for as many entries as @like has, so that the index is built only once. */
void profile_expect(struct profile *p, const struct profile *like);
/* Frees the index, because nothing is added for now; a later entry builds it again. */
void profile_settle(struct profile *p);
/* Sets the numbers of arrived events to the sums of the rows. */
void profile_book_rows(struct profile *p);

/* From now on @tenant pays for new entries. profile_merge() does this by itself. */
void profile_payer(struct profile *p, uint64_t tenant);
/* Sets the tenant of all processes of @p, because it is not encoded. */
void profile_set_tenant(struct profile *p, uint64_t tenant);
void profile_set_tenant_of(struct profile *p, uint32_t process, uint64_t tenant);
/* Interning: each returns the id of an equal entry, or of a new one. When full: 0 for a string,
 * UINT32_MAX for a frame or a process, which the next function turns into "[profile full]". */
uint32_t profile_string(struct profile *p, const char *s);
uint32_t profile_intern_frame(struct profile *p, const struct profile_frame *f);
/* A process with the same pid and start time gets the names that it lacks. */
uint32_t profile_process(struct profile *p, const struct profile_process *q);
uint32_t profile_thread(struct profile *p, const struct profile_thread *t);
uint32_t profile_node(struct profile *p, uint32_t parent, uint32_t frame);
/* Adds to the counters of the profile and of @process (UINT32_MAX = none). */
void profile_add_accounts(struct profile *p, uint32_t process, const struct profile_accounts *d);
/* Adds to the CPU time of @process; UINT32_MAX = does nothing. */
void profile_add_cpu(struct profile *p, uint32_t process, uint64_t ns);
/* For a row of the same profile: index + 1; 0 = no room, or no @trace_id (NULL or ""). @span_id may
 * be NULL. */
uint32_t profile_span(struct profile *p, const char *trace_id, const char *span_id);
/* Counts @samples of @process (UINT32_MAX: of none) as delivered without their ids. */
void profile_book_no_ids(struct profile *p, uint32_t process, unsigned event, uint64_t samples);
/* Adds to the row of the same thread, node, span, event, wait and idle. Without room for one more
 * span the row is added without ids (no_ids counts it). */
void profile_add_row(struct profile *p, const struct profile_row *row);
/* The same for CPU time. */
void profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t samples,
		 uint64_t weight_ns);

/* Which rows a query wants; members that are 0 or NULL select all. */
struct profile_filter {
	const uint32_t *pids; /* together with start_times; n_pids 0 = all processes */
	const uint64_t *start_times;
	uint32_t n_pids;
	const char *thread; /* part of the thread's name; others are counted in threads_left_out */
	unsigned events; /* bits 1 << enum wire_event */
	bool no_idle; /* waits for work are left out, and counted in idle_left_out */
	bool no_spans; /* without trace ids: rows that differ only in them become one */
	const bool *rows; /* by row: is it wanted? Others are counted in rows_left_out */
};

/* Adds the rows of @src that pass @filter (NULL = all) to @dst, and merges the spans. Counters
 * and CPU time of the processes that pass are added whole, for all their threads: nobody knows
 * to which threads dropped samples belonged. */
int profile_merge(struct profile *dst, const struct profile *src,
		  const struct profile_filter *filter);
/* Copies @src, no two entries of which are equal, to a new profile. */
int profile_copy(const struct profile *src, struct profile **ret);
/* Makes a profile of each process of @src, which must stay until they are freed: they have its
 * strings, and nothing may be added to them. They equal
 * those of profile_merge() with a filter for each, at the cost of one merge. 0 or -ENOMEM. */
struct profile_parts;
int profile_parts_new(const struct profile *src, struct profile_parts **ret);
struct profile_parts *profile_parts_free(struct profile_parts *s);
DEFINE_FREEP(struct profile_parts, profile_parts_free);
int profile_parts_get(struct profile_parts *s, uint32_t process, struct profile **ret);

/* The name of what is at @offset in the file @module of @process (NULL = unknown), or NULL. */
typedef const char *profile_lookup_fn(void *userdata, const struct profile_process *process,
				      const char *module, uint64_t offset);
/* Names native frames that have no name yet; to be called before profile_encode(). */
void profile_symbolize(struct profile *p, profile_lookup_fn *lookup, void *userdata);

/* Encodes it, self-contained, into malloc'ed memory. 0 or -ENOMEM. */
int profile_encode(const struct profile *p, uint8_t **ret, size_t *ret_len);
/* Likewise, into memory that is used again, and grown; its owner frees @to->p at the end. After an
 * error there is none. */
struct profile_bytes {
	uint8_t *p;
	size_t len, cap;
};
int profile_encode_again(const struct profile *p, struct profile_bytes *to);
/* Encodes a slice of an open window, with those names, frames, threads and stacks that its rows and
 * processes need and no earlier slice of the window had. 0 or -ENOMEM. */
int profile_encode_slice(const struct profile *slice, uint8_t **ret, size_t *ret_len);
/* An encoded slice of the window @p did not get where slices are read: the next one has all that it
 * needs again. */
void profile_slice_lost(const struct profile *p);
/* Decodes bytes, trusting nothing (fuzzed). 0, -EBADMSG or -ENOMEM. Entries of @buf that are
 * equal stay separate. */
int profile_decode(const uint8_t *buf, size_t len, struct profile **ret);

/* Reads the slices of one window, in the order in which they were encoded. */
struct profile_slices;
int profile_slices_new(struct profile_slices **ret); /* 0 or -ENOMEM */
struct profile_slices *profile_slices_free(struct profile_slices *s);
DEFINE_FREEP(struct profile_slices, profile_slices_free);
/* Reads one slice, trusting nothing (fuzzed), also bytes of profile_encode(). *ret is valid until
 * the next call. 0, -EBADMSG or -ENOMEM. */
int profile_slices_read(struct profile_slices *s, const uint8_t *buf, size_t len,
			struct profile **ret);

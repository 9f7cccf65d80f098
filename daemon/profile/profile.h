/*
 * A profile: weights by (process, thread, stack) for each kind of event, with everything needed to
 * print it. Used for incoming windows, segments on disk and answers to queries: one structure,
 * which can be merged. enum wire_event defines the weights: ns of CPU, of waiting or of wall-clock
 * time, or bytes; those of different events are never added up. Pure memory; bounded by
 * PROFILE_*_MAX (what does not fit is counted in `overflow`; its weight goes to the node "[profile
 * full]" of its thread or process and is not lost). One half of the bytes goes to tenants
 * (tenant.h) as they come, at most a quarter to each; the other half is divided equally among
 * tenants, so that no tenant's stacks lack room because of another's.
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
#define PROFILE_BYTES_MAX   (80ul << 20) /* usually reached before any of the counts above */

/* Strings are ids into the profile's own table; id 0 is "". */
struct profile_frame {
	uint8_t kind; /* enum wire_kind */
	int32_t line; /* -1 unknown */
	uint32_t class_name; /* "java.lang.String" */
	uint32_t method; /* method name, native symbol, or label */
	uint32_t signature;
	uint32_t file; /* source file */
	uint32_t module; /* native: path of the file */
	/* native, without a name yet: the process that mapped the file, index + 1, because two
	 * processes may have different files at one path; 0 = unknown. Cleared by
	 * profile_symbolize(); not encoded */
	uint32_t scope;
	uint64_t offset; /* native: offset in the file */
};

/*
 * Counts of arrived and lost events of one kind; part of every output. delivered is the sum of the
 * rows and of the rows that filters by thread and idle left out; taken = delivered + dropped.
 */
struct profile_losses {
	uint64_t taken, taken_weight, delivered, delivered_weight, dropped, dropped_weight;
};

struct profile_left_out {
	uint64_t samples, weight;
};

struct profile_accounts {
	struct profile_losses of[WIRE_EVENT_COUNT];
	uint64_t short_waits, short_waits_ns; /* below the threshold: only counted */
};

struct profile_process {
	uint32_t pid, ns_pid;
	uint64_t start_time; /* with pid: identity */
	uint32_t name, container_id, container, pod, jdk;
	uint32_t labels; /* of labels.h; 0 = unknown */
	uint32_t note; /* a remark for readers of shares of its CPU time; 0 = none */
	uint64_t tenant; /* tenant_number() of the tenant that pays for its entries; 0 = unknown;
			  * not encoded */
	struct profile_accounts accounts; /* its part of the profile's; profile_add_accounts() */
	uint64_t cpu_ns; /* CPU time that it used meanwhile, from the kernel; profile_add_cpu() */
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

struct profile_row {
	uint32_t thread; /* index */
	uint32_t node; /* leaf; 0 = no stack */
	uint8_t event; /* enum wire_event */
	uint8_t wait; /* of locks: enum wire_wait */
	bool idle; /* a wait for work, idle.h */
	uint64_t samples;
	uint64_t weight;
};

struct profile {
	uint64_t begin_real_ns, end_real_ns; /* the span that it covers */
	/* the longest in it, 0 = unknown: ns or bytes between two samples, the shortest wait */
	uint64_t interval[WIRE_EVENT_COUNT];
	bool no_budget; /* recorded with the agent's CPU budget lifted */
	bool cpu_unknown; /* part of it was written by a version that did not store cpu_ns */
	struct profile_accounts accounts;
	/* left out by filters; not encoded: waits for work, other threads, profile_filter.rows */
	struct profile_left_out idle_left_out[WIRE_EVENT_COUNT], threads_left_out[WIRE_EVENT_COUNT],
		rows_left_out[WIRE_EVENT_COUNT];
	uint64_t overflow; /* samples whose stack or thread did not fit */
	/* tables, read-only from outside; with their counts */
	const char *const *strings;
	const struct profile_frame *frames;
	const struct profile_process *processes;
	const struct profile_thread *threads;
	const struct profile_node *nodes; /* [0] is the root */
	const struct profile_row *rows;
	uint32_t n_strings, n_frames, n_processes, n_threads, n_nodes, n_rows;
	struct profile_index *index; /* hash tables, private */
};

int profile_new(struct profile **ret);
struct profile *profile_free(struct profile *p);
DEFINE_FREEP(struct profile, profile_free);

/* CPU time of all its processes, sampled or not; 0 = unknown. */
uint64_t profile_cpu_ns(const struct profile *p);
/* Number of samples, over all rows. */
uint64_t profile_samples(const struct profile *p);
/* Bits 1 << enum wire_event of its rows. */
unsigned profile_events(const struct profile *p);
/* Memory that it takes. */
size_t profile_bytes(const struct profile *p);

/* Bytes that @p may take, and the number of tenants expected to share them; beyond it new entries
 * become "[profile full]". */
void profile_limit(struct profile *p, size_t bytes, uint32_t tenants);
/* Makes room for as many entries as @like has: the index grows once. */
void profile_expect(struct profile *p, const struct profile *like);
/* Nothing more is added for now: frees the index, which a later entry would make anew. */
void profile_settle(struct profile *p);
/* Sets the counts of arrived events to the sums of the rows. */
void profile_book_rows(struct profile *p);

/* New entries are charged to @tenant from now on. profile_merge() does so by itself. */
void profile_payer(struct profile *p, uint64_t tenant);
/* Sets the tenant of all processes of @p, which is not encoded. */
void profile_set_tenant(struct profile *p, uint64_t tenant);
void profile_set_tenant_of(struct profile *p, uint32_t process, uint64_t tenant);
/* Interning: the id of an equal entry, or of a new one. When full: 0 for a string, UINT32_MAX for a
 * frame or a process, which the next function accepts and turns into "[profile full]". */
uint32_t profile_string(struct profile *p, const char *s);
uint32_t profile_intern_frame(struct profile *p, const struct profile_frame *f);
/* An equal one (pid and start time) gets the names that it lacks. */
uint32_t profile_process(struct profile *p, const struct profile_process *q);
uint32_t profile_thread(struct profile *p, const struct profile_thread *t);
uint32_t profile_node(struct profile *p, uint32_t parent, uint32_t frame);
/* Adds to the counters of the profile and of @process (UINT32_MAX: none). */
void profile_add_accounts(struct profile *p, uint32_t process, const struct profile_accounts *d);
/* Adds to the CPU time of @process (UINT32_MAX: does nothing). */
void profile_add_cpu(struct profile *p, uint32_t process, uint64_t ns);
/* Adds to the row of the same thread, node, event, wait and idle. */
void profile_add_row(struct profile *p, const struct profile_row *row);
/* The same for CPU time. */
void profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t samples,
		 uint64_t weight_ns);

/* The rows that a query wants; zero/NULL members match everything. */
struct profile_filter {
	const uint32_t *pids; /* with start times; n_pids 0 = all */
	const uint64_t *start_times;
	uint32_t n_pids;
	const char *thread; /* substring of the thread's name; others are counted in
			     * threads_left_out */
	unsigned events; /* bits 1 << enum wire_event */
	bool no_idle; /* without waits for work, which are counted in idle_left_out */
	const bool *rows; /* by row: the wanted rows; others are counted in rows_left_out */
};

/* Adds all rows of @src that pass @filter (NULL = all) to @dst; adds up spans, and the counters and
 * CPU time of the processes that pass, for all their threads, because it is unknown to which
 * threads dropped samples belonged. */
int profile_merge(struct profile *dst, const struct profile *src,
		  const struct profile_filter *filter);
/* Likewise into a new profile, all of it. No two entries of @src are equal. */
int profile_copy(const struct profile *src, struct profile **ret);
/* A profile of each process of @src, which is borrowed meanwhile: equal to profile_merge() with a
 * filter for each process, at the cost of one merge. 0 or -ENOMEM. */
struct profile_parts;
int profile_parts_new(const struct profile *src, struct profile_parts **ret);
struct profile_parts *profile_parts_free(struct profile_parts *s);
DEFINE_FREEP(struct profile_parts, profile_parts_free);
int profile_parts_get(struct profile_parts *s, uint32_t process, struct profile **ret);

/* The name of an offset in @process's file @module, or NULL; @process NULL = the process is
 * unknown. */
typedef const char *profile_lookup_fn(void *userdata, const struct profile_process *process,
				      const char *module, uint64_t offset);
/* Fills in names of native frames that came without one; before profile_encode(). */
void profile_symbolize(struct profile *p, profile_lookup_fn *lookup, void *userdata);

/* Bytes for segments: malloc'ed into @ret, self-contained. 0 or -ENOMEM. */
int profile_encode(const struct profile *p, uint8_t **ret, size_t *ret_len);
/* Likewise, without names, frames, threads and stacks that no row and no process uses. */
int profile_encode_used(const struct profile *p, uint8_t **ret, size_t *ret_len);
/* Trusts nothing (fuzzed): 0, -EBADMSG or -ENOMEM. Equal entries of @buf stay separate. */
int profile_decode(const uint8_t *buf, size_t len, struct profile **ret);

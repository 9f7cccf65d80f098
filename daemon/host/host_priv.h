/*
 * Inside the host room: host.c (life cycle), wiring.c (callbacks from room to room), history.c
 * (windows and queries through the worker), recording.c, thread_states.c, sampling.c and
 * kernel_frames.c (host engine), thread_ids.c (numbers of a container's threads), events.c (events
 * for the profile), process_cpu.c (CPU time from the kernel, for coverage), gaps.c (between two
 * daemons), mapped_files.c (files for symbols), moments.c (events for the timeline), uploads.c
 * (kindling-upload), wanted.c (recordings that it asks for).
 */
#pragma once

#include "daemon/host/gaps.h"
#include "daemon/host/host.h"
#include "daemon/host/offcpu_join.h"
#include "daemon/host/thread_ids.h"

struct host {
	struct loop *loop; /* borrowed, as config */
	const struct config *config;
	struct worker *worker;
	struct targets *targets;
	struct look *look; /* NULL = processes are looked at in the caller's process */
	struct discovery *discovery; /* NULL = none, or shutting down */
	struct live *live;
	struct timelines *timelines;
	uint64_t times_ns; /* CLOCK_MONOTONIC, of the last host_take_times() */
	struct store *store; /* NULL = nothing is kept */
	struct gaps *gaps; /* NULL = nothing is kept */
	bool gaps_failed; /* to be written, the last time */
	struct symbols *symbols;
	struct host_question *questions; /* questions of symbols that look has not answered */
	struct host_sampling *sampling;
	struct offcpu_engine *offcpu; /* borrowed of it; NULL: offcpu_why says why */
	const char *offcpu_why;
	struct loop_source *offcpu_source;
	struct loop_timer *offcpu_timer;
	struct target *offcpu_last; /* whose record came last; NULL = look for it */
	struct loop_timer *second;
	uint32_t seconds;
	struct host_listener *listeners; /* borrowed */
	uint64_t start_mono_ns;
	uint64_t windows_dropped;
	struct loop_timer *memory_timer;
	uint64_t memory_ended; /* sessions ended by limits.memory */
	unsigned appending; /* windows on their way to the store */
	bool stands_still; /* the last window could not be written to the history */
	uint64_t settled_real_ns; /* and how far the history went when there were last none */
	uint64_t not_stored[WIRE_EVENT_COUNT]; /* samples not yet reported to the listener */
	struct uploads *uploads; /* NULL = there are none */
	unsigned journaling; /* seconds on their way to its journal */
	/* shutdown has begun */
	struct loop_timer *shutdown_timer; /* NULL = not started */
	uint64_t shutdown_by_mono_ns;
	void (*on_down)(void *userdata);
	void *down_userdata;
};

/* CPU time of a process. */
struct host_cpu {
	bool known; /* the two values below are */
	uint64_t ns, real_ns, mono_ns; /* as the kernel last reported */
	bool left; /* its end is unknown because this daemon ends first */
	uint64_t sum_ns; /* while it was sampled */
};

/* What the host keeps for a target: its userdata. Freed with it. */
struct host_entry {
	struct live_source *source;
	struct locks *locks; /* NULL without memory for it */
	struct timeline *timeline; /* likewise, and after its end */
	struct time_ledger *ledger; /* NULL = the kernel has told nothing of its threads */
	struct offcpu_join *offcpu; /* NULL = nothing has come yet, or no memory */
	struct thread_ids *ids; /* NULL = it is in our pid namespace, or the namespace could not be
				 * opened */
	/* CLOCK_MONOTONIC: last question about its threads, 0 = none; and when these questions
	 * began */
	uint64_t states_until_ns, states_since_ns;
	const char *note; /* target_engine_note() at the last check; static */
	struct host_sampling_target sampling;
	struct profile_accounts booked; /* already passed to the live end */
	struct host_cpu cpu;
	struct host_gap gap;
};

/* mapped_files.c */
extern const struct symbols_opener host_opener;
/* host.c: which targets somebody listens to */
void host_note_followed(struct host *h);
/* wiring.c */
extern const struct discovery_ops host_discovery_calls;
extern const struct targets_ops host_target_calls;
/* Created at the first call for @t, which owns it; NULL without memory. */
struct host_entry *host_entry_of(struct host *h, struct target *t);
/* Passes the increase of the counters of @t since the last call to the live end. */
void host_take_accounts(struct host *h, struct target *t);
/* kernel_frames_find_fn; @userdata is the host. */
struct kernel_stacks *host_stacks_of(void *userdata, pid_t pid);
/* Converts the stream's thread number to the host's; virtual threads keep theirs. @e may be NULL.
 */
uint32_t host_number_of(const struct host_entry *e, uint32_t tid);

/* history.c */
/* live_window_fn; @userdata is the host. Without memory or room in the worker the window is dropped
 * and counted. */
void host_on_window(void *userdata, const struct profile *window);
bool host_on_slice(void *userdata, const struct profile *slice); /* live_slice_fn */
/* Adds names to native frames, as far as they are known now; requests the others. */

/* uploads.c */
void uploads_on_second(struct host *h);
void uploads_on_settings(struct host *h);
struct uploads *uploads_free(struct uploads *u);

/* offcpu.c: between the engine of times off the CPU, the join, and all that wants its events. */
int host_offcpu_open(struct host *h); /* after sampling and targets; 0 or -errno */
void host_offcpu_close(struct host *h);
void host_offcpu_agent(struct target *t, const struct stream_offcpu *o);
/* An ended wait, with the stream's numbers of threads. */
void host_offcpu_lock(struct target *t, const struct stream_lock *w, bool idle);
/* Passes on what waits of @t: its ids get another meaning, or its session ends. */
void host_offcpu_flush(struct target *t);

/* memory.c: ends the sessions of targets that exceed limits.memory */
void host_check_memory(struct host *h);

/* process_cpu.c: passes the CPU time that @t used since the last call to the live end while it is
 * sampled; and ends that */
void host_take_cpu(struct host *h, struct target *t);
void host_take_cpu_of_all(struct host *h);
void host_leave_cpu(struct host *h, struct target *t);
void host_write_gaps(struct host *h); /* for the next daemon */

/* thread_states.c: once a second; stops reports that nobody asks for */
void host_expire_states(struct host *h);

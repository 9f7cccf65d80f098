/*
 * Shared by the files of the host room: host.c (life cycle), wiring.c (callbacks from room to
 * room), history.c (windows and queries), recording.c, thread_states.c, sampling.c and
 * kernel_frames.c (the host engine), thread_ids.c (numbers of a container's threads),
 * history_events.c (events for the profile), process_cpu.c (CPU time from the kernel), gaps.c
 * (time between two daemons), mapped_files.c (files for symbols), moments.c (events for the
 * timeline), uploads.c (kindling-upload), wanted.c (recordings that it asks for).
 */
#pragma once

#include "daemon/host/gaps.h"
#include "daemon/host/host.h"
#include "daemon/host/offcpu_join.h"
#include "daemon/host/thread_ids.h"
#include "daemon/timeline/pauses.h"

struct host {
	struct loop *loop; /* borrowed, and so is config */
	const struct config *config;
	struct worker *worker;
	struct targets *targets;
	struct look *look; /* NULL = this process examines JVMs itself, without kindling-look */
	struct discovery *discovery; /* NULL = not wanted, or shutting down */
	struct names *names; /* NULL = the container runtime is not asked */
	struct live *live;
	struct timelines *timelines;
	uint64_t times_ns; /* CLOCK_MONOTONIC, last host_take_times() */
	struct store *store; /* NULL = nothing is kept */
	struct gaps *gaps; /* NULL = nothing is kept */
	bool gaps_failed; /* the last write failed */
	bool owes; /* a gap was counted that is not in the history yet */
	unsigned hurries; /* how often the file was written since then */
	struct symbols *symbols;
	struct host_question *questions; /* of symbols, which look has not answered yet */
	struct host_sampling *sampling;
	struct offcpu_engine *offcpu; /* owned by sampling; NULL = offcpu_why has the reason */
	const char *offcpu_why;
	struct loop_source *offcpu_source;
	struct loop_timer *offcpu_timer;
	struct target
		*offcpu_last; /* the target of the last record, which saves a search; NULL = none */
	struct loop_timer *second;
	uint32_t seconds;
	struct host_listener *listeners; /* borrowed */
	uint64_t start_mono_ns;
	uint64_t windows_dropped;
	struct loop_timer *memory_timer;
	unsigned memory_spared; /* looks at all memory that are left out now */
	uint64_t memory_ended; /* how many sessions limits.memory has ended */
	unsigned appending; /* windows on their way to the store */
	bool stands_still; /* the last window could not be stored */
	uint64_t settled_real_ns; /* the last host_settled_real_ns() while no window was being
				     written */
	uint64_t not_stored[WIRE_EVENT_COUNT]; /* samples that kindling-upload has not been told of
						  yet */
	struct uploads *uploads; /* NULL = there are no sinks */
	unsigned journaling; /* seconds on their way to the journal */
	/* set while the host shuts down */
	struct loop_timer *shutdown_timer; /* NULL = not started */
	uint64_t shutdown_by_mono_ns;
	void (*on_down)(void *userdata);
	void *down_userdata;
};

/* The CPU time of a process while it is sampled. */
struct host_cpu {
	bool known; /* ns, real_ns and mono_ns are set */
	uint64_t ns, real_ns, mono_ns; /* the kernel's clock when it was last read, and when */
	bool left; /* this daemon ends first: gaps.c goes on counting */
	uint64_t sum_ns; /* used while it was sampled */
};

/* What the host keeps for a target, as its userdata; freed with the target. */
/* How many of a target's threads were halted at the last reading of the kernel's times, and since
 * when the last of these was. CLOCK_MONOTONIC. */
struct host_halt {
	uint64_t at_ns; /* of that reading */
	unsigned threads, halted;
	uint64_t since_ns;
};

struct host_entry {
	unsigned recorded; /* recordings that run: the events are wanted at once */
	struct live_source *source;
	struct locks *locks; /* NULL = no memory */
	struct timeline *timeline; /* NULL = no memory, or the target has ended */
	struct pauses pauses; /* its last safepoints */
	struct time_ledger *ledger; /* NULL = the kernel has no times of its threads */
	struct host_halt halt;
	struct offcpu_join *offcpu; /* NULL = no record has come yet, or no memory */
	struct thread_ids
		*ids; /* NULL = it is in our pid namespace, or /proc/PID/task cannot be opened */
	/* CLOCK_MONOTONIC: states of threads are reported until then (0 = they are not); and
	 * since when */
	uint64_t states_until_ns, states_since_ns;
	const char *note; /* for reports, at its last check; static */
	struct host_sampling_target sampling;
	struct profile_accounts booked; /* passed to the live end so far */
	struct host_cpu cpu;
	struct host_gap gap;
	bool gap_owed; /* it is not in the history yet */
};

/* mapped_files.c */
extern const struct symbols_opener host_opener;
/* host.c: passes on, for each target, whether a listener wants its events. */
void host_note_followed(struct host *h);
/* wiring.c */
extern const struct discovery_ops host_discovery_calls;
extern const struct names_ops host_names_calls;
extern const struct targets_ops host_target_calls;
/* The host's entry of @t, made by the first call; NULL without memory. */
struct host_entry *host_entry_of(struct host *h, struct target *t);
/* Passes what the counters of @t have grown by since the last call to the live end. */
void host_take_accounts(struct host *h, struct target *t);
/* A kernel_frames_find_fn; @userdata is the host. */
struct kernel_stacks *host_stacks_of(void *userdata, pid_t pid);
/* The host's number for the stream's number of a thread; virtual threads keep theirs. @e may be
 * NULL. */
uint32_t host_number_of(const struct host_entry *e, uint32_t tid);

/* history.c */
/* A live_window_fn; @userdata is the host. Without memory or room in the worker the window is
 * dropped and counted. */
void host_on_window(void *userdata, const struct profile *window);
bool host_on_slice(void *userdata, const struct profile *slice); /* a live_slice_fn */
/* Names native frames as far as their files have been read, and asks for the other files. */

/* uploads.c */
void uploads_on_second(struct host *h);
void uploads_on_settings(struct host *h);
struct uploads *uploads_free(struct uploads *u);

/* offcpu.c: connects the engine of times off the CPU, the joins, and those who get the events. */
int host_offcpu_open(struct host *h); /* after sampling and targets were opened; 0 or -errno */
void host_offcpu_close(struct host *h);
/* Takes the kernel's records: they are in the ring before an agent can write its own into the pipe.
 * This is not done while a message is decoded, because its target would pay for those of all. */
void host_offcpu_before_message(struct host *h);
void host_offcpu_agent(struct target *t, const struct stream_offcpu *o);
/* A wait that has ended, with the stream's numbers of threads. */
void host_offcpu_lock(struct target *t, const struct stream_lock *w, bool idle);
/* The ids of the stream of @t get new meanings: passes on the intervals that have some. */
void host_offcpu_reset(struct target *t);
/* The session of @t ends: passes on all its intervals, and forgets what its threads usually do. */
void host_offcpu_end(struct target *t);

/* memory.c: ends the sessions of targets that exceed limits.memory. */
void host_check_memory(struct host *h);

/* process_cpu.c: passes the CPU time that @t has used since the last call to the live end; and
 * stops doing so. */
void host_take_cpu(struct host *h, struct target *t);
void host_take_cpu_of_all(struct host *h);
void host_leave_cpu(struct host *h, struct target *t);
void host_write_gaps(struct host *h);
/* Writes it every tenth of a second instead of every second while a daemon has just begun to
 * sample: one that is killed then has not missed that second. */
void host_gaps_hurry(struct host *h);
/* The history has all before @until_real_ns, also the gaps that were counted there. */
void host_gaps_journaled(struct host *h, uint64_t until_real_ns); /* for the next daemon */

/* thread_states.c: once a second, stops reports of states that nobody needs any more. */
void host_expire_states(struct host *h);

/*
 * The CPU engine: takes CPU samples. Its signals come from one of two sources, chosen when it
 * starts:
 *   timers  one POSIX timer per thread on that thread's CPU clock. It expires at most once per
 *           kernel tick. A sample's weight is (1 + overrun) * interval.
 *   host    the daemon's clock events (daemon/bpf/host_engine.h), without timers. host.h explains a
 *           sample's weight.
 * A sample's weight is the CPU time that it stands for. Samples without a stack account for CPU
 * time that no signal covers, so that the weights add up to the CPU time of the process:
 *   "[exited between ticks]"  timers: a thread ended with CPU time that no expiry covered; the
 *                             writer attributes it to the usual stack of threads with that name
 *                             (roots.h)
 *   "[no signal]"             host: the thread has used far more CPU time than one interval since
 *                             its last sample, because it blocks the signal or nobody sent one
 *   "[found late]"            CPU time of a thread that began after the engine started, up to the
 *                             scan that found it
 *   "[no timer]"              CPU time of threads that got no timer (RLIMIT_SIGPENDING)
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/walker/walker.h"

/* The table of threads has parts; the first has SLOTS_FIRST slots, a power of two, and each further
 * one twice as many as the one before it. */
#define SLOTS_FIRST 1024u
#define SLOT_PARTS  4u
#define SLOTS_MAX   (SLOTS_FIRST * ((1u << SLOT_PARTS) - 1))

enum slot_state {
	SLOT_FREE,
	/* one thread is filling it in or tearing it down; all others leave it alone */
	SLOT_CLAIMED,
	SLOT_TIMED,
	SLOT_UNTIMED, /* the kernel refused a timer */
	SLOT_HOST, /* the daemon sends this thread's signals */
};

/* One thread. A timer's signal carries the slot's address; for a signal of the host engine the
 * handler finds the slot by tid. */
struct slot {
	uint32_t state; /* enum slot_state */
	uint32_t tid;
	int32_t timer_id;
	uint32_t in_handler; /* only the thread itself */
	uint64_t interval_ns;
	uint64_t armed_cpu_ns; /* the thread's CPU clock when sampling of it began */
	uint64_t first_ns; /* CPU time from then to the first expiry */
	/* weight of its samples since then; only the thread itself writes it */
	uint64_t accounted_ns;
	uint64_t seen_cpu_ns; /* host: the CPU time that is accounted for already; changed by CAS */
	/* host: CPU time accounted for, less the weights of its samples; only the thread itself
	 * uses it */
	int64_t missing_ns;
	uint32_t scan; /* the last scan that found the thread */
	/* samples that have carried its name; only the thread itself uses it */
	uint32_t name_reads;
	/* the same for its full Java name: tries, and the thread_name_generation_sig in which there
	 * need not be any more */
	uint32_t full_name_tries, full_name_done;
};

#define NAME_READS_MAX 8u /* of a thread without Java frames, and of full names */

#define ENDED_MAX 256u /* recently ended threads, which may still be in /proc; power of two */
struct ended {
	uint32_t tid;
	uint64_t mono_ns; /* when it ended; if that is long ago, a new thread has the same tid */
	uint64_t cpu_ns; /* its CPU time then; a thread with less is a new one */
};

struct engine {
	struct slot *slots; /* SLOTS_MAX entries, a hash table by tid */
	uint32_t slots_end; /* slots from this one on were never used, their pages never touched */
	uint32_t running; /* 0 = handlers ignore signals */
	uint32_t inside; /* handlers and starting or ending threads that may touch our memory now */
	uint32_t host; /* 1 = signals come from the host engine */
	uint32_t host_ever;
	/* 1 = the host engine's signals also report times off the CPU, as events of their own */
	uint32_t offcpu;
	int64_t pool_ns; /* host: CPU time of ended threads, less the weights of their samples */
	uint64_t interval_ns;
	uint64_t handler; /* address of our signal handler, which the daemon checks */
	uint64_t started_ticks; /* clock ticks since boot, as in field 22 of /proc/PID/stat */
	int signo; /* 0 = none yet */
	bool spare_sigprof; /* true = do not use SIGPROF: the JVM wants it */
	struct sigaction previous; /* the handler before ours */
	/* the signal for times off the CPU, if that is another one; 0 = it is not */
	int off_signo;
	struct sigaction off_previous;
	int timer_error; /* -errno of the last timer that the kernel refused */
	int32_t timers; /* how many exist */
	int32_t hosted; /* threads with SLOT_HOST */
	int32_t timers_max; /* half of the room that RLIMIT_SIGPENDING leaves */
	int32_t untimed;
	int32_t no_slot; /* threads without a slot at the last scan */
	uint32_t scan;
	uint32_t agent_tid; /* never sampled */
	uint32_t ended_next;
	/* a ring, so that a scan does not take ended threads for new ones */
	struct ended ended[ENDED_MAX];
};

extern struct engine engine;

/* Agent's thread. @interval_ns: CPU time between two samples; @host: the daemon sends the signals.
 * Returns 0, or -errno with a static sentence in *why. */
int engine_start(uint64_t interval_ns, bool host, const char **why);
/* Only allocates memory and installs the handler, for the signals of wall.h. Returns as
 * engine_start(). */
int engine_hold_signal(const char **why);
/* After engine_start(). @wanted: takes one more signal, for times off the CPU, if one is free; else
 * engine.off_signo stays 0, and these times have no stacks. */
void engine_own_signal(bool wanted);
/* Deletes all timers and waits up to half a second for handlers to finish. false = a handler hangs,
 * for example in a page fault that does not end: it may still write to the ring. */
bool engine_stop(void);
/* Returns the memory; only after engine_stop() returned true. */
void engine_free(void);
/* After engine_free(): puts back the earlier handler if none of our signals can come any more. */
void engine_restore_signal(void);
void engine_set_interval(uint64_t interval_ns); /* rearms all timers */
/* Finds threads that began or ended unnoticed. Returns the time that it took, in ns. */
uint64_t engine_scan(void);
bool engine_has_signal(void); /* false = another profiler has replaced our handler */
bool engine_is_alone(void); /* false = another profiler handles one of the signals that profilers
			     * use */
uint32_t engine_threads(void);
uint64_t engine_bytes(void);

/* Called by a thread about itself, when it begins and when it ends. */
void engine_thread_begin(void);
void engine_thread_end(void);

struct slot *slot_find_sig(uint32_t tid); /* signal-safe; NULL = the thread has no slot */
#define ENGINE_EXITED "[exited between ticks]"
#define COMM_BYTES    16 /* bytes of a thread's name in the kernel, PR_GET_NAME in prctl(2) */
/* Records a sample whose stack is only @label. @name: the thread's name, COMM_BYTES, or NULL. */
void engine_account_sig(uint32_t tid, const char *name, uint64_t weight_ns, const char *label);

/* thread_start.c: redirects libjvm's calls of pthread_create() to us, and back. */
void thread_start_hook(void);
void thread_start_unhook(void);

/* cpu_timer_sig.c */
void engine_handler_sig(int signo, siginfo_t *info, void *ucontext);
struct ring_sample;
/* In the handler: counts one sample of the interrupted thread and puts it into the ring. @head:
 * everything but the stack and the time. @slot: its first sample carries the thread's name; NULL =
 * no name is needed. */
void engine_sample_sig(struct ring_sample *head, struct slot *slot, void *ucontext);
/* The same for two samples with one stack; @also may be NULL. */
void engine_sample_both_sig(struct ring_sample *head, struct ring_sample *also, struct slot *slot,
			    void *ucontext);

/* Stack buffers of handlers. A sample is dropped as no_scratch when all of them are in use. */
#define SCRATCH_BUFFERS 8
struct scratch {
	uint32_t busy;
	struct walk_frame *frames; /* WALK_FRAMES_MAX */
};
extern struct scratch scratch[SCRATCH_BUFFERS];

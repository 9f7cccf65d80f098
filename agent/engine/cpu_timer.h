/*
 * The CPU engine. Its signals come from one of two sources, chosen when it starts:
 *   timers  one POSIX timer per thread on that thread's CPU clock, never finer than the kernel's
 *           tick. A sample's weight is (1 + overrun) * interval.
 *   host    the daemon's clock events (daemon/bpf/host_engine.h). No timers; host.h says what a
 *           sample weighs.
 * Every sample's weight is the CPU time it stands for. What no signal delivers is accounted for
 * without a stack, so that the weights add up to the CPU time of the process:
 *   "[exited between ticks]"  timers: a thread ended with CPU time that no tick delivered; the
 * writer puts it under what threads of that name run (roots.h)
 *   "[no signal]"             host: far more CPU time since the last sample than the interval; the
 *                             thread blocks the signal, or nobody sent one
 *   "[found late]"            CPU used by a thread, born after the engine started, before a scan
 *                             found it
 *   "[no timer]"              CPU used by threads that got no timer (RLIMIT_SIGPENDING)
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/walker/walker.h"

#define SLOTS_MAX 16384u /* threads with a slot; power of two */

enum slot_state {
	SLOT_FREE,
	SLOT_CLAIMED, /* being filled in or torn down: not for others */
	SLOT_TIMED,
	SLOT_UNTIMED, /* no timer to be had */
	SLOT_HOST, /* the daemon sends its signals */
};

/* One thread. A timer's cookie points here; for a signal from the host the handler looks it up. */
struct slot {
	uint32_t state; /* enum slot_state */
	uint32_t tid;
	int32_t timer_id;
	uint32_t in_handler; /* only the thread itself */
	uint64_t interval_ns;
	uint64_t armed_cpu_ns; /* the thread's clock from which on it is sampled */
	uint64_t first_ns; /* first expiry after that */
	uint64_t accounted_ns; /* weight delivered since; written by the thread itself */
	uint64_t seen_cpu_ns; /* host: the thread's clock up to where it is accounted for; by CAS */
	int64_t missing_ns; /* host: that clock less the weights; only the thread itself */
	uint32_t scan; /* last scan that saw the thread */
	uint32_t named; /* 1 = a sample carried its name; only the thread itself */
};

#define ENDED_MAX 256u /* threads that said their end and may still be seen; power of two */
struct ended {
	uint32_t tid;
	uint64_t mono_ns; /* when; long ago = another thread has its number */
	uint64_t cpu_ns; /* its clock then; who has used less is another too */
};

struct engine {
	struct slot *slots; /* SLOTS_MAX, a hash table by tid */
	uint32_t
		slots_end; /* the first of those that nobody ever had: most, and not even touched */
	uint32_t running; /* handlers ignore signals when 0 */
	uint32_t
		inside; /* handlers, and threads at their begin or end, that may touch our memory */
	uint32_t host; /* 1 = signals come from the host engine */
	uint32_t host_ever;
	uint32_t offcpu; /* 1 = its signals also end times off the CPU, which are events */
	int64_t pool_ns; /* host: CPU time of threads that ended, less their weights */
	uint64_t interval_ns;
	uint64_t handler; /* address of ours, for the host engine */
	uint64_t started_ticks; /* as field 22 of /proc/PID/stat counts */
	int signo; /* 0 = none yet */
	bool spare_sigprof; /* leave it to the JVM */
	struct sigaction previous; /* the handler before ours */
	int timer_error; /* -errno of the last timer that was refused */
	int32_t timers; /* how many exist */
	int32_t hosted; /* threads with SLOT_HOST */
	int32_t timers_max; /* half of what RLIMIT_SIGPENDING left us */
	int32_t untimed;
	int32_t no_slot; /* threads of the last scan that found no slot */
	uint32_t scan;
	uint32_t agent_tid; /* never sampled */
	uint32_t ended_next;
	struct ended ended[ENDED_MAX]; /* a ring: a scan must not find them anew */
};

extern struct engine engine;

/* Agent's thread. engine_start: 0, or -errno with a static sentence. */
int engine_start(uint64_t interval_ns, bool host, const char **why);
/* The handler alone, for signals of others than the timers: wall.h. As engine_start(). */
int engine_hold_signal(const char **why);
/* No timer is left, and nobody is inside: true. false = a handler hangs (a page that does not
 * come): the ring may still be written to. */
bool engine_stop(void);
/* After engine_stop() said true: give the memory back. */
void engine_free(void);
/* After that: the signal as it was, where nothing of ours can come any more. */
void engine_restore_signal(void);
void engine_set_interval(uint64_t interval_ns); /* arms all timers anew */
/* Look for threads that began or ended without us; returns what it took, in ns. */
uint64_t engine_scan(void);
bool engine_has_signal(void); /* false = another profiler has taken the handler over */
bool engine_is_alone(void); /* false = a signal that profilers use is another's */
uint32_t engine_threads(void);
uint64_t engine_bytes(void);

/* Any thread, about itself: begin and end of its samples. */
void engine_thread_begin(void);
void engine_thread_end(void);

struct slot *slot_find_sig(uint32_t tid); /* also from a handler; NULL = unknown */
#define ENGINE_EXITED "[exited between ticks]"
#define COMM_BYTES    16 /* of a thread's name in the kernel, prctl(2) */
/* A sample without a stack but one label. @name: of the thread, COMM_BYTES, or NULL. */
void engine_account_sig(uint32_t tid, const char *name, uint64_t weight_ns, const char *label);

/* thread_start.c: libjvm's own calls of pthread_create() go through us. */
void thread_start_hook(void);
void thread_start_unhook(void);

/* cpu_timer_sig.c */
void engine_handler_sig(int signo, siginfo_t *info, void *ucontext);
struct ring_sample;
/* In the handler: one sample of the interrupted thread into the counters and the ring. @head: all
 * but the stack and the time. @slot: says the thread's name once; NULL = its name is known. */
void engine_sample_sig(struct ring_sample *head, struct slot *slot, void *ucontext);
/* The same with two samples of one stack: @also may be NULL. */
void engine_sample_both_sig(struct ring_sample *head, struct ring_sample *also, struct slot *slot,
			    void *ucontext);

/* Buffers that handlers walk into: more threads interrupted at once than these = drop.no_scratch.
 */
#define SCRATCH_BUFFERS 8
struct scratch {
	uint32_t busy;
	struct walk_frame *frames; /* WALK_FRAMES_MAX */
};
extern struct scratch scratch[SCRATCH_BUFFERS];

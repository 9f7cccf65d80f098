/*
 * The rooms wired together: what kindlingd runs, and `kindling record` without a daemon. Owns every
 * room; what the functions below return stays the host's. The path of the data from room to room is
 * in one file, wiring.c. Moments are CLOCK_MONOTONIC (mono_ns) or CLOCK_REALTIME (real_ns).
 */
#pragma once

#include "daemon/bpf/host_engine.h"
#include "daemon/core/config.h"
#include "daemon/core/worker.h"
#include "daemon/discovery/discovery.h"
#include "daemon/host/sampling.h"
#include "daemon/locks/locks.h"
#include "daemon/profile/live.h"
#include "daemon/profile/offcpu_event.h"
#include "daemon/store/store.h"
#include "daemon/symbols/symbols.h"
#include "daemon/target/target.h"
#include "daemon/timeline/time_ledger.h"
#include "daemon/timeline/timeline.h"

struct host;

/* A listener that receives events as they arrive (tail). Strings and ids are valid during the
 * call. */
struct host_listener {
	void (*on_sample)(void *userdata, struct target *t, const struct stream_sample *s,
			  uint64_t real_ns);
	/* a wait that ended (@real_ns is its end) or is in progress; @idle: a wait for work */
	void (*on_lock)(void *userdata, struct target *t, const struct stream_lock *l, bool idle,
			uint64_t real_ns);
	/* an interval off the CPU that ended at @real_ns, with the host room's numbers of threads;
	 * NULL = not wanted */
	void (*on_offcpu)(void *userdata, struct target *t, const struct offcpu_event *e,
			  uint64_t real_ns);
	/* does it listen to @t? Events of others come, too. NULL = to all */
	bool (*wants)(void *userdata, const struct target *t);
	/* @t has ended; no more samples of it will come */
	void (*on_gone)(void *userdata, struct target *t);
	void *userdata;
	struct host_listener *next; /* private */
};

/*
 * @loop and @config are borrowed until host_free(). @discover: find JVMs automatically; @persist:
 * keep a history in config->state_dir. 0, or -errno with @f set.
 */
int host_new(struct loop *loop, const struct config *config, bool discover, bool persist,
	     struct host **ret, struct fault *f);
/* Closes the rooms; agents that are still attached stay attached, without a reader. */
struct host *host_free(struct host *h);
DEFINE_FREEP(struct host, host_free);
/* Detaches all agents; calls @done from the loop when all have sent BYE or 6 s have passed. */
void host_shutdown(struct host *h, void (*done)(void *userdata), void *userdata);

/* The settings behind host_config() have changed: applies those that take effect at once. */
void host_settings(struct host *h);

/* Starts delivery to the sinks in the settings file @file: kindling-upload runs if there are
 * any. */
void host_uploads_begin(struct host *h, const char *file);
/* The status that the sinks report, a JSON list; NULL = none run. */
const char *host_uploads_status(const struct host *h);
/* Sends a small profile to the sink @name. @done is called once, from the loop, unless
 * host_uploads_forget() is called first. 0, -ENOENT, -EBUSY or -errno. */
typedef void host_test_fn(void *userdata, bool ok, const char *text);
int host_uploads_test(struct host *h, const char *name, host_test_fn *done, void *userdata);
void host_uploads_forget(struct host *h, void *userdata);

struct loop *host_loop(struct host *h);
const struct config *host_config(struct host *h);
struct targets *host_targets(struct host *h);
struct live *host_live(struct host *h);
struct store *host_store(struct host *h); /* NULL when not persisting */
struct symbols *host_symbols(struct host *h);
/* Adds names to native frames that have none yet, if their files are known. */
void host_symbolize(struct host *h, struct profile *p);
struct look *host_look(struct host *h); /* NULL = none */
struct discovery *host_discovery(struct host *h); /* NULL when not discovering */
uint64_t host_start_mono_ns(struct host *h);
/* CPU time that the process of @t used while it was sampled, from the kernel; 0 = unknown. */
uint64_t host_cpu_ns(const struct target *t);
/* The gap between the previous daemon and this one, in which @t was not sampled. */
struct host_gap {
	uint64_t ns; /* its length; after a kill it may be up to a second too long */
	uint64_t cpu_ns; /* CPU time used in the gap; counted as dropped{restart} */
	uint64_t until_real_ns;
};
const struct host_gap *host_gap_of(const struct target *t); /* NULL = there was none */
/* Windows that never reached the store, for want of memory or room in the worker. */
uint64_t host_windows_dropped(struct host *h);
/* Sessions that ended because their targets exceeded limits.memory. */
uint64_t host_memory_ended(const struct host *h);
/* Bytes that count for limits.memory. */
uint64_t host_memory_used(const struct host *h);
/* NULL = not needed yet, or not available and @ret_why has the reason ("" otherwise). */
const struct host_engine *host_sampler(struct host *h, const char **ret_why);
/* The cost of one tick of a CPU, as measured when the engine was loaded, ns; 0 = unknown. */
uint64_t host_tick_price_ns(struct host *h);
/* "" = times off the CPU can be collected; else the reason why not. */
const char *host_offcpu_why(struct host *h);
/* The engine of off-CPU time, for its state; NULL = host_offcpu_why(). */
const struct offcpu_engine *host_offcpu_engine(const struct host *h);
/* The name of an address of the kernel, valid until the next call; NULL = unknown. */
const char *host_kernel_name(struct host *h, uint64_t address);
/* NULL while there are none: switched off, or no host engine. */
const struct kernel_frames *host_kernel_frames(struct host *h);
/* The waits and threads of @t. NULL = nothing has come from it yet. */
const struct locks *host_locks(const struct target *t);
/* Its last minutes, event by event. NULL = nothing has come from it yet, or it has ended. */
const struct timeline *host_timeline(const struct target *t);
/* Once a second, and before a question: the kernel's times of all threads up to now. */
void host_take_times(struct host *h);
/* Where the time of its threads went, by enum offcpu_reason, as the kernel counts it. NULL = it does
 * not, and *@ret_why says why. */
const struct time_ledger *host_time_ledger(struct host *h, const struct target *t,
					   const char **ret_why);
/*
 * The meaning of a thread number that the host passes on (struct locks, struct stream_x): the
 * kernel's number on this host, and the one in the thread's own pid namespace, or that of a virtual
 * thread; 0 = unknown.
 */
struct host_thread {
	uint32_t tid, ns_tid;
	bool is_virtual;
	uint32_t virtual_id; /* the low bits of Thread.threadId(); 0 = all virtual threads without a
			      * name */
};
struct host_thread host_thread_of(const struct target *t, uint32_t number);
/* For the next half minute the agent reports the states of threads. */
void host_want_states(struct target *t);
/* Did the agent already report them at that moment? Then host_locks() is current; else the next
 * call will find it so. */
bool host_states_known(const struct target *t, uint64_t asked_mono_ns);
/* @l is borrowed until host_unlisten(), which may be called from its own callbacks. */
void host_listen(struct host *h, struct host_listener *l);
void host_unlisten(struct host *h, struct host_listener *l);

/*
 * A profile of [from, to) from memory and store together, with native frames named; the caller's.
 * It takes long and reads from disk, so it must not run in the loop. 0, -ENOMEM or -errno of the
 * store.
 */
int host_query(struct host *h, uint64_t from_real_ns, uint64_t to_real_ns,
	       const struct profile_filter *filter, struct profile **ret);
/* The moment up to which the history is complete: no earlier window will be added. 0 = unknown. */
uint64_t host_settled_real_ns(struct host *h);
/* No window is on its way to the store: whatever is no longer in memory is there. */
bool host_is_settled(const struct host *h);

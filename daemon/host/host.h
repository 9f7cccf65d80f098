/*
 * All rooms wired together: what kindlingd runs, and `kindling record` without a daemon. The host
 * owns every room and whatever these functions return, unless they say otherwise. The way of the
 * data from room to room is in one file, wiring.c. Moments are CLOCK_MONOTONIC (mono_ns) or
 * CLOCK_REALTIME (real_ns).
 */
#pragma once

#include "daemon/bpf/host_engine.h"
#include "daemon/core/config.h"
#include "daemon/core/worker.h"
#include "daemon/discovery/discovery.h"
#include "daemon/host/offcpu_join.h"
#include "daemon/host/sampling.h"
#include "daemon/locks/locks.h"
#include "daemon/names/names.h"
#include "daemon/profile/live.h"
#include "daemon/profile/offcpu_event.h"
#include "daemon/store/store.h"
#include "daemon/symbols/symbols.h"
#include "daemon/target/target.h"
#include "daemon/timeline/time_ledger.h"
#include "daemon/timeline/timeline.h"

struct host;

/* Gets events as they arrive, for tail. Strings and ids are valid during the call. */
struct host_listener {
	void (*on_sample)(void *userdata, struct target *t, const struct stream_sample *s,
			  uint64_t real_ns);
	/* a wait that ended at @real_ns, or is in progress; @idle: a wait for work */
	void (*on_lock)(void *userdata, struct target *t, const struct stream_lock *l, bool idle,
			uint64_t real_ns);
	/* an interval off the CPU that ended at @real_ns, with the host's numbers of threads;
	 * NULL = not wanted */
	void (*on_offcpu)(void *userdata, struct target *t, const struct offcpu_event *e,
			  uint64_t real_ns);
	/* does it want events of @t? Others may come nevertheless. NULL = events of all targets */
	bool (*wants)(void *userdata, const struct target *t);
	/* @t has ended: no more of its events come */
	void (*on_gone)(void *userdata, struct target *t);
	void *userdata;
	struct host_listener *next; /* private */
};

/*
 * Opens the rooms. @loop and @config are borrowed until host_free(). @discover: finds JVMs by
 * itself. @persist: keeps a history in config->state_dir. 0, or -errno with @f set.
 */
int host_new(struct loop *loop, const struct config *config, bool discover, bool persist,
	     struct host **ret, struct fault *f);
/* Closes the rooms. Agents that are still attached stay so, without a reader. */
struct host *host_free(struct host *h);
DEFINE_FREEP(struct host, host_free);
/* Detaches all agents; calls @done from the loop when all have confirmed it, or after 6 s. */
void host_shutdown(struct host *h, void (*done)(void *userdata), void *userdata);

/* Applies those changed settings in host_config() that take effect at once. */
void host_settings(struct host *h);

/* Begins deliveries to the sinks in the file of settings @file: if there are any,
 * kindling-upload is started. */
void host_uploads_begin(struct host *h, const char *file);
/* The status of the sinks as a JSON list; NULL = there are none. */
const char *host_uploads_status(const struct host *h);
/* Sends a small profile to the sink @name. @done is called once, from the loop, unless
 * host_uploads_forget() is called before. 0, -ENOENT, -EBUSY or -errno. */
typedef void host_test_fn(void *userdata, bool ok, const char *text);
int host_uploads_test(struct host *h, const char *name, host_test_fn *done, void *userdata);
void host_uploads_forget(struct host *h, void *userdata);

struct loop *host_loop(struct host *h);
const struct config *host_config(struct host *h);
struct targets *host_targets(struct host *h);
struct live *host_live(struct host *h);
struct store *host_store(struct host *h); /* NULL = no history is kept */
struct symbols *host_symbols(struct host *h);
/* Names native frames that have no name yet, as far as their files have been read. */
void host_symbolize(struct host *h, struct profile *p);
struct look *host_look(struct host *h); /* NULL = this process looks by itself */
struct names *host_names(struct host *h); /* NULL = the container runtime is not asked */
struct discovery *host_discovery(struct host *h); /* NULL = JVMs are not discovered */
uint64_t host_start_mono_ns(struct host *h);
/* The CPU time in ns that the process used while it was sampled, by the kernel's clock; 0 =
 * unknown. */
uint64_t host_cpu_ns(const struct target *t);
/* The time between two daemons in which @t was not sampled. */
struct host_gap {
	uint64_t ns; /* its length; up to a second too long if the daemon was killed */
	uint64_t cpu_ns; /* CPU time that the process used meanwhile, counted as dropped{restart} */
	uint64_t until_real_ns;
};
const struct host_gap *host_gap_of(const struct target *t); /* NULL = there was none */
/* How many windows never reached the store, because memory or room in the worker was missing. */
uint64_t host_windows_dropped(struct host *h);
/* How many sessions were ended because of limits.memory. */
uint64_t host_memory_ended(const struct host *h);
/* Bytes that limits.memory limits. */
uint64_t host_memory_used(const struct host *h);
/* The host engine. NULL = no target needs it yet (*ret_why is ""), or there is none, for the reason
 * *ret_why. */
const struct host_engine *host_sampler(struct host *h, const char **ret_why);
/* What one tick of one CPU costs, in ns, as measured when the engine was loaded; 0 = unknown. */
uint64_t host_tick_price_ns(struct host *h);
/* Why times off the CPU cannot be collected; "" = they can. */
const char *host_offcpu_why(struct host *h);
/* The engine of times off the CPU; NULL: see host_offcpu_why(). */
const struct offcpu_engine *host_offcpu_engine(const struct host *h);
/* What became of the records of @t's times off the CPU since its session began, or since its agent
 * last gave its nodes new meanings. */
void host_offcpu_counts(const struct target *t, struct offcpu_join_counts *ret);
/* Names an address of the kernel; valid until the next call; NULL = unknown. */
const char *host_kernel_name(struct host *h, uint64_t address);
/* NULL while there are no kernel frames: they are switched off, or there is no host engine. */
const struct kernel_frames *host_kernel_frames(struct host *h);
/* The waits and threads of @t; NULL = it has sent nothing yet. */
const struct locks *host_locks(const struct target *t);
/* The last minutes of @t, event by event; NULL = it has sent nothing yet, or has ended. */
const struct timeline *host_timeline(const struct target *t);
/* The safepoints of @t; NULL = it has sent nothing yet, or has ended. */
const struct pauses *host_pauses(const struct target *t);
/* Brings the kernel's times of all threads up to now; called once a second and before a
 * question. */
void host_take_times(struct host *h);
/* For how long all threads of @t have been halted by a signal, a debugger or a frozen control
 * group; 0 = they are not, or the kernel does not tell. */
uint64_t host_halted_ns(const struct target *t);
/* Where the time of the threads of @t went, by enum offcpu_reason, as the kernel counts it. NULL
 * = it does not, and *ret_why says why. */
const struct time_ledger *host_time_ledger(struct host *h, const struct target *t,
					   const char **ret_why);
/*
 * The numbers of a thread, whose number here (in struct locks and struct stream_x) is the host's:
 * the kernel's number on this host, the number in the thread's own pid namespace, and a virtual
 * thread's id. 0 = unknown.
 */
struct host_thread {
	uint32_t tid, ns_tid;
	bool is_virtual;
	uint32_t virtual_id; /* low bits of Thread.threadId(); 0 = any virtual thread without a name
			      */
};
struct host_thread host_thread_of(const struct target *t, uint32_t number);
/* The name of a thread, also of one that has ended, as long as anything here remembers it; "" =
 * unknown. Valid until the target's next callback. */
const char *host_thread_name(const struct target *t, uint32_t number);
/* Has the agent report the states of threads for half a minute. */
void host_want_states(struct target *t);
/* Has the agent reported states since @asked_mono_ns? Then host_locks() has them. */
bool host_states_known(const struct target *t, uint64_t asked_mono_ns);
/* Registers @l, borrowed until host_unlisten(), which callbacks of @l may call. */
void host_listen(struct host *h, struct host_listener *l);
void host_unlisten(struct host *h, struct host_listener *l);

/*
 * A profile of [from, to) from memory and store, with native frames named; the caller frees it.
 * Takes long and reads the disk, so the loop must not call it. 0, -ENOMEM, or -errno of the store.
 */
int host_query(struct host *h, uint64_t from_real_ns, uint64_t to_real_ns,
	       const struct profile_filter *filter, struct profile **ret);
/* The history is complete up to this moment: no earlier window follows. 0 = unknown. */
uint64_t host_settled_real_ns(struct host *h);
/* Is no window on its way to the store? Then the store has all that has left memory. */
bool host_is_settled(const struct host *h);

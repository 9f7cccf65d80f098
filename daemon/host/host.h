/*
 * The rooms wired together: what kindlingd runs, and `kindling record` without a daemon. Owns every
 * room; what the functions below return stays the host's. The way of the data from room to room can
 * be read in one file, wiring.c. Moments are CLOCK_MONOTONIC (mono_ns) or CLOCK_REALTIME (real_ns).
 */
#pragma once

#include "daemon/bpf/host_engine.h"
#include "daemon/core/config.h"
#include "daemon/core/worker.h"
#include "daemon/discovery/discovery.h"
#include "daemon/host/sampling.h"
#include "daemon/locks/locks.h"
#include "daemon/profile/live.h"
#include "daemon/store/store.h"
#include "daemon/symbols/symbols.h"
#include "daemon/target/target.h"

struct host;

/* Somebody who wants events as they arrive (tail). Strings and ids are valid for the call. */
struct host_listener {
	void (*on_sample)(void *userdata, struct target *t, const struct stream_sample *s,
			  uint64_t real_ns);
	/* a wait that ended (@real_ns is its end) or goes on; @idle: for want of work */
	void (*on_lock)(void *userdata, struct target *t, const struct stream_lock *l, bool idle,
			uint64_t real_ns);
	/* @t has ended; no sample of it comes any more */
	void (*on_gone)(void *userdata, struct target *t);
	void *userdata;
	struct host_listener *next; /* private */
};

/*
 * @loop and @config are borrowed until host_free(). @discover: find JVMs by itself; @persist: keep
 * a history in config->state_dir. 0, or -errno with @f set.
 */
int host_new(struct loop *loop, const struct config *config, bool discover, bool persist,
	     struct host **ret, struct fault *f);
/* Closes the rooms; what is still attached stays so, without a reader. */
struct host *host_free(struct host *h);
DEFINE_FREEP(struct host, host_free);
/* Detach all agents; calls @done from the loop when all have said BYE or 6 s have passed. */
void host_shutdown(struct host *h, void (*done)(void *userdata), void *userdata);

/* The settings behind host_config() have changed: those that count at once are passed on. */
void host_settings(struct host *h);

/* Sinks are delivered to from now on, as @file says: kindling-upload runs when there are some. */
void host_uploads_begin(struct host *h, const char *file);
/* What they say of themselves, JSON, a list; NULL = none run. */
const char *host_uploads_status(const struct host *h);
/* Sends a small profile to the sink @name. @done is called once, from the loop;
 * host_uploads_forget() keeps it from that. 0, -ENOENT, -EBUSY or -errno. */
typedef void host_test_fn(void *userdata, bool ok, const char *text);
int host_uploads_test(struct host *h, const char *name, host_test_fn *done, void *userdata);
void host_uploads_forget(struct host *h, void *userdata);

struct loop *host_loop(struct host *h);
const struct config *host_config(struct host *h);
struct targets *host_targets(struct host *h);
struct live *host_live(struct host *h);
struct store *host_store(struct host *h); /* NULL when not persisting */
struct worker *host_worker(struct host *h);
struct symbols *host_symbols(struct host *h);
/* Names of the native frames that have none yet, as far as files are known. */
void host_symbolize(struct host *h, struct profile *p);
struct look *host_look(struct host *h); /* NULL = none */
struct discovery *host_discovery(struct host *h); /* NULL when not discovering */
uint64_t host_start_mono_ns(struct host *h);
/* CPU time that the process of @t used while it was sampled, as the kernel says; 0 = unknown. */
uint64_t host_cpu_ns(const struct target *t);
/* Between the daemon before this one and this one @t was not sampled. */
struct host_gap {
	uint64_t ns; /* for so long; after a kill up to a second more than it was */
	uint64_t cpu_ns; /* that it used meanwhile; in its books as dropped{restart} */
	uint64_t until_real_ns;
};
const struct host_gap *host_gap_of(const struct target *t); /* NULL = there was none */
/* Windows that never reached the store: no memory, or no room in the worker. */
uint64_t host_windows_dropped(struct host *h);
/* Sessions that ended because their targets took more memory than limits.memory allows. */
uint64_t host_memory_ended(const struct host *h);
/* Bytes of what limits.memory is about. */
uint64_t host_memory_used(const struct host *h);
/* NULL = nobody needed it yet, or it cannot be had and @ret_why says why ("" otherwise). */
const struct host_engine *host_sampler(struct host *h, const char **ret_why);
/* What one tick of a CPU costs, as measured when it was loaded, ns; 0 = not known. */
uint64_t host_tick_price_ns(struct host *h);
/* NULL while there are none: switched off, or no host engine. */
const struct kernel_frames *host_kernel_frames(struct host *h);
/* Who waits for what in it, and its threads. NULL = nothing came of it yet. */
const struct locks *host_locks(const struct target *t);
/*
 * What a number of a thread that the host gives out says (struct locks, struct stream_x): the
 * kernel's on this host, and in the thread's own pid namespace, or a virtual thread's; 0 = not
 * known.
 */
struct host_thread {
	uint32_t tid, ns_tid;
	bool is_virtual;
	uint32_t virtual_id; /* the low bits of Thread.threadId(); 0 = of all that have no name */
};
struct host_thread host_thread_of(const struct target *t, uint32_t number);
/* For the next half minute the agent tells what threads do. */
void host_want_states(struct target *t);
/* Did it do so before that moment? Then what host_locks() knows of it is true now; else the next
 * question finds it. */
bool host_states_known(const struct target *t, uint64_t asked_mono_ns);
/* @l is borrowed until host_unlisten(), which may be called from its own callbacks. */
void host_listen(struct host *h, struct host_listener *l);
void host_unlisten(struct host *h, struct host_listener *l);

/*
 * A profile of [from, to), live part and store together, native frames named; the caller's. It
 * takes long, and reads from disk: not for the loop. 0, -ENOMEM or -errno of the store.
 */
int host_query(struct host *h, uint64_t from_real_ns, uint64_t to_real_ns,
	       const struct profile_filter *filter, struct profile **ret);
/* How far the history is whole: no window before that moment comes any more. 0 = not known yet. */
uint64_t host_settled_real_ns(struct host *h);
/* No window is on its way to the store: what is not in memory any more is there. */
bool host_is_settled(const struct host *h);

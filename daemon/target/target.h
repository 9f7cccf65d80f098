/*
 * One JVM: who it is, what state its profiling is in and why. The state is changed in
 * target_set_state() alone, by a table of allowed steps, with one log line a change.
 *
 *   FOUND -> INJECTING -> STREAMING -> DRAINING -> DETACHED | GONE
 *              |             |
 *              +-> FAILED <--+   (reason; INJECTING again after a back-off)
 *   FOUND, FAILED, STREAMING (by DRAINING) -> EXCLUDED when something keeps it out (admit.c), and
 *   EXCLUDED or DETACHED -> FOUND when nothing does any more
 *   any -> GONE when the pidfd says so (never by end of file: a forked child may hold the pipe)
 */
#pragma once

#include <stdbool.h>
#include "daemon/core/config.h"
#include "daemon/core/loop.h"
#include "daemon/discovery/jvm.h"
#include "daemon/ground/fault.h"
#include "daemon/ground/profilers.h"
#include "daemon/stream/stream.h"
#include "daemon/target/crash.h"

#define TARGETS_MAX 1024 /* fairly shared between tenants when it is reached */
#define NAMED_MAX   (TARGETS_MAX + 64) /* with those that are only remembered */
#define RECENT_MAX  8
#define NOTES_MAX   12 /* of one target */

enum target_state {
	TARGET_FOUND,
	TARGET_INJECTING,
	TARGET_STREAMING,
	TARGET_FAILED,
	TARGET_DRAINING, /* DETACH sent, waiting for BYE */
	TARGET_DETACHED,
	TARGET_EXCLUDED, /* kept out: by its owner, a rule, a limit, or the crash of one like it */
	TARGET_GONE, /* the process ended; kept for status, see targets_next_known() */
	TARGET_STATE_COUNT
};
extern const char *const target_state_names[TARGET_STATE_COUNT]; /* "streaming", ... */

struct targets; /* the table of all targets */
struct look;

/* What the owner should know of one step of its agent: "monitors", why they are not collected. */
struct target_note {
	char step[32]; /* "" = not in use */
	char what[200];
};

/* The agent's CPU time at moments of the last minutes, for what it costs now; recent.c. */
struct target_recent {
	uint64_t mono_ns[RECENT_MAX], cpu_ns[RECENT_MAX]; /* a ring */
	unsigned n, next;
};

struct target {
	struct jvm jvm;
	char *labels; /* of labels.h; labelling.c */
	char service[256]; /* that one of them, "" = it has none */
	enum target_state state;
	struct fault fault; /* why not streaming; code 0 = no reason */
	struct stream *stream; /* NULL before the first session */
	struct stream_counts past; /* accounts of the sessions before the current one */
	char jdk[160]; /* "Debian 17.0.15+6" from HELLO, else jvm.jdk */
	char engine[32], walker[32], note[160]; /* from HELLO */
	struct target_note notes[NOTES_MAX]; /* of the running session */
	struct target_recent recent; /* of the running session */
	uint64_t interval_ns; /* asked for */
	uint64_t
		host_interval_ns; /* what START left to the host engine; 0 = the agent has timers */
	uint64_t seen_mono_ns; /* discovery saw it */
	uint64_t first_sample_mono_ns; /* 0 = none yet */
	uint64_t gone_mono_ns;
	uint64_t retry_mono_ns; /* FAILED: when it is tried again; 0 = it is not */
	int64_t real_minus_mono_ns; /* to turn sample times into wall time */
	unsigned attempts;
	profilers_set profilers; /* of others that are in it */
	unsigned placement; /* enum inject_strategy: how the agent came in; 0 = it was there */
	bool no_budget;
	unsigned wanted_events; /* bits: START asks for them beside the configured ones */
	uint64_t
		wanted_lock_min_ns; /* the shortest wait to be told, for the configured; 0 = that */
	uint64_t wanted_alloc_interval, wanted_wall_interval_ns; /* likewise */
	char wanted_threads[128]; /* of wall-clock samples, for the configured ones; "" = those */
	bool states; /* START asks what threads do */
	void *userdata; /* of the room after this one (live source) */
	struct target_priv *priv;
};

struct targets_ops {
	/* before the state changes to @next; t->state is still the old one */
	void (*on_state)(void *userdata, struct target *t, enum target_state next);
	void (*on_hello)(void *userdata, struct target *t);
	void (*on_reset)(void *userdata, struct target *t);
	void (*on_sample)(void *userdata, struct target *t, const struct stream_sample *s);
	/* Given to each target's stream as they are, with the target as userdata: on_mapping,
	 * on_wall, on_lock, on_alloc, on_thread, on_state, on_virtual and on_pause. The others are the
	 * table's own. */
	struct stream_ops stream;
	/* these may be NULL */
	void (*on_ledger)(void *userdata, struct target *t);
	void (*on_labels)(void *userdata, struct target *t); /* t->labels has changed */
	/* A START is being made for @interval_ns: may the agent leave its signals to the host
	 * engine? The interval that it can keep, 0 = no. NULL = no host engine. */
	uint64_t (*on_host_wanted)(void *userdata, struct target *t, uint64_t interval_ns);
	/* It lives, but its place in the table goes to one of another tenant: discovery should
	 * tell of it again. May be NULL. */
	void (*on_displaced)(void *userdata, struct target *t);
	void (*on_free)(void *userdata, struct target *t); /* last call: free t->userdata */
};

int targets_new(struct loop *loop, const struct config *config, const struct targets_ops *ops,
		void *userdata, struct targets **ret);
/* Who looks at processes for it; borrowed. Without one it does so itself, and waits. */
void targets_look(struct targets *t, struct look *look);
/* No times off the CPU: nobody would send their signals. */
void targets_no_offcpu(struct targets *t);
/* The @userdata that the table of @t was made with. */
void *targets_userdata(const struct target *t);
struct targets *targets_free(struct targets *t); /* kills injectors; does not detach */
DEFINE_FREEP(struct targets, targets_free);

/* A JVM was found: take it in, reattach to an agent that already lives in it (a daemon before us
 * crashed), else inject. 0, -EEXIST (known), -ENOSPC (TARGETS_MAX, counted). */
int targets_add(struct targets *t, const struct jvm *jvm, uint64_t seen_mono_ns,
		struct target **ret);
struct target *targets_next(struct targets *t, const struct target *prev); /* NULL: first/end */
/* The same, and those that ended up to an hour ago, of which no more than who they were is left. */
struct target *targets_next_known(struct targets *t, const struct target *prev);

/* The events of all of them took so much CPU time once more: in windows, in the journal. Each pays
 * its part, by the bytes that came from it since the last call. */
void targets_charge(struct targets *t, uint64_t cpu_ns);
/* Somebody reads its events as they arrive (tail): they are passed on at once. Not so at first. */
void target_follow(struct target *t, bool followed);

/* Those that @word names best (word.h): exact names before parts, those that live before those that
 * ended; @known: of targets_next_known(). How many, at most NAMED_MAX, into @ret. */
unsigned targets_named(struct targets *t, const char *word, bool known, struct target **ret);

/* The interval between two samples of a busy thread, as it is and not as it was asked for: CPU
 * timers expire on the kernel's tick. */
uint64_t target_interval_ns(const struct target *t);
/* The same for any event: ns or bytes between two samples, the shortest wait. */
uint64_t target_interval(const struct target *t, enum wire_event event);
/* Bits 1 << enum wire_event: what START asked for, and what the agent says is collected now. */
unsigned target_asked_events(const struct target *t);
/* What its owner allows; anything else is never asked for. */
unsigned target_allowed_events(const struct target *t);
/* What its owner says of events and intervals, "kindling.io/events: cpu"; false = nothing. */
bool target_owners_note(const struct target *t, char *buf, size_t size);
unsigned target_events(const struct target *t);
/* "host", "cpu-timer"; "" before HELLO */
const char *target_engine(const struct target *t);
/* A note for readers of shares of its CPU time about that engine; "" = none. */
#define TARGET_TIMERS_NOTE                                                                      \
	"sampled by CPU timers, which follow the kernel's tick: shares of runs shorter than a " \
	"tick may be off, by up to 8 points in tests"
const char *target_engine_note(const struct target *t);
/* Change the sampling of a streaming target: START over control. 0 or -errno. */
int target_start(struct target *t, uint64_t interval_ns, bool no_budget);
/* The daemon ends its session for @why; it is tried again as after any other failure. */
void target_give_up(struct target *t, const struct fault *why);
/* DETACH: leaves nothing behind; ends in TARGET_DETACHED. */
void target_detach(struct target *t);
/* The same for all, and none is taken in any more: the daemon's end. */
void targets_stop(struct targets *t);
/* The processes that a daemon before this one had attached to, malloc'ed; NULL = none. */
pid_t *targets_former(const struct targets *t, uint32_t *ret_n);
/* No JVM is attached to before a process answers at @path that reads seccomp filters, or ten
 * seconds have passed; agents that are there already go on. 0 or -errno. Before the loop runs. */
int targets_await_filters(struct targets *t, const char *path);
/* It was waited for in vain, and is still missing: a sentence in @buf. */
bool targets_filters_note(const struct targets *t, char *buf, size_t size);
/*
 * The same on behalf of @uid: it stays detached, over a restart of the daemon too, until
 * target_attach() or a rule that was not there says otherwise. -ESRCH: it has ended.
 */
int target_detach_for(struct target *t, uid_t uid);
/*
 * Take it in at once, also when targets.mode, targets.max, a crash or an earlier detach keep it
 * out. -EPERM + @why: its owner or a rule denies it; -EAGAIN: it is being detached; -ESRCH;
 * -ESHUTDOWN: the daemon is.
 */
int target_attach(struct target *t, uid_t uid, struct fault *why);
/* The settings have changed: who may be attached to is asked again, and agents get a START. */
void targets_settings(struct targets *t);
/* true when no target is INJECTING, STREAMING or DRAINING any more */
bool targets_quiet(const struct targets *t);
/* A process ended with this status, as wait(2) has it; other pids than targets' are fine. */
void targets_exited(struct targets *t, pid_t pid, int status);
/* A kind of JVM that is left alone since one of it crashed; NULL = there is no number @index. */
const struct cohort *targets_cohort(const struct targets *t, unsigned index);
uint64_t targets_crashes(const struct targets *t); /* soon after an attach, since the start */
/* Abandoned receivers: those that are still alive, and all since the start. */
unsigned targets_stuck(const struct targets *t, uint64_t *ret_total);
/* CPU time of the daemon for what @t said, since it was found. */
uint64_t target_decode_ns(const struct target *t);
/* It said more of late than decoding may cost (limits.decode_cpu): a sentence in @why. */
bool target_held_back(const struct target *t, char *why, size_t size);
/* CPUs that the agent used in the last minute, or since its session began if that is less. */
double target_recent_cpus(const struct target *t);
/* It used @cpu_ns of CPU time between two daemons: as many samples as that makes at its interval
 * were not taken, dropped{restart} in its accounts. */
void target_missed(struct target *t, uint64_t cpu_ns);
/* The accounts of all its sessions together. */
void target_counts(const struct target *t, struct stream_counts *ret);

/*
 * One JVM: what it is, and in which state its profiling is and why. Only target_set_state() changes
 * the state, by a table of allowed steps, and logs each change.
 *
 *   FOUND -> INJECTING -> STREAMING -> DRAINING -> DETACHED | GONE
 *              |             |
 *              +-> FAILED <--+   (reason; INJECTING again after a back-off)
 *   FOUND, FAILED, STREAMING (through DRAINING) -> EXCLUDED when something keeps the JVM out
 *   (admit.c), and EXCLUDED or DETACHED -> FOUND when nothing does any more
 *   any -> GONE when the pidfd reports the end of the process (not at the pipe's end of file,
 *   because a forked child may keep the pipe open)
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

#define TARGETS_MAX 1024 /* when all are taken, tenants share them fairly */
#define NAMED_MAX   (TARGETS_MAX + 64) /* including targets that are only remembered */
#define RECENT_MAX  8
#define NOTES_MAX   12 /* of one target */

enum target_state {
	TARGET_FOUND,
	TARGET_INJECTING,
	TARGET_STREAMING,
	TARGET_FAILED,
	TARGET_DRAINING, /* DETACH sent, waiting for BYE */
	TARGET_DETACHED,
	TARGET_EXCLUDED, /* kept out by its owner, a rule, a limit, or the crash of a similar JVM */
	TARGET_GONE, /* the process has ended; kept for status, see targets_next_known() */
	TARGET_STATE_COUNT
};
extern const char *const target_state_names[TARGET_STATE_COUNT]; /* "streaming", ... */

struct targets; /* the table of all targets */
struct look;

/* A note about one step of the agent that users should see: for example step "monitors", and why
 * waits for monitors are not collected. */
struct target_note {
	char step[32]; /* "" = not in use */
	char what[200];
};

/* The agent's CPU time at moments of the last minutes, from which recent.c computes its present
 * cost. */
struct target_recent {
	uint64_t mono_ns[RECENT_MAX], cpu_ns[RECENT_MAX]; /* a ring */
	unsigned n, next;
};

struct target {
	struct jvm jvm;
	char *labels; /* as labels.h encodes them; labelling.c */
	char service[256]; /* the label service; "" = it has none */
	enum target_state state;
	struct fault fault; /* why it does not stream; code 0 = no reason */
	struct stream *stream; /* NULL before the first session */
	struct stream_counts past; /* accounts of earlier sessions */
	char jdk[160]; /* "Debian 17.0.15+6", from HELLO or from jvm.jdk */
	char engine[32], walker[32], note[160]; /* from HELLO */
	struct target_note notes[NOTES_MAX]; /* of the current session */
	struct target_recent recent; /* of the current session */
	uint64_t interval_ns; /* that START asked for */
	uint64_t host_interval_ns; /* the host engine's, if START chose it; 0 = CPU timers */
	uint64_t seen_mono_ns; /* when discovery found it */
	uint64_t first_sample_mono_ns; /* 0 = none yet */
	/* signals for times off the CPU that the kernel has sent it, as the room above counts them;
	 * it may begin again at 0 */
	uint64_t offcpu_signals;
	/* likewise, those without a record, and their time */
	uint64_t offcpu_lost, offcpu_lost_ns;
	uint64_t offcpu_spared_ns; /* offcpu_engine_spared_ns() */
	bool offcpu_loses; /* some were lost in the last second */
	/* how long a time off the CPU has to be now for an event; 0 = as configured */
	uint64_t offcpu_min_ns;
	uint64_t gone_mono_ns;
	uint64_t retry_mono_ns; /* FAILED: the time of the next attempt; 0 = there is none */
	int64_t real_minus_mono_ns; /* converts times of samples to wall-clock time */
	unsigned attempts;
	profilers_set profilers; /* other profilers in the JVM */
	unsigned placement; /* enum inject_strategy; 0 = the agent was there already */
	bool no_budget;
	unsigned wanted_events; /* bits: events that START asks for in addition to the settings' */
	uint64_t wanted_lock_min_ns; /* replaces the settings' shortest wait; 0 = it does not */
	uint64_t wanted_alloc_interval, wanted_wall_interval_ns; /* likewise */
	char wanted_threads[128]; /* replaces the settings' threads of wall-clock samples; "" = it
				     does not */
	bool states; /* START asks for states of threads */
	void *userdata; /* owned by the room above (daemon/host) */
	struct target_priv *priv;
};

struct targets_ops {
	/* the state is about to change to @next; t->state is still the old one */
	void (*on_state)(void *userdata, struct target *t, enum target_state next);
	void (*on_hello)(void *userdata, struct target *t);
	void (*on_reset)(void *userdata, struct target *t);
	void (*on_sample)(void *userdata, struct target *t, const struct stream_sample *s);
	/* Functions that each target's stream calls directly, with the target as userdata; the
	 * table sets those that session_calls.c has. */
	struct stream_ops stream;
	/* these may be NULL */
	void (*on_ledger)(void *userdata, struct target *t);
	/* a target has sent something, which is about to be decoded; no target pays for this call
	 */
	void (*on_message)(void *userdata);
	void (*on_labels)(void *userdata, struct target *t); /* t->labels has changed */
	/* A START for @interval_ns is being made: may the agent leave its signals to the host
	 * engine? Returns the interval that it can keep, 0 = no. NULL = there is no host engine. */
	uint64_t (*on_host_wanted)(void *userdata, struct target *t, uint64_t interval_ns);
	/* The JVM lives, but another tenant gets its place in the table: discovery should report
	 * it again. May be NULL. */
	void (*on_displaced)(void *userdata, struct target *t);
	void (*on_free)(void *userdata,
			struct target *t); /* the last call: must free t->userdata */
};

int targets_new(struct loop *loop, const struct config *config, const struct targets_ops *ops,
		void *userdata, struct targets **ret);
/* Sets the client of kindling-look, which examines processes; borrowed. Without one the daemon
 * examines them itself, and may block. */
void targets_look(struct targets *t, struct look *look);
/* Forbids collecting time off the CPU in all targets, because nothing would send the signals. */
void targets_no_offcpu(struct targets *t);
/* Agents shall take a second signal for time off the CPU: OFFCPU_BY_OWN_SIGNAL. */
void targets_own_signal(struct targets *t);
/* The @userdata of the table that @t is in. */
void *targets_userdata(const struct target *t);
struct targets *targets_free(struct targets *t); /* kills injectors; detaches nothing */
DEFINE_FREEP(struct targets, targets_free);

/* Adds a JVM that was found. If an earlier daemon's agent is in it already, that agent goes on;
 * else one is injected. @seen_mono_ns: when it was found. 0, or -EEXIST (it is known), -ENOSPC
 * (TARGETS_MAX; counted), -ESRCH (it has ended) or another -errno. */
int targets_add(struct targets *t, const struct jvm *jvm, uint64_t seen_mono_ns,
		struct target **ret);
struct target *targets_next(struct targets *t,
			    const struct target *prev); /* NULL: the first, and the end */
/* The same, and also those that ended up to an hour ago, of which little more than the name is
 * kept. */
struct target *targets_next_known(struct targets *t, const struct target *prev);

/* Adding the events of all targets to windows and journal has cost @cpu_ns of CPU time. Each target
 * is charged its share of it, by the bytes that it has sent since the last call. */
void targets_charge(struct targets *t, uint64_t cpu_ns);
/* Whether a client reads the target's events as they arrive (tail), or records them: then its
 * receiver does not gather them. false at first. */
void target_follow(struct target *t, bool followed);

/* The targets that @word names best (word.h): exact names rank above parts of names, and then
 * living JVMs above ended ones. @known: includes those that only targets_next_known() returns.
 * @ret: room for NAMED_MAX. Returns their number. */
unsigned targets_named(struct targets *t, const char *word, bool known, struct target **ret);

/* The real interval between two samples of a busy thread. It may be longer than the one asked
 * for, because CPU timers expire on the kernel's tick. */
uint64_t target_interval_ns(const struct target *t);
/* The same for any event: ns or bytes between two samples; for waits the shortest one. */
uint64_t target_interval(const struct target *t, enum wire_event event);
/* The events that START asks for, bits 1 << enum wire_event. target_events() returns those that the
 * agent collects, by its last LEDGER. */
unsigned target_asked_events(const struct target *t);
/* The events that the JVM's owner allows; no other is ever asked for. */
unsigned target_allowed_events(const struct target *t);
/* The owner's limits of events and intervals, "kindling.io/events: cpu"; false = there are none. */
bool target_owners_note(const struct target *t, char *buf, size_t size);
unsigned target_events(const struct target *t);
/* "host", "cpu-timer"; "" before HELLO */
const char *target_engine(const struct target *t);
/* What users who compare shares of its CPU time must know about that engine; "" = nothing. */
#define TARGET_TIMERS_NOTE                                                                      \
	"sampled by CPU timers, which follow the kernel's tick: shares of runs shorter than a " \
	"tick may be off, by up to 8 points in tests"
const char *target_engine_note(const struct target *t);
/* Changes the sampling of a streaming target by a START. 0 or -errno. */
int target_start(struct target *t, uint64_t interval_ns, bool no_budget);
/* Ends the session for the reason @why; another attempt follows, as after any failure. */
void target_give_up(struct target *t, const struct fault *why);
/* Sends DETACH, after which nothing stays behind; ends in TARGET_DETACHED. */
void target_detach(struct target *t);
/* The daemon ends: detaches all targets and takes in no more. */
void targets_stop(struct targets *t);
/* The processes that an earlier daemon had attached to, malloc'ed; NULL = none. */
pid_t *targets_former(const struct targets *t, uint32_t *ret_n);
/* Makes attaches wait until a process that reads seccomp filters answers at the socket @path, at
 * most ten seconds. Agents that are there already go on. To be called before the loop runs. 0 or
 * -errno. */
int targets_await_filters(struct targets *t, const char *path);
/* Has that process not answered in time, and is it still missing? Then @buf has a sentence. */
bool targets_filters_note(const struct targets *t, char *buf, size_t size);
/*
 * Detaches on behalf of @uid: the JVM stays detached, also after a restart, until target_attach()
 * or a new rule. -ESRCH: it has ended.
 */
int target_detach_for(struct target *t, uid_t uid);
/*
 * Attaches at once, even if targets.mode, targets.max, a crash or an earlier detach keeps the JVM
 * out. -EPERM with @why: its owner or a rule denies it; -EAGAIN: it is being detached; -ESRCH: it
 * has ended; -ESHUTDOWN: the daemon is ending.
 */
int target_attach(struct target *t, uid_t uid, struct fault *why);
/* The container runtime has answered late: @jvm is t->jvm with the names, notes and owner's limits
 * that it knows. Labels are made anew, and it is decided again whether the JVM may be profiled. */
void target_set_names(struct target *t, const struct jvm *jvm);
/* The settings have changed: decides again which JVMs may be attached to, and sends agents a
 * START. */
void targets_settings(struct targets *t);
/* Is no target INJECTING, STREAMING or DRAINING? */
bool targets_quiet(const struct targets *t);
/* A process has ended with this status of wait(2); it may be no target. */
void targets_exited(struct targets *t, pid_t pid, int status);
/* A cohort that is not attached to because of a crash; NULL = there is no number @index. */
const struct cohort *targets_cohort(const struct targets *t, unsigned index);
/* Crashes soon after an attach, since the daemon's start. */
uint64_t targets_crashes(const struct targets *t);
/* Receivers that were given up: those that still exist, and all since the start. */
unsigned targets_stuck(const struct targets *t, uint64_t *ret_total);
/* CPU time in ns that the daemon has spent on decoding what @t sent, since it was found. */
uint64_t target_decode_ns(const struct target *t);
/* Is the target held back, because decoding what it sends costs more than limits.decode_cpu
 * allows? Then @why, of HELD_BACK_SIZE, says so, and how far its stream is behind. */
#define HELD_BACK_SIZE 320
bool target_held_back(const struct target *t, char *why, size_t size);
/* How many CPUs the agent has used in the last minute, or in its session if that is shorter. */
double target_recent_cpus(const struct target *t);
/* The process used @cpu_ns of CPU time between two daemons: counts the samples of that time as
 * dropped{restart}. */
void target_missed(struct target *t, uint64_t cpu_ns);
/* The accounts of all of its sessions together. */
void target_counts(const struct target *t, struct stream_counts *ret);

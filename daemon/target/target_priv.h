/* Inside the target room: state.c (the table of steps), inject.c (one attempt), child.c (its
 * process), session.c (its session), session_calls.c (what its stream says), decoding.c (what that
 * may cost: decode_budget.c), receiver.c (the process that reads the pipe), gathering.c (how
 * often), reattach.c (an agent that is there already), target.c (the table of targets), match.c
 * (words that name one), admit.c (whether it may be attached to: rules.c, overrides.c, crash.c,
 * other_profilers.c, limit.c, owning.c), ask.c (what has to be looked up for that), settings.c
 * (other settings while it runs), exit.c (how it ended), budget.c (attaches a second), left.c (what
 * was left behind), recent.c (what the agent costs now), possible.c (what its claims are held
 * against), tenants.c (who it belongs to), turns.c (whose attempt is next), secrets.c (what agents
 * are known by), labelling.c (its labels), await_filters.c (who reads seccomp
 * filters), room.c (a place in the table).
 */
#pragma once

#include "daemon/discovery/look.h"
#include "daemon/ground/log.h"
#include "daemon/target/budget.h"
#include "daemon/target/decoding.h"
#include "daemon/target/gathering.h"
#include "daemon/target/labelling.h"
#include "daemon/target/receiver.h"
#include "daemon/target/secrets.h"
#include "daemon/target/target.h"
#include "daemon/target/tenants.h"
#include "daemon/target/overrides.h"

#define INJECTORS_MAX	  4
#define TENANT_INJECTORS  (INJECTORS_MAX / 2) /* of one tenant: an attempt may take its time */
#define HELLO_DEADLINE_NS (5 * 1000000000ull)
#define LOOK_DEADLINE_NS  (5 * 1000000000ull)
#define DRAIN_DEADLINE_NS (5 * 1000000000ull)
#define ENDING_NS	  (1000 * 1000000ull) /* for the last events of a process that ended */
#define STEADY_NS	  (60 * 1000000000ull) /* a session this old forgives the failures before it */
#define CLOSED_GRACE_NS	  (1000 * 1000000ull) /* a JVM that ends closes its agent first */
#define GONE_KEEP_NS	  (120 * 1000000000ull) /* with all that is known of it */
#define GONE_KEEP_MAX	  32 /* ... of the last that ended */
#define REMEMBER_NS	  (3600 * 1000000000ull) /* and then who it was, for status */
#define REMEMBER_MAX	  64

/* Why a target is EXCLUDED, in the order in which it is asked. */
enum keep {
	KEEP_NOT,
	KEEP_OWNER,
	KEEP_RULE,
	KEEP_WISH,
	KEEP_CRASH,
	KEEP_PROFILER,
	KEEP_MAX,
	KEEP_ROOM, /* while it streamed, see room.c */
};

/* What a target's facts are asked for: bits, the first that is asked for follows. */
enum facts_for { FACTS_FOR_ATTEMPT = 1, FACTS_FOR_SETTINGS = 2, FACTS_FOR_WATCH = 4 };

struct target_priv {
	struct targets *table;
	struct target *next;
	struct tenant *tenant;
	int pidfd;
	struct loop_source *pidfd_source;
	struct loop_timer *profilers_timer; /* STREAMING: looks for other profilers again */
	struct loop_timer *timer; /* of the current state: back-off, deadline, or the end of GONE */
	/* INJECTING */
	struct child *injector; /* NULL = none runs */
	struct child *late; /* one that was killed, or cleans up, and has not ended yet */
	uint64_t late_mono_ns; /* from then on it keeps others from being started */
	bool remembered; /* GONE for long: no userdata, no fds */
	bool queued; /* waits for its turn to be attached to */
	bool leave; /* detach as soon as the attempt has ended */
	bool counted; /* the attempt counts for targets.attach_rate */
	bool taken_over; /* the session is that of an agent that was there already */
	bool start_again; /* then ask for other settings than the attempt does */
	/* where INJECTING (with leave) and DRAINING end, and why */
	enum target_state leave_to;
	struct fault leave_why;
	enum keep kept; /* of EXCLUDED */
	uint64_t cpu_ticks, used_ticks; /* at the last review of targets.max, and before it */
	uint64_t attach_mono_ns; /* the last attempt or reattach; 0 = none */
	struct facts facts; /* of the last look that was answered */
	unsigned facts_for; /* enum facts_for: once the question is answered */
	struct look_ticket *facts_question, *cwd_question, *crash_question; /* NULL = none */
	int cwd_fd; /* O_PATH, from then on: a crash leaves its file there */
	bool crash_seen, exit_known;
	bool may_have_left; /* left.c has to look */
	unsigned left_looks; /* that found it standing still */
	int exit_status;
	int result_fd;
	struct loop_source *result_source;
	/* sessions */
	struct child *receiver; /* NULL = none runs */
	int socket_fd; /* to it */
	struct loop_source *socket_source;
	unsigned quiet_s, unanswered_s; /* seconds since its last message, and since the daemon
					 * asked it */
	bool asked;
	struct child *stuck; /* a receiver that was killed and has not ended yet */
	uint64_t stuck_mono_ns; /* when it was */
	/* FOUND or FAILED: what an attempt has to know is looked up, then whether an agent is there
	 * already */
	bool looking;
	bool ending; /* the process ended; the last events are on their way */
	uint64_t session;
	uint8_t secret[WIRE_SECRET_BYTES]; /* of the attach that its agent came with */
	uint64_t session_mono_ns; /* when it began */
	bool said_bye;
	struct log_limit words; /* what its agent says */
	struct {
		uint64_t begin_ns; /* of the process' clock, when the session began */
		uint64_t ns, mono_ns; /* its last reading, and when that was */
	} cpu;
	struct target_decoding decoding;
	struct target_gathering gathering;
};

struct targets {
	struct loop *loop;
	const struct config *config;
	struct look *look; /* borrowed; NULL = examine the process directly */
	bool no_offcpu; /* see targets_no_offcpu() */
	int rules_fd; /* facts_rules_file() of the rules with rules_id, or -1 */
	uint64_t rules_id;
	struct targets_ops ops;
	struct stream_ops stream_ops; /* made of them */
	void *userdata;
	struct target *first;
	struct tenant *tenants;
	struct child *children;
	unsigned count, remembered, injectors; /* count: without those remembered */
	struct overrides overrides;
	struct secrets secrets;
	struct budget budget;
	struct crashes crashes;
	struct loop_timer *rate_timer; /* FOUND ones that wait for targets.attach_rate */
	uint64_t review_mono_ns; /* when it comes; 0 = it does not */
	struct loop_timer *review_timer; /* EXCLUDED ones that may be taken in later */
	uint64_t begin_boot_s;
	struct loop_timer *left_timer;
	struct { /* who reads seccomp filters, see await_filters.c */
		char path[108];
		bool awaited; /* nobody is attached to meanwhile */
		bool missing; /* it was waited for in vain */
		uint64_t until_mono_ns;
		struct loop_timer *timer; /* NULL = it is there, or nobody asked for it */
	} filters;
	unsigned bound; /* TARGETS_MAX */
	uint64_t refused; /* because of it */
	uint64_t turns; /* attempts so far */
	struct loop_timer *second_timer;
	uint64_t stuck_total; /* abandoned receivers */
	uint64_t decoded_mono_ns; /* decoding_on_second(), the last time */
	unsigned streams; /* as it saw then */
	uint32_t gather_ms; /* of gathering.c */
	bool stopping;
};

/* A line about @t, unless its tenant has brought about too many. */
#define TARGET_LOG(level, t, ...)                                                      \
	do {                                                                           \
		if (log_allowed(&(t)->priv->tenant->log, (t)->priv->tenant->log_name)) \
			log_line(LOG_LEVEL_##level, __VA_ARGS__);                      \
	} while (0)

/* state.c: the only place where t->state changes. @why may be NULL. */
void target_set_state(struct target *t, enum target_state next, const struct fault *why);
bool target_step_allowed(enum target_state from, enum target_state to);
/* How long to wait before attempt number @attempts + 1; 0 = never again. */
uint64_t target_backoff_ns(unsigned attempts, const struct fault *why);

/* admit.c */
/* May @t be attached to? false: it is EXCLUDED or DETACHED now, or on its way there. */
bool target_admit(struct target *t);
/* To @to, which is EXCLUDED or DETACHED; an agent that is in it goes first. @why may be NULL. */
void target_leave(struct target *t, enum target_state to, const struct fault *why);
void target_keep_out(struct target *t, enum keep keep, const struct fault *why);
void target_take_in(struct target *t); /* EXCLUDED -> FOUND, and on */
void targets_review_soon(struct targets *table, uint64_t delay_ns);
void targets_on_review(void *userdata); /* of the table: limits and blocks that have passed */
void targets_on_rate(void *userdata);

/* ask.c: facts that only reading the process gives */
void facts_ask(struct target *t, enum facts_for what);
void facts_cancel(struct target *t);
/* As far as it is known for the rules in force. */
const struct facts *facts_of(const struct target *t);
void facts_explain(int result, struct fault *ret); /* why it is not known */

/* other_profilers.c: other profilers in it */
void other_profilers_known(struct target *t);
bool other_profilers_forbid(const struct target *t,
			    struct fault *why); /* targets.foreign_profilers */
void other_profilers_watch(struct target *t); /* it streams: look now and then */

/* exit.c: how it ended */
void exit_watch(struct target *t); /* an attempt or a reattach begins */
void exit_find_cwd(struct target *t);
void exit_look(struct target *t); /* it has ended: was it a crash? */
void exit_forget(struct target *t);
void exit_explain(const struct target *t, struct fault *ret);

/* owning.c: what its owner has a say in */
bool owning_forbids(const struct target *t, const struct facts *facts, struct fault *why);
bool owning_asks(const struct target *t); /* to be profiled, where targets.mode is opt-in */
/* @interval_ns, or the owner's where that is longer */
uint64_t owning_interval_ns(const struct target *t, uint64_t interval_ns);

/* left.c: what attempts left */
void left_begin(struct targets *table);
void left_look(struct target *t); /* just found: is it one that no attempt will tidy up? */
void left_report(struct targets *table, pid_t pid, uint64_t start_time); /* not all could go yet */
void targets_on_left(void *userdata);

/* limit.c: targets.max */
bool limit_reached(const struct target *t);
void limit_explain(const struct targets *table, struct fault *ret);
void limit_review(struct targets *table);

/* child.c: processes that are started and never waited for */
struct child;
/* posix_spawn's argv is not const, and not written to. */
#define WORD(s) ((char *)(uintptr_t)(s))
/* posix_spawn of @argv with @fds as 0, 3 and 4 (-1 = none). 0 or -errno. With @ret the caller owns
 * it until child_kill(); NULL = nobody does. */
int child_start(struct targets *table, char *const argv[], const int fds[3], struct child **ret);
void child_cleans(struct child *c, const struct target *t); /* left.c gets what it could not
							     * remove */
void child_kill(struct child *c); /* takes it; kills it unless it has ended */
void child_let_go(struct child *c); /* takes it; it ends by itself */
/* child_kill(), and *seen is the child until it has ended, then NULL; what it was is forgotten. */
void child_kill_and_see(struct child *c, struct child **seen);
void child_unsee(struct child **seen);
/* Takes it; *seen as above, in the place of another one. */
void child_let_go_and_see(struct child *c, struct child **seen);
void children_forget(struct targets *table); /* processes that still run continue alone */

/* await_filters.c: why no attempt begins yet */
void await_filters_explain(const struct targets *table, struct fault *ret);

/* inject.c */
/* Reattach if an agent is there, else inject; FAILED with a later try when neither can be now. */
void target_begin(struct target *t);
/* All that can be known about it is; @result < 0: why it is not. */
void target_begin_knowing(struct target *t, int result);
void target_no_agent(struct target *t); /* the look found none */
void target_busy(struct target *t, const struct fault *why); /* another daemon has it */
void target_fail(struct target *t, const struct fault *why); /* to FAILED, and again later */
void target_inject(struct target *t); /* FOUND or FAILED -> INJECTING, when it is its turn */
void target_inject_abort(struct target *t);
void target_clean_up(struct target *t); /* an injector takes away what one left */
void target_inject_let_go(struct target *t);

/* turns.c: which of those that are queued may begin now; NULL = none. */
struct target *turns_next(const struct targets *table);
bool turns_is_former(const struct target *t); /* a daemon before this one had attached to it */
void turns_begin(struct target *t); /* it has an injector ... */
void turns_end(struct target *t); /* ... and no more */
void targets_inject_next(struct targets *table);

/* target.c */
void target_forget(struct target *t); /* frees it; an injector of its is killed */

/* room.c: a place in the table for one more of @newcomer. false = not now. */
bool room_make(struct targets *table, const struct tenant *newcomer);
void room_review(struct targets *table); /* those that left for want of room come back */

/* settings.c: it streams now, after an attempt during which the settings changed */
void settings_follow(struct target *t);
void settings_knowing(struct target *t, int result); /* they have changed, and it was looked at */

/* possible.c */
void possible_begin(struct target *t); /* a session is about to begin */
void possible_limits(void *userdata, struct stream_limits *ret); /* of the target */
uint64_t possible_cpu_ns(struct target *t); /* of its life, as of now or when it last was there */

/* recent.c */
void recent_add(struct target_recent *r, uint64_t mono_ns, uint64_t cpu_ns);
/* CPUs used since the latest entry that is a minute old, else since the oldest; -1 = too early. */
double recent_cpus(const struct target_recent *r, uint64_t mono_ns, uint64_t cpu_ns);

/* session.c */
int session_frame(struct target *t, uint8_t *buf, uint64_t interval_ns, bool no_budget);
void session_open(struct target *t); /* its receiver has the pipes */
void session_close(struct target *t); /* keeps its accounts */
/* The process ended. true: its last events are waited for, then target_end() is called. */
bool session_end(struct target *t);
void session_stuck(struct target *t); /* its receiver does not answer */

/* session_calls.c: the functions for a stream, with the target as userdata: those of @ops and our
 * own */
void session_stream_ops(const struct targets_ops *ops, struct stream_ops *ret);
void session_report_ledger(struct target *t); /* its accounts have changed */
void session_say_reset(struct target *t);
void session_words_end(struct target *t); /* how many lines of the log were held back */

/* reattach.c */
/* Is there an agent already? 1 = it is being looked for: STREAMING, target_no_agent() or
 * target_busy() follow; 0 = there is none. */
int session_look(struct target *t);
/* FOUND or FAILED -> leave_to, at once or when an agent that is there was sent away. */
void session_leave_idle(struct target *t);

/* target.c */
void target_end(struct target *t); /* -> GONE */

/*
 * Shared by the files of this room:
 *
 *   target.c          the table of targets: adding, end, iteration; room.c: its slots
 *   state.c           the states and their allowed steps
 *   admit.c           decides whether a JVM may be attached to, by rules.c, overrides.c, crash.c,
 *                     other_profilers.c, limit.c and owning.c
 *   ask.c             gets the facts for that decision from kindling-look
 *   inject.c          one attempt to attach; turns.c and budget.c: which is next, and when
 *   child.c           child processes
 *   reattach.c        an agent that is there already; secrets.c: how it is recognized
 *   session.c         the session with the agent; session_calls.c: what its stream reports
 *   receiver.c        the process that reads the pipe; gathering.c: how often it reads
 *   decoding.c        the CPU time that decoding may cost; decode_budget.c: its arithmetic
 *   possible.c        the most that a process can have done
 *   settings.c        changed settings
 *   exit.c            how a JVM ended
 *   left.c            files that attempts left behind
 *   recent.c          what the agent costs now
 *   tenants.c         whom a JVM belongs to
 *   labelling.c       labels
 *   match.c           words that name targets
 *   await_filters.c   the process that reads seccomp filters
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
#define TENANT_INJECTORS  (INJECTORS_MAX / 2) /* of one tenant, because attempts may take long */
#define HELLO_DEADLINE_NS (5 * 1000000000ull)
#define LOOK_DEADLINE_NS  (5 * 1000000000ull)
#define DRAIN_DEADLINE_NS (5 * 1000000000ull)
#define ENDING_NS	  (1000 * 1000000ull) /* wait for the last events of an ended process */
#define STEADY_NS	  (60 * 1000000000ull) /* a session of this length resets the back-off */
/* From the pipe's end to the fault: a JVM that ends closes the pipe before its pidfd reports it. */
#define CLOSED_GRACE_NS (1000 * 1000000ull)
#define GONE_KEEP_NS	(120 * 1000000000ull) /* a GONE target keeps its data for this time, */
#define GONE_KEEP_MAX	32 /* and at most this many targets do; */
#define REMEMBER_NS	(3600 * 1000000000ull) /* its row in `status --all` stays for this time */
#define REMEMBER_MAX	64

/* Why a target is EXCLUDED or DETACHED, in the order in which admit.c asks. */
enum keep {
	KEEP_NOT,
	KEEP_OWNER,
	KEEP_RULE,
	KEEP_WISH,
	KEEP_CRASH,
	KEEP_PROFILER,
	KEEP_MAX,
	KEEP_ROOM, /* it gave up its slot of the table, see room.c */
};

/* What facts are needed for; bits. If several are set the lowest wins. */
enum facts_for { FACTS_FOR_ATTEMPT = 1, FACTS_FOR_SETTINGS = 2, FACTS_FOR_WATCH = 4 };

struct target_priv {
	struct targets *table;
	struct target *next;
	struct tenant *tenant;
	int pidfd;
	struct loop_source *pidfd_source;
	struct loop_timer *profilers_timer; /* STREAMING: looks again for other profilers */
	struct loop_timer *timer; /* of the current state: back-off, deadline, or end of GONE */
	/* INJECTING */
	struct child *injector; /* NULL = none runs */
	struct child *late; /* one that was killed or cleans up, and has not ended yet */
	uint64_t late_mono_ns; /* from then on it counts as stuck */
	bool remembered; /* GONE long ago: no userdata, no descriptors */
	bool queued; /* waits for its turn to be attached to */
	bool leave; /* detach when the attempt has ended */
	bool counted; /* the attempt counts for targets.attach_rate */
	bool taken_over; /* the session is that of an agent that was there before */
	bool resend_start; /* the settings changed during the attempt: send another START */
	/* the state after INJECTING (with leave) or DRAINING, and why */
	enum target_state leave_to;
	struct fault leave_why;
	enum keep kept; /* EXCLUDED: why */
	/* CPU time in clock ticks at the last review of targets.max, and what was used between that
	 * and the review before */
	uint64_t cpu_ticks, used_ticks;
	uint64_t attach_mono_ns; /* of the last attempt or reattach; 0 = none */
	struct facts facts; /* from the last answered look */
	unsigned facts_for; /* enum facts_for: what follows the answer */
	struct look_ticket *facts_question, *cwd_question, *crash_question; /* NULL = none */
	int cwd_fd; /* O_PATH, opened for the attempt: a crash leaves its file in this directory */
	bool crash_seen, exit_known;
	bool may_have_left; /* left.c must look */
	unsigned left_looks; /* times that left_report() was called, for the back-off */
	int exit_status;
	int result_fd;
	struct loop_source *result_source;
	/* sessions */
	struct child *receiver; /* NULL = none runs */
	int socket_fd; /* connected to the receiver */
	struct loop_source *socket_source;
	unsigned quiet_s, unanswered_s; /* seconds since its last message, and since the daemon's
					   unanswered question */
	bool asked;
	struct child *stuck; /* a receiver that was killed and has not ended yet */
	uint64_t stuck_mono_ns; /* when it was killed */
	/* FOUND or FAILED: the facts for an attempt, or an agent that is there already, are being
	 * looked for */
	bool looking;
	bool ending; /* the process has ended; its last events are on their way */
	uint64_t session;
	uint8_t secret[WIRE_SECRET_BYTES]; /* of the attach that the agent came with */
	uint64_t session_mono_ns; /* when it began */
	bool got_bye;
	struct log_limit words; /* for the agent's texts */
	struct {
		uint64_t begin_ns; /* of the process' clock, when the session began */
		uint64_t ns, mono_ns; /* as last read, and when */
	} cpu;
	struct target_decoding decoding;
	struct target_gathering gathering;
};

struct targets {
	struct loop *loop;
	const struct config *config;
	struct look *look; /* borrowed; NULL = this room looks at processes itself */
	bool no_offcpu; /* see targets_no_offcpu() */
	bool own_signal; /* see targets_own_signal() */
	int rules_fd; /* facts_rules_file() of the rules with rules_id, or -1 */
	uint64_t rules_id;
	struct targets_ops ops;
	struct stream_ops stream_ops; /* made of the table's functions */
	void *userdata;
	struct target *first;
	struct tenant *tenants;
	struct child *children;
	unsigned count, remembered, injectors; /* count: without targets that are only remembered */
	struct overrides overrides;
	struct secrets secrets;
	struct budget budget;
	struct crashes crashes;
	struct loop_timer *rate_timer; /* for FOUND targets that wait for targets.attach_rate */
	uint64_t review_mono_ns; /* CLOCK_MONOTONIC of the next review; 0 = there is none */
	struct loop_timer *review_timer; /* for EXCLUDED targets that may be taken in later */
	uint64_t begin_boot_s;
	struct loop_timer *left_timer;
	struct { /* the process that reads seccomp filters, see await_filters.c */
		char path[108];
		bool awaited; /* no attach begins before it is there */
		bool missing; /* it has not come in time */
		uint64_t until_mono_ns;
		struct loop_timer *timer; /* NULL = the process is there, or is not needed */
	} filters;
	unsigned bound; /* TARGETS_MAX */
	uint64_t refused; /* targets that were refused because of it */
	uint64_t turns; /* attempts so far */
	struct loop_timer *second_timer;
	uint64_t stuck_total; /* receivers given up since the start */
	uint64_t decoded_mono_ns; /* time of the last decoding_on_second() */
	unsigned streams; /* streams at that time */
	uint32_t gather_ms; /* see gathering.c */
	bool stopping;
};

/* Logs a line about @t, unless there were too many about its tenant's targets. */
#define TARGET_LOG(level, t, ...)                                                      \
	do {                                                                           \
		if (log_allowed(&(t)->priv->tenant->log, (t)->priv->tenant->log_name)) \
			log_line(LOG_LEVEL_##level, __VA_ARGS__);                      \
	} while (0)

/* state.c */
/* The only function that changes t->state. @why may be NULL. */
void target_set_state(struct target *t, enum target_state next, const struct fault *why);
bool target_step_allowed(enum target_state from, enum target_state to);
/* How long to wait before attempt number @attempts + 1, ns; 0 = there is no other attempt. */
uint64_t target_backoff_ns(unsigned attempts, const struct fault *why);

/* admit.c */
/* May @t be attached to? false: it is EXCLUDED or DETACHED, or will be. */
bool target_admit(struct target *t);
/* Goes to @to, EXCLUDED or DETACHED; an agent that is in the JVM leaves first. @why may be NULL. */
void target_leave(struct target *t, enum target_state to, const struct fault *why);
void target_keep_out(struct target *t, enum keep keep, const struct fault *why);
void target_take_in(struct target *t); /* EXCLUDED -> FOUND, and on */
void targets_review_soon(struct targets *table, uint64_t delay_ns);
/* Timers of the table; @userdata: the struct targets. */
void targets_on_review(void *userdata); /* takes in JVMs that limits and blocks allow again */
void targets_on_rate(void *userdata); /* targets.attach_rate allows another attempt */

/* ask.c */
/* Examines the process anew. Then target_begin_on_facts(), settings_on_facts() or
 * other_profilers_on_facts() is called, by @what; perhaps before this returns. */
void facts_ask(struct target *t, enum facts_for what);
void facts_cancel(struct target *t);
/* The facts of the last examination; all zero if the rules have changed since. */
const struct facts *facts_of(const struct target *t);
/* Why there are no facts; @result: -errno, see target_begin_on_facts(). */
void facts_explain(int result, struct fault *ret);

/* other_profilers.c */
void other_profilers_on_facts(struct target *t); /* after a new look: detaches if it must yield */
bool other_profilers_forbid(const struct target *t,
			    struct fault *why); /* targets.foreign_profilers */
void other_profilers_watch(struct target *t); /* while it streams: looks from time to time */

/* exit.c: how it ended */
void exit_watch(struct target *t); /* before an attempt or a reattach */
void exit_find_cwd(struct target *t); /* opens the working directory, where hs_err files appear */
void exit_look(struct target *t); /* it has ended: was it a crash? */
void exit_forget(struct target *t); /* closes the working directory */
void exit_explain(const struct target *t, struct fault *ret); /* code 0 = nothing to explain */

/* owning.c: what the JVM's owner decides */
bool owning_forbids(const struct target *t, const struct facts *facts, struct fault *why);
bool owning_asks(
	const struct target *t); /* does the owner ask to be profiled? For targets.mode: opt-in */
/* @interval_ns, or the owner's interval if that is longer */
uint64_t owning_interval_ns(const struct target *t, uint64_t interval_ns);

/* left.c: files that attempts left behind */
void left_begin(struct targets *table);
void left_look(struct target *t); /* a new target: did an earlier attempt leave files that no other
				     will remove? */
/* An injector could not remove everything yet: another one will run later. */
void left_report(struct targets *table, pid_t pid, uint64_t start_time);
void targets_on_left(void *userdata); /* timer; @userdata: the struct targets */

/* limit.c: targets.max */
bool limit_reached(const struct target *t);
void limit_explain(const struct targets *table, struct fault *ret);
void limit_review(struct targets *table);

/* child.c: child processes, whose end nobody waits for */
struct child;
/* posix_spawn() does not write to its argv, but declares it without const */
#define WORD(s) ((char *)(uintptr_t)(s))
/* Starts @argv with @fds as descriptors 0, 3 and 4 (-1 = none). 0 or -errno. With @ret the
 * caller owns the child until child_kill(); NULL = nobody owns it. */
int child_start(struct targets *table, char *const argv[], const int fds[3], struct child **ret);
/* The child cleans up in @t: left_report() is called if it could not remove everything. */
void child_cleans(struct child *c, const struct target *t);
/* The tenant pays for the CPU time of the attempt, once the child has ended. */
void child_charge(struct child *c, struct tenant *tenant);
void child_kill(struct child *c); /* takes it, and kills it unless it has ended */
void child_let_go(struct child *c); /* takes it; it ends by itself */
/* child_kill(); *seen points to the child until it has ended, and is then set to NULL. A child that
 * *seen pointed to before is no longer followed. */
void child_kill_and_see(struct child *c, struct child **seen);
void child_unsee(struct child **seen); /* sets *seen to NULL; its child is no longer followed */
/* child_let_go(), with *seen as in child_kill_and_see(). */
void child_let_go_and_see(struct child *c, struct child **seen);
void children_forget(struct targets *table); /* children that still run go on alone */

/* await_filters.c: explains why no attempt begins yet */
void await_filters_explain(const struct targets *table, struct fault *ret);

/* inject.c */
/* Takes over an agent that is there already, or injects one; FAILED, with another attempt later, if
 * neither is possible now. */
void target_begin(struct target *t);
/* The second half of target_begin(), when the process was examined. @result: 0, or the -errno for
 * which there are no facts. */
void target_begin_on_facts(struct target *t, int result);
void target_no_agent(struct target *t); /* reattach.c has found no agent: injects one */
/* No attempt is possible now, for example because another daemon has the agent: FAILED, with
 * another attempt later. */
void target_busy(struct target *t, const struct fault *why);
/* Goes to FAILED; another attempt follows unless @why is permanent. */
void target_fail(struct target *t, const struct fault *why);
void target_inject(struct target *t); /* FOUND or FAILED -> INJECTING, when it is its turn */
void target_inject_abort(struct target *t); /* kills the injector, if one runs */
void target_clean_up(struct target *t); /* starts an injector that removes what another one left */
/* The process has ended: leaves the injector running, which cleans up and ends by itself. */
void target_inject_let_go(struct target *t);

/* turns.c */
struct target *turns_next(const struct targets *table); /* whose attempt may begin; NULL = none */
bool turns_is_former(const struct target *t); /* an earlier daemon had attached to it */
void turns_begin(struct target *t); /* its injector has started */
void turns_end(struct target *t); /* its injector has ended or was given up */
/* inject.c: begins the attempts that may begin now. */
void targets_inject_next(struct targets *table);

/* target.c */
void target_forget(struct target *t); /* frees it, and kills its injector */

/* room.c: makes room in the table for another target of @newcomer's. false = not now. */
bool room_make(struct targets *table, const struct tenant *newcomer);
void room_review(struct targets *table); /* targets that left for want of room may come back */

/* settings.c */
/* The attempt has succeeded: sends another START if the settings changed meanwhile. */
void settings_follow(struct target *t);
/* The settings have changed, and the process was examined; @result as in target_begin_on_facts().
 */
void settings_on_facts(struct target *t, int result);

/* possible.c */
void possible_begin(struct target *t); /* reads the clocks before a session begins */
/* The most that the process can have done by now; @userdata: the target. */
void possible_limits(void *userdata, struct stream_limits *ret);
/* CPU time of the process since its start, ns; of an ended process as last read. */
uint64_t possible_cpu_ns(struct target *t);

/* recent.c */
void recent_add(struct target_recent *r, uint64_t mono_ns, uint64_t cpu_ns);
/* How many CPUs were used since the newest entry that is a minute old, else since the oldest; -1
 * = too early to tell. */
double recent_cpus(const struct target_recent *r, uint64_t mono_ns, uint64_t cpu_ns);

/* session.c */
/* Writes a START frame into @buf, WIRE_FRAME_MAX bytes, and remembers what it asks for. Returns its
 * length. */
int session_frame(struct target *t, uint8_t *buf, uint64_t interval_ns, bool no_budget);
void session_open(struct target *t); /* begins a session, when the receiver has the pipes */
void session_close(struct target *t); /* keeps the session's accounts */
/* The process has ended. true: its last events are awaited, then target_end() is called. */
bool session_end(struct target *t);
void session_stuck(struct target *t); /* its receiver does not answer */

/* session_calls.c */
/* Makes the functions that a stream calls, with the target as userdata: those of @ops->stream, and
 * this room's own. */
void session_stream_ops(const struct targets_ops *ops, struct stream_ops *ret);
void session_report_ledger(struct target *t); /* its accounts have changed */
void session_report_reset(struct target *t); /* calls on_reset(): the dictionary begins anew */
void session_log_end(
	struct target *t); /* logs how many lines with the agent's texts were left out */

/* reattach.c */
/* Looks for an agent that is there already. 1 = the search runs, and STREAMING, target_no_agent()
 * or target_busy() follows; 0 = there is none. */
int session_look(struct target *t);
/* FOUND or FAILED -> leave_to: at once, or after an agent that is there was detached. */
void session_leave_idle(struct target *t);

/* target.c */
void target_end(struct target *t); /* -> GONE */

/* /v1/status: every JVM, its state, the reason, and its counters: taken = delivered +
 * sum(dropped). */
#include "daemon/serve/status_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/value.h"
#include "injector/result.h"

#define ENDED_S		600 /* for this time an ended JVM is shown without all= */
#define GAP_S		600 /* for this time a gap is among the notes */
#define HALTED_MIN_NS	(2 * NS_PER_S)
#define DENIED_PIDS_MAX 32

/* Before Linux 6.13 agents do not know how long their times off the CPU were. */
static bool status_weights_are_known(struct host *h, enum wire_event event)
{
	const struct offcpu_engine *e = host_offcpu_engine(h);

	return event != WIRE_EVENT_OFFCPU || !e || offcpu_engine_way(e) != OFFCPU_BY_OWN_SIGNAL;
}

/* The weights' unit: bytes for allocations, else ns. */
static void status_put_weight(struct text_out *to, const char *what, enum wire_event event,
			      const uint64_t *weight)
{
	char key[32];

	snprintf(key, sizeof(key), "%s_%s", what, event == WIRE_EVENT_ALLOC ? "bytes" : "ns");
	if (weight)
		json_add_u64(to, key, *weight);
	else
		json_add_null(to, key);
}

static void status_put_accounts(struct text_out *to, struct host *h,
				const struct stream_accounts *accounts, enum wire_event event)
{
	bool known = status_weights_are_known(h, event);

	json_add_u64(to, "taken", accounts->taken);
	json_add_u64(to, "delivered", accounts->delivered);
	json_begin_object(to, "dropped");
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		json_add_u64(to, wire_drop_names[i], accounts->dropped[i].n);
	json_add_u64(to, "lost_on_wire", accounts->lost);
	json_end_object(to);
	status_put_weight(to, "taken", event, known ? &accounts->taken_weight : NULL);
	status_put_weight(to, "delivered", event, known ? &accounts->delivered_weight : NULL);
}

/* How good the view of the process is: the mean weight of its samples since the attach, and
 * their share of the CPU time that it has used since. */
static void status_put_view(struct text_out *to, const struct stream_accounts *cpu,
			    uint64_t process_cpu_ns)
{
	if (cpu->delivered)
		json_add_double(to, "mean_interval_ns",
				(double)cpu->delivered_weight / (double)cpu->delivered);
	json_add_u64(to, "process_cpu_ns", process_cpu_ns);
	if (cpu->taken && process_cpu_ns)
		json_add_double(to, "coverage",
				(double)cpu->delivered_weight / (double)process_cpu_ns);
}

static void status_put_samples(struct text_out *to, struct host *h, const struct stream_counts *c,
			       uint64_t process_cpu_ns)
{
	json_begin_object(to, "samples");
	status_put_accounts(to, h, &c->of[WIRE_EVENT_CPU], WIRE_EVENT_CPU);
	status_put_view(to, &c->of[WIRE_EVENT_CPU], process_cpu_ns);
	json_add_u64(to, "broken", c->ledger.counter[WIRE_COUNTER_BROKEN]);
	json_add_u64(to, "fallback", c->ledger.counter[WIRE_COUNTER_FALLBACK]);
	json_add_u64(to, "exited_between_ticks", c->ledger.counter[WIRE_COUNTER_EXITED]);
	json_add_u64(to, "pipe_bytes", c->bytes);
	json_end_object(to);
}

static void status_put_lock_counts(struct text_out *to, const uint64_t *counter)
{
	json_add_u64(to, "short_waits", counter[WIRE_COUNTER_SHORT_WAITS]);
	json_add_u64(to, "short_waits_ns", counter[WIRE_COUNTER_SHORT_WAITS_NS]);
	json_add_u64(to, "idle_waits", counter[WIRE_COUNTER_IDLE_WAITS]);
	json_add_u64(to, "idle_waits_ns", counter[WIRE_COUNTER_IDLE_WAITS_NS]);
	json_add_u64(to, "unpaired_waits", counter[WIRE_COUNTER_UNPAIRED_WAITS]);
}

/* Events other than CPU that are collected or were. */
static void status_put_other_events(struct text_out *to, struct host *h, const struct target *t,
				    const struct stream_counts *c, unsigned collected)
{
	for (int e = WIRE_EVENT_LOCK; e < WIRE_EVENT_COUNT; e++) {
		if (!(collected & 1u << e) && !c->of[e].taken)
			continue;
		json_begin_object(to, wire_event_names[e]);
		status_put_accounts(to, h, &c->of[e], (enum wire_event)e);
		if (e == WIRE_EVENT_LOCK)
			status_put_lock_counts(to, c->ledger.counter);
		if (e == WIRE_EVENT_OFFCPU)
			status_put_offcpu_of(to, h, t, c->ledger.counter);
		json_end_object(to);
	}
}

static void status_put_events(struct text_out *to, unsigned collected)
{
	json_begin_list(to, "events");
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (collected & 1u << e)
			json_add_string(to, NULL, wire_event_names[e]);
	json_end_list(to);
}

void status_put_note(struct text_out *to, const char *step, const char *what)
{
	json_begin_object(to, NULL);
	json_add_string(to, "step", step);
	json_add_string(to, "what", what);
	json_end_object(to);
}

static void status_put_gap_note(struct text_out *to, const struct host_gap *g)
{
	char what[120];

	if (!g || clock_real_ns() - g->until_real_ns > GAP_S * NS_PER_S)
		return;
	snprintf(what, sizeof(what),
		 "not sampled for %.1f s while kindlingd was restarted: %.3f s of CPU time",
		 (double)g->ns / 1e9, (double)g->cpu_ns / 1e9);
	status_put_note(to, "restart", what);
}

static void status_put_halt_note(struct text_out *to, const struct target *t)
{
	uint64_t ns = host_halted_ns(t);
	char what[160];

	if (ns < HALTED_MIN_NS)
		return;
	snprintf(
		what, sizeof(what),
		"all its threads have been halted for %.0f s, by SIGSTOP, a debugger or a frozen control group (docker pause)",
		(double)ns / 1e9);
	status_put_note(to, "paused", what);
}

static void status_put_threads_note(struct text_out *to, const struct target *t)
{
	uint64_t n = t->stream ? stream_ledger(t->stream)->counter[WIRE_COUNTER_NO_TIMER] : 0;
	char what[160];

	if (!n)
		return;
	snprintf(what, sizeof(what), "%llu threads have no CPU samples: %s", (unsigned long long)n,
		 strcmp(target_engine(t), "host") == 0
			 ? "the agent has no room for more"
			 : "they got no timer, and their CPU time is `[no timer]` in reports");
	status_put_note(to, "threads", what);
}

/* What the user should know, the owner's limits included: [{"step":"monitors","what":"..."}] */
static void status_put_notes(struct text_out *to, struct host *h, const struct target *t)
{
	char text[HELD_BACK_SIZE];

	json_begin_list(to, "notes");
	for (int i = 0; i < NOTES_MAX; i++)
		if (t->notes[i].step[0])
			status_put_note(to, t->notes[i].step, t->notes[i].what);
	if (target_owners_note(t, text, sizeof(text)))
		status_put_note(to, "its owner", text);
	if (target_held_back(t, text, sizeof(text)))
		status_put_note(to, "held back", text);
	status_put_halt_note(to, t);
	status_put_threads_note(to, t);
	status_put_gap_note(to, host_gap_of(t));
	status_put_offcpu_notes(to, h, t);
	json_end_list(to);
}

static double status_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void status_put_agent(struct text_out *to, const struct target *t,
			     const struct stream_counts *c)
{
	const struct wire_accounts *accounts = &c->ledger.accounts[WIRE_EVENT_CPU];
	const uint64_t *l = c->ledger.counter;
	uint64_t cpu_ns = l[WIRE_COUNTER_AGENT_CPU_NS];

	json_begin_object(to, "agent");
	json_add_u64(to, "cpu_ns", cpu_ns);
	json_add_u64(to, "process_cpu_ns", l[WIRE_COUNTER_PROCESS_CPU_NS]);
	json_add_u64(to, "session_ns", l[WIRE_COUNTER_SESSION_NS]);
	json_add_u64(to, "taken", accounts->taken);
	json_add_u64(to, "taken_ns", accounts->taken_weight);
	json_add_u64(to, "bytes", l[WIRE_COUNTER_AGENT_BYTES]);
	/* the share of the JVM's own CPU time, as in max_cpu; it may be large in a nearly idle
	 * JVM */
	json_add_double(to, "cpu_share", status_share(cpu_ns, l[WIRE_COUNTER_PROCESS_CPU_NS]));
	/* as a share of one CPU, since the agent's HELLO */
	json_add_double(to, "cpus", status_share(cpu_ns, l[WIRE_COUNTER_SESSION_NS]));
	/* the same for the last minute, which shows what the agent costs now */
	json_add_double(to, "cpus_last_minute", target_recent_cpus(t));
	json_add_u64(to, "handler_ns", l[WIRE_COUNTER_HANDLER_NS]);
	json_add_u64(to, "pipe_bytes", l[WIRE_COUNTER_PIPE_BYTES]);
	json_add_u64(to, "threads", l[WIRE_COUNTER_THREADS]);
	json_add_u64(to, "threads_without_timer", l[WIRE_COUNTER_NO_TIMER]);
	json_end_object(to);
}

/* Names of other profilers. */
static void status_put_profilers(struct text_out *to, const struct target *t)
{
	json_begin_list(to, "profilers");
	for (unsigned i = 0; profilers_name(i); i++)
		if (t->profilers & 1u << i)
			json_add_string(to, NULL, profilers_name(i));
	json_end_list(to);
}

static void status_put_labels(struct text_out *to, const char *key_of_all, const char *text)
{
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	json_begin_object(to, key_of_all);
	while (text && labels_next_text(&text, key, value))
		json_add_string(to, key, value);
	json_end_object(to);
}

static double ago_s(uint64_t mono_ns)
{
	return (double)(clock_mono_ns() - mono_ns) / 1e9;
}

/* null if no earlier daemon sampled the JVM, or only long ago */
static void status_put_gap(struct text_out *to, const struct host_gap *g)
{
	if (!g) {
		json_add_null(to, "gap");
		return;
	}
	json_begin_object(to, "gap");
	json_add_u64(to, "ns", g->ns);
	json_add_u64(to, "cpu_ns", g->cpu_ns);
	json_add_u64(to, "until_ns", g->until_real_ns);
	json_end_object(to);
}

/* Which JVM it is. */
static void status_put_identity(struct text_out *to, const struct target *t)
{
	json_add_i64(to, "pid", t->jvm.pid);
	json_add_i64(to, "ns_pid", t->jvm.ns_pid);
	json_add_string_or_null(to, "container_id", t->jvm.container_id);
	json_add_string_or_null(to, "container", t->jvm.container);
	json_add_string_or_null(to, "pod", t->jvm.pod);
	json_add_string_or_null(to, "image", t->jvm.image);
	json_add_string_or_null(to, "image_digest", t->jvm.image_digest);
	json_add_string_or_null(to, "jdk", t->jdk[0] ? t->jdk : t->jvm.jdk);
	json_add_string_or_null(to, "name", t->jvm.name);
	status_put_labels(to, "labels", t->labels);
	status_put_labels(to, "annotations", t->jvm.notes);
}

/* How it is profiled, or why it is not. */
static void status_put_state(struct text_out *to, struct host *h, const struct target *t,
			     unsigned collected)
{
	json_add_string(to, "state", target_state_names[t->state]);
	json_add_string_or_null(to, "reason", t->fault.code ? t->fault.what : NULL);
	json_add_string_or_null(to, "reason_step",
				t->fault.code ? fault_step_name(t->fault.step) : NULL);
	status_put_events(to, collected);
	json_add_string_or_null(to, "engine", target_engine(t));
	json_add_string_or_null(to, "engine_note", target_engine_note(t));
	json_add_string_or_null(to, "walker", t->walker);
	json_add_string_or_null(to, "note", t->note);
	status_put_notes(to, h, t);
	status_put_profilers(to, t);
	json_add_u64(to, "interval_ns", target_interval_ns(t));
	/* the interval in use may be longer: because of the kernel's tick, the host engine's
	 * shortest interval, or something that a note explains */
	json_add_u64(to, "interval_asked_ns", t->interval_ns);
	json_add_u64(to, "attempts", t->attempts);
	json_add_string_or_null(to, "placement", inject_strategy_name(t->placement));
	if (t->retry_mono_ns > clock_mono_ns())
		json_add_double(to, "retry_in_s",
				(double)(t->retry_mono_ns - clock_mono_ns()) / 1e9);
	else
		json_add_null(to, "retry_in_s");
	if (t->state == TARGET_GONE)
		json_add_double(to, "ended_s", ago_s(t->gone_mono_ns));
	else
		json_add_null(to, "ended_s");
}

static void status_put_target(struct text_out *to, struct host *h, const struct target *t)
{
	unsigned collected = target_events(t);
	struct stream_counts c;

	target_counts(t, &c);
	json_begin_object(to, NULL);
	status_put_identity(to, t);
	status_put_state(to, h, t, collected);
	json_add_u64(to, "uid", t->jvm.uid);
	status_put_samples(to, h, &c, host_cpu_ns(t));
	status_put_other_events(to, h, t, &c, collected);
	status_put_gap(to, host_gap_of(t));
	status_put_agent(to, t, &c);
	json_add_u64(to, "decode_cpu_ns", target_decode_ns(t));
	if (t->first_sample_mono_ns)
		json_add_double(to, "first_sample_ms",
				(double)(t->first_sample_mono_ns - t->seen_mono_ns) / 1e6);
	json_end_object(to);
}

static void status_put_kernel_stacks(struct text_out *to, const struct kernel_frames *k)
{
	struct kernel_frames_counts c;

	kernel_frames_counts(k, &c);
	json_begin_object(to, "kernel_stacks");
	json_add_u64(to, "taken", c.taken);
	json_add_u64(to, "matched", c.matched);
	json_add_u64(to, "unmatched", c.unmatched);
	json_add_u64(to, "lost", c.lost);
	json_add_string_or_null(to, "note", kernel_frames_note(k));
	json_end_object(to);
}

static void status_put_engine_counts(struct text_out *to, struct host *h,
				     const struct host_engine *e)
{
	struct host_engine_counts c;

	host_engine_counts(e, &c);
	json_add_u64(to, "interval_ns", host_engine_interval(e));
	json_add_u64(to, "tick_cost_ns", host_tick_price_ns(h));
	json_add_bool(to, "puts_off", host_engine_puts_off(e));
	json_add_u64(to, "targets", host_engine_targets(e));
	json_add_u64(to, "ticks", c.ticks);
	json_add_u64(to, "sent", c.sent);
	json_add_u64(to, "foreign", c.foreign);
	json_add_u64(to, "held", c.held);
	json_add_u64(to, "failed", c.failed);
	json_add_u64(to, "offcpu_dropped", c.off_dropped);
	if (host_kernel_frames(h))
		status_put_kernel_stacks(to, host_kernel_frames(h));
}

/* "state" is on, idle (no JVM to sample), refused or off; "why" has the reason if it is refused or
 * off, and "note" the disadvantages of CPU timers then. */
static void status_put_host_engine(struct text_out *to, struct host *h)
{
	const char *why, *state = "idle";
	const struct host_engine *e = host_sampler(h, &why);

	if (e && host_engine_targets(e))
		state = "on";
	else if (*why)
		state = host_config(h)->host_engine ? "refused" : "off";
	json_begin_object(to, "host_engine");
	json_add_string(to, "state", state);
	json_add_string_or_null(to, "why", why);
	if (*why)
		json_add_string_or_null(to, "note", TARGET_TIMERS_NOTE);
	if (e)
		status_put_engine_counts(to, h, e);
	json_end_object(to);
}

/* The kinds of JVMs that are not profiled because one of that kind crashed. */
static void status_put_blocked(struct text_out *to, const struct targets *targets)
{
	const struct cohort *c;

	json_begin_list(to, "blocked");
	for (unsigned i = 0; (c = targets_cohort(targets, i)); i++) {
		json_begin_object(to, NULL);
		json_add_string(to, "cohort", c->name);
		json_add_string(to, "reason", c->reason);
		json_add_u64(to, "until_ns", c->until_real_ns);
		json_add_u64(to, "crashes", c->crashes);
		json_end_object(to);
	}
	json_end_list(to);
}

/* ---- selection and order --------------------------------------------------------------------- */

struct view {
	struct selection selected; /* none selected = all */
	bool all, streaming;
};

static bool status_is_in(const struct view *v, const struct target *t)
{
	if ((v->selected.n && !is_selected(&v->selected, t)) ||
	    (v->streaming && t->state != TARGET_STREAMING))
		return false;
	return v->selected.n || v->all || t->state != TARGET_GONE ||
	       ago_s(t->gone_mono_ns) < ENDED_S;
}

static int status_latest_first(const void *a, const void *b)
{
	const struct target *x = *(const struct target *const *)a;
	const struct target *y = *(const struct target *const *)b;

	return x->gone_mono_ns < y->gone_mono_ns ? 1 : x->gone_mono_ns > y->gone_mono_ns ? -1 : 0;
}

static void status_put_ended(struct text_out *to, struct host *h, struct targets *targets,
			     const struct view *v)
{
	CLEANUP(freep) const struct target **ended = NULL;
	struct target *t = NULL;
	size_t n = 0, cap = 0;

	while ((t = targets_next_known(targets, t)))
		cap += t->state == TARGET_GONE;
	ended = calloc(cap + 1, sizeof(*ended));
	if (!ended) {
		to->failed = true;
		return;
	}
	while ((t = targets_next_known(targets, t)))
		if (t->state == TARGET_GONE && status_is_in(v, t))
			ended[n++] = t;
	qsort(ended, n, sizeof(*ended), status_latest_first);
	for (size_t i = 0; i < n; i++)
		status_put_target(to, h, ended[i]);
}

/* Profiled JVMs first, then other running ones, then ended ones, the latest first. */
static void status_put_targets(struct text_out *to, struct host *h, struct targets *targets,
			       const struct view *v)
{
	struct target *t = NULL;

	json_begin_list(to, "targets");
	while ((t = targets_next_known(targets, t)))
		if (t->state == TARGET_STREAMING && status_is_in(v, t))
			status_put_target(to, h, t);
	while ((t = targets_next_known(targets, t)))
		if (t->state != TARGET_STREAMING && t->state != TARGET_GONE && status_is_in(v, t))
			status_put_target(to, h, t);
	status_put_ended(to, h, targets, v);
	json_end_list(to);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void status_put_discovery(struct text_out *to, const struct discovery *d)
{
	pid_t pids[DENIED_PIDS_MAX];
	uint32_t n = discovery_denied(d, pids, DENIED_PIDS_MAX);
	const char *why = "";

	json_begin_object(to, "discovery");
	json_add_string(to, "source", discovery_source(d, &why));
	json_add_string_or_null(to, "why", why);
	json_begin_object(to, "denied");
	json_begin_list(to, "pids");
	for (uint32_t i = 0; i < n && i < DENIED_PIDS_MAX; i++)
		json_add_i64(to, NULL, pids[i]);
	json_end_list(to);
	json_add_u64(to, "processes", n);
	json_end_object(to);
	json_end_object(to);
}

/* state: idle (no JVM in a container was found yet), on, or failing with `why` */
static void status_put_names(struct text_out *to, const struct names *n)
{
	struct names_status s;

	names_status(n, &s);
	json_begin_object(to, "names");
	json_add_string_or_null(to, "cri", s.path);
	json_add_string(to, "state",
			s.error[0]				     ? "failing"
			: s.named + s.unknown + s.answered_later > 0 ? "on"
								     : "idle");
	json_add_string_or_null(to, "why", s.error);
	json_add_u64(to, "waiting", s.waiting);
	json_add_u64(to, "named", s.named);
	json_add_u64(to, "unknown", s.unknown);
	json_add_u64(to, "unanswered", s.unanswered);
	json_add_u64(to, "asking_again", s.asking_again);
	json_add_u64(to, "answered_later", s.answered_later);
	json_end_object(to);
}

static void status_put_attach(struct text_out *to, struct host *h)
{
	char filters[200];

	json_begin_object(to, "attach");
	json_add_bool(to, "tmpfs_over_tmp", host_config(h)->tmpfs_over_tmp);
	if (targets_filters_note(host_targets(h), filters, sizeof(filters)))
		json_add_string(to, "filters_note", filters);
	json_end_object(to);
}

static void status_put_store(struct text_out *to, struct store *store)
{
	struct store_counts c;
	char note[STORE_NOTE_MAX];

	store_counts(store, &c);
	store_note(&c, note);
	json_begin_object(to, "store");
	json_add_u64(to, "windows", c.windows);
	json_add_u64(to, "bytes", c.bytes);
	json_add_u64(to, "dropped_windows", c.dropped_windows);
	json_add_u64(to, "torn", c.torn);
	json_add_u64(to, "recovered_windows", c.recovered_windows);
	json_add_string_or_null(to, "note", note);
	json_end_object(to);
}

static void status_put(struct text_out *to, struct host *h, const struct view *view)
{
	json_begin_object(to, NULL);
	json_add_string(to, "version", KINDLING_VERSION);
	json_add_double(to, "uptime_s", ago_s(host_start_mono_ns(h)));
	if (host_discovery(h))
		status_put_discovery(to, host_discovery(h));
	if (host_names(h))
		status_put_names(to, host_names(h));
	status_put_attach(to, h);
	status_put_host_engine(to, h);
	status_put_offcpu(to, h);
	status_put_blocked(to, host_targets(h));
	if (host_store(h))
		status_put_store(to, host_store(h));
	sinks_json(to, "sinks", h);
	status_put_targets(to, h, host_targets(h), view);
	json_end_object(to);
}

enum MHD_Result serve_status(struct request *r)
{
	static struct view view;
	const char *state = argument(r, "state");
	struct text_out json = { 0 };

	if (state && strcmp(state, "streaming") != 0)
		return answer_error(r, 400, "the state can only be streaming, not \"%s\"", state);
	view.streaming = state != NULL;
	view.all = argument_is_set(r, "all");
	if (api_select_known(r, &view.selected) < 0)
		return MHD_YES;
	status_put(&json, r->serve->host, &view);
	return answer_json(r, 200, &json);
}

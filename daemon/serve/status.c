/* /v1/status: every JVM, its state, the reason, and its counters: taken = delivered +
 * sum(dropped). */
#include "daemon/serve/serve_priv.h"

#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "injector/result.h"

#define ENDED_S		600 /* for this time an ended JVM is shown without all= */
#define GAP_S		600 /* for this time a gap is among the notes */
#define DENIED_PIDS_MAX 32

static void add_u64(cJSON *o, const char *key, uint64_t v)
{
	cJSON_AddNumberToObject(o, key, (double)v);
}

static void add_text(cJSON *o, const char *key, const char *s)
{
	if (s && *s)
		cJSON_AddStringToObject(o, key, s);
	else
		cJSON_AddNullToObject(o, key);
}

/* The weights' unit: bytes for allocations, else ns. */
static void status_add_accounts(cJSON *o, const struct stream_accounts *accounts,
				enum wire_event event)
{
	bool bytes = event == WIRE_EVENT_ALLOC;
	cJSON *dropped = cJSON_CreateObject();

	add_u64(o, "taken", accounts->taken);
	add_u64(o, "delivered", accounts->delivered);
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		add_u64(dropped, wire_drop_names[i], accounts->dropped[i].n);
	add_u64(dropped, "lost_on_wire", accounts->lost);
	cJSON_AddItemToObject(o, "dropped", dropped);
	add_u64(o, bytes ? "taken_bytes" : "taken_ns", accounts->taken_weight);
	add_u64(o, bytes ? "delivered_bytes" : "delivered_ns", accounts->delivered_weight);
}

/* How good the view of the process is: the mean weight of its samples since the attach, and
 * their share of the CPU time that it has used since. */
static void add_view(cJSON *o, const struct stream_accounts *cpu, uint64_t process_cpu_ns)
{
	if (cpu->delivered)
		cJSON_AddNumberToObject(o, "mean_interval_ns",
					(double)cpu->delivered_weight / (double)cpu->delivered);
	add_u64(o, "process_cpu_ns", process_cpu_ns);
	if (cpu->taken && process_cpu_ns)
		cJSON_AddNumberToObject(o, "coverage",
					(double)cpu->delivered_weight / (double)process_cpu_ns);
}

static cJSON *samples_json(const struct stream_counts *c, uint64_t process_cpu_ns)
{
	cJSON *samples = cJSON_CreateObject();

	status_add_accounts(samples, &c->of[WIRE_EVENT_CPU], WIRE_EVENT_CPU);
	add_view(samples, &c->of[WIRE_EVENT_CPU], process_cpu_ns);
	add_u64(samples, "broken", c->ledger.counter[WIRE_COUNTER_BROKEN]);
	add_u64(samples, "fallback", c->ledger.counter[WIRE_COUNTER_FALLBACK]);
	add_u64(samples, "exited_between_ticks", c->ledger.counter[WIRE_COUNTER_EXITED]);
	add_u64(samples, "pipe_bytes", c->bytes);
	return samples;
}

/* Events other than CPU that are collected or were. */
static void add_other_events(cJSON *o, const struct stream_counts *c, unsigned collected)
{
	for (int e = WIRE_EVENT_LOCK; e < WIRE_EVENT_COUNT; e++) {
		cJSON *accounts;

		if (!(collected & 1u << e) && !c->of[e].taken)
			continue;
		accounts = cJSON_AddObjectToObject(o, wire_event_names[e]);
		status_add_accounts(accounts, &c->of[e], (enum wire_event)e);
		if (e != WIRE_EVENT_LOCK)
			continue;
		add_u64(accounts, "short_waits", c->ledger.counter[WIRE_COUNTER_SHORT_WAITS]);
		add_u64(accounts, "short_waits_ns", c->ledger.counter[WIRE_COUNTER_SHORT_WAITS_NS]);
		add_u64(accounts, "idle_waits", c->ledger.counter[WIRE_COUNTER_IDLE_WAITS]);
		add_u64(accounts, "idle_waits_ns", c->ledger.counter[WIRE_COUNTER_IDLE_WAITS_NS]);
		add_u64(accounts, "unpaired_waits", c->ledger.counter[WIRE_COUNTER_UNPAIRED_WAITS]);
	}
}

static cJSON *events_json(unsigned collected)
{
	cJSON *list = cJSON_CreateArray();

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (collected & 1u << e)
			cJSON_AddItemToArray(list, cJSON_CreateString(wire_event_names[e]));
	return list;
}

static void add_note(cJSON *list, const char *step, const char *what)
{
	cJSON *note = cJSON_CreateObject();

	cJSON_AddStringToObject(note, "step", step);
	cJSON_AddStringToObject(note, "what", what);
	cJSON_AddItemToArray(list, note);
}

static void note_gap(cJSON *list, const struct host_gap *g)
{
	char what[120];

	if (!g || clock_real_ns() - g->until_real_ns > GAP_S * NS_PER_S)
		return;
	snprintf(what, sizeof(what),
		 "not sampled for %.1f s while kindlingd was restarted: %.3f s of CPU time",
		 (double)g->ns / 1e9, (double)g->cpu_ns / 1e9);
	add_note(list, "restart", what);
}

/* What the user should know, the owner's limits included: [{"step":"monitors","what":"..."}] */
static cJSON *notes_json(const struct target *t)
{
	cJSON *list = cJSON_CreateArray();
	char text[HELD_BACK_SIZE];

	for (int i = 0; i < NOTES_MAX; i++)
		if (t->notes[i].step[0])
			add_note(list, t->notes[i].step, t->notes[i].what);
	if (target_owners_note(t, text, sizeof(text)))
		add_note(list, "its owner", text);
	if (target_held_back(t, text, sizeof(text)))
		add_note(list, "held back", text);
	note_gap(list, host_gap_of(t));
	return list;
}

static double status_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static cJSON *agent_json(const struct target *t, const struct stream_counts *c)
{
	const struct wire_accounts *accounts = &c->ledger.accounts[WIRE_EVENT_CPU];
	const uint64_t *l = c->ledger.counter;
	uint64_t cpu_ns = l[WIRE_COUNTER_AGENT_CPU_NS];
	cJSON *agent = cJSON_CreateObject();

	add_u64(agent, "cpu_ns", cpu_ns);
	add_u64(agent, "process_cpu_ns", l[WIRE_COUNTER_PROCESS_CPU_NS]);
	add_u64(agent, "session_ns", l[WIRE_COUNTER_SESSION_NS]);
	add_u64(agent, "taken", accounts->taken);
	add_u64(agent, "taken_ns", accounts->taken_weight);
	add_u64(agent, "bytes", l[WIRE_COUNTER_AGENT_BYTES]);
	/* the share of the JVM's own CPU time, as in max_cpu; it may be large in a nearly idle
	 * JVM */
	cJSON_AddNumberToObject(agent, "cpu_share",
				status_share(cpu_ns, l[WIRE_COUNTER_PROCESS_CPU_NS]));
	/* of one CPU, since the agent's HELLO */
	cJSON_AddNumberToObject(agent, "cpus", status_share(cpu_ns, l[WIRE_COUNTER_SESSION_NS]));
	/* and in the last minute: what it costs now */
	cJSON_AddNumberToObject(agent, "cpus_last_minute", target_recent_cpus(t));
	add_u64(agent, "handler_ns", l[WIRE_COUNTER_HANDLER_NS]);
	add_u64(agent, "pipe_bytes", l[WIRE_COUNTER_PIPE_BYTES]);
	add_u64(agent, "threads", l[WIRE_COUNTER_THREADS]);
	add_u64(agent, "threads_without_timer", l[WIRE_COUNTER_NO_TIMER]);
	return agent;
}

static cJSON *profilers_json(const struct target *t)
{
	cJSON *list = cJSON_CreateArray();

	for (unsigned i = 0; profilers_name(i); i++)
		if (t->profilers & 1u << i)
			cJSON_AddItemToArray(list, cJSON_CreateString(profilers_name(i)));
	return list;
}

static cJSON *labels_json(const char *text)
{
	cJSON *o = cJSON_CreateObject();
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	while (text && labels_next_text(&text, key, value))
		cJSON_AddStringToObject(o, key, value);
	return o;
}

static double ago_s(uint64_t mono_ns)
{
	return (double)(clock_mono_ns() - mono_ns) / 1e9;
}

/* null if no earlier daemon sampled the JVM, or only long ago */
static cJSON *gap_json(const struct host_gap *g)
{
	cJSON *o = g ? cJSON_CreateObject() : cJSON_CreateNull();

	if (!g)
		return o;
	add_u64(o, "ns", g->ns);
	add_u64(o, "cpu_ns", g->cpu_ns);
	add_u64(o, "until_ns", g->until_real_ns);
	return o;
}

static cJSON *status_target_json(const struct target *t)
{
	unsigned collected = target_events(t);
	cJSON *o = cJSON_CreateObject();
	struct stream_counts c;

	target_counts(t, &c);
	add_u64(o, "pid", (uint64_t)t->jvm.pid);
	add_u64(o, "ns_pid", (uint64_t)t->jvm.ns_pid);
	add_text(o, "container_id", t->jvm.container_id);
	add_text(o, "container", t->jvm.container);
	add_text(o, "pod", t->jvm.pod);
	add_text(o, "image", t->jvm.image);
	add_text(o, "image_digest", t->jvm.image_digest);
	add_text(o, "jdk", t->jdk[0] ? t->jdk : t->jvm.jdk);
	add_text(o, "name", t->jvm.name);
	cJSON_AddItemToObject(o, "labels", labels_json(t->labels));
	cJSON_AddItemToObject(o, "annotations", labels_json(t->jvm.notes));
	cJSON_AddStringToObject(o, "state", target_state_names[t->state]);
	add_text(o, "reason", t->fault.code ? t->fault.what : NULL);
	add_text(o, "reason_step", t->fault.code ? fault_step_name(t->fault.step) : NULL);
	cJSON_AddItemToObject(o, "events", events_json(collected));
	add_text(o, "engine", target_engine(t));
	add_text(o, "engine_note", target_engine_note(t));
	add_text(o, "walker", t->walker);
	add_text(o, "note", t->note);
	cJSON_AddItemToObject(o, "notes", notes_json(t));
	cJSON_AddItemToObject(o, "profilers", profilers_json(t)); /* names of other profilers */
	add_u64(o, "interval_ns", target_interval_ns(t));
	/* the interval in use may be longer: because of the kernel's tick, the host engine's
	 * shortest interval, or something that a note explains */
	add_u64(o, "interval_asked_ns", t->interval_ns);
	add_u64(o, "attempts", t->attempts);
	add_text(o, "placement", inject_strategy_name(t->placement));
	if (t->retry_mono_ns > clock_mono_ns())
		cJSON_AddNumberToObject(o, "retry_in_s",
					(double)(t->retry_mono_ns - clock_mono_ns()) / 1e9);
	else
		cJSON_AddNullToObject(o, "retry_in_s");
	if (t->state == TARGET_GONE)
		cJSON_AddNumberToObject(o, "ended_s", ago_s(t->gone_mono_ns));
	else
		cJSON_AddNullToObject(o, "ended_s");
	add_u64(o, "uid", t->jvm.uid);
	cJSON_AddItemToObject(o, "samples", samples_json(&c, host_cpu_ns(t)));
	add_other_events(o, &c, collected);
	cJSON_AddItemToObject(o, "gap", gap_json(host_gap_of(t)));
	cJSON_AddItemToObject(o, "agent", agent_json(t, &c));
	add_u64(o, "decode_cpu_ns", target_decode_ns(t));
	if (t->first_sample_mono_ns)
		cJSON_AddNumberToObject(o, "first_sample_ms",
					(double)(t->first_sample_mono_ns - t->seen_mono_ns) / 1e6);
	return o;
}

static void add_kernel_stacks(cJSON *to, const struct kernel_frames *k)
{
	cJSON *o = cJSON_AddObjectToObject(to, "kernel_stacks");
	struct kernel_frames_counts c;

	kernel_frames_counts(k, &c);
	add_u64(o, "taken", c.taken);
	add_u64(o, "matched", c.matched);
	add_u64(o, "unmatched", c.unmatched);
	add_u64(o, "lost", c.lost);
	add_text(o, "note", kernel_frames_note(k));
}

/* "state" is on, idle (no JVM to sample), refused or off; "why" has the reason if it is refused or
 * off, and "note" the disadvantages of CPU timers then. */
static cJSON *host_engine_json(struct host *h)
{
	const char *why, *state = "idle";
	const struct host_engine *e = host_sampler(h, &why);
	cJSON *o = cJSON_CreateObject();
	struct host_engine_counts c;

	if (e && host_engine_targets(e))
		state = "on";
	else if (*why)
		state = host_config(h)->host_engine ? "refused" : "off";
	cJSON_AddStringToObject(o, "state", state);
	add_text(o, "why", why);
	if (*why)
		add_text(o, "note", TARGET_TIMERS_NOTE);
	if (!e)
		return o;
	host_engine_counts(e, &c);
	add_u64(o, "interval_ns", host_engine_interval(e));
	add_u64(o, "tick_cost_ns", host_tick_price_ns(h));
	cJSON_AddBoolToObject(o, "puts_off", host_engine_puts_off(e));
	add_u64(o, "targets", host_engine_targets(e));
	add_u64(o, "ticks", c.ticks);
	add_u64(o, "sent", c.sent);
	add_u64(o, "foreign", c.foreign);
	add_u64(o, "held", c.held);
	add_u64(o, "failed", c.failed);
	if (host_kernel_frames(h))
		add_kernel_stacks(o, host_kernel_frames(h));
	return o;
}

/* "state": on, idle (no JVM to measure), resting (too many context switches) or refused, with
 * "why" */
static cJSON *offcpu_json(struct host *h)
{
	const struct offcpu_engine *e = host_offcpu_engine(h);
	cJSON *o = cJSON_CreateObject();
	struct offcpu_counts c;
	struct offcpu_state s;

	if (!e) {
		cJSON_AddStringToObject(o, "state", "refused");
		add_text(o, "why", host_offcpu_why(h));
		return o;
	}
	offcpu_engine_state(e, &s);
	offcpu_engine_counts(e, &c);
	cJSON_AddStringToObject(o, "state", s.resting ? "resting" : s.targets ? "on" : "idle");
	cJSON_AddStringToObject(o, "signals_by",
				s.way == OFFCPU_BY_TASK_WORK ? "task_work" : "rseq");
	cJSON_AddBoolToObject(o, "wakers", s.wakers);
	add_u64(o, "targets", s.targets);
	add_u64(o, "min_ns", s.min_ns);
	add_u64(o, "signals_per_s", s.signals_per_s);
	add_u64(o, "switches_per_s", s.switches_per_s);
	add_u64(o, "cost_ppm", s.cost_ppm);
	add_u64(o, "rests", s.rests);
	add_u64(o, "intervals", c.intervals);
	add_u64(o, "interval_ns", c.interval_ns);
	add_u64(o, "signalled", c.signalled);
	add_u64(o, "unsignalled", c.over_budget + c.unreachable + c.lost);
	add_u64(o, "unsignalled_ns", c.over_budget_ns + c.unreachable_ns + c.lost_ns);
	add_u64(o, "over_budget", c.over_budget);
	add_u64(o, "unreachable", c.unreachable);
	add_u64(o, "lost", c.lost);
	add_u64(o, "crowded_threads", c.crowded);
	add_u64(o, "missed_switches", s.missed);
	return o;
}

/* The kinds of JVMs that are not profiled because one of that kind crashed. */
static cJSON *blocked_json(const struct targets *targets)
{
	cJSON *list = cJSON_CreateArray();
	const struct cohort *c;

	for (unsigned i = 0; (c = targets_cohort(targets, i)); i++) {
		cJSON *o = cJSON_CreateObject();

		cJSON_AddStringToObject(o, "cohort", c->name);
		cJSON_AddStringToObject(o, "reason", c->reason);
		add_u64(o, "until_ns", c->until_real_ns);
		add_u64(o, "crashes", c->crashes);
		cJSON_AddItemToArray(list, o);
	}
	return list;
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

/* Profiled JVMs first, then other running ones, then ended ones, the latest first. */
static cJSON *targets_json(struct targets *targets, const struct view *v)
{
	cJSON *list = cJSON_CreateArray(), *ended = cJSON_CreateArray(), *o;
	struct target *t = NULL;

	while ((t = targets_next_known(targets, t)))
		if (t->state == TARGET_STREAMING && status_is_in(v, t))
			cJSON_AddItemToArray(list, status_target_json(t));
	while ((t = targets_next_known(targets, t)))
		if (t->state != TARGET_STREAMING && t->state != TARGET_GONE && status_is_in(v, t))
			cJSON_AddItemToArray(list, status_target_json(t));
	while ((t = targets_next_known(targets, t))) {
		int at = 0;

		if (t->state != TARGET_GONE || !status_is_in(v, t))
			continue;
		cJSON_ArrayForEach(o, ended)
		{
			if (cJSON_GetObjectItem(o, "ended_s")->valuedouble > ago_s(t->gone_mono_ns))
				break;
			at++;
		}
		cJSON_InsertItemInArray(ended, at, status_target_json(t));
	}
	while ((o = cJSON_DetachItemFromArray(ended, 0)))
		cJSON_AddItemToArray(list, o);
	cJSON_Delete(ended);
	return list;
}

static cJSON *denied_json(const struct discovery *d)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "pids");
	pid_t pids[DENIED_PIDS_MAX];
	uint32_t n = discovery_denied(d, pids, DENIED_PIDS_MAX);

	cJSON_AddNumberToObject(o, "processes", n);
	for (uint32_t i = 0; i < n && i < DENIED_PIDS_MAX; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(pids[i]));
	return o;
}

/* state: idle (no JVM in a container was found yet), on, or failing with `why` */
static cJSON *status_names_json(const struct names *n)
{
	cJSON *o = cJSON_CreateObject();
	struct names_status s;

	names_status(n, &s);
	add_text(o, "cri", s.path);
	cJSON_AddStringToObject(o, "state",
				s.error[0]				     ? "failing"
				: s.named + s.unknown + s.answered_later > 0 ? "on"
									     : "idle");
	add_text(o, "why", s.error);
	add_u64(o, "waiting", s.waiting);
	add_u64(o, "named", s.named);
	add_u64(o, "unknown", s.unknown);
	add_u64(o, "unanswered", s.unanswered);
	add_u64(o, "asking_again", s.asking_again);
	add_u64(o, "answered_later", s.answered_later);
	return o;
}

static cJSON *status_json(struct serve *s, const struct view *view)
{
	struct targets *targets = host_targets(s->host);
	cJSON *o = cJSON_CreateObject(), *part;
	struct discovery *d = host_discovery(s->host);
	struct store_counts c;
	char note[STORE_NOTE_MAX], filters[200];

	cJSON_AddStringToObject(o, "version", KINDLING_VERSION);
	cJSON_AddNumberToObject(o, "uptime_s",
				(double)(clock_mono_ns() - host_start_mono_ns(s->host)) / 1e9);
	if (d) {
		const char *why = "";

		part = cJSON_AddObjectToObject(o, "discovery");
		cJSON_AddStringToObject(part, "source", discovery_source(d, &why));
		add_text(part, "why", why);
		cJSON_AddItemToObject(part, "denied", denied_json(d));
	}
	if (host_names(s->host))
		cJSON_AddItemToObject(o, "names", status_names_json(host_names(s->host)));
	part = cJSON_AddObjectToObject(o, "attach");
	cJSON_AddBoolToObject(part, "tmpfs_over_tmp", host_config(s->host)->tmpfs_over_tmp);
	if (targets_filters_note(targets, filters, sizeof(filters)))
		cJSON_AddStringToObject(part, "filters_note", filters);
	cJSON_AddItemToObject(o, "host_engine", host_engine_json(s->host));
	cJSON_AddItemToObject(o, "offcpu", offcpu_json(s->host));
	cJSON_AddItemToObject(o, "blocked", blocked_json(targets));
	if (host_store(s->host)) {
		store_counts(host_store(s->host), &c);
		part = cJSON_AddObjectToObject(o, "store");
		add_u64(part, "windows", c.windows);
		add_u64(part, "bytes", c.bytes);
		add_u64(part, "dropped_windows", c.dropped_windows);
		add_u64(part, "torn", c.torn);
		add_u64(part, "recovered_windows", c.recovered_windows);
		store_note(&c, note);
		add_text(part, "note", note);
	}
	cJSON_AddItemToObject(o, "sinks", sinks_json(s->host));
	cJSON_AddItemToObject(o, "targets", targets_json(targets, view));
	return o;
}

enum MHD_Result serve_status(struct request *r)
{
	static struct view view;
	const char *state = argument(r, "state");

	if (state && strcmp(state, "streaming") != 0)
		return answer_error(r, 400, "the state can only be streaming, not \"%s\"", state);
	view.streaming = state != NULL;
	view.all = argument_is_set(r, "all");
	if (api_select_known(r, &view.selected) < 0)
		return MHD_YES;
	return answer_json(r, 200, status_json(r->serve, &view));
}

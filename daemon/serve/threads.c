/*
 * /v1/threads: every thread with its name, state and times. Agents report states only while a
 * client asks for them: the first answer may lack them ("states": false), the next one has them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/serve/thread_times.h"

#define RECENT_NS (NS_PER_S / 2) /* a thread with a sample at most this old is shown as running */
#define DEFAULT_SPAN_NS (60 * NS_PER_S)
#define SPAN_MAX_NS	(LOCKS_SLICES * LOCKS_SLICE_NS)

static const char *serve_threads_state_of(const struct locks_thread_row *r, bool states,
					  uint64_t now_ns)
{
	if (r->flags & WIRE_THREAD_ENDED)
		return "ended";
	if (r->waits)
		return r->open.idle ? "idle" : "waiting";
	if (r->sample_ns && now_ns - r->sample_ns < RECENT_NS)
		return "running";
	if (!states)
		return "unknown";
	/* as java.lang.Thread.State has them: runnable, blocked, waiting, timed_waiting */
	return r->state < WIRE_STATE_COUNT ? wire_state_names[r->state] : "unknown";
}

static double serve_threads_share(uint64_t ns, uint64_t span_ns)
{
	return span_ns ? (double)ns / (double)span_ns : 0;
}

/* One JVM's answer, as far as its threads need it. */
struct threads_answer {
	struct text_out *to;
	struct host *host;
	const struct target *t;
	const struct locks *locks; /* NULL = none */
	struct thread_times times;
	struct time_rows virtuals; /* if the kernel counts: it does not know virtual threads */
	uint64_t span_ns, now_ns;
	bool states; /* the agent has reported the states of its threads */
	bool stacks; /* waits that go on are wanted with their stacks */
	unsigned without; /* threads of which the kernel's totals are not kept */
};

static void open_text(const struct threads_answer *a, const struct locks_open *w)
{
	struct text_out *to = a->to;

	json_begin_object(to, "waiting");
	json_add_string(to, "kind", wire_wait_names[w->wait]);
	json_add_u64(to, "ns", a->now_ns > w->begin_ns ? a->now_ns - w->begin_ns : 0);
	json_add_bool(to, "timed", w->flags & WIRE_LOCK_TIMED);
	locks_text_lock(to, "lock", w->class_name, w->identity);
	if (w->owner_tid) {
		json_begin_object(to, "owner");
		thread_text(to, a->t, w->owner_tid, host_thread_name(a->t, w->owner_tid));
		json_end_object(to);
	} else {
		json_add_null(to, "owner");
	}
	if (a->stacks)
		event_stack(to, "stack", a->host, a->t, a->t->stream ? w->node : 0);
	json_end_object(to);
}

/* How the kernel's totals know a thread. */
struct known_times {
	const struct time_row *row; /* NULL = it has none of its own */
	bool ended; /* also if the agent has not told of it yet */
	bool folded; /* its times are in the row that ended threads share */
};

static struct known_times known_times_of(const struct threads_answer *a,
					 const struct locks_thread_row *r)
{
	bool is_platform = r->tid && r->tid < WIRE_VIRTUAL_TID, by_kernel = a->times.by_kernel;
	const struct time_rows *rows = is_platform || !by_kernel ? &a->times.rows : &a->virtuals;
	struct known_times k = { .row = r->tid ? time_rows_find(rows, r->tid) : NULL };
	const struct time_ledger *ledger;
	const char *why;

	if (!by_kernel || !is_platform)
		return k;
	ledger = k.row ? NULL : host_time_ledger(a->host, a->t, &why);
	k.folded = ledger && time_ledger_has_folded(ledger, r->tid);
	k.ended = r->flags & WIRE_THREAD_ENDED || k.folded || (k.row && k.row->ended);
	return k;
}

/* A thread that lives was there all the time, unless it has just begun. Of one that has ended
 * nobody knows for how long it lived: it has no times. */
static void serve_threads_times_text(struct threads_answer *a, const struct locks_thread_row *r,
				     const struct known_times *k)
{
	uint64_t span_ns = k->ended ? 0 : a->times.rows.span_ns;
	const struct time_row unknown = { .wall_ns = span_ns, .unseen_ns = span_ns };
	bool is_platform = r->tid && r->tid < WIRE_VIRTUAL_TID;

	a->without += !k->row && a->times.by_kernel && is_platform &&
		      !(k->ended && (k->folded || a->times.rows.folded));
	thread_times_row_text(a->to, k->row ? k->row : &unknown);
}

static void serve_threads_row_text(struct threads_answer *a, const struct locks_thread_row *r)
{
	const struct known_times known = known_times_of(a, r);
	struct locks_thread_row now = *r;
	struct text_out *to = a->to;

	now.flags |= known.ended ? WIRE_THREAD_ENDED : 0;
	json_begin_object(to, NULL);
	thread_ids_text(to, a->t, r->tid);
	thread_name_text(to, "name", a->t, r->tid, r->name);
	json_add_u64(to, "java_id", r->java_id);
	json_add_bool(to, "virtual", r->flags & WIRE_THREAD_VIRTUAL);
	json_add_string(to, "state", serve_threads_state_of(&now, a->states, a->now_ns));
	json_add_fixed(to, "cpu", serve_threads_share(r->cpu_ns, a->span_ns), 5);
	json_add_fixed(to, "wait", serve_threads_share(r->wait_ns, a->span_ns), 5);
	json_add_fixed(to, "idle", serve_threads_share(r->idle_ns, a->span_ns), 5);
	serve_threads_times_text(a, r, &known);
	if (r->waits)
		open_text(a, &r->open);
	else
		json_add_null(to, "waiting");
	if (r->last_end_ns)
		locks_text_lock(to, "last_lock", r->last_class, r->last_identity);
	else
		json_add_null(to, "last_lock");
	json_end_object(to);
}

static void virtuals_text(struct text_out *to, const struct locks_thread_rows *rows)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < rows->n_virtuals; i++)
		all += rows->virtuals[i].count;
	json_add_u64(to, "virtual_threads", all);
	json_begin_list(to, "virtual");
	for (uint32_t i = 0; i < rows->n_virtuals; i++) {
		const struct locks_virtual_row *v = &rows->virtuals[i];

		json_begin_object(to, NULL);
		json_add_string(to, "container", v->container);
		json_add_string(to, "state",
				v->state < WIRE_STATE_COUNT ? wire_state_names[v->state]
							    : "unknown");
		json_add_u64(to, "count", v->count);
		json_add_u64(to, "mounted", v->mounted);
		json_add_string(to, "class", v->class_name);
		json_end_object(to);
	}
	json_end_list(to);
}

static bool serve_threads_has(const struct locks_thread_rows *rows, uint32_t tid)
{
	for (uint32_t i = 0; i < rows->n; i++)
		if (rows->rows[i].tid == tid)
			return true;
	return false;
}

/* The row of the ended threads that share one. */
static void serve_threads_ended_text(struct threads_answer *a, const struct time_row *r)
{
	struct text_out *to = a->to;
	char name[60] = "[ended threads]"; /* which ended after the span */

	if (a->times.rows.folded)
		snprintf(name, sizeof(name), "[%u ended threads]", a->times.rows.folded);
	json_begin_object(to, NULL);
	thread_ids_text(to, a->t, 0);
	json_add_string(to, "name", name);
	json_add_u64(to, "java_id", 0);
	json_add_bool(to, "virtual", false);
	json_add_string(to, "state", "ended");
	json_add_fixed(to, "cpu", serve_threads_share(r->cpu_ns, a->times.rows.span_ns), 5);
	json_add_fixed(to, "wait", 0, 5);
	json_add_fixed(to, "idle", 0, 5);
	thread_times_row_text(to, r);
	json_add_null(to, "waiting");
	json_add_null(to, "last_lock");
	json_end_object(to);
}

/* Threads that only the kernel's totals have, as ended ones. */
static void serve_threads_others_text(struct threads_answer *a,
				      const struct locks_thread_rows *rows)
{
	const struct time_rows *times = &a->times.rows;

	a->span_ns = times->span_ns;
	a->states = true;
	for (uint32_t i = 0; a->times.by_kernel && i < times->n; i++) {
		const struct time_row *r = &times->rows[i];
		const struct locks_thread_row row = { .tid = r->tid,
						      .name = host_thread_name(a->t, r->tid),
						      .state = WIRE_STATE_COUNT,
						      .flags = r->ended ? WIRE_THREAD_ENDED : 0 };

		if (!r->tid)
			serve_threads_ended_text(a, r);
		else if (!serve_threads_has(rows, r->tid))
			serve_threads_row_text(a, &row);
	}
}

/* Why time of virtual threads is unseen, if they have rows; "" = the JVM's own reason says it. */
static const char *serve_threads_why_virtual(const struct threads_answer *a)
{
	if (!a->times.by_kernel)
		return "";
	return host_config(a->host)->offcpu_virtual
		       ? "waits without a carrier are seen if they are long enough to be recorded"
		       : "waits without a carrier are not recorded (events.offcpu.virtual)";
}

/* Finds the times of virtual threads, if there are any, and writes why the rest is unseen. */
static void serve_threads_take_virtual(struct threads_answer *a,
				       const struct locks_thread_rows *rows)
{
	bool any = false;

	for (uint32_t i = 0; i < rows->n; i++)
		any |= rows->rows[i].tid >= WIRE_VIRTUAL_TID;
	if (!any || !a->times.by_kernel ||
	    thread_times_of_virtual(a->t, &a->times.rows, &a->virtuals) < 0)
		a->virtuals.n = 0;
	if (any)
		json_add_string(a->to, "virtual_unseen_why", serve_threads_why_virtual(a));
	else
		json_add_null(a->to, "virtual_unseen_why");
}

/* How many threads have no times, and why. */
static void serve_threads_without_text(const struct threads_answer *a)
{
	char why[100] = "they have just begun, or too many threads of the host are measured";

	if (a->times.rows.n >= TIME_LEDGER_THREADS)
		snprintf(why, sizeof(why), "kindlingd keeps the times of %u threads of a JVM",
			 TIME_LEDGER_THREADS);
	json_add_u64(a->to, "without_times", a->without);
	if (a->without)
		json_add_string(a->to, "without_times_why", why);
	else
		json_add_null(a->to, "without_times_why");
}

static void serve_threads_target_text(struct threads_answer *a, uint64_t back_ns, uint64_t last_ns)
{
	const struct target *t = a->t;
	int64_t real_minus_mono_ns = (int64_t)(clock_real_ns() - a->now_ns);
	struct locks_thread_rows rows = { 0 };
	struct text_out *to = a->to;

	json_begin_object(to, NULL);
	json_add_i64(to, "pid", t->jvm.pid);
	json_add_string(to, "name", t->jvm.name);
	json_add_string(to, "state", target_state_names[t->state]);
	json_add_bool(to, "states", a->states || t->state != TARGET_STREAMING);
	if (!a->locks || locks_threads(a->locks, a->now_ns, back_ns, last_ns, &rows) < 0)
		rows.n = 0;
	a->span_ns = rows.span_ns;
	json_add_fixed(to, "seconds", (double)rows.span_ns / 1e9, 1);
	if (thread_times_of(a->host, t, back_ns, last_ns, &a->times) == 0) {
		json_add_u64(to, "from_ns", a->times.rows.begin_ns + (uint64_t)real_minus_mono_ns);
		json_add_u64(to, "to_ns", a->times.rows.end_ns + (uint64_t)real_minus_mono_ns);
		thread_times_text(to, "times", &a->times);
		serve_threads_take_virtual(a, &rows);
	}
	virtuals_text(to, &rows);
	json_begin_list(to, "threads");
	for (uint32_t i = 0; i < rows.n; i++)
		serve_threads_row_text(a, &rows.rows[i]);
	serve_threads_others_text(a, &rows);
	json_end_list(to);
	serve_threads_without_text(a);
	json_end_object(to);
	locks_thread_rows_free(&rows);
	time_rows_free(&a->times.rows);
	time_rows_free(&a->virtuals);
}

/* Asks the agents for states. A child cannot do this. */
static void want_states(struct request *r, const struct selection *selected)
{
	struct target *t = NULL;

	while ((t = targets_next(host_targets(r->serve->host), t)))
		if (locks_is_asked_for(selected, t))
			host_want_states(t);
}

/* The span of `last`, or of `from` and `to`, of which the ten minutes before now are known. */
static int serve_threads_span(struct request *r, uint64_t *ret_back_ns, uint64_t *ret_last_ns)
{
	uint64_t now_ns = clock_real_ns(), from_ns, to_ns;

	*ret_back_ns = 0;
	if (!argument(r, "from") && !argument(r, "to"))
		return locks_last(r, ret_last_ns);
	if (!api_time_range(r, &from_ns, &to_ns) || from_ns >= now_ns) {
		(void)answer_error(r, 400, "from and to are ns since 1970, from before to and now");
		return -EINVAL;
	}
	if (to_ns > now_ns)
		to_ns = now_ns;
	if (argument(r, "from") && now_ns - from_ns > SPAN_MAX_NS) {
		(void)answer_error(r, 400, "from goes back 10 minutes at most");
		return -EINVAL;
	}
	if (now_ns - from_ns > SPAN_MAX_NS) /* only `to` is given */
		from_ns = to_ns > DEFAULT_SPAN_NS ? to_ns - DEFAULT_SPAN_NS : 0;
	*ret_back_ns = now_ns - to_ns;
	*ret_last_ns = to_ns - from_ns;
	return 0;
}

enum MHD_Result serve_threads(struct request *r)
{
	static struct selection selected;
	struct text_out out = { 0 };
	struct target *t = NULL;
	uint64_t back_ns, last_ns;

	if (serve_threads_span(r, &back_ns, &last_ns) < 0 || api_select(r, &selected) < 0)
		return MHD_YES;
	if (!is_apart(r)) {
		want_states(r, &selected);
		host_take_times(r->serve->host);
		return answer_apart(r, APART_LIVE);
	}
	json_begin_object(&out, NULL);
	json_begin_list(&out, "targets");
	while ((t = targets_next(host_targets(r->serve->host), t)))
		if (locks_is_asked_for(&selected, t))
			serve_threads_target_text(
				&(struct threads_answer){
					.to = &out,
					.host = r->serve->host,
					.t = t,
					.locks = host_locks(t),
					.now_ns = clock_mono_ns(),
					.states = host_states_known(t, r->begin_mono_ns),
					.stacks = argument_is_set(r, "stacks") },
				back_ns, last_ns);
	json_end_list(&out);
	json_end_object(&out);
	return answer_json(r, 200, &out);
}

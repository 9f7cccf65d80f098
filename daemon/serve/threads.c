/*
 * /v1/threads: every thread with its name, state and times. Agents report states only while a
 * client asks for them: the first answer may lack them ("states": false), the next one has them.
 */
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/serve/thread_times.h"

#define RECENT_NS (NS_PER_S / 2) /* a thread with a sample at most this old is shown as running */

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

static void open_text(struct text_out *to, const struct target *t, const struct locks *l,
		      const struct locks_open *w, uint64_t now_ns)
{
	text_printf(to, ",\"waiting\":{\"kind\":\"%s\",\"ns\":%llu,\"timed\":%s,\"lock\":",
		    wire_wait_names[w->wait],
		    (unsigned long long)(now_ns > w->begin_ns ? now_ns - w->begin_ns : 0),
		    w->flags & WIRE_LOCK_TIMED ? "true" : "false");
	locks_text_lock(to, w->class_name, w->identity);
	if (w->owner_tid) {
		text_put(to, ",\"owner\":{");
		thread_text(to, t, w->owner_tid, locks_thread_name(l, w->owner_tid));
		text_put(to, "}}");
	} else {
		text_put(to, ",\"owner\":null}");
	}
}

/* A thread that only the kernel's totals have: its number is all that is known. */
static void serve_threads_times_text(struct text_out *to, const struct thread_times *times,
				     uint32_t tid)
{
	const struct time_row unknown = { .wall_ns = times->rows.span_ns,
					  .unseen_ns = times->rows.span_ns };
	const struct time_row *row = tid ? time_rows_find(&times->rows, tid) : NULL;

	thread_times_row_text(to, row ? row : &unknown);
}

static void serve_threads_row_text(struct text_out *to, const struct target *t,
				   const struct locks *l, const struct locks_thread_row *r,
				   const struct thread_times *times, uint64_t span_ns, bool states,
				   uint64_t now_ns)
{
	text_put(to, "{");
	thread_ids_text(to, t, r->tid);
	text_put(to, ",\"name\":");
	thread_name_text(to, t, r->tid, r->name);
	text_printf(to, ",\"java_id\":%llu,\"virtual\":%s,\"state\":\"%s\"",
		    (unsigned long long)r->java_id,
		    r->flags & WIRE_THREAD_VIRTUAL ? "true" : "false",
		    serve_threads_state_of(r, states, now_ns));
	text_printf(to, ",\"cpu\":%.5f,\"wait\":%.5f,\"idle\":%.5f",
		    serve_threads_share(r->cpu_ns, span_ns),
		    serve_threads_share(r->wait_ns, span_ns),
		    serve_threads_share(r->idle_ns, span_ns));
	serve_threads_times_text(to, times, r->tid);
	if (r->waits)
		open_text(to, t, l, &r->open, now_ns);
	else
		text_put(to, ",\"waiting\":null");
	text_put(to, ",\"last_lock\":");
	if (r->last_end_ns)
		locks_text_lock(to, r->last_class, r->last_identity);
	else
		text_put(to, "null");
	text_put(to, "}");
}

static void virtuals_text(struct text_out *to, const struct locks_thread_rows *rows)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < rows->n_virtuals; i++)
		all += rows->virtuals[i].count;
	text_printf(to, ",\"virtual_threads\":%llu,\"virtual\":[", (unsigned long long)all);
	for (uint32_t i = 0; i < rows->n_virtuals; i++) {
		const struct locks_virtual_row *v = &rows->virtuals[i];

		text_printf(to, "%s{\"container\":", i ? "," : "");
		text_json(to, v->container);
		text_printf(to, ",\"state\":\"%s\",\"count\":%u,\"mounted\":%u,\"class\":",
			    v->state < WIRE_STATE_COUNT ? wire_state_names[v->state] : "unknown",
			    v->count, v->mounted);
		text_json(to, v->class_name);
		text_put(to, "}");
	}
	text_put(to, "]");
}

static bool serve_threads_has(const struct locks_thread_rows *rows, uint32_t tid)
{
	for (uint32_t i = 0; i < rows->n; i++)
		if (rows->rows[i].tid == tid)
			return true;
	return false;
}

/* Threads that only the kernel's totals have. */
static void serve_threads_others_text(struct text_out *to, const struct target *t,
				      const struct locks *l, const struct locks_thread_rows *rows,
				      const struct thread_times *times, uint64_t now_ns)
{
	bool first = rows->n == 0;

	for (uint32_t i = 0; times->by_kernel && i < times->rows.n; i++) {
		const struct time_row *r = &times->rows.rows[i];
		const struct locks_thread_row row = { .tid = r->tid,
						      .name = "",
						      .state = WIRE_STATE_COUNT,
						      .flags = r->ended ? WIRE_THREAD_ENDED : 0 };

		if (serve_threads_has(rows, r->tid))
			continue;
		text_put(to, first ? "" : ",");
		first = false;
		serve_threads_row_text(to, t, l, &row, times, times->rows.span_ns, true, now_ns);
	}
}

static void serve_threads_target_text(struct text_out *to, struct host *h, const struct target *t,
				      uint64_t last_ns, uint64_t asked_ns, bool first)
{
	bool states = host_states_known(t, asked_ns);
	const struct locks *l = host_locks(t);
	struct locks_thread_rows rows = { 0 };
	struct thread_times times = { 0 };
	uint64_t now_ns = clock_mono_ns();

	text_printf(to, "%s{\"pid\":%d,\"name\":", first ? "" : ",", t->jvm.pid);
	text_json(to, t->jvm.name);
	text_printf(to, ",\"state\":\"%s\",\"states\":%s", target_state_names[t->state],
		    states || t->state != TARGET_STREAMING ? "true" : "false");
	if (!l || locks_threads(l, now_ns, last_ns, &rows) < 0)
		rows.n = 0;
	text_printf(to, ",\"seconds\":%.1f", (double)rows.span_ns / 1e9);
	if (thread_times_of(h, t, last_ns, &times) == 0) {
		text_put(to, ",\"times\":");
		thread_times_text(to, &times);
	}
	virtuals_text(to, &rows);
	text_put(to, ",\"threads\":[");
	for (uint32_t i = 0; i < rows.n; i++) {
		text_put(to, i ? "," : "");
		serve_threads_row_text(to, t, l, &rows.rows[i], &times, rows.span_ns, states,
				       now_ns);
	}
	serve_threads_others_text(to, t, l, &rows, &times, now_ns);
	text_put(to, "]}");
	locks_thread_rows_free(&rows);
	time_rows_free(&times.rows);
}

/* Asks the agents for states. A child cannot do this. */
static void want_states(struct request *r, const struct selection *selected)
{
	struct target *t = NULL;

	while ((t = targets_next(host_targets(r->serve->host), t)))
		if (locks_is_asked_for(selected, t))
			host_want_states(t);
}

enum MHD_Result serve_threads(struct request *r)
{
	static struct selection selected;
	struct text_out out = { 0 };
	struct target *t = NULL;
	uint64_t last_ns;
	bool first = true;
	size_t len;
	char *body;

	if (locks_last(r, &last_ns) < 0 || api_select(r, &selected) < 0)
		return MHD_YES;
	if (!is_apart(r)) {
		want_states(r, &selected);
		host_take_times(r->serve->host);
		return answer_apart(r, APART_LIVE);
	}
	text_put(&out, "{\"targets\":[");
	while ((t = targets_next(host_targets(r->serve->host), t))) {
		if (!locks_is_asked_for(&selected, t))
			continue;
		serve_threads_target_text(&out, r->serve->host, t, last_ns, r->begin_mono_ns,
					  first);
		first = false;
	}
	text_put(&out, "]}");
	if (text_take(&out, &body, &len) < 0)
		return answer_error(r, 503, "no memory");
	return answer_bytes(r, 200, "application/json", body, len);
}

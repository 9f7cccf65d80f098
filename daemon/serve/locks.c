/*
 * /v1/locks: the locks with the longest waits, one by one or by class, and who blocks whom now.
 * Written as text, because a tree of JSON objects would take most of the time when there are
 * thousands of waits.
 */
#include <errno.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/locks/graph.h"
#include "daemon/profile/class_text.h"
#include "daemon/serve/serve_priv.h"

#define ROWS_MAX  500u
#define WAITS_MAX 2000u
#define LAST_NS	  (60 * NS_PER_S)
#define LAST_MAX  (LOCKS_SLICES * LOCKS_SLICE_NS)

struct question {
	struct request *request;
	struct text_out out;
	uint64_t last_ns, now_ns;
	bool graph, idle, stacks;
	enum locks_by by;
};

static void serve_locks_put_class(struct text_out *to, const char *class_name)
{
	char buf[CLASS_TEXT_MAX];

	if (*class_name)
		text_json(to, class_text(class_name, buf));
	else
		text_put(to, "null");
}

void locks_text_lock(struct text_out *to, const char *class_name, uint32_t identity)
{
	text_put(to, "{\"class\":");
	serve_locks_put_class(to, class_name);
	if (identity)
		text_printf(to, ",\"id\":\"%x\"}", identity);
	else
		text_put(to, ",\"id\":null}");
}

static void text_bool(struct text_out *to, const char *key, bool v)
{
	text_printf(to, ",\"%s\":%s", key, v ? "true" : "false");
}

static void text_number(struct text_out *to, const char *key, uint64_t v)
{
	text_printf(to, ",\"%s\":%llu", key, (unsigned long long)v);
}

static void tids_text(struct text_out *to, const struct target *t, const struct locks *l,
		      const char *key, const struct locks_tid *tids, uint32_t n)
{
	text_printf(to, ",\"%s\":[", key);
	for (uint32_t i = 0; i < n; i++) {
		text_put(to, i ? ",{" : "{");
		thread_text(to, t, tids[i].tid, locks_thread_name(l, tids[i].tid));
		text_number(to, "ns", tids[i].ns);
		text_put(to, "}");
	}
	text_put(to, "]");
}

/* The methods of the application where threads waited or held the lock; with whole stacks if
 * requested. */
static void sites_text(struct question *q, const struct target *t, const char *key,
		       const struct locks_site *sites, uint32_t n)
{
	struct text_out *to = &q->out;

	text_printf(to, ",\"%s\":[", key);
	for (uint32_t i = 0; i < n; i++) {
		text_put(to, i ? ",{\"frame\":" : "{\"frame\":");
		text_json(to, sites[i].frame);
		text_number(to, "ns", sites[i].ns);
		if (q->stacks) {
			text_put(to, ",\"stack\":");
			event_stack(to, q->request->serve->host, t, t->stream ? sites[i].node : 0);
		}
		text_put(to, "}");
	}
	text_put(to, "]");
}

static void class_of_row(struct text_out *to, const struct locks_row *r)
{
	text_put(to, "{\"class\":");
	serve_locks_put_class(to, r->class_name);
	text_number(to, "locks", r->locks);
	text_bool(to, "more_locks", r->more_locks);
}

static void serve_locks_row_text(struct question *q, const struct target *t, const struct locks *l,
				 const struct locks_row *r)
{
	struct text_out *to = &q->out;

	if (q->by == LOCKS_BY_CLASS) {
		class_of_row(to, r);
	} else {
		text_put(to, "{\"lock\":");
		locks_text_lock(to, r->class_name, r->identity);
	}
	text_printf(to, ",\"kind\":\"%s\"", wire_wait_names[r->wait]);
	text_bool(to, "idle", r->idle);
	text_bool(to, "other", r->other);
	text_number(to, "waits", r->waits);
	text_number(to, "open", r->open);
	text_number(to, "total_ns", r->total_ns);
	text_number(to, "longest_ns", r->longest_ns);
	tids_text(to, t, l, "waiters", r->waiters, r->n_waiters);
	text_bool(to, "more_waiters", r->more_waiters);
	sites_text(q, t, "waiters_at", r->waiting, r->n_waiting);
	tids_text(to, t, l, "owners", r->owners, r->n_owners);
	text_bool(to, "more_owners", r->more_owners);
	sites_text(q, t, "owners_at", r->holding, r->n_holding);
	text_put(to, "}");
}

/* Numbers of waits that are in no row: short ones, waits for work, and lost ones. */
static void counts_text(struct text_out *to, const struct locks_counts *c)
{
	text_number(to, "short_waits", c->shorter);
	text_number(to, "short_waits_ns", c->shorter_ns);
	text_number(to, "idle_waits", c->idle);
	text_number(to, "idle_waits_ns", c->idle_ns);
	text_number(to, "lost", c->lost);
	text_number(to, "lost_ns", c->lost_ns);
}

/* The sum of all waits, including those whose rows are not shown. */
static void rows_text(struct question *q, const struct target *t, const struct locks *l)
{
	struct locks_rows rows = { 0 };
	uint64_t waits = 0, open = 0, ns = 0;

	if (!l || locks_query(l, q->now_ns, q->last_ns, q->idle, q->by, &rows) < 0)
		rows.n = 0;
	for (uint32_t i = 0; i < rows.n; i++) {
		waits += rows.rows[i].waits;
		open += rows.rows[i].open;
		ns += rows.rows[i].total_ns;
	}
	text_bool(&q->out, "idle_shown", q->idle);
	text_printf(&q->out, ",\"seconds\":%.1f", (double)rows.span_ns / 1e9);
	text_number(&q->out, "waits", waits);
	text_number(&q->out, "open", open);
	text_number(&q->out, "total_ns", ns);
	counts_text(&q->out, &rows.counts);
	text_number(&q->out, q->by == LOCKS_BY_CLASS ? "n_classes" : "n_locks", rows.n);
	text_put(&q->out, q->by == LOCKS_BY_CLASS ? ",\"classes\":[" : ",\"locks\":[");
	for (uint32_t i = 0; i < rows.n && i < ROWS_MAX; i++) {
		text_put(&q->out, i ? "," : "");
		serve_locks_row_text(q, t, l, &rows.rows[i]);
	}
	text_put(&q->out, "]");
	locks_rows_free(&rows);
}

/* ---- who blocks whom ---- */

static void edge_text(struct question *q, const struct target *t, const struct locks *l,
		      const struct lock_edge *e)
{
	const struct locks_open *w = e->wait;
	struct text_out *to = &q->out;

	text_put(to, "{");
	thread_text(to, t, w->tid, locks_thread_name(l, w->tid));
	text_printf(to, ",\"kind\":\"%s\"", wire_wait_names[w->wait]);
	text_number(to, "waiting_ns", q->now_ns > w->begin_ns ? q->now_ns - w->begin_ns : 0);
	text_bool(to, "timed", w->flags & WIRE_LOCK_TIMED);
	text_bool(to, "idle", w->idle);
	text_put(to, ",\"lock\":");
	locks_text_lock(to, w->class_name, w->identity);
	if (w->owner_tid) {
		text_put(to, ",\"owner\":{");
		thread_text(to, t, w->owner_tid, locks_thread_name(l, w->owner_tid));
		text_put(to, "}");
	} else {
		text_put(to, ",\"owner\":null");
	}
	text_number(to, "cycle", e->cycle);
	text_bool(to, "deadlock", e->deadlock);
	text_number(to, "behind", e->behind);
	text_put(to, ",\"stack\":");
	event_stack(to, q->request->serve->host, t, t->stream ? w->node : 0);
	text_put(to, "}");
}

/* A wait for work is shown only when other threads wait for its thread. */
static bool is_shown(const struct question *q, const struct lock_edge *e)
{
	return q->idle || !e->wait->idle || e->behind || e->cycle;
}

static void edges_text(struct question *q, const struct target *t, const struct locks *l,
		       const struct lock_graph *g)
{
	uint32_t shown = 0, all = 0;

	text_put(&q->out, ",\"waits\":[");
	/* cycles first: they are deadlocks and must not be cut off */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < g->n; i++) {
			if (!g->edges[i].cycle != (pass == 1) || !is_shown(q, &g->edges[i]) ||
			    all++ >= WAITS_MAX)
				continue;
			text_put(&q->out, shown++ ? "," : "");
			edge_text(q, t, l, &g->edges[i]);
		}
	text_put(&q->out, "]");
	text_number(&q->out, "n_waits", all);
}

static void graph_text(struct question *q, const struct target *t, const struct locks *l)
{
	struct locks_open *open = NULL;
	struct lock_graph g = { 0 };
	uint32_t n = 0;

	if (l && locks_open(l, q->now_ns, &open, &n) == 0 && lock_graph_new(open, n, &g) < 0)
		g.n = 0;
	text_printf(&q->out, ",\"graph\":{\"cycles\":%u,\"deadlocks\":%u", g.n_cycles,
		    g.n_deadlocks);
	edges_text(q, t, l, &g);
	text_put(&q->out, ",\"blockers\":[");
	for (uint32_t i = 0; i < g.n_blockers && i < ROWS_MAX; i++) {
		text_put(&q->out, i ? ",{" : "{");
		thread_text(&q->out, t, g.blockers[i].tid, locks_thread_name(l, g.blockers[i].tid));
		text_printf(&q->out, ",\"behind\":%u}", g.blockers[i].behind);
	}
	text_put(&q->out, "]}");
	lock_graph_free(&g);
	free(open);
}

/* ---- the answer ---- */

static void rest_text(struct text_out *to, const struct target *t)
{
	struct stream_counts c;

	target_counts(t, &c);
	text_bool(to, "collected", c.ledger.counter[WIRE_COUNTER_EVENTS] >> WIRE_EVENT_LOCK & 1);
	text_number(to, "min_wait_ns", target_interval(t, WIRE_EVENT_LOCK));
}

/* What the tables had no room for: open waits, names of threads, rows of locks. */
static void no_room_text(struct text_out *to, const struct locks *l)
{
	struct locks_lost lost = { 0 };

	if (l)
		locks_lost(l, &lost);
	text_printf(to, ",\"no_room\":{\"open\":%llu,\"threads\":%llu,\"locks\":%llu}",
		    (unsigned long long)lost.open, (unsigned long long)lost.threads,
		    (unsigned long long)lost.folded);
}

static void serve_locks_target_text(struct question *q, const struct target *t, bool first)
{
	const struct locks *l = host_locks(t);

	text_printf(&q->out, "%s{\"pid\":%d,\"name\":", first ? "" : ",", t->jvm.pid);
	text_json(&q->out, t->jvm.name);
	text_printf(&q->out, ",\"state\":\"%s\"", target_state_names[t->state]);
	rest_text(&q->out, t);
	rows_text(q, t, l);
	no_room_text(&q->out, l);
	if (q->graph)
		graph_text(q, t, l);
	text_put(&q->out, "}");
}

int locks_last(struct request *r, uint64_t *ret_ns)
{
	const char *last = argument(r, "last");

	*ret_ns = LAST_NS;
	if (last && (!parse_duration(last, ret_ns) || !*ret_ns)) {
		(void)answer_error(r, 400, "last must be a duration such as 60s");
		return -EINVAL;
	}
	if (*ret_ns > LAST_MAX) {
		(void)answer_error(r, 400, "last goes back %llu minutes at most",
				   (unsigned long long)(LAST_MAX / NS_PER_S / 60));
		return -EINVAL;
	}
	return 0;
}

static int parse_by(struct request *r, enum locks_by *ret)
{
	const char *by = argument(r, "by");

	if (by && strcmp(by, "class") != 0 && strcmp(by, "lock") != 0) {
		(void)answer_error(r, 400, "by must be lock or class");
		return -EINVAL;
	}
	*ret = by && strcmp(by, "class") == 0 ? LOCKS_BY_CLASS : LOCKS_BY_LOCK;
	return 0;
}

bool locks_is_asked_for(const struct selection *s, const struct target *t)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->pids[i] == (uint32_t)t->jvm.pid && s->start_times[i] == t->jvm.start_time)
			return true;
	return s->n == 0 && t->state == TARGET_STREAMING;
}

enum MHD_Result serve_locks(struct request *r)
{
	static struct selection selected;
	struct question q = { .request = r, .now_ns = clock_mono_ns() };
	struct target *t = NULL;
	bool first = true;
	size_t len;
	char *body;

	if (!is_apart(r))
		return answer_apart(r, APART_LIVE);
	if (locks_last(r, &q.last_ns) < 0 || api_select(r, &selected) < 0)
		return MHD_YES;
	if (parse_by(r, &q.by) < 0)
		return MHD_YES;
	q.graph = argument_is_set(r, "graph");
	q.idle = argument_is_set(r, "idle");
	q.stacks = argument_is_set(r, "stacks");
	text_put(&q.out, "{\"targets\":[");
	while ((t = targets_next(host_targets(r->serve->host), t))) {
		if (!locks_is_asked_for(&selected, t))
			continue;
		serve_locks_target_text(&q, t, first);
		first = false;
	}
	text_put(&q.out, "]}");
	if (text_take(&q.out, &body, &len) < 0)
		return answer_error(r, 503, "no memory");
	return answer_bytes(r, 200, "application/json", body, len);
}

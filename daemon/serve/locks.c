/*
 * /v1/locks: the locks with the longest waits, one by one or by class, and who blocks whom now.
 */
#include <errno.h>
#include <stdio.h>
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

	json_add_string_or_null(to, "class", *class_name ? class_text(class_name, buf) : NULL);
}

void locks_text_lock(struct text_out *to, const char *key, const char *class_name,
		     uint32_t identity)
{
	char id[16] = "";

	if (identity)
		snprintf(id, sizeof(id), "%x", identity);
	json_begin_object(to, key);
	serve_locks_put_class(to, class_name);
	json_add_string_or_null(to, "id", id);
	json_end_object(to);
}

static void tids_text(struct text_out *to, const struct target *t, const struct locks *l,
		      const char *key, const struct locks_tid *tids, uint32_t n)
{
	json_begin_list(to, key);
	for (uint32_t i = 0; i < n; i++) {
		json_begin_object(to, NULL);
		thread_text(to, t, tids[i].tid, locks_thread_name(l, tids[i].tid));
		json_add_u64(to, "ns", tids[i].ns);
		json_end_object(to);
	}
	json_end_list(to);
}

/* The methods of the application where threads waited or held the lock; with whole stacks if
 * requested. */
static void sites_text(struct question *q, const struct target *t, const char *key,
		       const struct locks_site *sites, uint32_t n)
{
	struct text_out *to = &q->out;

	json_begin_list(to, key);
	for (uint32_t i = 0; i < n; i++) {
		json_begin_object(to, NULL);
		json_add_string(to, "frame", sites[i].frame);
		json_add_u64(to, "ns", sites[i].ns);
		if (q->stacks)
			event_stack(to, "stack", q->request->serve->host, t,
				    t->stream ? sites[i].node : 0);
		json_end_object(to);
	}
	json_end_list(to);
}

static void serve_locks_row_text(struct question *q, const struct target *t, const struct locks *l,
				 const struct locks_row *r)
{
	struct text_out *to = &q->out;

	json_begin_object(to, NULL);
	if (q->by == LOCKS_BY_CLASS) {
		serve_locks_put_class(to, r->class_name);
		json_add_u64(to, "locks", r->locks);
		json_add_bool(to, "more_locks", r->more_locks);
	} else {
		locks_text_lock(to, "lock", r->class_name, r->identity);
	}
	json_add_string(to, "kind", wire_wait_names[r->wait]);
	json_add_bool(to, "idle", r->idle);
	json_add_bool(to, "other", r->other);
	json_add_u64(to, "waits", r->waits);
	json_add_u64(to, "open", r->open);
	json_add_u64(to, "total_ns", r->total_ns);
	json_add_u64(to, "longest_ns", r->longest_ns);
	tids_text(to, t, l, "waiters", r->waiters, r->n_waiters);
	json_add_bool(to, "more_waiters", r->more_waiters);
	sites_text(q, t, "waiters_at", r->waiting, r->n_waiting);
	tids_text(to, t, l, "owners", r->owners, r->n_owners);
	json_add_bool(to, "more_owners", r->more_owners);
	sites_text(q, t, "owners_at", r->holding, r->n_holding);
	json_end_object(to);
}

/* Numbers of waits that are in no row: short ones, waits for work, and lost ones. */
static void counts_text(struct text_out *to, const struct locks_counts *c)
{
	json_add_u64(to, "short_waits", c->shorter);
	json_add_u64(to, "short_waits_ns", c->shorter_ns);
	json_add_u64(to, "idle_waits", c->idle);
	json_add_u64(to, "idle_waits_ns", c->idle_ns);
	json_add_u64(to, "lost", c->lost);
	json_add_u64(to, "lost_ns", c->lost_ns);
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
	json_add_bool(&q->out, "idle_shown", q->idle);
	json_add_fixed(&q->out, "seconds", (double)rows.span_ns / 1e9, 1);
	json_add_u64(&q->out, "waits", waits);
	json_add_u64(&q->out, "open", open);
	json_add_u64(&q->out, "total_ns", ns);
	counts_text(&q->out, &rows.counts);
	json_add_u64(&q->out, q->by == LOCKS_BY_CLASS ? "n_classes" : "n_locks", rows.n);
	json_begin_list(&q->out, q->by == LOCKS_BY_CLASS ? "classes" : "locks");
	for (uint32_t i = 0; i < rows.n && i < ROWS_MAX; i++)
		serve_locks_row_text(q, t, l, &rows.rows[i]);
	json_end_list(&q->out);
	locks_rows_free(&rows);
}

/* ---- who blocks whom ---- */

static void edge_text(struct question *q, const struct target *t, const struct locks *l,
		      const struct lock_edge *e)
{
	const struct locks_open *w = e->wait;
	struct text_out *to = &q->out;

	json_begin_object(to, NULL);
	thread_text(to, t, w->tid, locks_thread_name(l, w->tid));
	json_add_string(to, "kind", wire_wait_names[w->wait]);
	json_add_u64(to, "waiting_ns", q->now_ns > w->begin_ns ? q->now_ns - w->begin_ns : 0);
	json_add_bool(to, "timed", w->flags & WIRE_LOCK_TIMED);
	json_add_bool(to, "idle", w->idle);
	locks_text_lock(to, "lock", w->class_name, w->identity);
	if (w->owner_tid) {
		json_begin_object(to, "owner");
		thread_text(to, t, w->owner_tid, locks_thread_name(l, w->owner_tid));
		json_end_object(to);
	} else {
		json_add_null(to, "owner");
	}
	json_add_u64(to, "cycle", e->cycle);
	json_add_bool(to, "deadlock", e->deadlock);
	json_add_u64(to, "behind", e->behind);
	event_stack(to, "stack", q->request->serve->host, t, t->stream ? w->node : 0);
	json_end_object(to);
}

/* A wait for work is shown only when other threads wait for its thread. */
static bool is_shown(const struct question *q, const struct lock_edge *e)
{
	return q->idle || !e->wait->idle || e->behind || e->cycle;
}

static void edges_text(struct question *q, const struct target *t, const struct locks *l,
		       const struct lock_graph *g)
{
	uint32_t all = 0;

	json_begin_list(&q->out, "waits");
	/* cycles first: they are deadlocks and must not be cut off */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < g->n; i++) {
			if (!g->edges[i].cycle != (pass == 1) || !is_shown(q, &g->edges[i]) ||
			    all++ >= WAITS_MAX)
				continue;
			edge_text(q, t, l, &g->edges[i]);
		}
	json_end_list(&q->out);
	json_add_u64(&q->out, "n_waits", all);
}

static void graph_text(struct question *q, const struct target *t, const struct locks *l)
{
	struct locks_open *open = NULL;
	struct text_out *to = &q->out;
	struct lock_graph g = { 0 };
	uint32_t n = 0;

	if (l && locks_open(l, q->now_ns, &open, &n) == 0 && lock_graph_new(open, n, &g) < 0)
		g.n = 0;
	json_begin_object(to, "graph");
	json_add_u64(to, "cycles", g.n_cycles);
	json_add_u64(to, "deadlocks", g.n_deadlocks);
	edges_text(q, t, l, &g);
	json_begin_list(to, "blockers");
	for (uint32_t i = 0; i < g.n_blockers && i < ROWS_MAX; i++) {
		json_begin_object(to, NULL);
		thread_text(to, t, g.blockers[i].tid, locks_thread_name(l, g.blockers[i].tid));
		json_add_u64(to, "behind", g.blockers[i].behind);
		json_end_object(to);
	}
	json_end_list(to);
	json_end_object(to);
	lock_graph_free(&g);
	free(open);
}

/* ---- the answer ---- */

static void rest_text(struct text_out *to, const struct target *t)
{
	struct stream_counts c;

	target_counts(t, &c);
	json_add_bool(to, "collected",
		      c.ledger.counter[WIRE_COUNTER_EVENTS] >> WIRE_EVENT_LOCK & 1);
	json_add_u64(to, "min_wait_ns", target_interval(t, WIRE_EVENT_LOCK));
}

/* What the tables had no room for: open waits, names of threads, rows of locks. */
static void no_room_text(struct text_out *to, const struct locks *l)
{
	struct locks_lost lost = { 0 };

	if (l)
		locks_lost(l, &lost);
	json_begin_object(to, "no_room");
	json_add_u64(to, "open", lost.open);
	json_add_u64(to, "threads", lost.threads);
	json_add_u64(to, "locks", lost.folded);
	json_end_object(to);
}

static void serve_locks_target_text(struct question *q, const struct target *t)
{
	const struct locks *l = host_locks(t);

	json_begin_object(&q->out, NULL);
	json_add_i64(&q->out, "pid", t->jvm.pid);
	json_add_string(&q->out, "name", t->jvm.name);
	json_add_string(&q->out, "state", target_state_names[t->state]);
	rest_text(&q->out, t);
	rows_text(q, t, l);
	no_room_text(&q->out, l);
	if (q->graph)
		graph_text(q, t, l);
	json_end_object(&q->out);
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

	if (!is_apart(r))
		return answer_apart(r, APART_LIVE);
	if (locks_last(r, &q.last_ns) < 0 || api_select(r, &selected) < 0)
		return MHD_YES;
	if (parse_by(r, &q.by) < 0)
		return MHD_YES;
	q.graph = argument_is_set(r, "graph");
	q.idle = argument_is_set(r, "idle");
	q.stacks = argument_is_set(r, "stacks");
	json_begin_object(&q.out, NULL);
	json_begin_list(&q.out, "targets");
	while ((t = targets_next(host_targets(r->serve->host), t)))
		if (locks_is_asked_for(&selected, t))
			serve_locks_target_text(&q, t);
	json_end_list(&q.out);
	json_end_object(&q.out);
	return answer_json(r, 200, &q.out);
}

/*
 * Where the time of a JVM's threads went, for /v1/threads and /v1/top: from the kernel's totals,
 * or, where there are none and for virtual threads, which the kernel does not know, from samples
 * and waits, which do not see all of it. docs/api.md describes the fields.
 */
#include "daemon/serve/thread_times.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/profile/offcpu_event.h"

const uint8_t thread_times_lock_reasons[WIRE_WAIT_COUNT] = {
	[WIRE_WAIT_ENTER] = OFFCPU_REASON_LOCK,
	[WIRE_WAIT_WAIT] = OFFCPU_REASON_WAIT,
	[WIRE_WAIT_PARK] = OFFCPU_REASON_PARK,
};

/* ---- from the kernel's totals ---------------------------------------------------------------- */

/* The waits in progress as malloc'ed reasons; NULL = none known, or no memory. */
static struct time_reason *open_reasons(const struct target *t, uint64_t now_ns, uint32_t *ret_n)
{
	const struct locks *l = host_locks(t);
	struct time_reason *reasons;
	struct locks_open *open;
	uint32_t n;

	*ret_n = 0;
	if (!l || locks_open(l, now_ns, &open, &n) < 0)
		return NULL;
	reasons = calloc(n + 1, sizeof(*reasons));
	for (uint32_t i = 0; reasons && i < n; i++)
		if (open[i].wait < WIRE_WAIT_COUNT)
			reasons[(*ret_n)++] = (struct time_reason){
				.tid = open[i].tid,
				.begin_ns = open[i].begin_ns,
				.end_ns = now_ns,
				.from = OFFCPU_REASON_OTHER,
				.reason = thread_times_lock_reasons[open[i].wait],
			};
	free(open);
	return reasons;
}

/* For the kernel a wait of the JVM's own threads is a futex or a sleep like any other. */
static void times_find_idle(const struct target *t, struct time_rows *rows)
{
	for (uint32_t i = 0; i < rows->n; i++) {
		const char *thread = host_thread_name(t, rows->rows[i].tid);
		uint64_t *off_ns = rows->rows[i].off_ns;

		for (enum offcpu_reason r = 0; r < OFFCPU_REASON_COUNT; r++) {
			if (!offcpu_is_idle_vm_thread(r, thread))
				continue;
			off_ns[THREAD_TIMES_IDLE] += off_ns[r];
			off_ns[r] = 0;
		}
	}
}

static int times_of_kernel(const struct target *t, const struct time_ledger *ledger,
			   uint64_t back_ns, uint64_t last_ns, struct time_rows *ret)
{
	uint64_t now_ns = clock_mono_ns();
	uint32_t n;
	struct time_reason *open = open_reasons(t, now_ns, &n);
	int r = time_ledger_query(ledger, now_ns, back_ns, last_ns, open, n, ret);

	free(open);
	if (r == 0)
		times_find_idle(t, ret);
	return r;
}

/* ---- from samples and waits ------------------------------------------------------------------ */

static int times_by_tid(const void *a, const void *b)
{
	const struct time_row *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void times_add_event(struct time_row *row, const struct timeline_row *r,
			    const struct timeline_question *q)
{
	uint64_t begin = r->end_ns - r->length_ns, end = r->end_ns;

	if (r->kind == TIMELINE_CPU)
		row->cpu_ns += r->length_ns;
	begin = begin > q->from_ns ? begin : q->from_ns;
	end = end < q->to_ns ? end : q->to_ns;
	if (end <= begin)
		return;
	if (r->kind == TIMELINE_LOCK && r->reason < WIRE_WAIT_COUNT)
		row->off_ns[thread_times_lock_reasons[r->reason]] += end - begin;
	if (r->kind == TIMELINE_OFFCPU && r->reason < OFFCPU_REASON_COUNT &&
	    !(r->flags & TIMELINE_TWICE))
		row->off_ns[r->reason] += end - begin;
}

/* A thread that changed its name has several rows: adds them up in one. */
static void times_join(struct time_rows *rows)
{
	uint32_t n = 0;

	qsort(rows->rows, rows->n, sizeof(*rows->rows), times_by_tid);
	for (uint32_t i = 0; i < rows->n; i++) {
		struct time_row *to = &rows->rows[n], *from = &rows->rows[i];

		if (n && rows->rows[n - 1].tid == from->tid) {
			to = &rows->rows[n - 1];
			to->cpu_ns += from->cpu_ns;
			for (uint32_t k = 0; k < TIME_LEDGER_REASONS; k++)
				to->off_ns[k] += from->off_ns[k];
		} else {
			*to = *from;
			n++;
		}
	}
	rows->n = n;
}

static void times_add_open(const struct target *t, uint64_t back_ns, struct time_rows *rows)
{
	uint64_t now_ns = clock_mono_ns();
	uint32_t n;
	struct time_reason *open = open_reasons(t, now_ns, &n);

	for (uint32_t i = 0; i < n; i++) {
		struct time_row *row =
			(struct time_row *)(uintptr_t)time_rows_find(rows, open[i].tid);
		uint64_t ago_ns = now_ns > open[i].begin_ns ? now_ns - open[i].begin_ns : 0;
		uint64_t ns = ago_ns > back_ns ? ago_ns - back_ns : 0;

		if (row)
			row->off_ns[open[i].reason] += ns < rows->span_ns ? ns : rows->span_ns;
	}
	free(open);
}

/* Leaves only threads from number @least on. */
static void times_keep_from(struct time_rows *rows, uint32_t least)
{
	uint32_t below = 0;

	while (below < rows->n && rows->rows[below].tid < least)
		below++;
	rows->n -= below;
	memmove(rows->rows, rows->rows + below, rows->n * sizeof(*rows->rows));
}

/* The times of the threads from number @least on in the span of @ret, which becomes shorter if less
 * is known and @shorten is set. */
static int times_of_events(const struct target *t, uint32_t least, bool shorten,
			   struct time_rows *ret)
{
	const struct timeline *timeline = host_timeline(t);
	uint64_t now_ns = clock_mono_ns(), to_ns = clock_real_ns() - (now_ns - ret->end_ns);
	struct timeline_question q = { .from_ns = to_ns - ret->span_ns, .to_ns = to_ns };
	struct timeline_answer a;

	if (!timeline) {
		*ret = (struct time_rows){ 0 };
		return 0;
	}
	if (timeline_query(timeline, &q, &a) < 0)
		return -ENOMEM;
	if (shorten && a.since_ns > q.from_ns)
		q.from_ns = a.since_ns < to_ns ? a.since_ns : to_ns;
	ret->span_ns = q.to_ns - q.from_ns;
	ret->begin_ns = ret->end_ns - ret->span_ns;
	ret->rows = calloc(a.n_threads + 1, sizeof(*ret->rows));
	if (!ret->rows) {
		timeline_answer_free(&a);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < a.n_threads; i++)
		ret->rows[ret->n++] =
			(struct time_row){ .tid = a.threads[i].tid, .wall_ns = ret->span_ns };
	for (uint32_t i = 0; i < a.n_rows; i++)
		if (a.rows[i].thread)
			times_add_event(&ret->rows[a.rows[i].thread - 1], &a.rows[i], &q);
	timeline_answer_free(&a);
	times_join(ret);
	times_keep_from(ret, least);
	times_add_open(t, now_ns - ret->end_ns, ret);
	for (uint32_t i = 0; i < ret->n; i++)
		time_row_close(&ret->rows[i]);
	return 0;
}

int thread_times_of_virtual(const struct target *t, const struct time_rows *others,
			    struct time_rows *ret)
{
	*ret = (struct time_rows){ .begin_ns = others->begin_ns,
				   .end_ns = others->end_ns,
				   .span_ns = others->span_ns };
	return times_of_events(t, WIRE_VIRTUAL_TID, false, ret);
}

/* ---- both ------------------------------------------------------------------------------------ */

static const char *times_why_unseen(const struct host *h, const struct target *t, uint64_t since_ns)
{
	const struct offcpu_engine *engine = host_offcpu_engine(h);
	uint64_t rested_ns = engine ? offcpu_engine_rested_ns(engine, t->jvm.pid) : 0;

	return rested_ns && rested_ns >= since_ns
		       ? "the measurement rested, because context switches cost too much"
		       : "";
}

int thread_times_of(struct host *h, const struct target *t, uint64_t back_ns, uint64_t last_ns,
		    struct thread_times *ret)
{
	const struct time_ledger *ledger = host_time_ledger(h, t, &ret->why);
	int r;

	ret->rows = (struct time_rows){ .end_ns = clock_mono_ns() - back_ns, .span_ns = last_ns };
	r = ledger ? times_of_kernel(t, ledger, back_ns, last_ns, &ret->rows)
		   : times_of_events(t, 0, true, &ret->rows);

	ret->by_kernel = ledger != NULL;
	if (r == 0 && ledger)
		ret->why = times_why_unseen(h, t, ret->rows.begin_ns);
	return r;
}

void thread_times_row_text(struct text_out *to, const struct time_row *r)
{
	json_add_u64(to, "wall_ns", r->wall_ns);
	json_add_u64(to, "cpu_ns", r->cpu_ns);
	json_add_u64(to, "runqueue_ns", r->runqueue_ns);
	json_begin_object(to, "offcpu_ns");
	for (int i = 0; i < OFFCPU_REASON_COUNT; i++)
		if (r->off_ns[i])
			json_add_u64(to, offcpu_reason_names[i], r->off_ns[i]);
	if (r->off_ns[THREAD_TIMES_IDLE])
		json_add_u64(to, "idle", r->off_ns[THREAD_TIMES_IDLE]);
	json_end_object(to);
	json_add_u64(to, "unseen_ns", r->unseen_ns);
}

static struct time_row times_sum(const struct time_rows *rows)
{
	struct time_row sum = { 0 };

	for (uint32_t i = 0; i < rows->n; i++)
		time_row_add(&sum, &rows->rows[i]);
	return sum;
}

void thread_times_text(struct text_out *to, const char *key, const struct thread_times *times)
{
	struct time_row sum = times_sum(&times->rows);
	uint32_t has_folded = times->by_kernel && times->rows.n && !times->rows.rows[0].tid;

	json_begin_object(to, key);
	json_add_string(to, "by", times->by_kernel ? "kernel" : "samples");
	json_add_u64(to, "span_ns", times->rows.span_ns);
	json_add_u64(to, "threads", times->rows.n - has_folded + times->rows.folded);
	json_add_u64(to, "ended_together", times->rows.folded);
	json_add_u64(to, "no_room", times->rows.refused);
	thread_times_row_text(to, &sum);
	if (times->by_kernel && !(sum.unseen_ns && times->why[0]))
		json_add_null(to, "unseen_why");
	else
		json_add_string(to, "unseen_why", times->why);
	json_end_object(to);
}

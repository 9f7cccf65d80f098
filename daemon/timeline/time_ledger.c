/* See time_ledger.h. What a thread's slices hold is in time_slices.c. */
#include "daemon/timeline/time_slices.h"

#include <errno.h>
#include "daemon/timeline/time_folded.h"

#define BUCKETS	  1024u /* power of two */
#define REASONS	  TIME_LEDGER_REASONS
#define FINE	  14u
#define COARSE	  12u
#define COARSE_NS 60000000000ull
#define KEPT	  (TIME_LEDGER_THREADS / 8 * 7) /* rows that are left when room is made */

_Static_assert(FINE <= TIME_FOLDED_SLICES && COARSE <= TIME_FOLDED_SLICES, "room for each slice");

struct ledger_thread {
	struct time_ledger *ledger;
	struct ledger_thread *next; /* the next one in its bucket */
	uint32_t tid;
	bool ended;
	bool begun; /* last is set */
	struct time_totals last;
	struct time_seen seen; /* at_ns 0 = in no wait */
	struct time_seen unreported; /* the last one with no_event; at_ns 0 = none */
	struct time_slice fine[FINE], coarse[COARSE];
};

struct time_ledger {
	struct ledger_thread *buckets[BUCKETS];
	uint32_t n, n_living;
	size_t bytes; /* of the slices' parts */
	struct time_folded *folded; /* NULL = nothing yet */
	uint64_t refused;
	uint64_t swept_ns;
	uint64_t begin_ns; /* the earliest known time; 0 = none yet */
	uint64_t end_ns; /* the latest */
	/* since when and until when it is reported what threads are seen in */
	uint64_t seen_from_ns, seen_to_ns;
};

static struct time_ring ledger_fine(struct ledger_thread *t)
{
	return (struct time_ring){ t->fine, FINE, TIME_LEDGER_SLICE_NS, &t->ledger->bytes };
}

static struct time_ring ledger_coarse(struct ledger_thread *t)
{
	return (struct time_ring){ t->coarse, COARSE, COARSE_NS, &t->ledger->bytes };
}

static void ledger_thread_free(struct ledger_thread *t)
{
	const struct time_ring fine = ledger_fine(t), coarse = ledger_coarse(t);

	time_ring_deinit(&fine);
	time_ring_deinit(&coarse);
	free(t);
}

int time_ledger_new(struct time_ledger **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

struct time_ledger *time_ledger_free(struct time_ledger *l)
{
	for (uint32_t i = 0; l && i < BUCKETS; i++)
		while (l->buckets[i]) {
			struct ledger_thread *t = l->buckets[i];

			l->buckets[i] = t->next;
			ledger_thread_free(t);
		}
	if (l)
		free(l->folded);
	free(l);
	return NULL;
}

size_t time_ledger_bytes(const struct time_ledger *l)
{
	return sizeof(*l) + l->n * sizeof(struct ledger_thread) + l->bytes +
	       (l->folded ? sizeof(*l->folded) : 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct ledger_thread **ledger_place(struct time_ledger *l, uint32_t tid)
{
	return &l->buckets[tid & (BUCKETS - 1)];
}

static struct ledger_thread *ledger_find(const struct time_ledger *l, uint32_t tid)
{
	struct ledger_thread *t = l->buckets[tid & (BUCKETS - 1)];

	while (t && t->tid != tid)
		t = t->next;
	return t;
}

/* Totals are still to come. A thread of which none have come yet may have ended long ago. */
static bool ledger_lives(const struct ledger_thread *t)
{
	return t->begun && !t->ended;
}

static void ledger_unlink(struct time_ledger *l, struct ledger_thread **link)
{
	struct ledger_thread *t = *link;

	*link = t->next;
	l->n--;
	l->n_living -= ledger_lives(t);
	ledger_thread_free(t);
}

/* Frees threads that have no time in any slice. */
static void ledger_sweep(struct time_ledger *l, uint64_t now_ns)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct ledger_thread **link = &l->buckets[i]; *link;)
			if ((*link)->last.to_ns + TIME_LEDGER_MAX_NS + COARSE_NS > now_ns)
				link = &(*link)->next;
			else
				ledger_unlink(l, link);
}

static void ledger_fold(struct time_ledger *l, struct ledger_thread *t);

/* Adds threads that ended before @before_ns to the row that they share, and forgets those of which
 * only reasons have come until then. */
static void ledger_fold_ended(struct time_ledger *l, uint64_t before_ns)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct ledger_thread **link = &l->buckets[i]; *link;) {
			if (ledger_lives(*link) || (*link)->last.to_ns > before_ns) {
				link = &(*link)->next;
				continue;
			}
			ledger_fold(l, *link);
			ledger_unlink(l, link);
		}
}

/* Makes room by those that ended long ago; if they do not suffice, also by those whose reasons may
 * still come. */
static void ledger_make_room(struct time_ledger *l, uint64_t now_ns)
{
	static const uint64_t ages_ns[] = { COARSE_NS, TIME_LEDGER_STALE_NS, 0 };

	if (!l->folded)
		l->folded = calloc(1, sizeof(*l->folded));
	if (!l->folded || l->n_living == l->n || now_ns < COARSE_NS)
		return;
	for (size_t i = l->n_living < KEPT ? 0 : ARRAY_SIZE(ages_ns) - 1;
	     i < ARRAY_SIZE(ages_ns) && l->n > KEPT; i++)
		ledger_fold_ended(l, now_ns - ages_ns[i]);
}

static struct ledger_thread *ledger_get(struct time_ledger *l, uint32_t tid, uint64_t now_ns)
{
	struct ledger_thread *t = ledger_find(l, tid), **place;

	if (t)
		return t;
	if (now_ns > l->swept_ns + COARSE_NS) {
		ledger_sweep(l, now_ns);
		l->swept_ns = now_ns;
	}
	if (l->n >= TIME_LEDGER_THREADS)
		ledger_make_room(l, now_ns);
	t = l->n < TIME_LEDGER_THREADS ? calloc(1, sizeof(*t)) : NULL;
	if (!t) {
		l->refused++;
		return NULL;
	}
	if (time_ledger_has_folded(l, tid)) /* the kernel gave its number to another thread */
		l->folded->tids[tid % TIME_FOLDED_TIDS] = 0;
	t->ledger = l;
	t->tid = tid;
	place = ledger_place(l, tid);
	t->next = *place;
	*place = t;
	l->n++;
	return t;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static uint64_t *passed_part(struct time_passed *p, uint32_t i)
{
	return i == 0 ? &p->cpu : i == 1 ? &p->runqueue : &p->off[i - 2];
}

static uint64_t totals_part(const struct time_totals *t, uint32_t i)
{
	return i == 0 ? t->cpu_ns : i == 1 ? t->runqueue_ns : t->off_ns[i - 2];
}

/*
 * Moves time that was counted under the wrong part. A part that became smaller was counted too
 * early: the reason of a thread that has slept since before it was measured is known only later,
 * and a thread whose context switch the kernel did not report seemed to run. That time is contained
 * in
 * @p, the parts that grew.
 */
static void ledger_correct(struct ledger_thread *t, const struct time_totals *now,
			   struct time_passed *p)
{
	const struct time_ring fine = ledger_fine(t), coarse = ledger_coarse(t);

	for (uint32_t from = 0; from < TIME_PARTS; from++) {
		uint64_t less =
			time_us_between(totals_part(now, from), totals_part(&t->last, from));

		for (uint32_t to = 0; to < TIME_PARTS && less; to++) {
			uint64_t *grew = passed_part(p, to), us = *grew < less ? *grew : less;

			time_ring_move(&fine, t->last.to_ns, from, to, us);
			time_ring_move(&coarse, t->last.to_ns, from, to, us);
			*grew -= us;
			less -= us;
		}
	}
}

static void ledger_spread(struct ledger_thread *t, const struct time_passed *p, uint64_t begin_ns,
			  uint64_t end_ns)
{
	const struct time_ring fine = ledger_fine(t), coarse = ledger_coarse(t);

	time_ring_spread(&fine, *p, begin_ns, end_ns);
	time_ring_spread(&coarse, *p, begin_ns, end_ns);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static void ledger_explain(struct ledger_thread *t, const struct time_reason *r)
{
	const struct time_ring fine = ledger_fine(t), coarse = ledger_coarse(t);

	time_ring_explain(&fine, r);
	time_ring_explain(&coarse, r);
}

/*
 * Is the thread still in the wait in which it was seen? Then it has not run since: the kernel saw it
 * leave the CPU before, or has not seen it run at all.
 */
static bool ledger_is_seen_wait(const struct ledger_thread *t)
{
	const struct time_totals *last = &t->last;
	bool same = t->seen.at_ns >= last->off_since_ns || last->off_since_ns <= last->from_ns;

	return t->seen.at_ns && last->off_since_ns && same && t->seen.from == last->off_reason &&
	       last->to_ns > last->off_since_ns;
}

/* The thread was seen in that wait: what is known of it, which is all but its end. */
static void ledger_end_seen_wait(struct ledger_thread *t)
{
	const struct time_reason r = {
		.tid = t->tid,
		.begin_ns = t->last.off_since_ns,
		.end_ns = t->last.to_ns,
		.from = t->seen.from,
		.reason = t->seen.reason,
		.is_wait = true,
	};

	ledger_explain(t, &r);
}

void time_ledger_totals(struct time_ledger *l, const struct time_totals *now)
{
	static const struct time_totals zero;
	struct ledger_thread *t = ledger_get(l, now->tid, now->to_ns);
	const struct time_totals *before;
	struct time_passed p = { 0 };
	uint64_t begin_ns;

	if (!t || now->to_ns < now->from_ns || now->to_ns > UINT64_MAX / 2)
		return;
	if (!l->begin_ns || now->from_ns < l->begin_ns)
		l->begin_ns = now->from_ns;
	if (now->to_ns > l->end_ns)
		l->end_ns = now->to_ns;
	/* Totals that begin before the last ones end go on from them: no time counts twice. */
	before = t->begun && now->from_ns < t->last.to_ns ? &t->last : &zero;
	begin_ns = before == &zero ? now->from_ns : before->to_ns;
	/* nothing is known of the time between two totals, but the thread was alive unless it
	 * had ended: that time is not seen */
	if (before == &zero && t->begun && !t->ended && t->last.to_ns < now->from_ns) {
		p.wall = time_us_between(t->last.to_ns, now->from_ns);
		ledger_spread(t, &p, t->last.to_ns, now->from_ns);
	}
	if (now->to_ns > begin_ns) {
		p.wall = time_us_between(begin_ns, now->to_ns);
		p.cpu = time_us_between(before->cpu_ns, now->cpu_ns);
		p.runqueue = time_us_between(before->runqueue_ns, now->runqueue_ns);
		for (uint32_t i = 0; i < REASONS; i++)
			p.off[i] = time_us_between(before->off_ns[i], now->off_ns[i]);
		if (before != &zero)
			ledger_correct(t, now, &p);
		ledger_spread(t, &p, begin_ns, now->to_ns);
	}
	/* its time off the CPU may have no event either, or no reason */
	if (t->seen.no_event && ledger_is_seen_wait(t) && now->off_since_ns != t->last.off_since_ns)
		ledger_end_seen_wait(t);
	l->n_living -= ledger_lives(t);
	t->last = *now;
	t->begun = true;
	t->ended = now->ended;
	l->n_living += ledger_lives(t);
}

/* A first report comes with the sums of waits of a minute before it. */
static void ledger_extend_seen(struct time_ledger *l, uint64_t at_ns)
{
	if (!l->seen_to_ns || at_ns > l->seen_to_ns + COARSE_NS)
		l->seen_from_ns = at_ns > COARSE_NS ? at_ns - COARSE_NS : 0;
	if (at_ns > l->seen_to_ns)
		l->seen_to_ns = at_ns;
}

/* The thread's first totals may come later, in a second at most; NULL = there is no room, or it has
 * ended and its times are in the row that it shares. */
static struct ledger_thread *ledger_get_early(struct time_ledger *l, uint32_t tid, uint64_t now_ns)
{
	struct ledger_thread *t = ledger_find(l, tid);

	if (!t && l->n < TIME_LEDGER_THREADS && !time_ledger_has_folded(l, tid))
		t = ledger_get(l, tid, now_ns);
	if (t && !t->begun) /* else it would be swept */
		t->last.to_ns = now_ns;
	return t;
}

void time_ledger_reason(struct time_ledger *l, const struct time_reason *r)
{
	struct ledger_thread *t;

	if (r->from >= REASONS || r->reason >= REASONS || r->end_ns <= r->begin_ns ||
	    r->end_ns > UINT64_MAX / 2)
		return;
	t = ledger_get_early(l, r->tid, r->end_ns);
	if (t)
		ledger_explain(t, r);
}

void time_ledger_seen(struct time_ledger *l, const struct time_seen *seen)
{
	struct ledger_thread *t;

	if (seen->from >= REASONS || seen->reason >= REASONS || seen->at_ns > UINT64_MAX / 2)
		return;
	t = ledger_get_early(l, seen->tid, seen->at_ns);
	if (!t)
		return;
	ledger_extend_seen(l, seen->at_ns);
	t->seen = *seen;
	if (seen->from == seen->reason)
		t->seen.at_ns = 0;
	else if (seen->no_event)
		t->unreported = *seen;
}

/* ---- questions ------------------------------------------------------------------------------- */

void time_row_add(struct time_row *to, const struct time_row *from)
{
	to->wall_ns += from->wall_ns;
	to->cpu_ns += from->cpu_ns;
	to->runqueue_ns += from->runqueue_ns;
	to->unseen_ns += from->unseen_ns;
	for (uint32_t i = 0; i < REASONS; i++)
		to->off_ns[i] += from->off_ns[i];
}

void time_row_close(struct time_row *r)
{
	uint64_t *parts[REASONS + 2] = { &r->cpu_ns, &r->runqueue_ns }, sum = 0, given = 0;

	for (uint32_t i = 0; i < REASONS; i++)
		parts[2 + i] = &r->off_ns[i];
	for (uint32_t i = 0; i < REASONS + 2; i++)
		sum += *parts[i];
	if (sum > r->wall_ns)
		for (uint32_t i = 0; i < REASONS + 2; i++) {
			*parts[i] = (uint64_t)((unsigned __int128)*parts[i] * r->wall_ns / sum);
			given += *parts[i];
		}
	else
		given = sum;
	r->unseen_ns = r->wall_ns - given;
}

/* A wait may be among the times off the CPU and among the waits: the larger sum counts. */
static void ledger_merge_waits(struct time_sum *sum)
{
	for (uint32_t k = 0; k < sum->n_from; k++)
		for (uint32_t i = 0; i < REASONS; i++)
			if (sum->waited[k][i] > sum->explained[k][i])
				sum->explained[k][i] = sum->waited[k][i];
}

/* Moves time from the kernel's reasons to those that explain it, at most as much as there is. */
static void ledger_apply(struct time_sum *sum)
{
	for (uint32_t k = 0; k < sum->n_from; k++) {
		uint64_t has = sum->row.off_ns[sum->from[k]], wants = 0, taken = 0;

		for (uint32_t i = 0; i < REASONS; i++)
			wants += sum->explained[k][i];
		for (uint32_t i = 0; i < REASONS && wants; i++) {
			uint64_t ns = sum->explained[k][i];

			if (wants > has)
				ns = (uint64_t)((unsigned __int128)ns * has / wants);
			sum->row.off_ns[i] += ns;
			taken += ns;
		}
		sum->row.off_ns[sum->from[k]] -= taken;
	}
}

struct ledger_span {
	uint64_t begin_ns, end_ns;
	bool coarse;
};

/* No time off the CPU and no wait tells yet of one that goes on. */
static void ledger_add_open(struct time_sum *sum, const struct time_reason *open, uint64_t ns)
{
	uint32_t source;

	if (open->from >= REASONS || open->reason >= REASONS || open->from == open->reason)
		return;
	source = time_sum_source(sum, open->from);
	sum->explained[source][open->reason] += ns;
	sum->waited[source][open->reason] += ns;
}

/* No totals come of any thread since a while, because the measurement rests: what has passed since
 * then is not seen, of threads that lived when it stopped. */
static uint64_t ledger_rested_ns(const struct time_ledger *l, const struct ledger_thread *t,
				 const struct ledger_span *span)
{
	uint64_t from_ns = t->last.to_ns > span->begin_ns ? t->last.to_ns : span->begin_ns;

	if (!t->begun || t->ended || l->end_ns + TIME_LEDGER_STALE_NS >= span->end_ns ||
	    t->last.to_ns + TIME_LEDGER_STALE_NS < l->end_ns)
		return 0;
	return span->end_ns - from_ns;
}

/* Up to when the span's time of @t is known. */
static uint64_t ledger_known_to(const struct ledger_thread *t, const struct ledger_span *span)
{
	return t->last.to_ns < span->end_ns ? t->last.to_ns : span->end_ns;
}

/* The time off the CPU that goes on has no event yet: only what @t was seen in can explain it. */
static void ledger_add_off(struct time_sum *sum, const struct ledger_thread *t,
			   const struct ledger_span *span)
{
	uint64_t begin_ns = t->last.off_since_ns, to_ns = ledger_known_to(t, span);
	const struct time_reason open = { .from = t->seen.from, .reason = t->seen.reason };
	uint8_t reason = t->last.off_reason;

	if (begin_ns < span->begin_ns)
		begin_ns = span->begin_ns;
	if (!t->last.off_since_ns || to_ns <= begin_ns || reason >= REASONS)
		return;
	if (ledger_is_seen_wait(t))
		ledger_add_open(sum, &open, to_ns - begin_ns);
	else
		sum->explained[time_sum_source(sum, reason)][reason] += to_ns - begin_ns;
}

/* How much of the span, up to what @t waits for now, has reports of what threads are seen in. */
static double ledger_seen_part(const struct time_ledger *l, const struct ledger_thread *t,
			       const struct ledger_span *span)
{
	uint64_t from_ns = l->seen_from_ns > span->begin_ns ? l->seen_from_ns : span->begin_ns;
	uint64_t end_ns = t->last.off_since_ns ? t->last.off_since_ns : span->end_ns;
	uint64_t to_ns = l->seen_to_ns < end_ns ? l->seen_to_ns : end_ns;

	return from_ns < to_ns ? (double)(to_ns - from_ns) / (double)(end_ns - span->begin_ns) : 0;
}

/*
 * Times that are too short for an event, in waits of which no lock event tells either, such as
 * Thread.sleep: if @t was seen in such a wait, in the span or up to a minute before, that is the
 * reason of what nothing else explains, where the sums of short waits are known.
 */
static void ledger_add_unreported(const struct time_ledger *l, struct time_sum *sum,
			      const struct ledger_thread *t, const struct ledger_span *span)
{
	const struct time_seen *seen = &t->unreported;
	uint64_t has, known = 0;
	uint32_t source;

	if (!seen->at_ns || seen->at_ns + COARSE_NS < span->begin_ns)
		return;
	source = time_sum_source(sum, seen->from);
	has = sum->row.off_ns[seen->from];
	for (uint32_t i = 0; i < REASONS; i++)
		known += sum->explained[source][i];
	if (has > known)
		sum->explained[source][seen->reason] +=
			(uint64_t)((double)(has - known) * ledger_seen_part(l, t, span));
}

/* When the wait that goes on began. One that began before the agent came is known to the agent from
 * a later moment on; but a thread that has not run since then has waited for nothing else. */
static uint64_t ledger_open_begin(const struct ledger_thread *t, const struct time_reason *open)
{
	uint64_t off_ns = t->last.off_since_ns;

	return off_ns && off_ns < open->begin_ns ? off_ns : open->begin_ns;
}

/* Adds what @t waits for now. */
static void ledger_add_now(struct time_sum *sum, const struct ledger_thread *t,
			   const struct ledger_span *span, const struct time_reason *open,
			   uint32_t n_open)
{
	uint64_t to_ns = ledger_known_to(t, span);
	bool is_open = false;

	for (uint32_t i = 0; i < n_open; i++) {
		uint64_t begin = ledger_open_begin(t, &open[i]);

		if (begin < span->begin_ns)
			begin = span->begin_ns;
		if (open[i].tid != t->tid || open[i].begin_ns >= to_ns || begin >= to_ns)
			continue;
		ledger_add_open(sum, &open[i], to_ns - begin);
		is_open = true;
	}
	if (!is_open)
		ledger_add_off(sum, t, span);
}

static void ledger_row(const struct time_ledger *l, struct ledger_thread *t,
		       const struct ledger_span *span, const struct time_reason *open,
		       uint32_t n_open, struct time_row *ret)
{
	const struct time_ring ring = span->coarse ? ledger_coarse(t) : ledger_fine(t);
	uint64_t first = span->begin_ns / ring.slice_ns + 1,
		 last = (span->end_ns - 1) / ring.slice_ns + 1;
	struct time_sum sum = { .row = { .tid = t->tid, .ended = t->ended } };

	time_sum_add(&sum, &ring, first, last);
	ledger_add_now(&sum, t, span, open, n_open);
	ledger_merge_waits(&sum);
	ledger_add_unreported(l, &sum, t, span);
	ledger_apply(&sum);
	sum.row.wall_ns += ledger_rested_ns(l, t, span);
	time_row_close(&sum.row);
	*ret = sum.row;
}

/* Adds what @t did in each slice of @ring. */
static void ledger_fold_ring(const struct time_ledger *l, const struct ledger_thread *t,
			     struct time_ring ring, struct time_folded_slice *to)
{
	uint64_t last = t->last.to_ns / ring.slice_ns + 1;

	for (uint32_t i = 0; i < ring.n; i++) {
		uint64_t number = ring.slices[i].number;
		const struct ledger_span span = { .begin_ns = (number - 1) * ring.slice_ns,
						  .end_ns = number * ring.slice_ns };
		struct time_sum sum = { 0 };

		if (!number)
			continue;
		time_sum_add(&sum, &ring, number, number);
		ledger_merge_waits(&sum);
		ledger_add_unreported(l, &sum, t, &span);
		ledger_apply(&sum);
		time_row_close(&sum.row);
		time_folded_add(to, number, &sum.row, number == last);
	}
}

static void ledger_fold(struct time_ledger *l, struct ledger_thread *t)
{
	if (!t->begun) /* without totals there is nothing to add */
		return;
	ledger_fold_ring(l, t, ledger_fine(t), l->folded->fine);
	ledger_fold_ring(l, t, ledger_coarse(t), l->folded->coarse);
	l->folded->tids[t->tid % TIME_FOLDED_TIDS] = t->tid;
}

bool time_ledger_has_folded(const struct time_ledger *l, uint32_t tid)
{
	return tid && l->folded && l->folded->tids[tid % TIME_FOLDED_TIDS] == tid;
}

/* Adds the row of the ended threads that share one, if any did something in the span. */
static void ledger_add_folded(const struct time_ledger *l, const struct ledger_span *span,
			      struct time_rows *ret)
{
	uint64_t slice_ns = span->coarse ? COARSE_NS : TIME_LEDGER_SLICE_NS;
	struct time_row row;

	if (!l->folded || !ret->span_ns)
		return;
	ret->folded = time_folded_sum(span->coarse ? l->folded->coarse : l->folded->fine,
				      span->begin_ns / slice_ns + 1,
				      (span->end_ns - 1) / slice_ns + 1, &row);
	if (row.wall_ns)
		ret->rows[ret->n++] = row;
}

static int ledger_by_tid(const void *a, const void *b)
{
	const struct time_row *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* The asked span in whole slices; it begins where the first time is known. */
static struct ledger_span ledger_span_of(const struct time_ledger *l, uint64_t now_ns,
					 uint64_t back_ns, uint64_t last_ns)
{
	uint64_t to_ns = now_ns > back_ns ? now_ns - back_ns : 0, ago_ns = back_ns + last_ns;
	uint64_t slice_ns, known_ns = l->begin_ns ? l->begin_ns : now_ns;
	struct ledger_span s = { .end_ns = now_ns };

	if (ago_ns > TIME_LEDGER_MAX_NS || ago_ns < last_ns)
		ago_ns = TIME_LEDGER_MAX_NS;
	s.coarse = ago_ns > (FINE - 2) * TIME_LEDGER_SLICE_NS;
	slice_ns = s.coarse ? COARSE_NS : TIME_LEDGER_SLICE_NS;
	s.begin_ns = now_ns > ago_ns ? (now_ns - ago_ns) / slice_ns * slice_ns : 0;
	if (s.begin_ns < known_ns)
		s.begin_ns = known_ns;
	if (back_ns && (to_ns + slice_ns - 1) / slice_ns * slice_ns < now_ns)
		s.end_ns = (to_ns + slice_ns - 1) / slice_ns * slice_ns;
	if (s.end_ns < s.begin_ns) /* nothing is known of it */
		s.begin_ns = s.end_ns;
	return s;
}

int time_ledger_query(const struct time_ledger *l, uint64_t now_ns, uint64_t back_ns,
		      uint64_t last_ns, const struct time_reason *open, uint32_t n_open,
		      struct time_rows *ret)
{
	struct ledger_span span = ledger_span_of(l, now_ns, back_ns, last_ns);

	*ret = (struct time_rows){ .begin_ns = span.begin_ns,
				   .end_ns = span.end_ns,
				   .span_ns = span.end_ns - span.begin_ns,
				   .refused = l->refused };
	ret->rows = calloc(l->n + 2, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	ledger_add_folded(l, &span, ret);
	for (uint32_t i = 0; ret->span_ns && i < BUCKETS; i++)
		for (struct ledger_thread *t = l->buckets[i]; t; t = t->next) {
			ledger_row(l, t, &span, open, n_open, &ret->rows[ret->n]);
			ret->n += ret->rows[ret->n].wall_ns > 0;
		}
	qsort(ret->rows, ret->n, sizeof(*ret->rows), ledger_by_tid);
	return 0;
}

void time_rows_free(struct time_rows *r)
{
	free(r->rows);
	*r = (struct time_rows){ 0 };
}

const struct time_row *time_rows_find(const struct time_rows *r, uint32_t tid)
{
	const struct time_row key = { .tid = tid };

	return r->n ? bsearch(&key, r->rows, r->n, sizeof(*r->rows), ledger_by_tid) : NULL;
}

/* ---- what has not ended ---------------------------------------------------------------------- */

static bool ledger_is_off(const struct ledger_thread *t, uint64_t now_ns)
{
	return t->begun && !t->ended && t->last.off_since_ns &&
	       t->last.off_since_ns < t->last.to_ns && t->last.off_reason < REASONS &&
	       t->last.to_ns + TIME_LEDGER_STALE_NS >= now_ns;
}

static struct time_off ledger_off_of(const struct ledger_thread *t)
{
	return (struct time_off){
		.tid = t->tid,
		.begin_ns = t->last.off_since_ns,
		.reason = t->last.off_reason,
		.seen_reason = ledger_is_seen_wait(t) ? t->seen.reason : t->last.off_reason,
		.syscall_nr = t->last.off_syscall,
	};
}

int time_ledger_off(const struct time_ledger *l, uint64_t now_ns, struct time_off **ret,
		    uint32_t *ret_n)
{
	struct time_off *list = calloc(l->n + 1, sizeof(*list));
	uint32_t n = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct ledger_thread *t = l->buckets[i]; t; t = t->next)
			if (ledger_is_off(t, now_ns))
				list[n++] = ledger_off_of(t);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* See time_ledger.h. Slices hold microseconds. Totals are compared in whole microseconds since
 * their beginning, so that rounding errors do not add up. */
#include "daemon/timeline/time_ledger.h"

#include <errno.h>
#include <string.h>

#define US	  1000ull
#define BUCKETS	  1024u /* power of two */
#define REASONS	  TIME_LEDGER_REASONS
#define FINE	  14u
#define COARSE	  12u
#define COARSE_NS 60000000000ull
/* The number of the kernel's reasons that are explained in a slice; others stay unexplained. */
#define SOURCES 3u
/* Kinds of waits of a slice that the application's locks tell of. */
#define WAITED 4u

struct slice {
	uint64_t number; /* slice's number in its ring; 0 = empty */
	uint32_t wall_us, cpu_us, runqueue_us;
	uint32_t off_us[REASONS];
	struct explained {
		uint8_t from;
		uint32_t us[REASONS];
	} explained[SOURCES];
	struct waited {
		uint8_t from, reason;
		uint32_t us;
	} waited[WAITED];
	uint8_t n_explained, n_waited;
};

struct ledger_thread {
	struct ledger_thread *next; /* the next one in its bucket */
	uint32_t tid;
	bool ended;
	bool begun; /* last is set */
	struct time_totals last;
	struct time_seen seen; /* at_ns 0 = in no wait */
	struct time_seen untold; /* the last one with no_event; at_ns 0 = none */
	struct slice fine[FINE], coarse[COARSE];
};

struct time_ledger {
	struct ledger_thread *buckets[BUCKETS];
	uint32_t n;
	uint64_t refused;
	uint64_t swept_ns;
	uint64_t begin_ns; /* the earliest known time; 0 = none yet */
	uint64_t end_ns; /* the latest */
	/* since when and until when it is reported what threads are seen in */
	uint64_t seen_from_ns, seen_to_ns;
};

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
			free(t);
		}
	free(l);
	return NULL;
}

size_t time_ledger_bytes(const struct time_ledger *l)
{
	return sizeof(*l) + l->n * sizeof(struct ledger_thread);
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

/* Frees threads that have no time in any slice. */
static void ledger_sweep(struct time_ledger *l, uint64_t now_ns)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct ledger_thread **link = &l->buckets[i]; *link;) {
			struct ledger_thread *t = *link;

			if (t->last.to_ns + TIME_LEDGER_MAX_NS + COARSE_NS > now_ns) {
				link = &t->next;
				continue;
			}
			*link = t->next;
			free(t);
			l->n--;
		}
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
	t = l->n < TIME_LEDGER_THREADS ? calloc(1, sizeof(*t)) : NULL;
	if (!t) {
		l->refused++;
		return NULL;
	}
	t->tid = tid;
	place = ledger_place(l, tid);
	t->next = *place;
	*place = t;
	l->n++;
	return t;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* The slice of a moment; NULL = the moment is older than the ring. Numbers begin at 1. */
static struct slice *ledger_slice_at(struct slice *ring, uint32_t n, uint64_t slice_ns,
				     uint64_t at_ns)
{
	uint64_t number = at_ns / slice_ns + 1;
	struct slice *s = &ring[number % n];

	if (s->number > number)
		return NULL;
	if (s->number != number) {
		memset(s, 0, sizeof(*s));
		s->number = number;
	}
	return s;
}

/* 0 if @now_ns is the smaller one. */
static uint64_t us_between(uint64_t before_ns, uint64_t now_ns)
{
	return now_ns / US - (before_ns < now_ns ? before_ns : now_ns) / US;
}

/* The difference between two totals, in us. */
struct passed {
	uint64_t wall, cpu, runqueue, off[REASONS];
};

/* CPU, run queue, reasons. */
#define PARTS (REASONS + 2)

static uint32_t *slice_part(struct slice *s, uint32_t i)
{
	return i == 0 ? &s->cpu_us : i == 1 ? &s->runqueue_us : &s->off_us[i - 2];
}

static uint64_t *passed_part(struct passed *p, uint32_t i)
{
	return i == 0 ? &p->cpu : i == 1 ? &p->runqueue : &p->off[i - 2];
}

static uint64_t totals_part(const struct time_totals *t, uint32_t i)
{
	return i == 0 ? t->cpu_ns : i == 1 ? t->runqueue_ns : t->off_ns[i - 2];
}

/* Moves @us from part @from to part @to, in the slices up to @at_ns, beginning with the newest. */
static void slices_move(struct slice *ring, uint32_t n, uint64_t slice_ns, uint64_t at_ns,
			uint32_t from, uint32_t to, uint64_t us)
{
	uint64_t number = at_ns / slice_ns + 1;

	for (uint32_t i = 0; i < n && i < number && us; i++) {
		struct slice *s = &ring[(number - i) % n];
		uint64_t has = s->number == number - i ? *slice_part(s, from) : 0;
		uint32_t moved = (uint32_t)(has < us ? has : us);

		if (!moved)
			continue;
		*slice_part(s, from) -= moved;
		*slice_part(s, to) += moved;
		us -= moved;
	}
}

/*
 * Moves time that was counted under the wrong part. A part that became smaller was counted too
 * early: the reason of a thread that has slept since before it was measured is known only later,
 * and a thread whose context switch the kernel did not report seemed to run. That time is contained
 * in
 * @p, the parts that grew.
 */
static void ledger_correct(struct ledger_thread *t, const struct time_totals *now, struct passed *p)
{
	for (uint32_t from = 0; from < PARTS; from++) {
		uint64_t less = us_between(totals_part(now, from), totals_part(&t->last, from));

		for (uint32_t to = 0; to < PARTS && less; to++) {
			uint64_t *grew = passed_part(p, to), us = *grew < less ? *grew : less;

			slices_move(t->fine, FINE, TIME_LEDGER_SLICE_NS, t->last.to_ns, from, to,
				    us);
			slices_move(t->coarse, COARSE, COARSE_NS, t->last.to_ns, from, to, us);
			*grew -= us;
			less -= us;
		}
	}
}

/* Moves @part of @whole of @p to the slice @s. */
static void passed_give(struct passed *p, uint64_t part, uint64_t whole, struct slice *s)
{
	uint64_t *from[REASONS + 3] = { &p->wall, &p->cpu, &p->runqueue };
	uint32_t *to[REASONS + 3] = { &s->wall_us, &s->cpu_us, &s->runqueue_us };

	for (uint32_t i = 0; i < REASONS; i++) {
		from[3 + i] = &p->off[i];
		to[3 + i] = &s->off_us[i];
	}
	for (uint32_t i = 0; i < REASONS + 3; i++) {
		uint64_t us = part >= whole ? *from[i] : *from[i] * part / whole;

		*to[i] += (uint32_t)us;
		*from[i] -= us;
	}
}

/* Spreads @p evenly over the slices of [begin, end), which usually is a second. */
static void spread(struct slice *ring, uint32_t n, uint64_t slice_ns, struct passed p,
		   uint64_t begin_ns, uint64_t end_ns)
{
	if (end_ns - begin_ns > n * slice_ns) /* older than all slices */
		return;
	while (begin_ns < end_ns) {
		uint64_t next_ns = (begin_ns / slice_ns + 1) * slice_ns;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;
		struct slice *s = ledger_slice_at(ring, n, slice_ns, begin_ns), lost = { 0 };

		passed_give(&p, until_ns - begin_ns, end_ns - begin_ns, s ? s : &lost);
		begin_ns = until_ns;
	}
}

static void ledger_spread(struct ledger_thread *t, const struct passed *p, uint64_t begin_ns,
			  uint64_t end_ns)
{
	spread(t->fine, FINE, TIME_LEDGER_SLICE_NS, *p, begin_ns, end_ns);
	spread(t->coarse, COARSE, COARSE_NS, *p, begin_ns, end_ns);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static void slice_explain(struct slice *s, const struct time_reason *r, uint64_t us)
{
	uint32_t i = 0;

	while (i < s->n_explained && s->explained[i].from != r->from)
		i++;
	if (i == SOURCES)
		return; /* it keeps the kernel's own reason */
	if (i == s->n_explained)
		s->explained[s->n_explained++].from = r->from;
	s->explained[i].us[r->reason] += (uint32_t)us;
}

static void slice_explain_waited(struct slice *s, const struct time_reason *r, uint64_t us)
{
	uint32_t i = 0;

	while (i < s->n_waited &&
	       (s->waited[i].from != r->from || s->waited[i].reason != r->reason))
		i++;
	if (i == WAITED)
		return;
	if (i == s->n_waited)
		s->waited[s->n_waited++] = (struct waited){ r->from, r->reason, 0 };
	s->waited[i].us += (uint32_t)us;
}

/* What @r explains of [begin, end), a part of its span. */
static uint64_t reason_us(const struct time_reason *r, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t us = us_between(begin_ns, end_ns);

	if (!r->part_ns || r->part_ns >= r->end_ns - r->begin_ns)
		return us;
	return (uint64_t)((unsigned __int128)us * r->part_ns / (r->end_ns - r->begin_ns));
}

static void explain_ring(struct slice *ring, uint32_t n, uint64_t slice_ns,
			 const struct time_reason *r)
{
	uint64_t begin_ns = r->begin_ns;

	if (r->end_ns - begin_ns > n * slice_ns)
		begin_ns = r->end_ns - n * slice_ns;
	while (begin_ns < r->end_ns) {
		uint64_t next_ns = (begin_ns / slice_ns + 1) * slice_ns;
		uint64_t until_ns = next_ns < r->end_ns ? next_ns : r->end_ns;
		uint64_t number = begin_ns / slice_ns + 1;
		struct slice *s = &ring[number % n];

		/* the totals for this slice may arrive after the reason */
		if (s->number <= number)
			s = ledger_slice_at(ring, n, slice_ns, begin_ns);
		if (s && s->number == number && r->is_wait)
			slice_explain_waited(s, r, reason_us(r, begin_ns, until_ns));
		else if (s && s->number == number)
			slice_explain(s, r, reason_us(r, begin_ns, until_ns));
		begin_ns = until_ns;
	}
}

static void ledger_explain(struct ledger_thread *t, const struct time_reason *r)
{
	explain_ring(t->fine, FINE, TIME_LEDGER_SLICE_NS, r);
	explain_ring(t->coarse, COARSE, COARSE_NS, r);
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
	struct passed p = { 0 };
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
		p.wall = us_between(t->last.to_ns, now->from_ns);
		ledger_spread(t, &p, t->last.to_ns, now->from_ns);
	}
	if (now->to_ns > begin_ns) {
		p.wall = us_between(begin_ns, now->to_ns);
		p.cpu = us_between(before->cpu_ns, now->cpu_ns);
		p.runqueue = us_between(before->runqueue_ns, now->runqueue_ns);
		for (uint32_t i = 0; i < REASONS; i++)
			p.off[i] = us_between(before->off_ns[i], now->off_ns[i]);
		if (before != &zero)
			ledger_correct(t, now, &p);
		ledger_spread(t, &p, begin_ns, now->to_ns);
	}
	/* its time off the CPU may have no event either, or no reason */
	if (t->seen.no_event && ledger_is_seen_wait(t) && now->off_since_ns != t->last.off_since_ns)
		ledger_end_seen_wait(t);
	t->last = *now;
	t->begun = true;
	t->ended = now->ended;
}

/* A first report comes with the sums of waits of a minute before it. */
static void ledger_extend_seen(struct time_ledger *l, uint64_t at_ns)
{
	if (!l->seen_to_ns || at_ns > l->seen_to_ns + COARSE_NS)
		l->seen_from_ns = at_ns > COARSE_NS ? at_ns - COARSE_NS : 0;
	if (at_ns > l->seen_to_ns)
		l->seen_to_ns = at_ns;
}

/* The thread's first totals may come later, in a second at most; NULL = there is no room. */
static struct ledger_thread *ledger_get_early(struct time_ledger *l, uint32_t tid, uint64_t now_ns)
{
	struct ledger_thread *t = ledger_find(l, tid);

	if (!t && l->n < TIME_LEDGER_THREADS)
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
		t->untold = *seen;
}

/* ---- questions ------------------------------------------------------------------------------- */

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

/* The sum of several slices, ns. */
struct ledger_sum {
	struct time_row row;
	/* [SOURCES] takes what is not used */
	uint64_t explained[SOURCES + 1][REASONS], waited[SOURCES + 1][REASONS];
	uint8_t from[SOURCES];
	uint32_t n_from;
};

static uint32_t source_of(struct ledger_sum *sum, uint8_t from)
{
	for (uint32_t i = 0; i < sum->n_from; i++)
		if (sum->from[i] == from)
			return i;
	if (sum->n_from == SOURCES)
		return SOURCES;
	sum->from[sum->n_from] = from;
	return sum->n_from++;
}

static void ledger_add_slice(struct ledger_sum *sum, const struct slice *s)
{
	sum->row.wall_ns += s->wall_us * US;
	sum->row.cpu_ns += s->cpu_us * US;
	sum->row.runqueue_ns += s->runqueue_us * US;
	for (uint32_t i = 0; i < REASONS; i++)
		sum->row.off_ns[i] += s->off_us[i] * US;
	for (uint32_t k = 0; k < s->n_explained; k++) {
		uint32_t source = source_of(sum, s->explained[k].from);

		for (uint32_t i = 0; i < REASONS; i++)
			sum->explained[source][i] += s->explained[k].us[i] * US;
	}
	for (uint32_t k = 0; k < s->n_waited; k++)
		sum->waited[source_of(sum, s->waited[k].from)][s->waited[k].reason] +=
			s->waited[k].us * US;
}

/* A wait may be among the times off the CPU and among the waits: the larger sum counts. */
static void ledger_merge_waits(struct ledger_sum *sum)
{
	for (uint32_t k = 0; k < sum->n_from; k++)
		for (uint32_t i = 0; i < REASONS; i++)
			if (sum->waited[k][i] > sum->explained[k][i])
				sum->explained[k][i] = sum->waited[k][i];
}

/* Moves time from the kernel's reasons to those that explain it, at most as much as there is. */
static void ledger_apply(struct ledger_sum *sum)
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
static void ledger_add_open(struct ledger_sum *sum, const struct time_reason *open, uint64_t ns)
{
	uint32_t source;

	if (open->from >= REASONS || open->reason >= REASONS || open->from == open->reason)
		return;
	source = source_of(sum, open->from);
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

/* The time off the CPU that goes on has no event yet: only what @t was seen in can explain it. */
static void ledger_add_off(struct ledger_sum *sum, const struct ledger_thread *t,
			   const struct ledger_span *span)
{
	uint64_t begin_ns = t->last.off_since_ns;
	const struct time_reason open = { .from = t->seen.from, .reason = t->seen.reason };
	uint8_t reason = t->last.off_reason;

	if (begin_ns < span->begin_ns)
		begin_ns = span->begin_ns;
	if (!t->last.off_since_ns || t->last.to_ns <= begin_ns || reason >= REASONS)
		return;
	if (ledger_is_seen_wait(t))
		ledger_add_open(sum, &open, t->last.to_ns - begin_ns);
	else
		sum->explained[source_of(sum, reason)][reason] += t->last.to_ns - begin_ns;
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
static void ledger_add_untold(const struct time_ledger *l, struct ledger_sum *sum,
			      const struct ledger_thread *t, const struct ledger_span *span)
{
	const struct time_seen *seen = &t->untold;
	uint64_t has, known = 0;
	uint32_t source;

	if (!seen->at_ns || seen->at_ns + COARSE_NS < span->begin_ns)
		return;
	source = source_of(sum, seen->from);
	has = sum->row.off_ns[seen->from];
	for (uint32_t i = 0; i < REASONS; i++)
		known += sum->explained[source][i];
	if (has > known)
		sum->explained[source][seen->reason] +=
			(uint64_t)((double)(has - known) * ledger_seen_part(l, t, span));
}

/* Adds what @t waits for now. */
static void ledger_add_now(struct ledger_sum *sum, const struct ledger_thread *t,
			   const struct ledger_span *span, const struct time_reason *open,
			   uint32_t n_open)
{
	bool is_open = false;

	for (uint32_t i = 0; i < n_open; i++) {
		uint64_t begin =
			open[i].begin_ns > span->begin_ns ? open[i].begin_ns : span->begin_ns;

		if (open[i].tid != t->tid || begin >= t->last.to_ns)
			continue;
		ledger_add_open(sum, &open[i], t->last.to_ns - begin);
		is_open = true;
	}
	if (!is_open)
		ledger_add_off(sum, t, span);
}

static void ledger_row(const struct time_ledger *l, const struct ledger_thread *t,
		       const struct ledger_span *span, const struct time_reason *open,
		       uint32_t n_open, struct time_row *ret)
{
	const struct slice *ring = span->coarse ? t->coarse : t->fine;
	uint64_t slice_ns = span->coarse ? COARSE_NS : TIME_LEDGER_SLICE_NS;
	uint64_t first = span->begin_ns / slice_ns + 1, last = span->end_ns / slice_ns + 1;
	struct ledger_sum sum = { .row = { .tid = t->tid, .ended = t->ended } };

	for (uint32_t i = 0; i < (span->coarse ? COARSE : FINE); i++)
		if (ring[i].number >= first && ring[i].number <= last)
			ledger_add_slice(&sum, &ring[i]);
	ledger_add_now(&sum, t, span, open, n_open);
	ledger_merge_waits(&sum);
	ledger_add_untold(l, &sum, t, span);
	ledger_apply(&sum);
	sum.row.wall_ns += ledger_rested_ns(l, t, span);
	time_row_close(&sum.row);
	*ret = sum.row;
}

static int ledger_by_tid(const void *a, const void *b)
{
	const struct time_row *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* The asked span in whole slices; it begins where the first time is known. */
static struct ledger_span ledger_span_of(const struct time_ledger *l, uint64_t now_ns,
					 uint64_t last_ns)
{
	struct ledger_span s = { .end_ns = now_ns, .begin_ns = now_ns };
	uint64_t slice_ns, known_ns = l->begin_ns ? l->begin_ns : now_ns;

	if (last_ns > TIME_LEDGER_MAX_NS)
		last_ns = TIME_LEDGER_MAX_NS;
	s.coarse = last_ns > (FINE - 2) * TIME_LEDGER_SLICE_NS;
	slice_ns = s.coarse ? COARSE_NS : TIME_LEDGER_SLICE_NS;
	s.begin_ns = now_ns > last_ns ? (now_ns - last_ns) / slice_ns * slice_ns : 0;
	if (s.begin_ns < known_ns)
		s.begin_ns = known_ns;
	return s;
}

int time_ledger_query(const struct time_ledger *l, uint64_t now_ns, uint64_t last_ns,
		      const struct time_reason *open, uint32_t n_open, struct time_rows *ret)
{
	struct ledger_span span = ledger_span_of(l, now_ns, last_ns);

	*ret = (struct time_rows){ .span_ns = span.end_ns - span.begin_ns, .refused = l->refused };
	ret->rows = calloc(l->n + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct ledger_thread *t = l->buckets[i]; t; t = t->next) {
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

/*
 * See live.h. Samples go into their window and second as they come. live->open_from separates the
 * open windows from the one that was closed last, whose seconds queries still see.
 */
#include "daemon/profile/live_priv.h"

#include <errno.h>

/* seconds from the oldest open one on; as long as live_tick() is called they are at most 12 */
#define OPEN_SLICES	 20
#define LATE_NS		 (2 * LIVE_SLICE_NS)
#define WINDOW_BYTES_MIN (4ul << 20)
#define SECONDS_PART	 4 /* the seconds get this part of a window's bytes on top */
#define NAMES_GROWTH	 2 /* names take at most so many times what one window needs */
#define NAMES_ENDED_MAX	 16
_Static_assert(OPEN_SLICES *LIVE_SLICE_NS <= (LIVE_RECENT - 2) * LIVE_WINDOW_NS,
	       "no two in one place");

int live_new(live_window_fn *on_window, void *userdata, struct live **ret)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->bytes_max = LIVE_BYTES;
	l->on_window = on_window;
	l->userdata = userdata;
	*ret = l;
	return 0;
}

void live_limit(struct live *l, size_t bytes)
{
	l->bytes_max = bytes;
}

void live_begin_at(struct live *l, uint64_t real_ns)
{
	l->begin_ns = real_ns;
}

void live_keep_ids(struct live *l, bool keep)
{
	l->keep_ids = keep;
}

void live_on_slice(struct live *l, live_slice_fn *on_slice)
{
	l->on_slice = on_slice;
}

/* ---- windows ------------------------------------------------------------------------------- */

static uint64_t window_begin(uint64_t real_ns)
{
	return real_ns - real_ns % LIVE_WINDOW_NS;
}

static bool is_first_of_tenant(const struct live *l, const struct live_source *s)
{
	const struct live_source *at = l->sources;

	while (at != s && at->info.tenant != s->info.tenant)
		at = at->next;
	return at == s;
}

static uint32_t live_count_tenants(const struct live *l)
{
	uint32_t n = 1; /* 1: for processes without a tenant */

	for (const struct live_source *s = l->sources; s; s = s->next)
		n += is_first_of_tenant(l, s);
	return n;
}

/* What @window takes beside the newest names. */
static size_t window_bytes(const struct live *l, const struct profile *window)
{
	const struct profile *names = window->index->names;

	return profile_bytes(window) + (names == l->names ? 0 : profile_bytes(names));
}

static size_t recent_bytes(const struct live *l)
{
	size_t bytes = l->names ? profile_bytes(l->names) : 0;

	for (int i = 0; i < LIVE_RECENT; i++)
		if (l->recent[i].profile)
			bytes += window_bytes(l, l->recent[i].profile) + l->recent[i].bytes;
	return bytes;
}

size_t live_bytes(const struct live *l)
{
	size_t bytes = recent_bytes(l);

	for (int i = 0; i < LIVE_WINDOWS; i++)
		if (l->windows[i])
			bytes += window_bytes(l, l->windows[i]);
	return bytes;
}

/* Limit of a new window in bytes. All windows that have seconds share half of the bytes; one
 * gets half of what the others have left. */
static size_t window_limit(const struct live *l)
{
	size_t bytes = recent_bytes(l), limit;

	limit = bytes < l->bytes_max / 2 ? (l->bytes_max / 2 - bytes) / 2 : 0;
	return limit < WINDOW_BYTES_MIN ? WINDOW_BYTES_MIN : limit;
}

/* Frees the oldest closed windows above the limit. The store has them, if it was to have them. */
static void bound_windows(struct live *l)
{
	for (;;) {
		struct profile **oldest = NULL;
		size_t bytes = 0;
		int n = 0;

		for (int i = 0; i < LIVE_WINDOWS; i++) {
			struct profile **w = &l->windows[i];

			if (!*w)
				continue;
			n++;
			bytes += window_bytes(l, *w);
			if (!oldest || (*w)->begin_real_ns < (*oldest)->begin_real_ns)
				oldest = w;
		}
		if (!n || bytes <= LIVE_BYTES_MAX)
			return;
		*oldest = profile_free(*oldest);
	}
}

/* Adds a window to one of the same time. Both may have the same names, which move when they grow,
 * so what is added is a copy. */
static void add_to_window(struct profile *to, const struct profile *w)
{
	CLEANUP(profile_freep) struct profile *copy = NULL;

	if (profile_copy(w, &copy) == 0)
		(void)profile_merge(to, copy, NULL);
}

static void keep_window(struct live *l, uint64_t begin_ns, struct profile *w)
{
	struct profile **place = &l->windows[begin_ns / LIVE_WINDOW_NS % LIVE_WINDOWS];

	/* the wall clock was set back: these ten seconds come a second time */
	if (*place && window_begin((*place)->begin_real_ns) == begin_ns) {
		add_to_window(*place, w);
		profile_free(w);
	} else {
		profile_free(*place);
		*place = w;
	}
	bound_windows(l);
}

/* Frees the seconds of windows that began before @before_ns, and keeps the windows. */
static void forget_seconds(struct live *l, uint64_t before_ns)
{
	for (int i = 0; i < LIVE_RECENT; i++) {
		uint64_t begin_ns = l->recent[i].begin_real_ns;

		if (l->recent[i].profile && begin_ns < before_ns)
			keep_window(l, begin_ns, live_recent_end(&l->recent[i]));
	}
}

static struct live_recent *recent_at(struct live *l, uint64_t begin_ns)
{
	return &l->recent[begin_ns / LIVE_WINDOW_NS % LIVE_RECENT];
}

/* Closes a window and passes it on. Its seconds stay for queries until the next window closes. */
static void close_window(struct live *l, uint64_t begin_ns)
{
	const struct live_recent *w = recent_at(l, begin_ns);

	forget_seconds(l, begin_ns);
	l->open_from = begin_ns + LIVE_WINDOW_NS;
	if (!w->profile)
		return;
	profile_settle(w->profile);
	profile_names_refresh(w->profile);
	if (w->names_serial != l->names_serial) {
		profile_settle(w->profile->index->names);
		live_sources_settle(l, w);
	}
	if (l->on_window)
		l->on_window(l->userdata, w->profile);
}

static void live_close_all(struct live *l)
{
	uint64_t end = l->open_from + OPEN_SLICES * LIVE_SLICE_NS;

	for (uint64_t at = l->open_from; at && at < end; at += LIVE_WINDOW_NS)
		close_window(l, at);
	forget_seconds(l, UINT64_MAX);
}

static void live_report_second(struct live *l, const struct live_recent *w, struct live_second *s)
{
	uint64_t begin = w->begin_real_ns + (uint64_t)(s - w->seconds) * LIVE_SLICE_NS;
	struct profile view;

	if (live_view(w, begin, begin + LIVE_SLICE_NS, &view) <= 0)
		return;
	if (l->on_slice(l->userdata, &view))
		s->reported = s->changes;
	live_view_free(&view);
}

static void live_report_slices(struct live *l)
{
	for (int i = 0; i < LIVE_RECENT && l->on_slice; i++) {
		struct live_recent *w = &l->recent[i];

		if (!w->profile || w->begin_real_ns < l->open_from)
			continue;
		for (unsigned k = 0; k < LIVE_SECONDS; k++)
			if (w->seconds[k].reported != w->seconds[k].changes)
				live_report_second(l, w, &w->seconds[k]);
	}
}

void live_slice_lost(struct live *l, uint64_t real_ns)
{
	const struct live_recent *w = recent_at(l, real_ns);

	if (w->profile && w->begin_real_ns == window_begin(real_ns))
		profile_slice_lost(w->profile);
}

void live_tick(struct live *l, uint64_t real_ns)
{
	uint64_t due = window_begin(real_ns > LATE_NS ? real_ns - LATE_NS : 0);

	l->tick_ns = real_ns;
	if (!l->open_from)
		l->open_from = due;
	/* the wall clock was set: closes all windows and starts again */
	if (due > l->open_from + LIVE_WINDOWS * LIVE_WINDOW_NS ||
	    due + 2 * LIVE_WINDOW_NS < l->open_from) {
		live_close_all(l);
		l->open_from = due;
	}
	while (l->open_from < due)
		close_window(l, l->open_from);
	live_report_slices(l);
}

struct live *live_free(struct live *l)
{
	if (!l)
		return NULL;
	live_close_all(l);
	for (int i = 0; i < LIVE_WINDOWS; i++)
		profile_free(l->windows[i]);
	profile_free(l->names);
	while (l->sources)
		live_source_free(l->sources);
	free(l);
	return NULL;
}

/* The newest earlier window; the next one will be about as large. */
static const struct profile *window_before(const struct live *l, uint64_t begin_ns)
{
	const struct live_recent *before = NULL;

	for (int i = 0; i < LIVE_RECENT; i++) {
		const struct live_recent *w = &l->recent[i];

		if (w->profile && w->begin_real_ns < begin_ns &&
		    (!before || w->begin_real_ns > before->begin_real_ns))
			before = w;
	}
	return before ? before->profile : NULL;
}

/* May another window have the same names? Not if they have become full, or if they take much more
 * than a window needs: of stacks and processes that have gone. That a window has no room for its
 * rows, which also makes "[profile full]", says nothing about the names. */
static bool names_continue(struct live *l)
{
	const struct profile_index *x = l->names ? l->names->index : NULL;

	if (!x || x->no_room || l->names_ended > NAMES_ENDED_MAX)
		return false;
	/* not by the bytes of the tables, which double at once when they have no more room */
	if (!l->names_paid)
		l->names_paid = x->paid;
	return x->paid <= NAMES_GROWTH * l->names_paid && x->paid <= x->bytes_max / 2;
}

static int names_begin(struct live *l, const struct profile *before, size_t limit)
{
	struct profile *names;

	if (profile_new(&names) < 0)
		return -ENOMEM;
	profile_limit(names, limit, live_count_tenants(l));
	if (before)
		profile_expect(names, before);
	profile_free(l->names);
	l->names = names;
	l->names_serial++;
	l->names_paid = 0;
	l->names_ended = 0;
	return 0;
}

static int begin_window(struct live *l, struct live_recent *w, uint64_t begin_ns)
{
	const struct profile *before = window_before(l, begin_ns);
	size_t limit = window_limit(l);

	if (!names_continue(l) && names_begin(l, before, limit) < 0)
		return -ENOMEM;
	if (profile_new_sharing(l->names, &w->profile) < 0)
		return -ENOMEM;
	profile_limit(w->profile, limit, live_count_tenants(l));
	if (before)
		profile_expect(w->profile, before);
	w->bytes_max = limit / SECONDS_PART;
	w->begin_real_ns = begin_ns;
	w->serial = ++l->next_serial;
	w->names_serial = l->names_serial;
	return 0;
}

/* Nothing goes before this moment; 0 = there is none, also if the wall clock was set back since. */
static uint64_t live_begin(const struct live *l)
{
	return !l->tick_ns || l->begin_ns <= l->tick_ns + LATE_NS ? l->begin_ns : 0;
}

struct live_place live_place_at(struct live *l, uint64_t real_ns)
{
	struct live_recent *w;
	struct live_second *s;

	if (!l->open_from)
		l->open_from = window_begin(real_ns);
	if (real_ns < l->open_from)
		real_ns = l->open_from;
	else if (l->tick_ns && real_ns > l->tick_ns + LATE_NS)
		real_ns = l->tick_ns > l->open_from ? l->tick_ns : l->open_from;
	if (real_ns < live_begin(l))
		real_ns = live_begin(l);
	if (real_ns >= l->open_from + OPEN_SLICES * LIVE_SLICE_NS)
		real_ns = l->open_from + OPEN_SLICES * LIVE_SLICE_NS - 1;
	real_ns -= real_ns % LIVE_SLICE_NS;
	w = recent_at(l, real_ns);
	if (!w->profile && begin_window(l, w, window_begin(real_ns)) < 0)
		return (struct live_place){ 0 };
	if (!w->profile->begin_real_ns || real_ns < w->profile->begin_real_ns)
		w->profile->begin_real_ns = real_ns;
	if (real_ns + LIVE_SLICE_NS > w->profile->end_real_ns)
		w->profile->end_real_ns = real_ns + LIVE_SLICE_NS;
	s = &w->seconds[(real_ns - w->begin_real_ns) / LIVE_SLICE_NS];
	s->changes++;
	profile_names_refresh(w->profile);
	return (struct live_place){ w, s };
}

struct live_place live_newest_place(struct live *l)
{
	struct live_place newest = { 0 };

	for (int i = 0; i < LIVE_RECENT; i++) {
		struct live_recent *w = &l->recent[i];

		if (!w->profile || w->begin_real_ns < l->open_from ||
		    (newest.window && newest.window->begin_real_ns > w->begin_real_ns))
			continue;
		for (unsigned k = 0; k < LIVE_SECONDS; k++)
			if (w->seconds[k].changes)
				newest = (struct live_place){ w, &w->seconds[k] };
	}
	if (newest.window)
		profile_names_refresh(newest.window->profile);
	return newest;
}

/* ---- queries --------------------------------------------------------------------------------- */

static bool live_touches(const struct profile *p, uint64_t from, uint64_t to)
{
	return p->begin_real_ns < to && p->end_real_ns > from;
}

static int merge_recent(struct profile *dst, const struct live_recent *w, uint64_t from,
			uint64_t to, const struct profile_filter *filter)
{
	struct profile view;
	int r;

	if (from <= w->profile->begin_real_ns && to >= w->profile->end_real_ns)
		return profile_merge(dst, w->profile, filter);
	r = live_view(w, from, to, &view);
	if (r <= 0)
		return r;
	r = profile_merge(dst, &view, filter);
	live_view_free(&view);
	return r;
}

int live_query(struct live *l, uint64_t from, uint64_t to, const struct profile_filter *filter,
	       struct profile *dst)
{
	int r = 0;

	/* makes all tenants known before the first of them takes room; a single process shares
	 * with none */
	if (!filter || filter->n_pids != 1)
		for (const struct live_source *s = l->sources; s; s = s->next)
			profile_payer(dst, s->info.tenant);
	for (int i = 0; i < LIVE_RECENT && r == 0; i++)
		if (l->recent[i].profile && live_touches(l->recent[i].profile, from, to))
			r = merge_recent(dst, &l->recent[i], from, to, filter);
	for (int i = 0; i < LIVE_WINDOWS && r == 0; i++)
		if (l->windows[i] && live_touches(l->windows[i], from, to))
			r = profile_merge(dst, l->windows[i], filter);
	return r;
}

uint64_t live_query_begin(const struct live *l, uint64_t from)
{
	/* the open windows and the last closed one have seconds */
	uint64_t seconds = l->open_from > LIVE_WINDOW_NS ? l->open_from - LIVE_WINDOW_NS : 0;
	uint64_t begin = from - from % LIVE_SLICE_NS, oldest;

	if (from < seconds) {
		oldest = live_oldest_real_ns(l);
		begin = window_begin(from);
		if (oldest > begin)
			begin = oldest < seconds ? oldest : seconds;
	}
	return begin > live_begin(l) ? begin : live_begin(l);
}

uint64_t live_open_real_ns(const struct live *l)
{
	return l->open_from;
}

uint64_t live_oldest_real_ns(const struct live *l)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < LIVE_RECENT; i++)
		if (l->recent[i].profile && l->recent[i].profile->begin_real_ns < oldest)
			oldest = l->recent[i].profile->begin_real_ns;
	for (int i = 0; i < LIVE_WINDOWS; i++)
		if (l->windows[i] && l->windows[i]->begin_real_ns < oldest)
			oldest = l->windows[i]->begin_real_ns;
	return oldest;
}

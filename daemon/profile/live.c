/*
 * See live.h. Places of slices are used in turn: those of the last closed window, which queries
 * still see second by second, then the open ones. live->open_from parts the two.
 */
#include "daemon/profile/live_priv.h"

#include <errno.h>

#define OPEN_SLICES	20 /* from the oldest open moment; 12 as long as live_tick() is called */
#define LATE_NS		(2 * LIVE_SLICE_NS)
#define SLICE_BYTES_MIN (4ul << 20)
_Static_assert(LIVE_WINDOW_NS / LIVE_SLICE_NS + OPEN_SLICES <= LIVE_PLACES, "no two in one place");

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

static uint32_t count_tenants(const struct live *l)
{
	uint32_t n = 1; /* nobody */

	for (const struct live_source *s = l->sources; s; s = s->next)
		n += is_first_of_tenant(l, s);
	return n;
}

static size_t slices_bytes(const struct live *l)
{
	size_t bytes = 0;

	for (int i = 0; i < LIVE_PLACES; i++)
		if (l->slices[i].profile)
			bytes += profile_bytes(l->slices[i].profile);
	return bytes;
}

size_t live_bytes(const struct live *l)
{
	size_t bytes = slices_bytes(l);

	for (int i = 0; i < LIVE_WINDOWS; i++)
		if (l->windows[i])
			bytes += profile_bytes(l->windows[i]);
	return bytes;
}

/* All slices take a third of the bytes, one a quarter of what the others leave of it. */
static size_t slice_limit(const struct live *l)
{
	size_t bytes = slices_bytes(l), limit;

	limit = bytes < l->bytes_max / 3 ? (l->bytes_max / 3 - bytes) / 4 : 0;
	return limit < SLICE_BYTES_MIN ? SLICE_BYTES_MIN : limit;
}

static void free_slices(struct live *l, uint64_t before_ns)
{
	for (int i = 0; i < LIVE_PLACES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns < before_ns)
			l->slices[i].profile = profile_free(l->slices[i].profile);
}

/* What is over the bound is in the store, or nobody wanted it. */
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
			bytes += profile_bytes(*w);
			if (!oldest || (*w)->begin_real_ns < (*oldest)->begin_real_ns)
				oldest = w;
		}
		if (n < 2 || bytes <= LIVE_BYTES_MAX)
			return;
		*oldest = profile_free(*oldest);
	}
}

static void keep_window(struct live *l, uint64_t begin_ns, struct profile *w)
{
	struct profile **place = &l->windows[begin_ns / LIVE_WINDOW_NS % LIVE_WINDOWS];

	/* twice the same one: the wall clock was set back */
	if (*place && window_begin((*place)->begin_real_ns) == begin_ns) {
		(void)profile_merge(*place, w, NULL);
		profile_free(w);
	} else {
		profile_free(*place);
		*place = w;
	}
	bound_windows(l);
}

/* Merge the open slices of [begin, begin + 10 s) into a window and hand it on. The slices stay for
 * queries until the next window closes. */
static void close_window(struct live *l, uint64_t begin_ns)
{
	struct profile *w = NULL;

	free_slices(l, begin_ns);
	for (int i = 0; i < LIVE_PLACES; i++) {
		struct live_slice *s = &l->slices[i];

		if (!s->profile || s->begin_real_ns >= begin_ns + LIVE_WINDOW_NS)
			continue;
		if (!w && profile_new(&w) < 0)
			return;
		profile_limit(w, l->bytes_max / 4, count_tenants(l));
		(void)profile_merge(w, s->profile, NULL);
	}
	l->open_from = begin_ns + LIVE_WINDOW_NS;
	if (!w)
		return;
	if (l->on_window)
		l->on_window(l->userdata, w);
	keep_window(l, begin_ns, w);
}

static void close_all(struct live *l)
{
	uint64_t end = l->open_from + OPEN_SLICES * LIVE_SLICE_NS;

	for (uint64_t at = l->open_from; at && at < end; at += LIVE_WINDOW_NS)
		close_window(l, at);
	free_slices(l, UINT64_MAX);
}

static void tell_slices(struct live *l)
{
	for (int i = 0; i < LIVE_PLACES && l->on_slice; i++) {
		struct live_slice *s = &l->slices[i];

		if (s->profile && s->begin_real_ns >= l->open_from && s->told != s->changes &&
		    l->on_slice(l->userdata, s->profile))
			s->told = s->changes;
	}
}

void live_tick(struct live *l, uint64_t real_ns)
{
	uint64_t due = window_begin(real_ns > LATE_NS ? real_ns - LATE_NS : 0);

	l->tick_ns = real_ns;
	if (!l->open_from)
		l->open_from = due;
	/* the wall clock was set: close what there is, begin anew */
	if (due > l->open_from + LIVE_WINDOWS * LIVE_WINDOW_NS ||
	    due + 2 * LIVE_WINDOW_NS < l->open_from) {
		close_all(l);
		l->open_from = due;
	}
	while (l->open_from < due) {
		uint64_t begin = l->open_from;

		close_window(l, begin);
		if (l->open_from == begin)
			break; /* no memory now: the next tick tries again */
	}
	tell_slices(l);
}

struct live *live_free(struct live *l)
{
	if (!l)
		return NULL;
	close_all(l);
	for (int i = 0; i < LIVE_WINDOWS; i++)
		profile_free(l->windows[i]);
	while (l->sources)
		live_source_free(l->sources);
	free(l);
	return NULL;
}

/* The slice of a moment, which is moved to where slices are open. */
struct live_slice *live_slice_at(struct live *l, uint64_t real_ns)
{
	struct live_slice *s;

	if (!l->open_from)
		l->open_from = window_begin(real_ns);
	if (real_ns < l->open_from)
		real_ns = l->open_from;
	else if (l->tick_ns && real_ns > l->tick_ns + LATE_NS)
		real_ns = l->tick_ns > l->open_from ? l->tick_ns : l->open_from;
	if (real_ns >= l->open_from + OPEN_SLICES * LIVE_SLICE_NS)
		real_ns = l->open_from + OPEN_SLICES * LIVE_SLICE_NS - 1;
	real_ns -= real_ns % LIVE_SLICE_NS;
	s = &l->slices[real_ns / LIVE_SLICE_NS % LIVE_PLACES];
	s->changes++;
	if (s->profile)
		return s;
	if (profile_new(&s->profile) < 0)
		return NULL;
	profile_limit(s->profile, slice_limit(l), count_tenants(l));
	s->begin_real_ns = real_ns;
	s->profile->begin_real_ns = real_ns;
	s->profile->end_real_ns = real_ns + LIVE_SLICE_NS;
	s->serial = ++l->next_serial;
	return s;
}

struct live_slice *live_newest_slice(struct live *l)
{
	struct live_slice *newest = NULL;

	for (int i = 0; i < LIVE_PLACES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns >= l->open_from &&
		    (!newest || l->slices[i].begin_real_ns > newest->begin_real_ns))
			newest = &l->slices[i];
	return newest;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Slices before open_from are those of one closed window, all of them. */
static bool is_in_slices(const struct live *l, const struct profile *window)
{
	for (int i = 0; i < LIVE_PLACES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns < l->open_from &&
		    window_begin(l->slices[i].begin_real_ns) == window_begin(window->begin_real_ns))
			return true;
	return false;
}

static bool touches(const struct profile *p, uint64_t from, uint64_t to)
{
	return p->begin_real_ns < to && p->end_real_ns > from;
}

int live_query(struct live *l, uint64_t from, uint64_t to, const struct profile_filter *filter,
	       struct profile *dst)
{
	int r = 0;

	/* all are known before the first takes room; one process shares with nobody */
	if (!filter || filter->n_pids != 1)
		for (const struct live_source *s = l->sources; s; s = s->next)
			profile_payer(dst, s->info.tenant);
	for (int i = 0; i < LIVE_PLACES && r == 0; i++)
		if (l->slices[i].profile && touches(l->slices[i].profile, from, to))
			r = profile_merge(dst, l->slices[i].profile, filter);
	for (int i = 0; i < LIVE_WINDOWS && r == 0; i++) {
		struct profile *w = l->windows[i];

		/* the seconds of the last closed window are still there: not twice */
		if (w && touches(w, from, to) && !is_in_slices(l, w))
			r = profile_merge(dst, w, filter);
	}
	return r;
}

uint64_t live_open_real_ns(const struct live *l)
{
	return l->open_from;
}

uint64_t live_oldest_real_ns(const struct live *l)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < LIVE_PLACES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns < oldest)
			oldest = l->slices[i].begin_real_ns;
	for (int i = 0; i < LIVE_WINDOWS; i++)
		if (l->windows[i] && l->windows[i]->begin_real_ns < oldest)
			oldest = l->windows[i]->begin_real_ns;
	return oldest;
}

/*
 * See live.h. Places of slices are used in turn: those of the last closed window, which queries
 * still see second by second, then the open ones. live->open_from parts the two.
 */
#include "daemon/profile/live.h"

#include <errno.h>
#include <string.h>
#include "daemon/profile/class_text.h"
#include "daemon/profile/profile_priv.h"

#define PLACES		 32
#define OPEN_SLICES	 20 /* from the oldest open moment; 12 as long as live_tick() is called */
#define LATE_NS		 (2 * LIVE_SLICE_NS)
#define SLICE_BYTES_MAX	 (32ul << 20)
#define WINDOW_BYTES_MAX (128ul << 20)
#define DEPTH_MAX	 4096
_Static_assert(LIVE_WINDOW_NS / LIVE_SLICE_NS + OPEN_SLICES <= PLACES, "no two in one place");

struct live_slice {
	struct profile *profile; /* NULL = nothing in it */
	uint64_t begin_real_ns;
	uint64_t serial; /* tells slices apart that used the same place */
};

struct live {
	live_window_fn *on_window;
	void *userdata;
	struct live_slice slices[PLACES]; /* by second, modulo */
	struct profile *windows[LIVE_WINDOWS]; /* by number, modulo */
	uint64_t open_from; /* all before this moment is in a window; 0 = nothing came yet */
	uint64_t tick_ns; /* wall time of the last live_tick() */
	uint64_t next_serial;
	struct live_source *sources;
};

struct live_tap {
	struct live_source *source;
	struct profile *profile;
	unsigned events;
	uint64_t serial;
	struct live_tap *next;
};

/* Ids of a source in one profile. */
struct id_cache {
	uint64_t serial; /* of the slice it is for; 0 = none */
	uint32_t generation; /* entries of older ones are void */
	uint32_t process; /* UINT32_MAX = not known yet */
	uint64_t *nodes; /* by stream node: generation << 32 | profile node */
	uint32_t n_nodes;
};

struct live_source {
	struct live *live;
	struct live_process info; /* strings owned */
	struct id_cache caches[2]; /* seconds of even and odd numbers: late samples alternate */
	struct id_cache tap_cache;
	struct live_tap *taps;
	struct live_source *next;
};

int live_new(live_window_fn *on_window, void *userdata, struct live **ret)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->on_window = on_window;
	l->userdata = userdata;
	*ret = l;
	return 0;
}

/* ---- windows ------------------------------------------------------------------------------- */

static uint64_t window_begin(uint64_t real_ns)
{
	return real_ns - real_ns % LIVE_WINDOW_NS;
}

static void free_slices(struct live *l, uint64_t before_ns)
{
	for (int i = 0; i < PLACES; i++)
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
	for (int i = 0; i < PLACES; i++) {
		struct live_slice *s = &l->slices[i];

		if (!s->profile || s->begin_real_ns >= begin_ns + LIVE_WINDOW_NS)
			continue;
		if (!w && profile_new(&w) < 0)
			return;
		profile_limit(w, WINDOW_BYTES_MAX);
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
static struct live_slice *slice_at(struct live *l, uint64_t real_ns)
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
	s = &l->slices[real_ns / LIVE_SLICE_NS % PLACES];
	if (s->profile)
		return s;
	if (profile_new(&s->profile) < 0)
		return NULL;
	profile_limit(s->profile, SLICE_BYTES_MAX);
	s->begin_real_ns = real_ns;
	s->profile->begin_real_ns = real_ns;
	s->profile->end_real_ns = real_ns + LIVE_SLICE_NS;
	s->serial = ++l->next_serial;
	return s;
}

/* ---- sources -------------------------------------------------------------------------------- */

static char *copy(const char *s)
{
	return strdup(s ? s : "");
}

static void free_info(struct live_process *p)
{
	free((void *)(uintptr_t)p->name);
	free((void *)(uintptr_t)p->container_id);
	free((void *)(uintptr_t)p->container);
	free((void *)(uintptr_t)p->pod);
	free((void *)(uintptr_t)p->jdk);
}

void live_source_update(struct live_source *s, const struct live_process *info)
{
	struct live_process old = s->info;

	s->info = *info;
	s->info.name = copy(info->name);
	s->info.container_id = copy(info->container_id);
	s->info.container = copy(info->container);
	s->info.pod = copy(info->pod);
	s->info.jdk = copy(info->jdk);
	free_info(&old);
	s->caches[0].process = s->caches[1].process = s->tap_cache.process = UINT32_MAX;
}

int live_source_new(struct live *l, const struct live_process *info, struct live_source **ret)
{
	struct live_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->live = l;
	live_source_update(s, info);
	s->next = l->sources;
	l->sources = s;
	*ret = s;
	return 0;
}

struct live_source *live_source_free(struct live_source *s)
{
	struct live_source **link;

	if (!s)
		return NULL;
	for (link = &s->live->sources; *link && *link != s; link = &(*link)->next)
		;
	if (*link)
		*link = s->next;
	for (struct live_tap *t = s->taps; t; t = t->next)
		t->source = NULL; /* the recording ends by itself */
	free(s->caches[0].nodes);
	free(s->caches[1].nodes);
	free(s->tap_cache.nodes);
	free_info(&s->info);
	free(s);
	return NULL;
}

void live_source_reset(struct live_source *s)
{
	s->caches[0].serial = s->caches[1].serial = s->tap_cache.serial = 0;
}

/* ---- samples -------------------------------------------------------------------------------- */

static uint32_t add_frame(struct profile *p, const struct stream_frame *f)
{
	bool full = false;
	struct profile_frame to = {
		.kind = f->kind,
		.line = f->line,
		.class_name = profile_text(p, f->class_name, &full),
		.method = profile_text(p, f->method, &full),
		.signature = profile_text(p, f->signature, &full),
		.file = profile_text(p, f->file, &full),
		.module = profile_text(p, f->module, &full),
		.offset = f->offset,
	};

	return full ? UINT32_MAX : profile_intern_frame(p, &to);
}

/* The cache is for the profile of @serial from now on. */
static void cache_turn(struct id_cache *c, uint64_t serial)
{
	if (c->serial == serial)
		return;
	if (c->generation == UINT32_MAX) {
		memset(c->nodes, 0, c->n_nodes * sizeof(*c->nodes));
		c->generation = 0;
	}
	c->serial = serial;
	c->generation++;
	c->process = UINT32_MAX;
}

static bool cache_has_room(struct id_cache *c, uint32_t node)
{
	uint32_t want = c->n_nodes ? c->n_nodes : 1024;
	uint64_t *p;

	if (node < c->n_nodes)
		return true;
	while (want <= node)
		want *= 2;
	p = realloc(c->nodes, want * sizeof(*p));
	if (!p)
		return false;
	memset(p + c->n_nodes, 0, (want - c->n_nodes) * sizeof(*p));
	c->nodes = p;
	c->n_nodes = want;
	return true;
}

/* True with the profile's node when @node is known in this generation. */
static bool cache_get(const struct id_cache *c, uint32_t node, uint32_t *ret)
{
	if (c->nodes[node] >> 32 != c->generation)
		return false;
	*ret = (uint32_t)c->nodes[node];
	return true;
}

/* Says that the stack went on towards its root. */
static uint32_t cut_node(struct profile *p)
{
	const struct stream_frame cut = {
		.kind = WIRE_KIND_SYNTHETIC,
		.line = -1,
		.method = "[deeper stack cut]",
	};

	return profile_node(p, 0, add_frame(p, &cut));
}

/* A stream's stack in @p. Iterative from the leaf to the first node that is known. */
static uint32_t map_stack(struct profile *p, struct id_cache *c, const struct stream *stream,
			  uint32_t leaf)
{
	uint32_t chain[DEPTH_MAX], n = 0, node = leaf, to = 0, parent;
	struct stream_frame frame;

	while (node && n < DEPTH_MAX) {
		if (!cache_has_room(c, node))
			return profile_node(p, 0, UINT32_MAX);
		if (cache_get(c, node, &to))
			break;
		if (!stream_node(stream, node, &frame, &parent))
			return 0;
		chain[n++] = node;
		node = parent;
	}
	if (node && n == DEPTH_MAX)
		to = cut_node(p);
	while (n > 0) {
		node = chain[--n];
		stream_node(stream, node, &frame, &parent);
		to = profile_node(p, to, add_frame(p, &frame));
		c->nodes[node] = (uint64_t)c->generation << 32 | to;
	}
	return to;
}

static uint32_t process_of(struct live_source *s, struct profile *p, struct id_cache *c)
{
	struct profile_process q;

	if (c->process != UINT32_MAX)
		return c->process;
	q = (struct profile_process){
		.pid = s->info.pid,
		.ns_pid = s->info.ns_pid,
		.start_time = s->info.start_time,
		.name = profile_string(p, s->info.name),
		.container_id = profile_string(p, s->info.container_id),
		.container = profile_string(p, s->info.container),
		.pod = profile_string(p, s->info.pod),
		.jdk = profile_string(p, s->info.jdk),
	};
	c->process = profile_process(p, &q);
	return c->process;
}

/* @k above @node: its name is all that is kept of an address of the kernel. */
static uint32_t add_kernel(struct profile *p, uint32_t node, const struct live_kernel *kernel,
			   const struct kernel_stack *k)
{
	struct profile_frame f = { .kind = WIRE_KIND_KERNEL, .line = -1 };

	for (unsigned i = k->n; i-- > 0;) {
		const char *name = kernel->name(kernel->userdata, k->ips[i]);

		f.method = profile_string(p, name ? name : "[unknown]");
		node = profile_node(p, node, f.method ? profile_intern_frame(p, &f) : UINT32_MAX);
	}
	return node;
}

/* What was waited for or allocated stands on the stack, as if it were called. */
static uint32_t add_class(struct profile *p, uint32_t node, const char *class_name)
{
	struct profile_frame f = { .kind = WIRE_KIND_CLASS, .line = -1 };
	char text[CLASS_TEXT_MAX];

	if (!class_name || !*class_name)
		return node;
	f.method = profile_string(p, class_text(class_name, text));
	return profile_node(p, node, f.method ? profile_intern_frame(p, &f) : UINT32_MAX);
}

/* Ticks that one sample covers share its weight; it stays one sample. */
static void add_weight(struct profile *p, struct profile_row row, const struct live_kernel *kernel)
{
	uint64_t weight = row.weight, n = kernel ? kernel->n : 0;
	const struct kernel_stack *k = n ? kernel->first : NULL;
	uint32_t node = row.node;

	row.samples = 1;
	if (!k)
		profile_add_row(p, &row);
	for (; k; k = k->next, n--) {
		row.weight = weight / n;
		weight -= row.weight;
		row.samples = n == 1;
		row.node = add_kernel(p, node, kernel, k);
		profile_add_row(p, &row);
	}
}

static void add_event(struct live_source *s, struct profile *p, struct id_cache *c, uint64_t serial,
		      const struct stream *stream, const struct live_event *e,
		      const struct live_kernel *kernel)
{
	struct profile_thread t = { .tid = e->tid, .name = profile_string(p, e->thread) };
	struct profile_row row = {
		.event = (uint8_t)e->event,
		.wait = (uint8_t)e->wait,
		.idle = e->idle,
		.weight = e->weight,
	};

	cache_turn(c, serial);
	t.process = process_of(s, p, c);
	row.thread = profile_thread(p, &t);
	row.node = add_class(p, map_stack(p, c, stream, e->node), e->class_name);
	add_weight(p, row, kernel);
	if (e->interval > p->interval[e->event])
		p->interval[e->event] = e->interval;
}

static struct id_cache *cache_of(struct live_source *s, const struct live_slice *slice)
{
	return &s->caches[slice->begin_real_ns / LIVE_SLICE_NS & 1];
}

static void add_to_tap(struct live_tap *t, const struct stream *stream, const struct live_event *e,
		       const struct live_kernel *kernel, uint64_t real_ns)
{
	struct profile *p = t->profile;

	if (!(t->events & 1u << e->event))
		return;
	add_event(t->source, p, &t->source->tap_cache, t->serial, stream, e, kernel);
	if (!p->begin_real_ns || real_ns < p->begin_real_ns)
		p->begin_real_ns = real_ns;
	if (real_ns > p->end_real_ns)
		p->end_real_ns = real_ns;
}

void live_add_event(struct live_source *s, const struct stream *stream, const struct live_event *e,
		    const struct live_kernel *kernel, uint64_t real_ns)
{
	struct live_slice *slice = slice_at(s->live, real_ns);

	if (slice)
		add_event(s, slice->profile, cache_of(s, slice), slice->serial, stream, e, kernel);
	for (struct live_tap *t = s->taps; t; t = t->next)
		add_to_tap(t, stream, e, kernel, real_ns);
}

void live_add(struct live_source *s, const struct stream *stream,
	      const struct stream_sample *sample, const struct live_kernel *kernel,
	      uint64_t real_ns, uint64_t interval_ns)
{
	const struct live_event e = {
		.event = WIRE_EVENT_CPU,
		.tid = sample->tid,
		.thread = sample->thread,
		.node = sample->node,
		.weight = sample->weight_ns,
		.interval = interval_ns,
	};

	live_add_event(s, stream, &e, kernel, real_ns);
}

/* Those of the events that it is about. */
static void add_books_to_tap(struct live_tap *t, const struct profile_books *delta)
{
	struct profile_books d = { 0 };

	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (t->events & 1u << e)
			d.of[e] = delta->of[e];
	if (t->events & 1u << WIRE_EVENT_LOCK) {
		d.short_waits = delta->short_waits;
		d.short_waits_ns = delta->short_waits_ns;
	}
	cache_turn(&t->source->tap_cache, t->serial);
	profile_add_books(t->profile, process_of(t->source, t->profile, &t->source->tap_cache), &d);
}

void live_add_books(struct live_source *s, const struct profile_books *delta)
{
	struct live *l = s->live;
	struct live_slice *newest = NULL;

	for (int i = 0; i < PLACES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns >= l->open_from &&
		    (!newest || l->slices[i].begin_real_ns > newest->begin_real_ns))
			newest = &l->slices[i];
	/* all of it was dropped: there is no slice for want of samples */
	if (!newest && l->open_from)
		newest = slice_at(l, l->tick_ns);
	if (newest) {
		cache_turn(cache_of(s, newest), newest->serial);
		profile_add_books(newest->profile,
				  process_of(s, newest->profile, cache_of(s, newest)), delta);
	}
	for (struct live_tap *t = s->taps; t; t = t->next)
		add_books_to_tap(t, delta);
}

/* ---- questions ------------------------------------------------------------------------------ */

/* Slices before open_from are those of one closed window, all of them. */
static bool is_in_slices(const struct live *l, const struct profile *window)
{
	for (int i = 0; i < PLACES; i++)
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

	for (int i = 0; i < PLACES && r == 0; i++)
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

uint64_t live_oldest_real_ns(const struct live *l)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < PLACES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns < oldest)
			oldest = l->slices[i].begin_real_ns;
	for (int i = 0; i < LIVE_WINDOWS; i++)
		if (l->windows[i] && l->windows[i]->begin_real_ns < oldest)
			oldest = l->windows[i]->begin_real_ns;
	return oldest;
}

/* ---- recordings ------------------------------------------------------------------------------ */

int live_tap_new(struct live_source *s, unsigned events, struct live_tap **ret)
{
	struct live_tap *t;

	if (s->taps)
		return -EBUSY; /* one recording of a target at a time: it sets the interval */
	t = calloc(1, sizeof(*t));
	if (!t || profile_new(&t->profile) < 0) {
		free(t);
		return -ENOMEM;
	}
	t->source = s;
	t->events = events;
	t->serial = ++s->live->next_serial;
	t->next = s->taps;
	s->taps = t;
	*ret = t;
	return 0;
}

struct live_tap *live_tap_free(struct live_tap *t)
{
	struct live_tap **link;

	if (!t)
		return NULL;
	for (link = t->source ? &t->source->taps : NULL; link && *link && *link != t;
	     link = &(*link)->next)
		;
	if (link && *link)
		*link = t->next;
	profile_free(t->profile);
	free(t);
	return NULL;
}

struct profile *live_tap_profile(struct live_tap *t)
{
	return t->profile;
}

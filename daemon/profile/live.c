/* See live.h. */
#include "daemon/profile/live.h"

#include <errno.h>
#include <string.h>

#define SLICES 20 /* kept: twice a window, so that late samples find theirs */

struct live_slice {
	struct profile *profile; /* NULL = nothing in it */
	uint64_t begin_real_ns;
	uint64_t serial; /* tells slices apart that used the same place */
};

struct live {
	live_window_fn *on_window;
	void *userdata;
	struct live_slice slices[SLICES]; /* by second, modulo */
	struct profile *windows[LIVE_WINDOWS]; /* by number, modulo */
	uint64_t windows_closed_ns; /* all before this moment is in a window */
	uint64_t next_serial;
	struct live_source *sources;
};

struct live_tap {
	struct live_source *source;
	struct profile *profile;
	uint64_t serial;
	struct live_tap *next;
};

/* Ids of a stream's nodes and threads in one profile; thrown away when the profile changes. */
struct id_cache {
	uint64_t serial; /* of the slice it is for */
	uint32_t *nodes; /* stream node -> profile node + 1 */
	uint32_t n_nodes;
};

struct live_source {
	struct live *live;
	struct live_process info; /* strings owned */
	struct id_cache cache, tap_cache;
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

static struct profile **window_of(struct live *l, uint64_t begin_ns)
{
	return &l->windows[begin_ns / LIVE_WINDOW_NS % LIVE_WINDOWS];
}

/* Merge the slices of [begin, begin + 10 s) into a window and hand it on. */
static void close_window(struct live *l, uint64_t begin_ns)
{
	struct profile **place = window_of(l, begin_ns);
	struct profile *w = NULL;

	*place = profile_free(*place);
	for (int i = 0; i < SLICES; i++) {
		struct live_slice *s = &l->slices[i];

		if (!s->profile || s->begin_real_ns < begin_ns ||
		    s->begin_real_ns >= begin_ns + LIVE_WINDOW_NS)
			continue;
		if (!w && profile_new(&w) < 0)
			return;
		(void)profile_merge(w, s->profile, NULL);
		s->profile = profile_free(s->profile);
	}
	if (!w)
		return;
	*place = w;
	if (l->on_window)
		l->on_window(l->userdata, w);
}

void live_tick(struct live *l, uint64_t real_ns)
{
	/* late samples get two seconds */
	uint64_t due = real_ns > 2 * LIVE_SLICE_NS ? real_ns - 2 * LIVE_SLICE_NS : 0;

	due -= due % LIVE_WINDOW_NS;
	if (!l->windows_closed_ns || due > l->windows_closed_ns + LIVE_WINDOWS * LIVE_WINDOW_NS ||
	    due + LIVE_WINDOWS * LIVE_WINDOW_NS < l->windows_closed_ns) {
		/* the first tick, or the wall clock jumped: close what there is, begin anew */
		for (int i = 0; i < SLICES; i++)
			if (l->slices[i].profile && l->slices[i].begin_real_ns < due)
				close_window(l, l->slices[i].begin_real_ns -
							l->slices[i].begin_real_ns % LIVE_WINDOW_NS);
		l->windows_closed_ns = due;
	}
	for (; l->windows_closed_ns < due; l->windows_closed_ns += LIVE_WINDOW_NS)
		close_window(l, l->windows_closed_ns);
}

struct live *live_free(struct live *l)
{
	if (!l)
		return NULL;
	for (int i = 0; i < SLICES; i++)
		if (l->slices[i].profile)
			close_window(l, l->slices[i].begin_real_ns -
						l->slices[i].begin_real_ns % LIVE_WINDOW_NS);
	for (int i = 0; i < LIVE_WINDOWS; i++)
		profile_free(l->windows[i]);
	while (l->sources)
		live_source_free(l->sources);
	free(l);
	return NULL;
}

/* The slice of a moment; samples from before all open windows go into the oldest open slice. */
static struct live_slice *slice_at(struct live *l, uint64_t real_ns)
{
	struct live_slice *s;

	if (real_ns < l->windows_closed_ns)
		real_ns = l->windows_closed_ns;
	real_ns -= real_ns % LIVE_SLICE_NS;
	s = &l->slices[real_ns / LIVE_SLICE_NS % SLICES];
	if (s->profile && s->begin_real_ns != real_ns) /* a clock that jumped */
		close_window(l, s->begin_real_ns - s->begin_real_ns % LIVE_WINDOW_NS);
	if (!s->profile) {
		if (profile_new(&s->profile) < 0)
			return NULL;
		s->begin_real_ns = real_ns;
		s->profile->begin_real_ns = real_ns;
		s->profile->end_real_ns = real_ns + LIVE_SLICE_NS;
		s->serial = ++l->next_serial;
	}
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
	free(s->cache.nodes);
	free(s->tap_cache.nodes);
	free_info(&s->info);
	free(s);
	return NULL;
}

void live_source_reset(struct live_source *s)
{
	s->cache.serial = s->tap_cache.serial = 0;
}

/* ---- samples -------------------------------------------------------------------------------- */

static uint32_t add_frame(struct profile *p, const struct stream_frame *f)
{
	struct profile_frame to = {
		.kind = f->kind,
		.line = f->line,
		.class_name = profile_string(p, f->class_name),
		.method = profile_string(p, f->method),
		.signature = profile_string(p, f->signature),
		.file = profile_string(p, f->file),
		.module = profile_string(p, f->module),
		.offset = f->offset,
	};

	return profile_intern_frame(p, &to);
}

static bool cache_has_room(struct id_cache *c, uint64_t serial, uint32_t node)
{
	uint32_t want = c->n_nodes ? c->n_nodes : 1024;
	uint32_t *p;

	if (c->serial != serial) {
		if (c->nodes)
			memset(c->nodes, 0, c->n_nodes * sizeof(*c->nodes));
		c->serial = serial;
	}
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

/* A stream's stack in @p. Iterative from the leaf to the first node that is known. */
static uint32_t map_stack(struct profile *p, struct id_cache *c, uint64_t serial,
			  const struct stream *stream, uint32_t leaf)
{
	uint32_t chain[4096], n = 0, node = leaf, to = 0;
	struct stream_frame frame;
	uint32_t parent;

	if (!leaf || !cache_has_room(c, serial, leaf))
		return 0;
	/* parents have smaller places or not: room is made for each */
	while (node && n < ARRAY_SIZE(chain)) {
		if (!cache_has_room(c, serial, node))
			return 0;
		if (c->nodes[node])
			break;
		if (!stream_node(stream, node, &frame, &parent))
			return 0;
		chain[n++] = node;
		node = parent;
	}
	if (node && c->nodes[node])
		to = c->nodes[node] - 1;
	while (n > 0) {
		node = chain[--n];
		stream_node(stream, node, &frame, &parent);
		to = profile_node(p, to, add_frame(p, &frame));
		c->nodes[node] = to + 1;
	}
	return to;
}

static void add_sample(struct live_source *s, struct profile *p, struct id_cache *c, uint64_t serial,
		       const struct stream *stream, const struct stream_sample *sample,
		       uint64_t interval_ns)
{
	struct profile_process q = {
		.pid = s->info.pid,
		.ns_pid = s->info.ns_pid,
		.start_time = s->info.start_time,
		.name = profile_string(p, s->info.name),
		.container_id = profile_string(p, s->info.container_id),
		.container = profile_string(p, s->info.container),
		.pod = profile_string(p, s->info.pod),
		.jdk = profile_string(p, s->info.jdk),
	};
	struct profile_thread t = { .tid = sample->tid, .name = profile_string(p, sample->thread) };
	uint32_t thread;

	t.process = profile_process(p, &q);
	thread = t.process == UINT32_MAX ? UINT32_MAX : profile_thread(p, &t);
	if (thread == UINT32_MAX) {
		p->overflow++;
		return;
	}
	profile_add(p, thread, map_stack(p, c, serial, stream, sample->node), 1, sample->weight_ns);
	if (interval_ns > p->interval_ns)
		p->interval_ns = interval_ns;
}

void live_add(struct live_source *s, const struct stream *stream, const struct stream_sample *sample,
	      uint64_t real_ns, uint64_t interval_ns)
{
	struct live_slice *slice = slice_at(s->live, real_ns);

	if (slice)
		add_sample(s, slice->profile, &s->cache, slice->serial, stream, sample, interval_ns);
	for (struct live_tap *t = s->taps; t; t = t->next) {
		add_sample(s, t->profile, &s->tap_cache, t->serial, stream, sample, interval_ns);
		if (!t->profile->begin_real_ns || real_ns < t->profile->begin_real_ns)
			t->profile->begin_real_ns = real_ns;
		if (real_ns > t->profile->end_real_ns)
			t->profile->end_real_ns = real_ns;
	}
}

static void add_to(struct profile_losses *to, const struct profile_losses *d)
{
	to->taken += d->taken;
	to->taken_ns += d->taken_ns;
	to->delivered += d->delivered;
	to->delivered_ns += d->delivered_ns;
	to->dropped += d->dropped;
	to->dropped_ns += d->dropped_ns;
}

void live_add_losses(struct live_source *s, const struct profile_losses *delta)
{
	struct live_slice *newest = NULL;

	for (int i = 0; i < SLICES; i++)
		if (s->live->slices[i].profile &&
		    (!newest || s->live->slices[i].serial > newest->serial))
			newest = &s->live->slices[i];
	if (newest)
		add_to(&newest->profile->losses, delta);
	for (struct live_tap *t = s->taps; t; t = t->next)
		add_to(&t->profile->losses, delta);
}

/* ---- questions ------------------------------------------------------------------------------ */

static bool touches(const struct profile *p, uint64_t from, uint64_t to)
{
	return p->begin_real_ns < to && p->end_real_ns > from;
}

int live_query(struct live *l, uint64_t from, uint64_t to, const struct profile_filter *filter,
	       struct profile *dst)
{
	int r = 0;

	for (int i = 0; i < SLICES && r == 0; i++)
		if (l->slices[i].profile && touches(l->slices[i].profile, from, to))
			r = profile_merge(dst, l->slices[i].profile, filter);
	for (int i = 0; i < LIVE_WINDOWS && r == 0; i++)
		if (l->windows[i] && touches(l->windows[i], from, to))
			r = profile_merge(dst, l->windows[i], filter);
	return r;
}

uint64_t live_oldest_real_ns(const struct live *l)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < SLICES; i++)
		if (l->slices[i].profile && l->slices[i].begin_real_ns < oldest)
			oldest = l->slices[i].begin_real_ns;
	for (int i = 0; i < LIVE_WINDOWS; i++)
		if (l->windows[i] && l->windows[i]->begin_real_ns < oldest)
			oldest = l->windows[i]->begin_real_ns;
	return oldest;
}

/* ---- recordings ------------------------------------------------------------------------------ */

int live_tap_new(struct live_source *s, struct live_tap **ret)
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

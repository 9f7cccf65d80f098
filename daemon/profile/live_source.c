/*
 * Adds one target's events and counters to the window and second of their time, and to the target's
 * recording if there is one. See live.h.
 */
#include "daemon/profile/live_priv.h"

#include <errno.h>
#include <string.h>
#include "daemon/profile/class_text.h"

/* ---- life cycle ------------------------------------------------------------------------------ */

static char *live_source_copy(const char *s)
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
	free((void *)(uintptr_t)p->labels);
	free((void *)(uintptr_t)p->note);
}

void live_source_update(struct live_source *s, const struct live_process *info)
{
	struct live_process old = s->info;

	s->info = *info;
	s->info.name = live_source_copy(info->name);
	s->info.container_id = live_source_copy(info->container_id);
	s->info.container = live_source_copy(info->container);
	s->info.pod = live_source_copy(info->pod);
	s->info.jdk = live_source_copy(info->jdk);
	s->info.labels = live_source_copy(info->labels);
	s->info.note = live_source_copy(info->note);
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

void live_source_end(struct live_source *s)
{
	for (int i = 0; i < 2; i++) {
		live_ids_forget(&s->caches[i]);
		live_stacks_forget(&s->stacks[i]);
	}
	live_ids_forget(&s->tap_cache);
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
		t->source = NULL; /* the recording is freed by its owner */
	s->live->names_ended++;
	live_source_end(s);
	free_info(&s->info);
	free(s);
	return NULL;
}

static size_t live_stacks_entries(const struct live_stacks *c)
{
	return (size_t)c->n_nodes + c->n_methods + c->n_texts;
}

size_t live_source_bytes(const struct live_source *s)
{
	size_t n = 0;

	for (int i = 0; i < 2; i++)
		n += live_stacks_entries(&s->stacks[i]);
	n += live_stacks_entries(&s->tap_cache.own);
	return n * sizeof(*s->tap_cache.own.nodes);
}

void live_source_reset(struct live_source *s)
{
	live_source_end(s); /* the new ids may be fewer: frees the memory */
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Adds the frames of @k above @node. Of a kernel address only the name is kept. */
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

/* Adds the class that was waited for or allocated on top of the stack, as if it had been called. */
static uint32_t add_class(struct profile *p, uint32_t node, const char *class_name)
{
	struct profile_frame f = { .kind = WIRE_KIND_CLASS, .line = -1 };
	char text[CLASS_TEXT_MAX];

	if (!class_name || !*class_name)
		return node;
	f.method = profile_string(p, class_text(class_name, text));
	return profile_node(p, node, f.method ? profile_intern_frame(p, &f) : UINT32_MAX);
}

static void live_source_add_row(struct profile *p, const struct profile_row *row,
				struct live_place at)
{
	uint32_t id = profile_put_row(p, row);

	if (at.window)
		live_second_add_row(at, id, row->samples, row->weight);
}

/* Splits a sample's weight among the kernel's ticks that it covers; their sum stays one sample. */
static void add_weight(struct profile *p, struct profile_row row, const struct live_kernel *kernel,
		       const char *reason, struct live_place at)
{
	uint64_t weight = row.weight, n = kernel ? kernel->n : 0;
	const struct kernel_stack *k = n ? kernel->first : NULL;
	uint32_t node = row.node;

	profile_book_row(p, &row);
	if (at.window && row.thread < p->n_threads)
		live_second_add_came(at, p->threads[row.thread].process, &row);
	if (!k) {
		row.node = add_class(p, node, reason);
		live_source_add_row(p, &row, at);
	}
	for (; k; k = k->next, n--) {
		row.weight = weight / n;
		weight -= row.weight;
		row.samples = n == 1;
		row.node = add_class(p, add_kernel(p, node, kernel, k), reason);
		live_source_add_row(p, &row, at);
	}
}

/* Counts the samples of a row that has lost its trace ids, because there is no room for them. */
static void add_no_ids(struct profile *p, const struct live_ids *c, const struct profile_row *row,
		       struct live_place at)
{
	struct profile_accounts d = { 0 };

	d.of[row->event].no_ids = row->samples;
	profile_add_accounts(p, c->process, &d);
	if (at.window)
		live_second_add_accounts(at, c->process, &d);
}

static void live_extend_interval(struct profile *p, enum wire_event event, uint64_t interval)
{
	if (interval > p->interval[event])
		p->interval[event] = interval;
}

void live_add_to_profile(struct live_source *s, struct profile *p, struct live_ids *c,
			 uint64_t serial, const struct stream *stream, const struct live_event *e,
			 const struct live_kernel *kernel, struct live_place at, uint32_t spans)
{
	struct profile_row row = {
		.event = (uint8_t)e->event,
		.wait = (uint8_t)e->wait,
		.idle = e->idle,
		.samples = e->samples ? e->samples : 1,
		.weight = e->weight,
	};

	live_ids_turn(c, serial);
	row.thread = live_ids_thread(c, p, live_ids_process(c, p, &s->info), e->tid, e->thread,
				     e->thread_number);
	row.node = live_ids_stack(c, p, stream, e->node);
	if (e->trace && spans)
		row.span = live_ids_span(c, p, e->trace, spans);
	if (e->trace && spans && !row.span)
		add_no_ids(p, c, &row, at);
	if (e->event != WIRE_EVENT_OFFCPU)
		row.node = add_class(p, row.node, e->class_name);
	/* the reason goes above the kernel's frames, which tell the place */
	add_weight(p, row, kernel, e->event == WIRE_EVENT_OFFCPU ? e->class_name : NULL, at);
	live_extend_interval(p, e->event, e->interval);
}

static struct live_ids *cache_of(struct live_source *s, const struct live_recent *w)
{
	struct live_ids *c = &s->caches[w->begin_real_ns / LIVE_WINDOW_NS & 1];

	c->shared = &s->stacks[w->names_serial & 1];
	live_stacks_turn(c->shared, w->names_serial);
	return c;
}

void live_sources_settle(struct live *l, const struct live_recent *w)
{
	for (struct live_source *s = l->sources; s; s = s->next) {
		struct live_stacks *stacks = &s->stacks[w->names_serial & 1];

		if (stacks->serial == w->names_serial)
			live_stacks_forget(stacks);
	}
}

void live_add_event(struct live_source *s, const struct stream *stream, const struct live_event *e,
		    const struct live_kernel *kernel, uint64_t real_ns)
{
	struct live_place at = live_place_at(s->live, real_ns);

	if (at.window)
		live_add_to_profile(s, at.window->profile, cache_of(s, at.window),
				    at.window->serial, stream, e, kernel, at,
				    s->live->keep_ids ? LIVE_SPANS_MAX : 0);
	for (struct live_tap *t = s->taps; t; t = t->next)
		live_tap_add(t, stream, e, kernel);
}

void live_add(struct live_source *s, const struct stream *stream,
	      const struct stream_sample *sample, const struct live_kernel *kernel,
	      uint64_t real_ns, uint64_t interval_ns)
{
	const struct live_event e = {
		.event = WIRE_EVENT_CPU,
		.tid = sample->tid,
		.thread_number = sample->thread_number,
		.thread = sample->thread,
		.node = sample->node,
		.weight = sample->weight_ns,
		.interval = interval_ns,
		.trace = sample->trace,
	};

	live_add_event(s, stream, &e, kernel, real_ns);
}

/* ---- counters, and the CPU time for coverage ------------------------------------------------- */

void live_add_accounts(struct live_source *s, const struct profile_accounts *delta)
{
	struct live_place at = live_newest_place(s->live);
	struct live_ids *c;

	/* everything was dropped: no sample has opened a second */
	if (!at.window && s->live->open_from)
		at = live_place_at(s->live, s->live->tick_ns);
	if (at.window) {
		uint32_t process;

		c = cache_of(s, at.window);
		at.second->changes++;
		live_ids_turn(c, at.window->serial);
		process = live_ids_process(c, at.window->profile, &s->info);
		profile_add_accounts(at.window->profile, process, delta);
		live_second_add_accounts(at, process, delta);
	}
	for (struct live_tap *t = s->taps; t; t = t->next)
		live_tap_add_accounts(t, delta);
}

void live_note_interval(struct live_source *s, enum wire_event event, uint64_t interval)
{
	struct live_place at = live_newest_place(s->live);

	if (at.window)
		live_extend_interval(at.window->profile, event, interval);
	for (struct live_tap *t = s->taps; t; t = t->next)
		if (t->events & 1u << event)
			live_extend_interval(t->profile, event, interval);
}

static void add_cpu(struct live_source *s, uint64_t ns, uint64_t real_ns)
{
	struct live_place at = { 0 };
	struct live_ids *c;
	uint32_t process;

	if (ns)
		at = live_place_at(s->live, real_ns);
	if (!at.window)
		return;
	c = cache_of(s, at.window);
	live_ids_turn(c, at.window->serial);
	process = live_ids_process(c, at.window->profile, &s->info);
	profile_add_cpu(at.window->profile, process, ns);
	live_second_add_cpu(at, process, ns);
}

void live_add_cpu(struct live_source *s, uint64_t ns, uint64_t from_real_ns, uint64_t to_real_ns)
{
	uint64_t at = from_real_ns, left = ns;

	for (struct live_tap *t = s->taps; t; t = t->next)
		live_tap_add_cpu(t, ns);
	/* the wall clock was set, or the daemon stood still */
	if (at >= to_real_ns || to_real_ns - at > LIVE_WINDOW_NS)
		at = to_real_ns;
	while (at < to_real_ns) {
		uint64_t end = at - at % LIVE_SLICE_NS + LIVE_SLICE_NS, part;

		if (end >= to_real_ns)
			break;
		part = (uint64_t)((double)left * (double)(end - at) / (double)(to_real_ns - at));
		add_cpu(s, part, at);
		left -= part;
		at = end;
	}
	add_cpu(s, left, at);
}

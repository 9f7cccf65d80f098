/*
 * Maps the ids of a stream to ids in a profile. What is found is remembered as long as the profile
 * with the names (of windows or of a recording) stays the same, so that a known stack costs one
 * lookup.
 */
#include "daemon/profile/live_ids.h"
#include "daemon/profile/profile_priv.h"

#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"

/* New nodes of one source that are looked up in one second; the stacks of further ones become
 * "[profile full]". No real JVM has this many, and looking them up takes some 50 ms. */
#define NEW_NODES_MAX (1u << 17)
/* Texts with larger numbers are looked up each time: an agent may skip numbers. */
#define TEXTS_MAX (1u << 16)

static bool live_ids_has_room(uint32_t **entries, uint32_t *n, uint32_t id)
{
	/* a quarter more, not twice as many: the array has an entry for each node of the agent */
	uint32_t want = id + id / 4 + 256;
	uint32_t *p;

	if (id < *n)
		return true;
	p = realloc(*entries, want * sizeof(*p));
	if (!p)
		return false;
	memset(p + *n, 0, (want - *n) * sizeof(*p));
	*entries = p;
	*n = want;
	return true;
}

/* A frame of this method in @p; NULL = none is known. */
static const struct profile_frame *known_method(const struct live_stacks *c,
						const struct profile *p, uint32_t method)
{
	if (!method || method >= c->n_methods || !c->methods[method])
		return NULL;
	return &p->frames[c->methods[method] - 1];
}

static void know_method(struct live_stacks *c, uint32_t method, uint32_t frame)
{
	if (method && frame != UINT32_MAX && live_ids_has_room(&c->methods, &c->n_methods, method))
		c->methods[method] = frame + 1;
}

/* Adds a frame whose method's names have been looked up before, as most have. */
static uint32_t add_known(struct profile *p, const struct profile_frame *known,
			  const struct stream_frame *f)
{
	struct profile_frame to = *known;

	to.kind = f->kind;
	to.line = f->line;
	return profile_intern_frame(p, &to);
}

/* The string in @p of a text with the number @id, which several methods may have. */
static uint32_t live_ids_text(struct live_stacks *c, struct profile *p, uint32_t id,
			      const char *text, bool *full)
{
	uint32_t string;

	if (id && id < c->n_texts && c->texts[id])
		return c->texts[id];
	string = profile_text(p, text, full);
	if (id && id < TEXTS_MAX && live_ids_has_room(&c->texts, &c->n_texts, id))
		c->texts[id] = string;
	return string;
}

static struct live_stacks *stacks_of(struct live_ids *ids)
{
	return ids->shared ? ids->shared : &ids->own;
}

static uint32_t add_new(struct live_ids *ids, struct profile *p, const struct stream_frame *f)
{
	struct live_stacks *c = stacks_of(ids);
	bool full = false;
	struct profile_frame to = {
		.kind = f->kind,
		.line = f->line,
		.class_name = live_ids_text(c, p, f->class_id, f->class_name, &full),
		.method = live_ids_text(c, p, f->name_id, f->method, &full),
		.signature = live_ids_text(c, p, f->signature_id, f->signature, &full),
		.file = live_ids_text(c, p, f->file_id, f->file, &full),
		.module = profile_text(p, f->module, &full),
		/* the process of a native frame's mapping; UINT32_MAX = none */
		.scope = f->kind == WIRE_KIND_NATIVE ? ids->process + 1 : 0,
		.offset = f->offset,
	};

	return full ? UINT32_MAX : profile_intern_frame(p, &to);
}

/* Names are looked up only for the first frame of a method. */
static uint32_t add_frame(struct live_ids *ids, struct profile *p, const struct stream *stream,
			  uint32_t node)
{
	struct live_stacks *c = stacks_of(ids);
	const struct profile_frame *known = NULL;
	struct stream_frame f;
	uint32_t frame, parent;

	if (stream_node_method(stream, node, &f))
		known = known_method(c, p, f.method_id);
	if (known && known->kind == f.kind && known->line == f.line)
		return (uint32_t)(known - p->frames);
	if (known)
		return add_known(p, known, &f);
	if (!stream_node(stream, node, &f, &parent))
		return UINT32_MAX;
	frame = add_new(ids, p, &f);
	know_method(c, f.method_id, frame);
	return frame;
}

void live_stacks_turn(struct live_stacks *c, uint64_t serial)
{
	if (c->serial == serial)
		return;
	/* clearing them with the names costs less than a generation in each entry, which would
	 * double them */
	if (c->n_nodes)
		memset(c->nodes, 0, c->n_nodes * sizeof(*c->nodes));
	if (c->n_methods)
		memset(c->methods, 0, c->n_methods * sizeof(*c->methods));
	if (c->n_texts)
		memset(c->texts, 0, c->n_texts * sizeof(*c->texts));
	c->serial = serial;
}

void live_stacks_forget(struct live_stacks *c)
{
	free(c->nodes);
	free(c->methods);
	free(c->texts);
	/* the limit of new nodes in a second also holds across a reset */
	*c = (struct live_stacks){ .second = c->second, .new_nodes = c->new_nodes };
}

/* Makes the ids those of the profile @serial. */
void live_ids_turn(struct live_ids *c, uint64_t serial)
{
	if (c->serial == serial)
		return;
	if (!c->shared)
		live_stacks_turn(&c->own, serial);
	memset(c->threads, 0, sizeof(c->threads));
	c->serial = serial;
	c->process = UINT32_MAX;
	c->new_spans = 0;
}

void live_ids_forget(struct live_ids *c)
{
	struct live_stacks own = c->own;

	live_stacks_forget(&own);
	*c = (struct live_ids){ .process = UINT32_MAX, .new_spans = c->new_spans, .own = own };
}

/* Is @node known? Then *ret is the profile's node. */
static bool cache_get(const struct live_stacks *c, uint32_t node, uint32_t *ret)
{
	if (!c->nodes[node])
		return false;
	*ret = c->nodes[node] - 1;
	return true;
}

static void begin_second(struct live_stacks *c)
{
	uint64_t second = clock_mono_ns() / NS_PER_S;

	if (c->second != second)
		c->new_nodes = 0;
	c->second = second;
}

/* Adds a stack to @p: walks from the leaf to the first known node, then back. No recursion. */
uint32_t live_ids_stack(struct live_ids *ids, struct profile *p, const struct stream *stream,
			uint32_t leaf)
{
	struct live_stacks *c = stacks_of(ids);
	uint32_t chain[STREAM_DEPTH_MAX + 1], n = 0, node = leaf, to = 0, parent;

	while (node) {
		if (!live_ids_has_room(&c->nodes, &c->n_nodes, node))
			return profile_node(p, 0, UINT32_MAX);
		if (cache_get(c, node, &to))
			break;
		if (n == 0)
			begin_second(c);
		if (c->new_nodes == NEW_NODES_MAX)
			return profile_node(p, 0, UINT32_MAX);
		if (!stream_parent(stream, node, &parent))
			return 0;
		c->new_nodes++;
		chain[n++] = node;
		node = parent;
	}
	while (n > 0) {
		node = chain[--n];
		to = profile_node(p, to, add_frame(ids, p, stream, node));
		c->nodes[node] = to + 1;
	}
	return to;
}

static bool live_ids_is_named(const struct profile *p, const struct profile_thread *t,
			      const char *name)
{
	return strcmp(p->strings[t->name], name ? name : "") == 0;
}

/* For a known thread only the name is compared, by its number if possible. */
uint32_t live_ids_thread(struct live_ids *c, struct profile *p, uint32_t process, uint32_t tid,
			 const char *name, uint32_t number)
{
	struct live_thread *known = &c->threads[tid % LIVE_THREADS];
	struct profile_thread t = { .process = process, .tid = tid };
	uint32_t thread = known->thread - 1;

	if (known->thread && known->tid == tid && p->threads[thread].process == process &&
	    ((number && number == known->number) ||
	     live_ids_is_named(p, &p->threads[thread], name))) {
		known->number = number;
		return thread;
	}
	t.name = profile_string(p, name);
	thread = profile_thread(p, &t);
	*known = (struct live_thread){ .tid = tid, .number = number };
	/* without room it is another thread, "[profile full]" */
	if (thread != UINT32_MAX && p->threads[thread].tid == tid)
		known->thread = thread + 1;
	return thread;
}

uint32_t live_ids_span(struct live_ids *c, struct profile *p, const struct stream_context *trace,
		       uint32_t most)
{
	uint32_t before = p->n_spans, span;

	p->index->find_only = c->new_spans >= most;
	span = profile_span(p, trace->trace_id, trace->span_id);
	p->index->find_only = false;
	c->new_spans += p->n_spans - before;
	return span;
}

uint32_t live_ids_process(struct live_ids *c, struct profile *p, const struct live_process *info)
{
	struct profile_process q;

	profile_payer(p, info->tenant);
	if (c->process != UINT32_MAX)
		return c->process;
	q = (struct profile_process){
		.pid = info->pid,
		.ns_pid = info->ns_pid,
		.start_time = info->start_time,
		.name = profile_string(p, info->name),
		.container_id = profile_string(p, info->container_id),
		.container = profile_string(p, info->container),
		.pod = profile_string(p, info->pod),
		.jdk = profile_string(p, info->jdk),
		.labels = profile_string(p, info->labels),
		.note = profile_string(p, info->note),
		.tenant = info->tenant,
	};
	c->process = profile_process(p, &q);
	return c->process;
}

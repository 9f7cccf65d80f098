/*
 * The entries called "[profile full]", which take the weight of stacks, threads and rows that found
 * no room, so that no weight is lost. Only they may use the PROFILE_SPARE entries of each table.
 */
#include "daemon/profile/profile_priv.h"

#include <string.h>

#define FULL "[profile full]"

static uint32_t full_name(struct profile *p)
{
	if (!p->index->full_name && p->index->names) {
		(void)full_name(profile_names_of(p));
		profile_names_refresh(p);
	} else if (!p->index->full_name) {
		p->index->full_name = profile_string(p, FULL);
	}
	return p->index->full_name;
}

/* The node for stacks without room. 0 only if there is no memory at all. */
uint32_t profile_full_node(struct profile *p)
{
	struct profile_frame f = { .kind = WIRE_KIND_SYNTHETIC, .line = -1 };
	struct profile_index *x = p->index;
	bool spare = x->spare;
	uint32_t frame, node;

	if (!x->full_node && x->names) {
		(void)profile_full_node(profile_names_of(p));
		profile_names_refresh(p);
	}
	if (x->full_node || x->names)
		return x->full_node;
	x->spare = true;
	f.method = full_name(p);
	frame = profile_intern_frame(p, &f);
	node = frame == UINT32_MAX ? UINT32_MAX : profile_intern_node(p, 0, frame);
	x->full_node = node == UINT32_MAX ? 0 : node;
	x->spare = spare;
	return x->full_node;
}

/* The thread for those threads of @process that found no room. */
uint32_t profile_full_thread(struct profile *p, uint32_t process)
{
	struct profile_thread t = { .process = process };
	bool spare = p->index->spare;
	uint32_t id;

	p->index->spare = true;
	t.name = full_name(p);
	id = profile_intern_thread(p, &t);
	p->index->spare = spare;
	return id;
}

void profile_adopt_full(struct profile *p)
{
	for (uint32_t i = 1; i < p->n_strings && !p->index->full_name; i++)
		if (strcmp(p->strings[i], FULL) == 0)
			p->index->full_name = i;
	for (uint32_t i = 1; i < p->n_nodes && p->index->full_name; i++) {
		const struct profile_frame *f = &p->frames[p->nodes[i].frame];

		if (p->nodes[i].parent == 0 && f->kind == WIRE_KIND_SYNTHETIC &&
		    f->method == p->index->full_name)
			p->index->full_node = i;
	}
}

uint32_t profile_thread(struct profile *p, const struct profile_thread *t)
{
	uint32_t id;

	if (t->process >= p->n_processes)
		return UINT32_MAX;
	id = profile_intern_thread(p, t);
	return id == UINT32_MAX ? profile_full_thread(p, t->process) : id;
}

uint32_t profile_node(struct profile *p, uint32_t parent, uint32_t frame)
{
	uint32_t node;

	if (parent && parent == p->index->full_node)
		return parent; /* it cannot have a caller */
	node = frame == UINT32_MAX ? UINT32_MAX : profile_intern_node(p, parent, frame);
	if (node != UINT32_MAX)
		return node;
	(p->index->names ? p->index->names : p)->index->no_room = true;
	return profile_full_node(p);
}

bool profile_is_full(const struct profile *p, uint32_t thread, uint32_t node)
{
	const struct profile_index *x = p->index;

	return (x->full_node && node == x->full_node) ||
	       (x->full_name && p->threads[thread].name == x->full_name);
}

/* The row for a row without room: of the same process, event and kind of wait. */
uint32_t profile_full_row(struct profile *p, struct profile_row r)
{
	bool spare = p->index->spare;
	uint32_t row;

	r.thread = profile_full_thread(p, p->threads[r.thread].process);
	p->index->spare = true;
	r.node = profile_full_node(p);
	r.span = 0;
	row = r.thread == UINT32_MAX ? UINT32_MAX : profile_intern_row(p, &r);
	p->index->spare = spare;
	return row;
}

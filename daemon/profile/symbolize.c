/* Names native frames, whose names become known later than the frames: see profile.h. */
#include "daemon/profile/profile_priv.h"

#include <string.h>

/* Merges frames that are equal since some of them got their names. */
static void merge_equal(struct profile *p)
{
	struct profile *merged, old;

	if (profile_new(&merged) < 0)
		return;
	profile_limit(merged, SIZE_MAX, 0);
	if (profile_merge(merged, p, NULL) == 0) {
		profile_limit(merged, p->index->bytes_max, p->index->tenants);
		old = *p;
		*p = *merged;
		*merged = old;
	}
	profile_free(merged);
}

static bool is_clone(const struct profile *p, const struct profile_frame *f)
{
	const char *name = p->strings[f->method];

	return f->kind == WIRE_KIND_NATIVE &&
	       (strcmp(name, "clone3") == 0 || strcmp(name, "clone") == 0 ||
		strcmp(name, "__clone") == 0);
}

/* Names the function in which the C library starts a new thread. It is not exported; but clone
 * calls no other function of its own library. */
static void name_starts(struct profile *p)
{
	for (uint32_t i = 1; i < p->n_nodes; i++) {
		struct profile_frame *f = &FRAMES(p)[NODES(p)[i].frame];
		const struct profile_frame *caller;

		if (f->kind != WIRE_KIND_NATIVE || f->method || !NODES(p)[i].parent)
			continue;
		caller = &FRAMES(p)[NODES(p)[NODES(p)[i].parent].frame];
		if (caller->module == f->module && is_clone(p, caller))
			f->method = profile_string(p, "start_thread");
	}
}

void profile_symbolize(struct profile *p, profile_lookup_fn *lookup, void *userdata)
{
	for (uint32_t i = 0; i < p->n_frames; i++) {
		struct profile_frame *f = &FRAMES(p)[i];
		uint32_t scope = f->scope;
		const char *name;

		f->scope = 0;
		if (f->kind != WIRE_KIND_NATIVE || f->method)
			continue;
		name = lookup(userdata, scope ? &p->processes[scope - 1] : NULL,
			      p->strings[f->module], f->offset);
		if (name)
			f->method = profile_string(p, name);
	}
	name_starts(p);
	/* a frame's hash depends on its name */
	if (!profile_index_frames(p))
		merge_equal(p);
}

/* Names of native frames, which become known after the frames: see profile.h. */
#include "daemon/profile/profile_priv.h"

#include <string.h>

/* A frame that got its name now may equal one that already had it: equal frames are merged. */
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

/* The C library's own function in which a new thread starts has no exported name, but only this one
 * is called by clone from the same library. */
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
	/* the hash of frames depends on their content, which changed */
	if (!profile_index_frames(p))
		merge_equal(p);
}

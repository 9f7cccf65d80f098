/* Names of native frames, told after the frames came: see profile.h. */
#include "daemon/profile/profile_priv.h"

/* A frame that had its name met one that got it now: what became equal is merged. */
static void merge_equal(struct profile *p)
{
	struct profile *merged, old;

	if (profile_new(&merged) < 0)
		return;
	profile_limit(merged, SIZE_MAX);
	if (profile_merge(merged, p, NULL) == 0) {
		merged->index->bytes_max = p->index->bytes_max;
		old = *p;
		*p = *merged;
		*merged = old;
	}
	profile_free(merged);
}

void profile_symbolize(struct profile *p,
		       const char *(*lookup)(void *userdata, const char *module, uint64_t offset),
		       void *userdata)
{
	for (uint32_t i = 0; i < p->n_frames; i++) {
		struct profile_frame *f = &FRAMES(p)[i];
		const char *name;

		if (f->kind != WIRE_KIND_NATIVE || f->method)
			continue;
		name = lookup(userdata, p->strings[f->module], f->offset);
		if (name)
			f->method = profile_string(p, name);
	}
	/* frames are found by their content, which changed */
	if (!profile_index_frames(p))
		merge_equal(p);
}

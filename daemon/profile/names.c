/*
 * Profiles that share their names: strings, frames and nodes. One profile has them; the others have
 * rows, threads and counters of their own, and pass each new name on. Their processes have the same
 * numbers, because frames without a symbol's name refer to them.
 */
#include "daemon/profile/profile_priv.h"

int profile_new_sharing(struct profile *names, struct profile **ret)
{
	int r = profile_new_of(names, ret);

	if (r < 0)
		return r;
	names->index->sharers++;
	profile_names_refresh(*ret);
	return 0;
}

void profile_names_refresh(const struct profile *p)
{
	const struct profile *names = p->index->names;
	struct profile *to = (struct profile *)(uintptr_t)p;

	if (!names)
		return;
	to->strings = names->strings;
	to->frames = names->frames;
	to->nodes = names->nodes;
	to->n_strings = names->n_strings;
	to->n_frames = names->n_frames;
	to->n_nodes = names->n_nodes;
	to->index->full_name = names->index->full_name;
	to->index->full_node = names->index->full_node;
}

struct profile *profile_names_of(struct profile *p)
{
	const struct profile_index *x = p->index;
	struct profile_index *to = x->names->index;

	to->payer = profile_account(x->names, x->accounts[x->payer].tenant);
	to->spare = x->spare;
	to->find_only = x->find_only;
	return x->names;
}

uint32_t profile_names_process(struct profile *p, const struct profile_process *q)
{
	/* the rest may differ from one profile to the next */
	const struct profile_process same = { .pid = q->pid, .start_time = q->start_time };
	struct profile *names = profile_names_of(p);
	uint32_t id = profile_intern_process(names, &same);

	names->index->no_room |= id == UINT32_MAX;
	while (id != UINT32_MAX && p->n_processes <= id)
		if (!profile_append_process(p, &names->processes[p->n_processes]))
			return UINT32_MAX;
	return id;
}

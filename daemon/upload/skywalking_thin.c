/* See skywalking_thin.h. */
#include "daemon/upload/skywalking_thin.h"

#include <errno.h>
#include <stdlib.h>

struct thin_event {
	uint64_t samples, weight;
	uint64_t step; /* weight that one sample stands for */
	uint64_t carried; /* weight since the last kept sample */
	bool keeps; /* it has few samples: all are kept */
};

struct thin_row {
	uint64_t samples, weight;
};

/* The weight of a row; its number of samples if it has none. */
static uint64_t thin_weight(const struct profile_row *r)
{
	return r->weight ? r->weight : r->samples;
}

static void thin_sum(const struct profile *p, struct thin_event e[WIRE_EVENT_COUNT])
{
	for (uint32_t i = 0; i < p->n_rows; i++) {
		e[p->rows[i].event].samples += p->rows[i].samples;
		e[p->rows[i].event].weight += thin_weight(&p->rows[i]);
	}
}

/* How many samples an event may keep: events with few samples keep them all, the others share
 * the rest equally. */
static uint64_t thin_share(uint64_t n, const struct thin_event e[WIRE_EVENT_COUNT])
{
	uint64_t share = 0;

	for (unsigned round = 0; round < WIRE_EVENT_COUNT; round++) {
		uint64_t small = 0, large = 0;

		for (unsigned i = 0; i < WIRE_EVENT_COUNT; i++) {
			small += e[i].samples <= share ? e[i].samples : 0;
			large += e[i].samples > share;
		}
		if (large == 0 || small >= n || share >= (n - small) / large)
			break;
		share = (n - small) / large;
	}
	return share ? share : 1;
}

static void thin_steps(const struct profile *p, uint64_t n, struct thin_event e[WIRE_EVENT_COUNT])
{
	uint64_t share;

	thin_sum(p, e);
	share = thin_share(n, e);
	for (unsigned i = 0; i < WIRE_EVENT_COUNT; i++) {
		e[i].step = e[i].weight / share ? e[i].weight / share : 1;
		e[i].keeps = e[i].samples <= share;
		e[i].carried = e[i].step / 2;
	}
}

/* What is kept of a row; 0 samples = nothing. */
static struct thin_row thin_one(const struct profile_row *r, struct thin_event *e)
{
	uint64_t times;

	if (e->keeps)
		return (struct thin_row){ r->samples, r->weight };
	e->carried += thin_weight(r);
	times = e->carried / e->step;
	e->carried -= times * e->step;
	return (struct thin_row){ times < r->samples ? times : r->samples, times * e->step };
}

/* Only a profile's creator may write its rows, and this code is the creator. */
static struct profile_row *thin_rows(const struct profile *p)
{
	return (struct profile_row *)(uintptr_t)p->rows;
}

int skywalking_thin(const struct profile *p, uint64_t n, struct profile **ret)
{
	CLEANUP(freep) struct thin_row *kept = calloc((size_t)p->n_rows + 1, sizeof(*kept));
	CLEANUP(freep) bool *rows = calloc((size_t)p->n_rows + 1, sizeof(*rows));
	CLEANUP(profile_freep) struct profile *thin = NULL;
	const struct profile_filter filter = { .rows = rows };
	struct thin_event events[WIRE_EVENT_COUNT] = { 0 };
	uint32_t n_kept = 0;
	int r = kept && rows ? profile_new(&thin) : -ENOMEM;

	if (r < 0)
		return r;
	thin_steps(p, n, events);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		kept[n_kept] = thin_one(&p->rows[i], &events[p->rows[i].event]);
		rows[i] = kept[n_kept].samples;
		n_kept += rows[i];
	}
	r = profile_merge(thin, p, &filter);
	if (r < 0 ||
	    thin->n_rows != n_kept) /* all rows differ: they are added one by one, in their order */
		return r < 0 ? r : -EINVAL;
	for (uint32_t i = 0; i < n_kept; i++) {
		thin_rows(thin)[i].samples = kept[i].samples;
		thin_rows(thin)[i].weight = kept[i].weight;
	}
	*ret = TAKE_PTR(thin);
	return 0;
}

int skywalking_wall(const struct profile *p, struct profile **ret)
{
	unsigned events = profile_events(p);
	const struct profile_filter filter = { .events = events & 1u << WIRE_EVENT_WALL
								 ? events & ~(1u << WIRE_EVENT_CPU)
								 : 0 };
	CLEANUP(profile_freep) struct profile *copy = NULL;
	int r = profile_new(&copy);

	if (r == 0)
		r = profile_merge(copy, p, &filter);
	if (r < 0)
		return r;
	if (filter.events) {
		for (uint32_t i = 0; i < copy->n_rows; i++)
			if (copy->rows[i].event == WIRE_EVENT_WALL)
				thin_rows(copy)[i].event = WIRE_EVENT_CPU;
		copy->interval[WIRE_EVENT_CPU] = copy->interval[WIRE_EVENT_WALL];
		copy->accounts.of[WIRE_EVENT_CPU] = copy->accounts.of[WIRE_EVENT_WALL];
	}
	*ret = TAKE_PTR(copy);
	return 0;
}

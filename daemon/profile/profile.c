/* See profile.h: the life, rows and accounting of a profile. Tables are in table.c, entries
 * without room in full.c. */
#include "daemon/profile/profile_priv.h"

#include <errno.h>

int profile_new_of(struct profile *names, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = profile_tables_init(p, names);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

int profile_new(struct profile **ret)
{
	return profile_new_of(NULL, ret);
}

struct profile *profile_free(struct profile *p)
{
	if (!p)
		return NULL;
	if (p->index && p->index->sharers) {
		p->index->sharers--;
		return NULL;
	}
	profile_tables_deinit(p);
	free(p);
	return NULL;
}

void profile_limit(struct profile *p, size_t bytes, uint32_t tenants)
{
	p->index->bytes_max = bytes;
	p->index->tenants = tenants;
}

void profile_set_tenant(struct profile *p, uint64_t tenant)
{
	for (uint32_t i = 0; i < p->n_processes; i++)
		PROCESSES(p)[i].tenant = tenant;
}

void profile_set_tenant_of(struct profile *p, uint32_t process, uint64_t tenant)
{
	PROCESSES(p)[process].tenant = tenant;
}

uint64_t profile_samples(const struct profile *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		n += p->rows[i].samples;
	return n;
}

unsigned profile_events(const struct profile *p)
{
	unsigned events = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		events |= 1u << p->rows[i].event;
	return events;
}

uint64_t profile_cpu_ns(const struct profile *p)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < p->n_processes; i++)
		ns += p->processes[i].cpu_ns;
	return ns;
}

size_t profile_bytes(const struct profile *p)
{
	return p->index->bytes;
}

/* ---- weights --------------------------------------------------------------------------------- */

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* A row with ids has no room: its stack matters more than its ids. */
static uint32_t put_row_without_ids(struct profile *p, struct profile_row r)
{
	profile_book_no_ids(p, p->threads[r.thread].process, r.event, r.samples);
	r.span = 0;
	return profile_put_row(p, &r);
}

uint32_t profile_put_row(struct profile *p, const struct profile_row *r)
{
	bool known = r->thread < p->n_threads && r->node < p->n_nodes;
	bool full = !known || profile_is_full(p, r->thread, r->node);
	uint32_t row = known ? profile_intern_row(p, r) : UINT32_MAX;

	if (known && row == UINT32_MAX && r->span)
		return put_row_without_ids(p, *r);
	if (known && row == UINT32_MAX) {
		full = true;
		row = profile_full_row(p, *r);
	}
	if (full)
		p->overflow = add_capped(p->overflow, r->samples);
	if (row == UINT32_MAX)
		return row; /* no memory even for "[profile full]": counted in `overflow` */
	ROWS(p)[row].samples = add_capped(p->rows[row].samples, r->samples);
	ROWS(p)[row].weight = add_capped(p->rows[row].weight, r->weight);
	return row;
}

void profile_add_row(struct profile *p, const struct profile_row *r)
{
	(void)profile_put_row(p, r);
}

void profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t samples,
		 uint64_t weight_ns)
{
	const struct profile_row row = {
		.thread = thread,
		.node = node,
		.event = WIRE_EVENT_CPU,
		.samples = samples,
		.weight = weight_ns,
	};

	profile_add_row(p, &row);
}

static void add_losses(struct profile_losses *a, const struct profile_losses *b)
{
	a->taken = add_capped(a->taken, b->taken);
	a->taken_weight = add_capped(a->taken_weight, b->taken_weight);
	a->delivered = add_capped(a->delivered, b->delivered);
	a->delivered_weight = add_capped(a->delivered_weight, b->delivered_weight);
	a->dropped = add_capped(a->dropped, b->dropped);
	a->dropped_weight = add_capped(a->dropped_weight, b->dropped_weight);
	a->no_ids = add_capped(a->no_ids, b->no_ids);
}

void profile_sum_accounts(struct profile_accounts *a, const struct profile_accounts *b,
			  const struct profile_filter *f)
{
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (profile_wants(f, e))
			add_losses(&a->of[e], &b->of[e]);
	if (!profile_wants(f, WIRE_EVENT_LOCK))
		return;
	a->short_waits = add_capped(a->short_waits, b->short_waits);
	a->short_waits_ns = add_capped(a->short_waits_ns, b->short_waits_ns);
}

void profile_add_accounts(struct profile *p, uint32_t process, const struct profile_accounts *d)
{
	profile_sum_accounts(&p->accounts, d, NULL);
	if (process < p->n_processes)
		profile_sum_accounts(&PROCESSES(p)[process].accounts, d, NULL);
}

void profile_book_no_ids(struct profile *p, uint32_t process, unsigned event, uint64_t samples)
{
	struct profile_accounts d = { 0 };

	d.of[event].no_ids = samples;
	profile_add_accounts(p, process, &d);
}

void profile_add_cpu(struct profile *p, uint32_t process, uint64_t ns)
{
	if (process < p->n_processes)
		PROCESSES(p)[process].cpu_ns = add_capped(p->processes[process].cpu_ns, ns);
}

void profile_book_row(struct profile *p, const struct profile_row *r)
{
	const struct profile_losses came = { .taken = r->samples,
					     .taken_weight = r->weight,
					     .delivered = r->samples,
					     .delivered_weight = r->weight };

	add_losses(&p->accounts.of[r->event], &came);
	if (r->thread < p->n_threads)
		add_losses(&PROCESSES(p)[p->threads[r->thread].process].accounts.of[r->event],
			   &came);
}

/* For stored windows of older versions, which counted arrived events only with the agent's next
 * counters, a second or so after the rows. */
void profile_book_rows(struct profile *p)
{
	for (uint32_t i = 0; i <= p->n_processes; i++) {
		struct profile_accounts *b =
			i < p->n_processes ? &PROCESSES(p)[i].accounts : &p->accounts;

		for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
			const struct profile_losses *l = &b->of[e];

			b->of[e] = (struct profile_losses){ .taken = l->dropped,
							    .taken_weight = l->dropped_weight,
							    .dropped = l->dropped,
							    .dropped_weight = l->dropped_weight };
		}
	}
	for (uint32_t i = 0; i < p->n_rows; i++)
		profile_book_row(p, &p->rows[i]);
}

/* See locks_priv.h: waits that go on, by thread. */
#include "daemon/locks/locks_priv.h"

#include <errno.h>

#define PLACES 512u /* a power of two */

int opens_init(struct opens *o)
{
	o->places = calloc(PLACES, sizeof(struct open_wait *));
	return o->places ? 0 : -ENOMEM;
}

static struct open_wait **place_of(const struct opens *o, uint32_t tid)
{
	return &o->places[locks_hash(tid, o->seed) & (PLACES - 1)];
}

static void unlink_wait(struct opens *o, struct open_wait **link)
{
	struct open_wait *w = *link;

	*link = w->next;
	free(w);
	o->n--;
}

void opens_clear(struct opens *o)
{
	for (uint32_t i = 0; o->n && i < PLACES; i++)
		while (o->places[i])
			unlink_wait(o, &o->places[i]);
}

void opens_deinit(struct opens *o)
{
	if (o->places)
		opens_clear(o);
	free(o->places);
	o->places = NULL;
}

void opens_forget_nodes(struct opens *o)
{
	for (uint32_t i = 0; o->n && i < PLACES; i++)
		for (struct open_wait *w = o->places[i]; w; w = w->next)
			w->wait.node = w->wait.owner_node = 0;
}

struct open_wait *opens_put(struct opens *o, uint32_t tid, uint64_t begin_ns)
{
	struct open_wait **place = place_of(o, tid), *w;

	for (w = *place; w; w = w->next)
		if (w->wait.tid == tid && w->key_ns == begin_ns)
			return w;
	w = o->n < LOCKS_OPEN_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		o->refused++;
		return NULL;
	}
	w->wait.tid = tid;
	w->key_ns = begin_ns;
	w->next = *place;
	*place = w;
	o->n++;
	return w;
}

static void end(struct opens *o, uint32_t tid, uint64_t first_ns, uint64_t last_ns)
{
	struct open_wait **link = place_of(o, tid);

	while (*link) {
		const struct open_wait *w = *link;

		if (w->wait.tid == tid && w->key_ns >= first_ns && w->key_ns <= last_ns)
			unlink_wait(o, link);
		else
			link = &(*link)->next;
	}
}

void opens_end(struct opens *o, uint32_t tid, uint64_t begin_ns)
{
	/* this number is many threads': each of them has a wait of its own */
	end(o, tid, tid == WIRE_VIRTUAL_TID ? begin_ns : 0, begin_ns);
}

void opens_end_thread(struct opens *o, uint32_t tid)
{
	end(o, tid, 0, UINT64_MAX);
}

const struct open_wait *opens_of(const struct opens *o, uint32_t tid)
{
	const struct open_wait *last = NULL;

	for (const struct open_wait *w = *place_of(o, tid); w; w = w->next)
		if (w->wait.tid == tid && (!last || w->key_ns > last->key_ns))
			last = w;
	return last;
}

uint32_t opens_each(const struct opens *o, void (*each)(void *userdata, const struct open_wait *w),
		    void *userdata)
{
	for (uint32_t i = 0; o->n && i < PLACES; i++)
		for (const struct open_wait *w = o->places[i]; w; w = w->next)
			each(userdata, w);
	return o->n;
}

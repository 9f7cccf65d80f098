/* See again.h. */
#include "daemon/names/again.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct again_entry *again_find(const struct again *a, const char *container_id)
{
	for (unsigned i = 0; i < a->n; i++)
		if (strcmp(a->list[i].container_id, container_id) == 0)
			return &a->list[i];
	return NULL;
}

static struct again_entry *again_append(struct again *a)
{
	unsigned room = a->room ? 2 * a->room : 16;
	struct again_entry *list;

	if (a->n == a->room) {
		list = a->n < AGAIN_MAX ? realloc(a->list, room * sizeof(*list)) : NULL;
		if (!list)
			return NULL;
		a->list = list;
		a->room = room;
	}
	return &a->list[a->n++];
}

void again_add(struct again *a, const char *container_id, uint64_t now_mono_ns)
{
	struct again_entry *e = again_find(a, container_id) ? NULL : again_append(a);

	if (!e)
		return;
	*e = (struct again_entry){ .next_mono_ns = now_mono_ns + AGAIN_FIRST_NS };
	snprintf(e->container_id, sizeof(e->container_id), "%s", container_id);
}

void again_fail(struct again *a, const char *container_id, uint64_t now_mono_ns)
{
	struct again_entry *e = again_find(a, container_id);
	uint64_t pause = AGAIN_FIRST_NS;

	if (!e)
		return;
	e->failures++;
	for (unsigned i = 0; i < e->failures && pause < AGAIN_MAX_NS; i++)
		pause *= 2;
	e->next_mono_ns = now_mono_ns + (pause < AGAIN_MAX_NS ? pause : AGAIN_MAX_NS);
}

void again_remove(struct again *a, const char *container_id)
{
	struct again_entry *e = again_find(a, container_id);

	if (e)
		*e = a->list[--a->n];
}

const struct again_entry *again_next(const struct again *a)
{
	const struct again_entry *next = NULL;

	for (unsigned i = 0; i < a->n; i++)
		if (!next || a->list[i].next_mono_ns < next->next_mono_ns)
			next = &a->list[i];
	return next;
}

void again_deinit(struct again *a)
{
	free(a->list);
	*a = (struct again){ 0 };
}

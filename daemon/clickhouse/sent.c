/* See sent.h: an open-addressing table, at most three quarters full. */
#include "daemon/clickhouse/sent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define SLOTS_FIRST 1024u

struct sent_slot {
	uint64_t key, number;
	uint32_t round; /* in which it was added; 0 = the slot is free */
};

struct clickhouse_sent {
	struct sent_slot *slots;
	uint32_t n_slots, n;
	uint32_t round; /* stacks of earlier rounds are confirmed */
	/* odd; targets choose their stacks, and so could choose keys that collide in a table
	 * without it */
	uint64_t factor;
	uint64_t seeds[2]; /* random, so that targets cannot choose pairs that collide */
};

int clickhouse_sent_new(struct clickhouse_sent **ret)
{
	struct clickhouse_sent *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->round = 1;
	(void)!getrandom(&s->factor, sizeof(s->factor), GRND_NONBLOCK);
	s->factor |= 1;
	(void)!getrandom(s->seeds, sizeof(s->seeds), GRND_NONBLOCK);
	*ret = s;
	return 0;
}

struct clickhouse_sent *clickhouse_sent_free(struct clickhouse_sent *s)
{
	if (s)
		free(s->slots);
	free(s);
	return NULL;
}

uint64_t clickhouse_sent_pair(const struct clickhouse_sent *s, uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ s->seeds[0]) * (b ^ s->seeds[1]);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

void clickhouse_sent_confirm(struct clickhouse_sent *s)
{
	s->round++;
}

void clickhouse_sent_forget(struct clickhouse_sent *s)
{
	free(s->slots);
	s->slots = NULL;
	s->n_slots = s->n = 0;
	s->round = 1;
}

/* The key's slot, or the free one where it belongs. */
static struct sent_slot *sent_slot_of(const struct clickhouse_sent *s, uint64_t key)
{
	uint32_t at = (uint32_t)(key * s->factor >> 32) & (s->n_slots - 1);

	while (s->slots[at].round && s->slots[at].key != key)
		at = (at + 1) & (s->n_slots - 1);
	return &s->slots[at];
}

bool clickhouse_sent_find(const struct clickhouse_sent *s, uint64_t key, uint64_t *ret)
{
	const struct sent_slot *slot = s->n_slots ? sent_slot_of(s, key) : NULL;

	if (!slot || !slot->round || slot->round == s->round)
		return false;
	*ret = slot->number;
	return true;
}

static bool sent_has_room(struct clickhouse_sent *s)
{
	struct clickhouse_sent wider = *s;

	if (s->n == SENT_MAX)
		return false;
	if (s->n < s->n_slots / 4 * 3)
		return true;
	wider.n_slots = s->n_slots ? 2 * s->n_slots : SLOTS_FIRST;
	wider.slots = calloc(wider.n_slots, sizeof(*wider.slots));
	if (!wider.slots)
		return false;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slots[i].round)
			*sent_slot_of(&wider, s->slots[i].key) = s->slots[i];
	free(s->slots);
	*s = wider;
	return true;
}

void clickhouse_sent_add(struct clickhouse_sent *s, uint64_t key, uint64_t number)
{
	struct sent_slot *slot;

	if (!sent_has_room(s))
		return;
	slot = sent_slot_of(s, key);
	if (slot->round)
		return; /* added before, and perhaps confirmed */
	*slot = (struct sent_slot){ key, number, s->round };
	s->n++;
}

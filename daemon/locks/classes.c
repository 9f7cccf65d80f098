/* See locks_priv.h: names of classes by number. They are never forgotten: a JVM has few that it
 * locks. */
#include "daemon/locks/locks_priv.h"

#include <string.h>

#define OTHERS "[other classes]"

static uint32_t text_hash(const char *s, uint32_t seed)
{
	uint32_t h = 2166136261u ^ seed;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h ^ h >> 15;
}

const char *classes_name(const struct classes *c, uint32_t number)
{
	if (number == OTHER_CLASS)
		return "[other locks]";
	if (number == CLASSES_OTHER)
		return OTHERS;
	return number >= 2 && number - 2 < c->n ? c->names[number - 2] : "";
}

static bool classes_grow(struct classes *c)
{
	uint32_t cap = c->cap ? 2 * c->cap : 32, n_slots = 2 * cap;
	uint32_t *slots = calloc(n_slots, sizeof(*slots));
	char **names = slots ? realloc(c->names, cap * sizeof(*names)) : NULL;

	if (!names) {
		free(slots);
		return false;
	}
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t at = text_hash(names[i], c->seed) & (n_slots - 1);

		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = i + 2;
	}
	free(c->slots);
	c->slots = slots;
	c->n_slots = n_slots;
	c->names = names;
	c->cap = cap;
	return true;
}

uint32_t classes_number(struct classes *c, const char *name)
{
	uint32_t at, len = (uint32_t)strlen(name) + 1;

	if (!*name)
		return 0;
	if (c->n == c->cap && c->cap < LOCKS_CLASSES_MAX && !classes_grow(c))
		return 1;
	for (at = text_hash(name, c->seed) & (c->n_slots - 1); c->slots[at];
	     at = (at + 1) & (c->n_slots - 1))
		if (strcmp(c->names[c->slots[at] - 2], name) == 0)
			return c->slots[at];
	if (c->n == c->cap || len > LOCKS_CLASS_BYTES_MAX - c->bytes)
		return 1;
	c->names[c->n] = strdup(name);
	if (!c->names[c->n])
		return 1;
	c->bytes += len;
	c->slots[at] = ++c->n + 1;
	return c->n + 1;
}

void classes_deinit(struct classes *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->names[i]);
	free(c->names);
	free(c->slots);
	memset(c, 0, sizeof(*c));
}

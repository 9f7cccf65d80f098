/* See locks_priv.h: names of classes by number. None is ever dropped, because a JVM has few
 * classes of locks. */
#include "daemon/locks/locks_priv.h"

#include <string.h>

#define OTHERS "[other classes]"

static uint64_t classes_hash(const struct classes *c, const char *name)
{
	uint64_t h = hash_text(HASH_BEGIN ^ c->seed, name);

	return h ^ h >> 32;
}

static uint64_t classes_hash_of(const void *owner, uint32_t number)
{
	const struct classes *c = owner;

	return classes_hash(c, c->names[number - 1]);
}

static bool classes_is(const void *owner, uint32_t number, const void *name)
{
	const struct classes *c = owner;

	return strcmp(c->names[number - 1], name) == 0;
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
	uint32_t cap = c->cap ? 2 * c->cap : 32;
	char **names = realloc(c->names, cap * sizeof(*names));

	if (!names)
		return false;
	c->names = names;
	if (!hash_index_resize(&c->index, 2 * cap, c->n, classes_hash_of, c))
		return false;
	c->cap = cap;
	return true;
}

uint32_t classes_number(struct classes *c, const char *name)
{
	uint32_t *slot, len = (uint32_t)strlen(name) + 1;

	if (!*name)
		return 0;
	if (c->n == c->cap && c->cap < LOCKS_CLASSES_MAX && !classes_grow(c))
		return 1;
	slot = hash_index_slot(&c->index, classes_hash(c, name), classes_is, c, name);
	if (*slot)
		return *slot + 1;
	if (c->n == c->cap || len > LOCKS_CLASS_BYTES_MAX - c->bytes)
		return 1;
	c->names[c->n] = strdup(name);
	if (!c->names[c->n])
		return 1;
	c->bytes += len;
	*slot = ++c->n;
	return c->n + 1;
}

void classes_deinit(struct classes *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->names[i]);
	free(c->names);
	hash_index_deinit(&c->index);
	memset(c, 0, sizeof(*c));
}

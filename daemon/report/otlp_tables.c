/* See otlp_tables.h. */
#include "daemon/report/otlp_tables.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "daemon/ground/utf8.h"

/* ---- any table ------------------------------------------------------------------------------- */

static uint64_t otlp_seed; /* random, because targets choose the names */

static uint64_t otlp_hash(const uint8_t *bytes, size_t len)
{
	uint64_t h = hash_bytes(HASH_BEGIN ^ otlp_seed, bytes, len);

	return h ^ h >> 32;
}

static uint64_t otlp_hash_of(const void *owner, uint32_t number)
{
	const struct otlp_table *t = owner;

	return t->keys[number].hash;
}

static bool otlp_is(const void *owner, uint32_t number, const void *key)
{
	const struct otlp_table *t = owner;
	const struct otlp_key *a = &t->keys[number], *b = key;

	return a->hash == b->hash && a->len == b->len && memcmp(a->bytes, b->bytes, b->len) == 0;
}

static bool otlp_table_grow(struct otlp_table *t)
{
	uint32_t cap = t->cap ? 2 * t->cap : 64;
	struct otlp_key *keys = realloc(t->keys, cap * sizeof(*keys));
	void **entries = keys ? realloc(t->entries, cap * sizeof(*entries)) : NULL;

	t->keys = keys ? keys : t->keys;
	t->entries = entries ? entries : t->entries;
	if (!entries ||
	    !hash_index_resize(&t->index, 2 * cap, t->n ? t->n - 1 : 0, otlp_hash_of, t))
		return false;
	t->cap = cap;
	return true;
}

int32_t otlp_table_index(struct otlp_table *t, struct arena *arena, const void *key, size_t len,
			 bool *ret_new)
{
	struct otlp_key k = { key, len, otlp_hash(key, len) };
	uint32_t *slot;

	*ret_new = false;
	if (t->n >= t->cap && !otlp_table_grow(t)) {
		arena->failed = true;
		return 0;
	}
	slot = hash_index_slot(&t->index, k.hash, otlp_is, t, &k);
	if (*slot)
		return (int32_t)*slot;
	k.bytes = arena_copy(arena, key, len);
	if (!k.bytes)
		return 0;
	*ret_new = true;
	*slot = t->n;
	t->keys[t->n] = k;
	t->entries[t->n] = NULL;
	return (int32_t)t->n++;
}

void otlp_table_clear(struct otlp_table *t)
{
	t->n = 1;
	hash_index_clear(&t->index);
}

void otlp_table_deinit(struct otlp_table *t)
{
	free(t->keys);
	free(t->entries);
	hash_index_deinit(&t->index);
}

#define TRACE_ID_BYTES 16
#define SPAN_ID_BYTES  8
#define LINK_BYTES     (TRACE_ID_BYTES + SPAN_ID_BYTES)

/* ---- entries --------------------------------------------------------------------------------- */

/* Makes an empty message of the protocol. */
#define OTLP_NEW(t, ret, type)                                   \
	do {                                                     \
		(ret) = arena_take(&(t)->arena, sizeof(*(ret))); \
		if (ret)                                         \
			type##__init(ret);                       \
	} while (0)

int32_t otlp_string(struct otlp_tables *t, const char *s)
{
	size_t len = strlen(s);
	char *copy;
	bool is_new;
	int32_t i;

	if (!len)
		return 0;
	copy = arena_copy(&t->arena, s, len + 1);
	if (!copy)
		return 0;
	len = utf8_mend(copy);
	i = len ? otlp_table_index(&t->strings, &t->arena, copy, len + 1, &is_new) : 0;
	if (i && is_new)
		t->strings.entries[i] = (void *)(uintptr_t)t->strings.keys[i].bytes;
	return i;
}

static int32_t otlp_key_value(struct otlp_tables *t, const char *key, const char *text,
			      int64_t number, const char *unit)
{
	const int64_t id[] = { otlp_string(t, key), text ? otlp_string(t, text) : -1, number,
			       otlp_string(t, unit) };
	bool is_new;
	int32_t i = otlp_table_index(&t->attributes, &t->arena, id, sizeof(id), &is_new);
	Otlp__KeyValueAndUnit *a;

	if (!is_new)
		return i;
	OTLP_NEW(t, a, otlp__key_value_and_unit);
	if (!a)
		return 0;
	OTLP_NEW(t, a->value, otlp__any_value);
	a->key_strindex = (int32_t)id[0];
	a->unit_strindex = (int32_t)id[3];
	if (a->value && text) {
		a->value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		a->value->string_value = t->strings.entries[id[1]];
	} else if (a->value) {
		a->value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		a->value->int_value = number;
	}
	t->attributes.entries[i] = a;
	return i;
}

int32_t otlp_attribute(struct otlp_tables *t, const char *key, const char *value)
{
	return otlp_key_value(t, key, value, 0, "");
}

int32_t otlp_number(struct otlp_tables *t, const char *key, int64_t value, const char *unit)
{
	return otlp_key_value(t, key, NULL, value, unit);
}

int32_t otlp_mapping(struct otlp_tables *t, const char *filename)
{
	int32_t name = otlp_string(t, filename), i;
	Otlp__Mapping *m;
	bool is_new;

	if (!name)
		return 0;
	i = otlp_table_index(&t->mappings, &t->arena, &name, sizeof(name), &is_new);
	if (!is_new)
		return i;
	OTLP_NEW(t, m, otlp__mapping);
	if (m)
		m->filename_strindex = name;
	t->mappings.entries[i] = m;
	return i;
}

int32_t otlp_function(struct otlp_tables *t, const char *name, const char *system_name,
		      const char *filename)
{
	const int32_t id[] = { otlp_string(t, name), otlp_string(t, system_name),
			       otlp_string(t, filename) };
	bool is_new;
	int32_t i = otlp_table_index(&t->functions, &t->arena, id, sizeof(id), &is_new);
	Otlp__Function *f;

	if (!is_new)
		return i;
	OTLP_NEW(t, f, otlp__function);
	if (f) {
		f->name_strindex = id[0];
		f->system_name_strindex = id[1];
		f->filename_strindex = id[2];
	}
	t->functions.entries[i] = f;
	return i;
}

int32_t otlp_location(struct otlp_tables *t, int32_t function, int32_t mapping, uint64_t address,
		      int64_t line, int32_t attribute)
{
	const int64_t id[] = { function, mapping, (int64_t)address, line, attribute };
	bool is_new;
	int32_t i = otlp_table_index(&t->locations, &t->arena, id, sizeof(id), &is_new);
	Otlp__Location *l;
	Otlp__Line *of;

	if (!is_new)
		return i;
	OTLP_NEW(t, l, otlp__location);
	OTLP_NEW(t, of, otlp__line);
	if (!l || !of)
		return 0;
	of->function_index = function;
	of->line = line;
	l->mapping_index = mapping;
	l->address = address;
	l->lines = arena_copy(&t->arena, &of, sizeof(of));
	l->n_lines = 1;
	l->attribute_indices = arena_copy(&t->arena, &attribute, sizeof(attribute));
	l->n_attribute_indices = attribute != 0;
	t->locations.entries[i] = l;
	return i;
}

int32_t otlp_stack(struct otlp_tables *t, const int32_t *locations, size_t n)
{
	bool is_new;
	int32_t i =
		otlp_table_index(&t->stacks, &t->arena, locations, n * sizeof(*locations), &is_new);
	Otlp__Stack *s;

	if (!is_new)
		return i;
	OTLP_NEW(t, s, otlp__stack);
	if (s) {
		s->location_indices = (int32_t *)(uintptr_t)t->stacks.keys[i].bytes;
		s->n_location_indices = n;
	}
	t->stacks.entries[i] = s;
	return i;
}

/* The last bytes of @to, from twice as many hex digits; false = @hex is something else. */
static bool otlp_unhex(const char *hex, uint8_t *to, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(hex);

	if (len == 0 || len > 2 * size || len % 16 || strspn(hex, digits) != len)
		return false;
	for (to += size - len / 2; *hex; hex += 2)
		*to++ = (uint8_t)((strchr(digits, hex[0]) - digits) << 4 |
				  (strchr(digits, hex[1]) - digits));
	return true;
}

static Otlp__Link *otlp_new_link(struct otlp_tables *t, const uint8_t bytes[LINK_BYTES])
{
	uint8_t *copy = arena_copy(&t->arena, bytes, LINK_BYTES);
	Otlp__Link *l;

	OTLP_NEW(t, l, otlp__link);
	if (!l || !copy)
		return NULL;
	l->trace_id = (ProtobufCBinaryData){ TRACE_ID_BYTES, copy };
	l->span_id = (ProtobufCBinaryData){ SPAN_ID_BYTES, copy + TRACE_ID_BYTES };
	return l;
}

/* A trace id of 64 bits, as Zipkin's may be, has zeros in front. */
int32_t otlp_link(struct otlp_tables *t, const char *trace_id, const char *span_id)
{
	uint8_t bytes[LINK_BYTES] = { 0 };
	bool is_new;
	int32_t i;

	if (!otlp_unhex(trace_id, bytes, TRACE_ID_BYTES) ||
	    !otlp_unhex(span_id, bytes + TRACE_ID_BYTES, SPAN_ID_BYTES))
		return 0;
	i = otlp_table_index(&t->links, &t->arena, bytes, sizeof(bytes), &is_new);
	if (i && is_new)
		t->links.entries[i] = otlp_new_link(t, bytes);
	return i;
}

/* ---- the dictionary -------------------------------------------------------------------------- */

static bool otlp_table_init(struct otlp_table *t, void *empty)
{
	if (!empty || !otlp_table_grow(t))
		return false;
	t->keys[0] =
		(struct otlp_key){ "", 0, 0 }; /* entry 0, to which no slot of the index leads */
	t->entries[0] = empty;
	t->n = 1;
	return true;
}

bool otlp_tables_init(struct otlp_tables *t)
{
	Otlp__KeyValueAndUnit *attribute;
	const uint8_t none[LINK_BYTES] = { 0 };
	Otlp__Function *function;
	Otlp__Location *location;
	Otlp__Mapping *mapping;
	Otlp__Stack *stack;

	memset(t, 0, sizeof(*t));
	(void)!getrandom(&otlp_seed, sizeof(otlp_seed), GRND_NONBLOCK);
	OTLP_NEW(t, attribute, otlp__key_value_and_unit);
	OTLP_NEW(t, function, otlp__function);
	OTLP_NEW(t, location, otlp__location);
	OTLP_NEW(t, mapping, otlp__mapping);
	OTLP_NEW(t, stack, otlp__stack);
	return otlp_table_init(&t->strings, arena_take(&t->arena, 1)) &&
	       otlp_table_init(&t->attributes, attribute) &&
	       otlp_table_init(&t->functions, function) &&
	       otlp_table_init(&t->locations, location) && otlp_table_init(&t->mappings, mapping) &&
	       otlp_table_init(&t->stacks, stack) &&
	       otlp_table_init(&t->links, otlp_new_link(t, none));
}

void otlp_tables_deinit(struct otlp_tables *t)
{
	otlp_table_deinit(&t->strings);
	otlp_table_deinit(&t->attributes);
	otlp_table_deinit(&t->functions);
	otlp_table_deinit(&t->locations);
	otlp_table_deinit(&t->mappings);
	otlp_table_deinit(&t->stacks);
	otlp_table_deinit(&t->links);
	arena_free(&t->arena);
}

void otlp_dictionary(struct otlp_tables *t, Otlp__ProfilesDictionary *d)
{
	otlp__profiles_dictionary__init(d);
	d->n_link_table = t->links.n;
	d->link_table = (Otlp__Link **)t->links.entries;
	d->n_string_table = t->strings.n;
	d->string_table = (char **)t->strings.entries;
	d->n_attribute_table = t->attributes.n;
	d->attribute_table = (Otlp__KeyValueAndUnit **)t->attributes.entries;
	d->n_function_table = t->functions.n;
	d->function_table = (Otlp__Function **)t->functions.entries;
	d->n_location_table = t->locations.n;
	d->location_table = (Otlp__Location **)t->locations.entries;
	d->n_mapping_table = t->mappings.n;
	d->mapping_table = (Otlp__Mapping **)t->mappings.entries;
	d->n_stack_table = t->stacks.n;
	d->stack_table = (Otlp__Stack **)t->stacks.entries;
}

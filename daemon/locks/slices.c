/* See locks_priv.h: the rows of a slice, or of an answer. */
#include "daemon/locks/locks_priv.h"

#include <errno.h>
#include <string.h>

void tid_set_add(struct tid_set *s, uint32_t tid, uint64_t ns)
{
	uint32_t least = 0;

	if (!tid)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->tids[i].tid == tid) {
			s->tids[i].ns += ns;
			return;
		}
		if (s->tids[i].ns < s->tids[least].ns)
			least = i;
	}
	if (s->n < LOCKS_TIDS) {
		s->tids[s->n++] = (struct locks_tid){ tid, ns };
		return;
	}
	/* the one with more time stays; the answer shows that there were others */
	s->more = true;
	if (s->tids[least].ns < ns)
		s->tids[least] = (struct locks_tid){ tid, ns };
}

void lock_row_add(struct lock_row *to, const struct lock_row *from)
{
	to->waits += from->waits;
	to->open += from->open;
	to->total_ns += from->total_ns;
	if (from->longest_ns > to->longest_ns)
		to->longest_ns = from->longest_ns;
	for (uint32_t i = 0; i < from->waiters.n; i++)
		tid_set_add(&to->waiters, from->waiters.tids[i].tid, from->waiters.tids[i].ns);
	for (uint32_t i = 0; i < from->owners.n; i++)
		tid_set_add(&to->owners, from->owners.tids[i].tid, from->owners.tids[i].ns);
	site_set_join(&to->waiting, &from->waiting);
	site_set_join(&to->holding, &from->holding);
	to->waiters.more |= from->waiters.more;
	to->owners.more |= from->owners.more;
}

static uint32_t key_hash(const struct lock_key *k, uint32_t seed)
{
	uint32_t class_number = k->class_number * 8 + k->wait * 2u + k->idle;

	return locks_hash((uint64_t)class_number << 32 | k->identity, seed);
}

static bool slices_same(const struct lock_key *a, const struct lock_key *b)
{
	return a->class_number == b->class_number && a->identity == b->identity &&
	       a->wait == b->wait && a->idle == b->idle;
}

static bool slices_row_is(const void *owner, uint32_t number, const void *key)
{
	const struct lock_table *t = owner;

	return slices_same(&t->rows[number - 1].key, key);
}

static uint64_t slices_hash_of(const void *owner, uint32_t number)
{
	const struct lock_table *t = owner;

	return key_hash(&t->rows[number - 1].key, t->seed);
}

static uint32_t *slices_slot_of(const struct lock_table *t, const struct lock_key *key)
{
	return hash_index_slot(&t->index, key_hash(key, t->seed), slices_row_is, t, key);
}

static struct lock_row *other_row(struct lock_table *t, const struct lock_key *key)
{
	struct lock_row *row = &t->other[key->wait < WIRE_WAIT_COUNT ? key->wait : 0][key->idle];

	row->key = (struct lock_key){ OTHER_CLASS, 0, key->wait, key->idle };
	return row;
}

static uint32_t rest_cap(uint32_t n)
{
	return n < 4 ? 4 : n < 16 ? 16 : LOCKS_REST_MAX;
}

struct lock_row *lock_table_rest(struct lock_table *t, const struct lock_key *key)
{
	const struct lock_key of_class = { key->class_number, 0, key->wait, key->idle };
	struct lock_row *rows = t->rest;

	if (key->class_number == OTHER_CLASS)
		return other_row(t, key);
	for (uint32_t i = 0; i < t->n_rest; i++)
		if (slices_same(&rows[i].key, &of_class))
			return &rows[i];
	if (t->n_rest == LOCKS_REST_MAX)
		return other_row(t, key);
	if (!t->n_rest || t->n_rest == rest_cap(t->n_rest - 1)) {
		rows = realloc(rows, rest_cap(t->n_rest) * sizeof(*rows));
		if (!rows)
			return other_row(t, key);
		t->rest = rows;
	}
	rows[t->n_rest] = (struct lock_row){ .key = of_class };
	return &rows[t->n_rest++];
}

void lock_table_forget_classes(struct lock_table *t)
{
	for (uint32_t i = 0; i < t->n_rest; i++)
		lock_row_add(other_row(t, &t->rest[i].key), &t->rest[i]);
	t->n_rest = 0;
	free(t->rest);
	t->rest = NULL;
}

static int more_first(const void *a, const void *b)
{
	const struct lock_row *x = a, *y = b;

	return x->total_ns < y->total_ns ? 1 : x->total_ns > y->total_ns ? -1 : 0;
}

/* Folds the half of the rows with the least time: a program that makes a lock for each operation
 * must not displace its contended locks. */
static void slices_fold(struct lock_table *t)
{
	uint32_t keep = t->n / 2;

	qsort(t->rows, t->n, sizeof(*t->rows), more_first);
	for (uint32_t i = keep; i < t->n; i++)
		lock_row_add(lock_table_rest(t, &t->rows[i].key), &t->rows[i]);
	t->folded += t->n - keep;
	t->n = keep;
	(void)hash_index_resize(&t->index, t->index.size, t->n, slices_hash_of, t);
}

static bool slices_grow(struct lock_table *t)
{
	/* twice as many; a table that has shrunk gets its former size back */
	uint32_t size = t->index.size, cap = !size ? 8 : t->cap < size / 2 ? size / 2 : size;
	struct lock_row *rows = realloc(t->rows, cap * sizeof(*rows));

	if (!rows)
		return false;
	t->rows = rows;
	if (!hash_index_resize(&t->index, 2 * cap, t->n, slices_hash_of, t))
		return false;
	t->cap = cap;
	return true;
}

struct lock_row *lock_table_row(struct lock_table *t, const struct lock_key *key, uint32_t max)
{
	uint32_t *slot = t->index.size ? slices_slot_of(t, key) : NULL;

	if (key->class_number == OTHER_CLASS)
		return other_row(t, key);
	if (slot && *slot)
		return &t->rows[*slot - 1];
	if (t->n >= max)
		slices_fold(t);
	else if (t->n == t->cap && !slices_grow(t))
		return other_row(t, key);
	t->rows[t->n] = (struct lock_row){ .key = *key };
	*slices_slot_of(t, key) = t->n + 1;
	return &t->rows[t->n++];
}

const struct lock_row *lock_table_find(const struct lock_table *t, const struct lock_key *key)
{
	const uint32_t *slot = t->index.size ? slices_slot_of(t, key) : NULL;

	return slot && *slot ? &t->rows[*slot - 1] : NULL;
}

void lock_table_shrink(struct lock_table *t)
{
	struct lock_row *rows;

	if (!t->n || t->n == t->cap)
		return;
	rows = realloc(t->rows, t->n * sizeof(*rows));
	if (!rows)
		return;
	t->rows = rows;
	t->cap = t->n;
}

size_t lock_table_bytes(const struct lock_table *t)
{
	size_t rows = t->cap + (t->n_rest ? rest_cap(t->n_rest - 1) : 0);

	return sizeof(*t) + rows * sizeof(*t->rows) + hash_index_bytes(&t->index);
}

static void rows_forget_nodes(struct lock_row *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		site_set_forget_nodes(&rows[i].waiting);
		site_set_forget_nodes(&rows[i].holding);
	}
}

void lock_table_turn(struct lock_table *t, uint32_t epoch)
{
	if (t->epoch == epoch)
		return;
	t->epoch = epoch;
	rows_forget_nodes(t->rows, t->n);
	rows_forget_nodes(t->rest, t->n_rest);
	rows_forget_nodes(&t->other[0][0], 2 * WIRE_WAIT_COUNT);
}

void lock_table_clear(struct lock_table *t)
{
	uint32_t seed = t->seed;

	free(t->rows);
	free(t->rest);
	hash_index_deinit(&t->index);
	memset(t, 0, sizeof(*t));
	t->seed = seed;
}

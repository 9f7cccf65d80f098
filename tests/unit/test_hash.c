#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/ground/hash.h"

#define NAMES_MAX 1000

struct names {
	char text[NAMES_MAX][8];
	uint32_t n;
	struct hash_index index;
};

static uint64_t hash_of(const void *owner, uint32_t number)
{
	const struct names *t = owner;

	return hash_text(HASH_BEGIN, t->text[number - 1]);
}

static uint64_t all_the_same(const void *owner, uint32_t number)
{
	(void)owner;
	(void)number;
	return 7;
}

static bool is_name(const void *owner, uint32_t number, const void *key)
{
	const struct names *t = owner;

	return strcmp(t->text[number - 1], key) == 0;
}

static void put_all(struct names *t, uint32_t n, uint64_t (*hash)(const void *, uint32_t))
{
	for (t->n = 0; t->n < n; t->n++) {
		uint32_t *slot;

		snprintf(t->text[t->n], sizeof(t->text[0]), "n%u", t->n);
		if (2 * (t->n + 1) > t->index.size)
			assert_true(hash_index_resize(&t->index, t->index.size ? 2 * t->index.size : 2, t->n,
						      hash, t));
		slot = hash_index_slot(&t->index, hash(t, t->n + 1), is_name, t, t->text[t->n]);
		assert_int_equal(*slot, 0);
		*slot = t->n + 1;
	}
}

static uint32_t find(const struct names *t, const char *name, uint64_t hash)
{
	return *hash_index_slot(&t->index, hash, is_name, t, name);
}

static void values_are_those_that_files_hold(void **state)
{
	(void)state;
	assert_true(hash_text(HASH_BEGIN, "") == 0xcbf29ce484222325ull);
	assert_true(hash_text(HASH_BEGIN, "foobar") == 0x85944171f73967e8ull); /* FNV's own example */
	assert_true(hash_bytes(HASH_BEGIN, "foobar", 6) == 0x85944171f73967e8ull);
	assert_true(hash_text(hash_bytes(HASH_BEGIN, "foo", 3), "bar") == 0x85944171f73967e8ull);
}

static void entries_are_found_however_often_it_grew(void **state)
{
	static struct names t;

	(void)state;
	put_all(&t, NAMES_MAX, hash_of);
	assert_int_equal(t.index.size, 2048);
	assert_int_equal(hash_index_bytes(&t.index), 2048 * sizeof(uint32_t));
	for (uint32_t i = 0; i < NAMES_MAX; i++)
		assert_int_equal(find(&t, t.text[i], hash_text(HASH_BEGIN, t.text[i])), i + 1);
	assert_int_equal(find(&t, "other", hash_text(HASH_BEGIN, "other")), 0);
	hash_index_deinit(&t.index);
	assert_null(t.index.slots);
}

static void entries_of_one_hash_are_told_apart(void **state)
{
	static struct names t;

	(void)state;
	put_all(&t, 20, all_the_same);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(find(&t, t.text[i], 7), i + 1);
	assert_int_equal(find(&t, "other", 7), 0);
	hash_index_deinit(&t.index);
}

static void it_is_rebuilt_after_entries_moved(void **state)
{
	static struct names t;
	const uint32_t *slots;

	(void)state;
	put_all(&t, 100, hash_of);
	slots = t.index.slots;
	strcpy(t.text[0], "last");
	assert_true(hash_index_resize(&t.index, t.index.size, 50, hash_of, &t));
	assert_ptr_equal(t.index.slots, slots);
	assert_int_equal(find(&t, "last", hash_text(HASH_BEGIN, "last")), 1);
	assert_int_equal(find(&t, "n49", hash_text(HASH_BEGIN, "n49")), 50);
	assert_int_equal(find(&t, "n0", hash_text(HASH_BEGIN, "n0")), 0);
	assert_int_equal(find(&t, "n50", hash_text(HASH_BEGIN, "n50")), 0);
	hash_index_clear(&t.index);
	assert_int_equal(find(&t, "last", hash_text(HASH_BEGIN, "last")), 0);
	hash_index_deinit(&t.index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_those_that_files_hold),
		cmocka_unit_test(entries_are_found_however_often_it_grew),
		cmocka_unit_test(entries_of_one_hash_are_told_apart),
		cmocka_unit_test(it_is_rebuilt_after_entries_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

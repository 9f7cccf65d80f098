/* Slices that are over take less memory, and say the same. */
#include "tests/unit/made_waits.h"
#include "daemon/locks/locks_priv.h"

#define ROWS 300u

static uint64_t seed = 88172645463325252ull;

/* Often small, sometimes as large as @max. */
static uint64_t some(uint64_t max)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 8 & 7) == 0 ? max : seed >> 20 & (max >> (seed & 31));
}

static void make_tids(struct tid_set *s)
{
	s->n = (uint32_t)(some(LOCKS_TIDS) % (LOCKS_TIDS + 1));
	s->more = some(1);
	for (uint32_t i = 0; i < s->n; i++)
		s->tids[i] = (struct locks_tid){ (uint32_t)some(UINT32_MAX), some(UINT64_MAX) };
}

static void make_sites(struct site_set *s)
{
	uint32_t n = (uint32_t)(some(LOCKS_SITES) % (LOCKS_SITES + 1));

	for (uint32_t i = 0; i < n; i++)
		s->sites[i] = (struct site){ 1 + (uint32_t)some(UINT32_MAX - 1),
					     (uint32_t)some(UINT32_MAX), (uint32_t)some(UINT32_MAX),
					     (uint32_t)some(UINT32_MAX) };
}

static void make_row(struct lock_row *r)
{
	r->waits = 1 + some(UINT64_MAX - 1);
	r->total_ns = some(UINT64_MAX);
	r->longest_ns = some(UINT64_MAX);
	make_tids(&r->waiters);
	make_tids(&r->owners);
	make_sites(&r->waiting);
	make_sites(&r->holding);
}

static void make_table(struct lock_table *t)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		const struct lock_key key = { (uint32_t)some(OTHER_CLASS - 1), i,
					      (uint8_t)(i % WIRE_WAIT_COUNT), i % 2 };

		make_row(lock_table_row(t, &key, ROWS));
	}
	for (uint32_t i = 0; i < 10; i++) {
		const struct lock_key key = { 2 + i, 0, (uint8_t)(i % WIRE_WAIT_COUNT), i % 2 };

		make_row(lock_table_rest(t, &key));
	}
	for (unsigned i = 0; i < WIRE_WAIT_COUNT; i++) {
		const struct lock_key key = { OTHER_CLASS, 0, (uint8_t)i, i % 2 };

		make_row(lock_table_row(t, &key, ROWS));
	}
}

struct comparing {
	const struct lock_table *table;
	bool nodes;
	unsigned n, n_rest, n_other;
};

static void compare_sites(const struct site_set *a, const struct site_set *b, bool nodes)
{
	for (uint32_t i = 0; i < LOCKS_SITES; i++) {
		assert_int_equal(a->sites[i].frame, b->sites[i].frame);
		assert_int_equal(a->sites[i].us, b->sites[i].us);
		assert_int_equal(a->sites[i].node, nodes ? b->sites[i].node : 0);
		assert_int_equal(a->sites[i].longest_us, nodes ? b->sites[i].longest_us : 0);
	}
}

static void compare_tids(const struct tid_set *a, const struct tid_set *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->more, b->more);
	for (uint32_t i = 0; i < a->n; i++) {
		assert_int_equal(a->tids[i].tid, b->tids[i].tid);
		assert_int_equal(a->tids[i].ns, b->tids[i].ns);
	}
}

static void compare_row(void *userdata, const struct lock_row *row, bool is_rest)
{
	struct comparing *c = userdata;
	const struct lock_row *made = &c->table->rows[c->n];

	if (is_rest)
		made = &c->table->rest[c->n_rest++];
	else if (row->key.class_number != OTHER_CLASS)
		c->n++;
	else if (++c->n_other)
		made = &c->table->other[row->key.wait][row->key.idle];
	assert_int_equal(row->key.class_number, made->key.class_number);
	assert_int_equal(row->key.identity, made->key.identity);
	assert_int_equal(row->key.wait, made->key.wait);
	assert_int_equal(row->key.idle, made->key.idle);
	assert_int_equal(row->waits, made->waits);
	assert_int_equal(row->total_ns, made->total_ns);
	assert_int_equal(row->longest_ns, made->longest_ns);
	compare_tids(&row->waiters, &made->waiters);
	compare_tids(&row->owners, &made->owners);
	compare_sites(&row->waiting, &made->waiting, c->nodes);
	compare_sites(&row->holding, &made->holding, c->nodes);
}

static void what_is_packed_comes_out_again(void **state)
{
	struct lock_table table = { .epoch = 3, .folded = 77 };
	struct packed_table *packed;

	(void)state;
	make_table(&table);
	packed = packed_new(&table);
	assert_non_null(packed);
	assert_int_equal(packed->folded, 77);
	for (uint32_t epoch = 3; epoch <= 4; epoch++) {
		struct comparing c = { .table = &table, .nodes = epoch == 3 };

		packed_each(packed, epoch, compare_row, &c);
		assert_int_equal(c.n, ROWS);
		assert_int_equal(c.n_rest, 10);
		assert_int_equal(c.n_other, WIRE_WAIT_COUNT);
	}
	free(packed);
	lock_table_clear(&table);
}

static uint64_t total_of_all(uint64_t now)
{
	struct locks_rows r = ask(now, 600 * S, false);
	uint64_t ns = 0;

	for (uint32_t i = 0; i < r.n; i++)
		ns += r.rows[i].total_ns;
	locks_rows_free(&r);
	return ns;
}

/* Four minutes in which 40 locks have a waiter each in every slice. */
static void a_slice_that_is_over_takes_a_fraction(void **state)
{
	struct locks_rows r;

	(void)state;
	for (uint32_t i = 0; i < 240; i++)
		for (uint32_t lock = 1; lock <= 40; lock++)
			add(entered(lock, "org.shop.A", lock, t0 + i * S, MS));
	assert_int_equal(total_of_all(t0 + 240 * S), 240ull * 40 * MS);
	r = ask(t0 + 240 * S, 600 * S, false);
	assert_int_equal(r.n, 40);
	assert_int_equal(r.rows[0].waits, 240);
	assert_int_equal(r.rows[0].n_waiters, 1);
	assert_int_equal(r.rows[0].waiters[0].ns, 240 * MS);
	locks_rows_free(&r);
	for (uint32_t i = 0; i < LOCKS_SLICES; i++) {
		const struct slice *s = &locks->slices[i];

		assert_false(s->table && s->packed);
		if (s->packed)
			assert_true(packed_bytes(s->packed) < 40 * sizeof(struct lock_row) / 8);
		else if (s->table)
			assert_true(s->number + SLICES_LATE >= locks->newest);
	}
}

/* A wait that the agent reports a minute late is still counted in its own slice. */
static void a_late_wait_is_in_its_slice(void **state)
{
	struct stream_lock w = entered(7, "org.shop.A", 1, t0 + 100 * S, MS);
	struct locks_rows r;

	(void)state;
	for (uint32_t i = 0; i < 160; i++)
		add(entered(1, "org.shop.B", 2, t0 + i * S, MS));
	locks_add(locks, NULL, &w, false, t0 + 160 * S);
	assert_int_equal(total_of_all(t0 + 160 * S), 161 * MS);
	r = ask(t0 + 160 * S, 50 * S, false);
	assert_int_equal(r.n, 1);
	locks_rows_free(&r);
	r = ask(t0 + 160 * S, 60 * S, false);
	assert_int_equal(r.n, 2);
	locks_rows_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_comes_out_again),
		TEST(a_slice_that_is_over_takes_a_fraction),
		TEST(a_late_wait_is_in_its_slice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

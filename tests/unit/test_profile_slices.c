#include "tests/unit/made_profile.h"
#include <errno.h>

/* A slice of @p: row @i alone, or all of them. */
static struct profile view_of(const struct profile *p, uint32_t i, struct profile_row *row)
{
	struct profile view = *p;

	if (i < p->n_rows) {
		*row = p->rows[i];
		view.rows = row;
		view.n_rows = 1;
	}
	return view;
}

struct bytes {
	uint8_t *p;
	size_t len;
};

static struct bytes encoded(const struct profile *p, uint32_t row)
{
	struct profile_row one;
	const struct profile view = view_of(p, row, &one);
	struct bytes b;

	assert_int_equal(profile_encode_slice(&view, &b.p, &b.len), 0);
	return b;
}

static int read_slice(struct profile_slices *s, struct bytes b, struct profile **ret)
{
	/* of just that size, so that the sanitizer sees each byte too many that is read */
	uint8_t *copy = malloc(b.len ? b.len : 1);
	int r;

	memcpy(copy, b.p, b.len);
	r = profile_slices_read(s, copy, b.len, ret);
	free(copy);
	return r;
}

static bool has(struct bytes b, const char *word)
{
	return memmem(b.p, b.len, word, strlen(word)) != NULL;
}

static void a_name_is_in_the_first_slice_that_needs_it(void **state)
{
	struct profile *p = example(7), *q, *sum;
	struct profile_slices *s;
	struct bytes one = encoded(p, 1), two = encoded(p, 0), all = encoded(p, UINT32_MAX);

	(void)state;
	/* row 1 is in run() of thread two, row 0 in work() of thread one */
	assert_true(has(one, "run") && has(one, "two") && has(one, "app"));
	assert_false(has(one, "work") || has(one, "\3one"));
	assert_true(has(two, "work") && has(two, "\3one"));
	assert_false(has(two, "run") || has(two, "app"));
	assert_false(has(all, "run") || has(all, "work") || has(all, "app"));
	assert_int_equal(profile_slices_new(&s), 0);
	assert_int_equal(read_slice(s, one, &q), 0);
	assert_int_equal(weight_of(q), 20);
	assert_int_equal(read_slice(s, two, &q), 0);
	assert_int_equal(weight_of(q), 20);
	assert_int_equal(read_slice(s, all, &q), 0);
	assert_int_equal(weight_of(q), 40);
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	assert_int_equal(q->end_real_ns, p->end_real_ns);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	assert_int_equal(sum->n_nodes, p->n_nodes);
	assert_int_equal(sum->n_threads, p->n_threads);
	assert_string_equal(sum->strings[sum->processes[0].name], "app");
	profile_free(sum);
	profile_slices_free(s);
	free(one.p);
	free(two.p);
	free(all.p);
	profile_free(p);
}

static void a_slice_whose_names_were_lost_is_refused_and_the_next_has_them(void **state)
{
	struct profile *p = example(7), *q;
	struct bytes lost = encoded(p, 0), without = encoded(p, 0), again;
	struct profile_slices *s;

	(void)state;
	profile_slice_lost(p);
	again = encoded(p, 0);
	assert_int_equal(again.len, lost.len);
	assert_int_equal(profile_slices_new(&s), 0);
	assert_int_equal(read_slice(s, without, &q), -EBADMSG);
	assert_int_equal(read_slice(s, again, &q), 0);
	assert_int_equal(read_slice(s, without, &q), 0);
	assert_int_equal(weight_of(q), 20);
	profile_slices_free(s);
	free(lost.p);
	free(without.p);
	free(again.p);
	profile_free(p);
}

static void damaged_bytes_are_refused_or_mean_something_else(void **state)
{
	struct profile *p = example(7), *q;
	struct bytes one = encoded(p, 1), all = encoded(p, UINT32_MAX);

	(void)state;
	for (size_t cut = 0; cut < one.len; cut++) {
		struct profile_slices *s;

		assert_int_equal(profile_slices_new(&s), 0);
		assert_int_equal(read_slice(s, (struct bytes){ one.p, cut }, &q), -EBADMSG);
		profile_slices_free(s);
	}
	for (size_t at = 0; at < 8 * (one.len + all.len); at++) {
		struct bytes *b = at < 8 * one.len ? &one : &all;
		size_t bit = b == &one ? at : at - 8 * one.len;
		struct profile_slices *s;
		struct profile *sum;

		b->p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(profile_slices_new(&s), 0);
		assert_int_equal(profile_new(&sum), 0);
		for (unsigned i = 0; i < 2; i++)
			if (read_slice(s, i ? all : one, &q) == 0)
				assert_int_equal(profile_merge(sum, q, NULL), 0);
		profile_free(sum);
		profile_slices_free(s);
		b->p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(one.p);
	free(all.p);
	profile_free(p);
}

/* What a daemon wrote that knew no slices. */
static void whole_profiles_are_read_too(void **state)
{
	struct profile *p = example(7), *q;
	struct profile_slices *s;
	struct bytes b;

	(void)state;
	assert_int_equal(profile_encode(p, &b.p, &b.len), 0);
	assert_int_equal(profile_slices_new(&s), 0);
	assert_int_equal(read_slice(s, b, &q), 0);
	assert_int_equal(weight_of(q), 40);
	profile_slices_free(s);
	free(b.p);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_in_the_first_slice_that_needs_it),
		cmocka_unit_test(a_slice_whose_names_were_lost_is_refused_and_the_next_has_them),
		cmocka_unit_test(damaged_bytes_are_refused_or_mean_something_else),
		cmocka_unit_test(whole_profiles_are_read_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/made_profile.h"
#include <stdio.h>

static void equal_things_have_one_id(void **state)
{
	struct profile *p = example(7);

	(void)state;
	assert_int_equal(p->n_rows, 2);
	assert_int_equal(p->n_nodes, 3);
	assert_int_equal(p->rows[0].samples, 2);
	assert_int_equal(p->rows[0].weight, 20);
	assert_int_equal(profile_string(p, "work"), profile_string(p, "work"));
	assert_int_equal(profile_string(p, ""), 0);
	profile_free(p);
}

static void many_entries_stay_apart(void **state)
{
	struct profile *p;
	char name[32];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (int i = 0; i < 50000; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_int_equal(profile_node(p, (uint32_t)i, frame(p, "C", name)), i + 1);
	}
	assert_int_equal(p->n_nodes, 50001);
	profile_free(p);
}

static uint64_t samples_of_full(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		uint32_t node = p->rows[i].node;

		if (node && strcmp(p->strings[p->frames[p->nodes[node].frame].method],
				   "[profile full]") == 0)
			sum += p->rows[i].samples;
	}
	return sum;
}

static struct profile *full_profile(size_t limit, int stacks)
{
	struct profile *p;
	char name[32];

	assert_int_equal(profile_new(&p), 0);
	profile_limit(p, limit, 0);
	for (int i = 0; i < stacks; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		profile_add(p, thread(p, 1 + (uint32_t)i % 3, name),
			    profile_node(p, profile_node(p, 0, frame(p, "C", name)),
					 frame(p, "D", name)),
			    1, 10);
	}
	return p;
}

static void overflow_is_named_and_keeps_its_weight(void **state)
{
	struct profile *p = full_profile(1 << 20, 50000), *sum, *q;
	const uint32_t pid = 2;
	const struct profile_filter only_2 = { .pids = &pid, .n_pids = 1 };
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_true(profile_bytes(p) < 2 << 20);
	assert_int_equal(weight_of(p), 500000);
	assert_in_range(p->overflow, 1, 49999);
	assert_int_equal(samples_of_full(p), p->overflow);
	/* full or not, it can be decoded, */
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(weight_of(q), 500000);
	assert_int_equal(q->overflow, p->overflow);
	free(bytes);
	/* and merging counts nothing twice, neither full profiles nor those of others */
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(sum->overflow, 2 * p->overflow);
	assert_int_equal(weight_of(sum), 1000000);
	sum = profile_free(sum);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, &only_2), 0);
	assert_int_equal(sum->overflow, samples_of_full(sum));
	assert_in_range(weight_of(sum), 166660, 166680);
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

/* Adds @n stacks of @tenant on a root that all tenants share; returns how many found no room. */
static uint64_t add_stacks(struct profile *p, uint64_t tenant, uint32_t n)
{
	const struct profile_process q = { .pid = (uint32_t)tenant,
					   .start_time = 1,
					   .tenant = tenant };
	struct profile_thread t = { .tid = 1 };
	uint64_t full = p->overflow;
	uint32_t root;
	char name[32];

	profile_payer(p, tenant);
	t.process = profile_process(p, &q);
	root = profile_node(p, 0, frame(p, "Thread", "run"));
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "m%u-%u", (unsigned)tenant, i);
		profile_add(p, profile_thread(p, &t), profile_node(p, root, frame(p, "C", name)), 1,
			    1);
	}
	return p->overflow - full;
}

static uint64_t full_of(const struct profile *p, uint64_t tenant)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		if (p->processes[p->threads[p->rows[i].thread].process].tenant == tenant &&
		    profile_is_full(p, p->rows[i].thread, p->rows[i].node))
			n += p->rows[i].samples;
	return n;
}

static void no_tenant_takes_the_room_of_another(void **state)
{
	struct profile *p, *sum;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_new(&sum), 0);
	profile_limit(p, 2 << 20, 5);
	profile_limit(sum, 2 << 20, 5);
	/* three tenants that take all they get, before and after one that needs little */
	assert_in_range(add_stacks(p, 100, 20000), 10000, 19999);
	assert_in_range(add_stacks(p, 101, 20000), 10000, 19999);
	assert_int_equal(add_stacks(p, 1, 300), 0);
	assert_in_range(add_stacks(p, 102, 20000), 10000, 19999);
	assert_int_equal(add_stacks(p, 1, 300), 0);
	assert_true(p->index->bytes < 2 << 20);
	/* and the same where profiles are merged, with rows in any order */
	for (int i = 0; i < 5; i++)
		assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(full_of(sum, 1), 0);
	assert_true(full_of(sum, 102) > 0);
	assert_int_equal(weight_of(sum), 5 * weight_of(p));
	profile_free(sum);
	profile_free(p);
}

/* Two tenants of a profile have a class in common, and the first of them has no room left to pay
 * for its name. */
static void a_text_that_one_tenant_cannot_pay_is_paid_by_another(void **state)
{
	struct profile *sum, *p;
	uint32_t leaf = UINT32_MAX;
	uint64_t full;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_new(&p), 0);
	profile_limit(sum, 2 << 20, 5);
	assert_true(add_stacks(sum, 100, 20000) > 0);
	full = full_of(sum, 100);
	for (int i = 0; i < 2; i++) {
		const uint32_t tenant = i ? 1 : 100;
		const struct profile_process q = { .pid = tenant,
						   .start_time = 1,
						   .tenant = tenant };
		struct profile_thread t = { .process = profile_process(p, &q), .tid = 1 };

		profile_add(p, profile_thread(p, &t),
			    profile_node(p, 0, frame(p, "Both", i ? "one" : "other")), 1, 1);
	}
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(full_of(sum, 100), full + 1);
	assert_int_equal(full_of(sum, 1), 0);
	for (uint32_t i = 0; i < sum->n_rows; i++)
		if (sum->processes[sum->threads[sum->rows[i].thread].process].tenant == 1)
			leaf = sum->rows[i].node;
	assert_string_equal(sum->strings[sum->frames[sum->nodes[leaf].frame].class_name], "Both");
	profile_free(sum);
	profile_free(p);
}

static void a_string_is_cut_between_characters(void **state)
{
	char text[PROFILE_STRING_MAX + 10];
	struct profile *p;
	uint32_t id;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text + PROFILE_STRING_MAX - 1, "\xc3\xbc", 2);
	assert_int_equal(profile_new(&p), 0);
	id = profile_string(p, text);
	assert_int_equal(strlen(p->strings[id]), PROFILE_STRING_MAX - 1);
	assert_int_equal(profile_string(p, text), id);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_things_have_one_id),
		cmocka_unit_test(many_entries_stay_apart),
		cmocka_unit_test(overflow_is_named_and_keeps_its_weight),
		cmocka_unit_test(no_tenant_takes_the_room_of_another),
		cmocka_unit_test(a_text_that_one_tenant_cannot_pay_is_paid_by_another),
		cmocka_unit_test(a_string_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

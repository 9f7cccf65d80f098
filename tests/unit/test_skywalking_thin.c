#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/upload/skywalking_thin.h"

static struct profile *made;
static uint32_t thread;

static int begin(void **state)
{
	(void)state;
	assert_int_equal(profile_new(&made), 0);
	const struct profile_process q = { .pid = 7, .name = profile_string(made, "shop") };
	const struct profile_thread t = { .process = profile_process(made, &q), .tid = 7 };

	thread = profile_thread(made, &t);
	return 0;
}

static int end(void **state)
{
	(void)state;
	made = profile_free(made);
	return 0;
}

static void add(enum wire_event event, unsigned stack, uint64_t samples, uint64_t weight)
{
	char name[16];

	snprintf(name, sizeof(name), "m%u", stack);
	const struct profile_frame f = { .kind = WIRE_KIND_INTERPRETED,
					 .line = -1,
					 .method = profile_string(made, name) };
	const struct profile_row row = { .thread = thread,
					 .node = profile_node(made, 0,
							      profile_intern_frame(made, &f)),
					 .event = (uint8_t)event,
					 .samples = samples,
					 .weight = weight };

	profile_add_row(made, &row);
}

static uint64_t weight_of(const struct profile *p, enum wire_event event)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		n += p->rows[i].event == event ? p->rows[i].weight : 0;
	return n;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t by)
{
	return a > b ? a - b <= by : b - a <= by;
}

static void a_thinned_profile_keeps_its_weight(void **state)
{
	CLEANUP(profile_freep) struct profile *thin = NULL;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		add(WIRE_EVENT_CPU, i, 1 + i % 7, (1 + i % 7) * 10 * NS_PER_MS);
		add(WIRE_EVENT_LOCK, i, 1, i * 1000);
	}
	assert_int_equal(skywalking_thin(made, 500, &thin), 0);
	assert_true(is_near(profile_samples(thin), 500, 20));
	assert_true(thin->n_rows <= 520);
	for (int e = WIRE_EVENT_CPU; e <= WIRE_EVENT_LOCK; e++)
		assert_true(is_near(weight_of(thin, (enum wire_event)e),
				    weight_of(made, (enum wire_event)e),
				    weight_of(made, (enum wire_event)e) / 50));
}

static void events_of_few_samples_keep_them(void **state)
{
	CLEANUP(profile_freep) struct profile *thin = NULL;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		add(WIRE_EVENT_CPU, i, 1, NS_PER_MS);
	for (unsigned i = 0; i < 40000; i++)
		add(WIRE_EVENT_ALLOC, i, 1, 16384);
	assert_int_equal(skywalking_thin(made, 1000, &thin), 0);
	assert_int_equal(weight_of(thin, WIRE_EVENT_CPU), 100 * NS_PER_MS);
	assert_true(is_near(profile_samples(thin), 1000, 5));
	assert_true(is_near(weight_of(thin, WIRE_EVENT_ALLOC), 40000 * 16384, 16384 * 40));
}

static void a_heavy_stack_stays_and_has_no_more_samples_than_it_had(void **state)
{
	CLEANUP(profile_freep) struct profile *thin = NULL;

	(void)state;
	add(WIRE_EVENT_LOCK, 0, 3, 1000 * NS_PER_S);
	for (unsigned i = 1; i < 1000; i++)
		add(WIRE_EVENT_LOCK, i, 1, 1000);
	assert_int_equal(skywalking_thin(made, 100, &thin), 0);
	assert_int_equal(thin->n_rows, 1);
	assert_int_equal(thin->rows[0].samples, 3);
	assert_true(is_near(thin->rows[0].weight, 1000 * NS_PER_S, 10 * NS_PER_S));
}

static void one_sample_of_each_event_is_left_at_least(void **state)
{
	CLEANUP(profile_freep) struct profile *thin = NULL;

	(void)state;
	add(WIRE_EVENT_CPU, 0, 1000000, NS_PER_S);
	add(WIRE_EVENT_ALLOC, 0, 1, 0);
	assert_int_equal(skywalking_thin(made, 1, &thin), 0);
	assert_int_equal(thin->n_rows, 2);
	assert_int_equal(profile_samples(thin), 2);
}

static void wall_clock_samples_take_the_place_of_cpu_time(void **state)
{
	CLEANUP(profile_freep) struct profile *p = NULL, *q = NULL;

	(void)state;
	add(WIRE_EVENT_CPU, 0, 5, 5);
	add(WIRE_EVENT_LOCK, 0, 6, 6);
	assert_int_equal(skywalking_wall(made, &p), 0);
	assert_int_equal(weight_of(p, WIRE_EVENT_CPU), 5);
	add(WIRE_EVENT_WALL, 1, 7, 7);
	assert_int_equal(skywalking_wall(made, &q), 0);
	assert_int_equal(weight_of(q, WIRE_EVENT_CPU), 7);
	assert_int_equal(weight_of(q, WIRE_EVENT_WALL), 0);
	assert_int_equal(weight_of(q, WIRE_EVENT_LOCK), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thinned_profile_keeps_its_weight, begin, end),
		cmocka_unit_test_setup_teardown(events_of_few_samples_keep_them, begin, end),
		cmocka_unit_test_setup_teardown(
			a_heavy_stack_stays_and_has_no_more_samples_than_it_had, begin, end),
		cmocka_unit_test_setup_teardown(one_sample_of_each_event_is_left_at_least, begin,
						end),
		cmocka_unit_test_setup_teardown(wall_clock_samples_take_the_place_of_cpu_time,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The safepoints of JDK 8 and 11, found among the variables of a made-up libjvm, beside pointers to
 * its counters. */
#include "agent/base/clock.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/safepoint_timers.h"
#include "agent/hotspot/safepoints.h"
#include "tests/unit/unit.h"

#define MS	NS_PER_MS
#define ENTRY	96u
#define FIRST	64u
#define ENTRIES 14u
#define AGE	(50000 * MS)

/* The variables of the class: as GCC lays them out, and the other way round. */
#define CENTRE 20

static struct {
	uint64_t variables[64];
} image;

static _Alignas(8) uint8_t memory[FIRST + ENTRIES * ENTRY];
static uint32_t entries;
static void *start = memory;
static size_t capacity = sizeof(memory);
static uint32_t feature;
static uint64_t started_ns;

/* What PerfData objects look like: the address of the value is a member. */
static struct perf_object {
	uint64_t before[5], value_at;
} objects[4]; /* elsewhere, as malloc's memory would be */

enum { RUNNING, STOPPED, NUMBER, REACHING };

bool libjvm_image(struct libjvm_image *ret)
{
	ret->low = ret->bss_low = (uint64_t)(uintptr_t)&image;
	ret->high = ret->bss_high = ret->low + sizeof(image);
	return true;
}

struct jdk_version libjvm_version(void)
{
	return (struct jdk_version){ .feature = feature };
}

bool libjvm_hidden(const char *const *names, uint32_t n, const void **ret)
{
	(void)names;
	(void)n;
	(void)ret;
	return false;
}

void *libjvm_static(const char *type, const char *field)
{
	assert_string_equal(type, "PerfMemory");
	return strcmp(field, "_start") == 0 ? (void *)&start : &capacity;
}

static uint64_t *add(const char *name, char type)
{
	uint8_t *at = memory + FIRST + entries++ * ENTRY;
	const uint32_t head[5] = { ENTRY, 20, 0, (uint8_t)type, 56 };

	assert_true(entries <= ENTRIES);
	memcpy(at, head, sizeof(head));
	memcpy(at + 20, name, strlen(name) + 1);
	return (uint64_t *)(void *)(at + 56);
}

static uint64_t *running, *stopped, *number, *reaching, *copy, *young, *old, *rate;

static void make_counters(void)
{
	static const char *const names[] = { "sun.rt.applicationTime", "sun.rt.safepointTime",
					     "sun.rt.safepoints", "sun.rt.safepointSyncTime" };
	uint64_t **const counters[] = { &running, &stopped, &number, &reaching };
	uint32_t head[8] = { 0xc0c0feca, 0, 0, 0, 0, 0, FIRST, ENTRIES };

	memset(memory, 0, sizeof(memory));
	entries = 0;
	for (int i = 0; i < 4; i++) {
		*counters[i] = add(names[i], 'J');
		objects[i].value_at = (uint64_t)(uintptr_t)*counters[i];
	}
	copy = add("sun.os.hrt.ticks", 'J');
	rate = add("sun.os.hrt.frequency", 'J');
	*rate = NS_PER_S;
	young = add("sun.gc.collector.0.lastEntryTime", 'J');
	memcpy(add("sun.gc.collector.0.name", 'B'), "PSScavenge", 11);
	old = add("sun.gc.collector.1.lastEntryTime", 'J');
	memcpy(add("sun.gc.collector.1.name", 'B'), "PSParallelCompact", 18);
	head[7] = entries;
	memcpy(memory, head, sizeof(head));
}

/* A JVM that had 7 safepoints, the last from 40,000 ms to 40,020 ms. */
static void lay_out(int step)
{
	memset(&image, 0, sizeof(image));
	for (int i = 0; i < 4; i++)
		image.variables[CENTRE + (i - NUMBER) * step] = (uint64_t)(uintptr_t)&objects[i];
	image.variables[CENTRE + 2 * step] = 40000 * MS;
	image.variables[CENTRE + 3 * step] = 40020 * MS;
	image.variables[50] = started_ns;
	/* an integer, a wild pointer, another counter's object, one in the image */
	image.variables[3] = 5;
	image.variables[4] = (uint64_t)(uintptr_t)&image - (64ull << 20);
	image.variables[5] = (uint64_t)(uintptr_t)&objects[REACHING];
	image.variables[6] = (uint64_t)(uintptr_t)&image;
	/* the object of the number without the others beside it */
	image.variables[8] = (uint64_t)(uintptr_t)&objects[NUMBER];
}

static int set_up(void **state)
{
	(void)state;
	feature = 8;
	started_ns = mono_ns() - AGE;
	make_counters();
	*number = 7;
	*running = 39000 * MS;
	*stopped = 900 * MS;
	*reaching = 3 * MS;
	*copy = AGE - 20 * MS;
	lay_out(1);
	return 0;
}

static void they_are_found_in_either_order(void **state)
{
	struct safepoint_timers t;

	(void)state;
	for (int step = -1; step <= 1; step += 2) {
		lay_out(step);
		assert_true(safepoint_timers_find(&t));
		assert_ptr_equal(t.begin, &image.variables[CENTRE + 2 * step]);
		assert_ptr_equal(t.end, &image.variables[CENTRE + 3 * step]);
		assert_int_equal(t.number_at, (uintptr_t)number);
		assert_int_equal(t.started_ns, started_ns);
		assert_int_equal(t.n_collectors, 2);
		assert_string_equal(safepoint_timers_collector(1), "PSParallelCompact");
	}
}

static bool found(void)
{
	struct safepoint_timers t;

	return safepoint_timers_find(&t);
}

static void what_does_not_agree_is_not_used(void **state)
{
	(void)state;
	assert_true(found());
	feature = 17;
	assert_false(found());
	feature = 11;
	image.variables[CENTRE + 3] = AGE + 60000 * MS; /* in the future */
	assert_false(found());
	lay_out(1);
	*running = 1000000 * MS; /* the sums are others */
	assert_false(found());
	*running = 39000 * MS;
	image.variables[CENTRE + 1] = 0; /* another neighbour */
	assert_false(found());
	lay_out(1);
	image.variables[51] = started_ns - MS; /* two times that may be the start */
	assert_false(found());
	lay_out(1);
	*rate = 1000;
	assert_false(found());
	*rate = NS_PER_S;
	assert_true(found());
	start = NULL; /* -XX:-UsePerfData */
	assert_false(found());
	start = memory;
}

/* On a machine that was started not long ago two numbers of a table may look like the JVM's start.
 */
static void a_pair_of_small_numbers_is_no_time(void **state)
{
	(void)state;
	if (started_ns >> 48)
		skip(); /* up for more than three days: no small number is near the time */
	image.variables[51] = (started_ns & ~0xffffffffull) | 7;
	assert_true(found());
}

static void broken_counters_end_the_search(void **state)
{
	uint32_t *length = (uint32_t *)(void *)(memory + FIRST + ENTRY);
	uint32_t *name = (uint32_t *)(void *)(memory + FIRST + 2 * ENTRY + 4);

	(void)state;
	for (uint32_t bad = 0; bad < 3; bad++) {
		*length = bad == 0 ? 0 : bad == 1 ? 19 : UINT32_MAX;
		assert_false(found());
	}
	*length = ENTRY;
	*name = UINT32_MAX - 2;
	assert_false(found());
	*name = ENTRY - 1;
	assert_false(found());
	*name = 20;
	assert_true(found());
	capacity = FIRST + 3 * ENTRY + 10; /* the fourth is cut off in its head, */
	assert_false(found());
	capacity = FIRST + 6 * ENTRY - 8; /* so is the last one that is needed, after its head */
	assert_false(found());
	capacity = sizeof(memory);
}

/* The next safepoint begins, the last thread has stopped, and it ends. */
static void pass(uint64_t begin, uint64_t reach, uint64_t end)
{
	image.variables[CENTRE + 2] = begin;
	++*number;
	*reaching += reach;
	image.variables[CENTRE + 3] = end;
}

/* One test for the whole life of a process, because what was found is kept. */
static void each_is_told_with_its_times_and_collector(void **state)
{
	struct safepoint s;

	(void)state;
	assert_true(safepoints_init());
	assert_int_equal(safepoints_number_sig(), 7);
	assert_int_equal(safepoints_end_sig(), started_ns + 40020 * MS);

	image.variables[CENTRE + 2] = 40100 * MS; /* in progress */
	++*number;
	assert_int_equal(safepoints_end_sig(), 0);
	assert_int_equal(safepoints_number_sig(), 7);
	assert_false(safepoints_last_sig(&s));
	*reaching += 2 * MS;
	image.variables[CENTRE + 3] = 40130 * MS;
	assert_true(safepoints_last_sig(&s));
	assert_int_equal(s.number, 8);
	assert_int_equal(s.begin_ns, started_ns + 40100 * MS);
	assert_int_equal(s.reached_ns, started_ns + 40102 * MS);
	assert_int_equal(s.end_ns, started_ns + 40130 * MS);
	assert_false(safepoints_collects(s.operation));
	assert_string_equal(safepoints_operation(s.operation), "");

	*young = 40205 * MS; /* a full collection begins with a young one */
	*old = 40215 * MS;
	pass(40200 * MS, MS, 40230 * MS);
	assert_true(safepoints_last_sig(&s));
	assert_int_equal(s.reached_ns, started_ns + 40201 * MS);
	assert_true(safepoints_collects(s.operation));
	assert_string_equal(safepoints_operation(s.operation), "PSParallelCompact");

	pass(40300 * MS, MS, 40330 * MS); /* not seen */
	*young = 40405 * MS;
	pass(40400 * MS, MS, 40430 * MS);
	assert_true(safepoints_last_sig(&s));
	assert_int_equal(s.number, 11);
	assert_int_equal(s.reached_ns, started_ns + 40405 * MS);
	assert_string_equal(safepoints_operation(s.operation), "PSScavenge");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(they_are_found_in_either_order, set_up),
		cmocka_unit_test_setup(what_does_not_agree_is_not_used, set_up),
		cmocka_unit_test_setup(a_pair_of_small_numbers_is_no_time, set_up),
		cmocka_unit_test_setup(broken_counters_end_the_search, set_up),
		cmocka_unit_test_setup(each_is_told_with_its_times_and_collector, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The JVM's performance counters, with lengths and offsets that are wrong. */
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/perf_data.h"
#include "tests/unit/unit.h"

#define NAME_AT 20u
#define LONGEST                                                                                    \
	"sun.rt.01234567890123456789012345678901234567890123456789012345" /* with its NUL 64 bytes \
									   */

static struct {
	uint32_t magic;
	uint8_t order, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t changed;
	uint32_t first, entries;
	_Alignas(8) uint8_t bytes[512];
} memory;
static const void *start = &memory;
static uint64_t capacity = sizeof(memory);

/* Instead of libjvm.c's. */
void *libjvm_static(const char *type, const char *field)
{
	assert_string_equal(type, "PerfMemory");
	return strcmp(field, "_start") == 0 ? (void *)&start : (void *)&capacity;
}

struct entry {
	uint32_t length, name_at, elements;
	uint8_t type, flags, unit, variability;
	uint32_t value_at;
};

/* Makes it the only counter; returns the place where a test can change it. */
static struct entry *counter(char type, const char *name, const void *value, uint32_t n)
{
	uint32_t value_at = (NAME_AT + (uint32_t)strlen(name) + 1 + 7) & ~7u;
	struct entry e = { value_at + n, NAME_AT, 0, (uint8_t)type, 0, 0, 0, value_at };

	memset(&memory, 0, sizeof(memory));
	memory.magic = 0xc0c0feca;
	memory.first = offsetof(typeof(memory), bytes);
	memory.entries = 1;
	capacity = sizeof(memory);
	memcpy(memory.bytes, &e, sizeof(e));
	memcpy(memory.bytes + NAME_AT, name, strlen(name) + 1);
	memcpy(memory.bytes + value_at, value, n);
	return (struct entry *)(void *)memory.bytes;
}

static uint64_t number(const char *name)
{
	static const sigset_t nothing_blocked;
	uint64_t at;

	guard_enter_sig();
	(void)guard_begin_sig(&nothing_blocked);
	at = perf_data_number(name);
	guard_leave_sig();
	return at ? *(const uint64_t *)(uintptr_t)at : 0;
}

static bool text(const char *name, char ret[PERF_DATA_TEXT_MAX])
{
	static const sigset_t nothing_blocked;
	bool found;

	guard_enter_sig();
	(void)guard_begin_sig(&nothing_blocked);
	found = perf_data_text(name, ret);
	guard_leave_sig();
	return found;
}

static const uint64_t seven = 7;

static void a_counter_is_found_by_its_name(void **state)
{
	char buf[PERF_DATA_TEXT_MAX];

	(void)state;
	(void)counter('J', "sun.rt.safepoints", &seven, sizeof(seven));
	assert_int_equal(number("sun.rt.safepoints"), 7);
	assert_int_equal(number("sun.rt.safepoint"), 0);
	assert_int_equal(number("sun.rt.safepoints2"), 0);
	assert_false(text("sun.rt.safepoints", buf)); /* it is a number */
	(void)counter('B', "sun.gc.cause", "No GC", 6);
	assert_true(text("sun.gc.cause", buf));
	assert_string_equal(buf, "No GC");
}

static void a_name_has_a_bound(void **state)
{
	(void)state;
	(void)counter('J', LONGEST, &seven, sizeof(seven));
	assert_int_equal(number(LONGEST), 7);
	(void)counter('J', LONGEST "6", &seven, sizeof(seven));
	assert_int_equal(number(LONGEST "6"), 0);
}

static void a_text_has_a_bound(void **state)
{
	char longest[PERF_DATA_TEXT_MAX] = { 0 }, buf[PERF_DATA_TEXT_MAX];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	(void)counter('B', "sun.gc.cause", longest, sizeof(longest));
	assert_true(text("sun.gc.cause", buf));
	memset(longest, 'x', sizeof(longest));
	(void)counter('B', "sun.gc.cause", longest, sizeof(longest));
	assert_false(text("sun.gc.cause", buf));
}

static void lengths_and_offsets_that_are_wrong_find_nothing(void **state)
{
	static const uint32_t wrong[] = { 0, 1, 19, 400, 600, 1u << 31, UINT32_MAX };
	char buf[PERF_DATA_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		counter('J', "sun.rt.a", &seven, sizeof(seven))->length = wrong[i];
		assert_int_equal(number("sun.rt.a"), wrong[i] == 400 ? 7 : 0); /* 400 fits */
		counter('J', "sun.rt.a", &seven, sizeof(seven))->name_at = wrong[i];
		assert_int_equal(number("sun.rt.a"), 0);
		counter('J', "sun.rt.a", &seven, sizeof(seven))->value_at = wrong[i];
		if (wrong[i])
			assert_int_equal(number("sun.rt.a"), 0);
		counter('B', "sun.gc.cause", "No GC", 6)->value_at = wrong[i];
		(void)text("sun.gc.cause", buf);
	}
	(void)counter('J', "sun.rt.a", &seven, sizeof(seven));
	memory.entries = 5; /* the others have no length */
	assert_int_equal(number("sun.rt.b"), 0);
	memory.entries = UINT32_MAX;
	assert_int_equal(number("sun.rt.a"), 0);
	(void)counter('J', "sun.rt.a", &seven, sizeof(seven));
	memory.first = UINT32_MAX;
	assert_int_equal(number("sun.rt.a"), 0);
	(void)counter('J', "sun.rt.a", &seven, sizeof(seven));
	memory.magic = 1;
	assert_int_equal(number("sun.rt.a"), 0);
	(void)counter('J', "sun.rt.a", &seven, sizeof(seven));
	capacity = 8;
	assert_int_equal(number("sun.rt.a"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_is_found_by_its_name),
		cmocka_unit_test(a_name_has_a_bound),
		cmocka_unit_test(a_text_has_a_bound),
		cmocka_unit_test(lengths_and_offsets_that_are_wrong_find_nothing),
	};

	if (guard_init(false) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

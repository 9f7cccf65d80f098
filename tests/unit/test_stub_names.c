/* The JVM's list of stubs, found among the variables of a made-up libjvm. */
#include "agent/hotspot/code_cache.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/stub_names.h"
#include "agent/hotspot/stub_table.h"
#include "tests/unit/unit.h"

#define CODE  0x7f0000000000ull
#define STUBS 40

struct desc {
	struct desc *next;
	const char *group, *name;
	uint64_t begin, end;
};

/* The made-up libjvm: texts, then variables. The lists are elsewhere, as malloc's memory would
 * be. */
static struct {
	char group[16], names[STUBS][16];
	uint64_t variables[64];
} image;
static struct desc list[STUBS];

bool libjvm_image(struct libjvm_image *ret)
{
	ret->low = (uint64_t)(uintptr_t)&image;
	ret->high = ret->low + sizeof(image);
	ret->bss_low = (uint64_t)(uintptr_t)image.variables;
	ret->bss_high = ret->high;
	return true;
}

static uint64_t begin_of(int i)
{
	return CODE + 0x100 * (uint64_t)i;
}

static const char *name_at(uint64_t pc)
{
	return (const char *)(uintptr_t)stub_name_sig(pc);
}

static int set_up(void **state)
{
	(void)state;
	code_cache_sig.low = CODE;
	code_cache_sig.high = CODE + (1u << 20);
	memset(&image, 0, sizeof(image));
	memcpy(image.group, "StubRoutines", 13);
	for (int i = 0; i < STUBS; i++) {
		image.names[i][0] = (char)('A' + i);
		list[i] = (struct desc){ i ? &list[i - 1] : NULL, image.group, image.names[i],
					 begin_of(i), begin_of(i) + 0x80 };
	}
	return 0;
}

/* One test for the whole life of a process, because a list that was found is kept. */
static void stubs_are_named_by_the_list_and_anew_when_it_grows(void **state)
{
	(void)state;
	/* an integer, a pair of them, a pointer into the middle of the list, one to other data,
	 * a null pointer */
	image.variables[3] = 5000;
	image.variables[4] = 3ull << 32 | 5;
	image.variables[9] = (uint64_t)(uintptr_t)&list[STUBS / 2];
	image.variables[11] = (uint64_t)(uintptr_t)image.group;
	image.variables[12] = (uint64_t)(uintptr_t)&image - (64ull << 20) - 8;
	stub_names_refresh();
	assert_string_equal(name_at(begin_of(3) + 0x7f), "D");
	assert_int_equal(stub_name_sig(begin_of(3) + 0x80), 0);
	assert_int_equal(stub_name_sig(CODE - 1), 0);
	assert_int_equal(stub_name_sig(begin_of(STUBS - 1)), 0); /* not in that list yet */

	image.variables[9] = (uint64_t)(uintptr_t)&list[STUBS - 1];
	stub_names_refresh();
	assert_string_equal(name_at(begin_of(STUBS - 1)), image.names[STUBS - 1]);
	assert_string_equal(name_at(begin_of(0)), "A");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stubs_are_named_by_the_list_and_anew_when_it_grows, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

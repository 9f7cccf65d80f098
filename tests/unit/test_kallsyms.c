#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/symbols/kallsyms.h"

static int read_text(const char *text, struct kallsyms **ret)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(f);
	r = kallsyms_read(f, ret);
	fclose(f);
	return r;
}

static void an_address_has_the_name_of_the_function_before_it(void **state)
{
	struct kallsyms *k;

	(void)state;
	assert_int_equal(read_text("ffffffff81002000 T vfs_read\n"
				   "ffffffff81003000 D a_datum\n"
				   "ffffffff81001000 t read_zero\n"
				   "ffffffffc0001000 t ext4_read\t[ext4]\n",
				   &k),
			 0);
	assert_string_equal(kallsyms_name(k, 0xffffffff81001000), "read_zero");
	assert_string_equal(kallsyms_name(k, 0xffffffff81001fff), "read_zero");
	assert_string_equal(kallsyms_name(k, 0xffffffff81003010), "vfs_read");
	assert_string_equal(kallsyms_name(k, 0xffffffffc0001010), "ext4_read");
	assert_null(kallsyms_name(k, 0xffffffff81000fff));
	assert_null(kallsyms_name(k, 0xffffffffc0001010 + KALLSYMS_REACH));
	kallsyms_free(k);
	assert_null(kallsyms_name(NULL, 0xffffffff81001000));
}

static void hidden_addresses_and_nothing_at_all_are_said(void **state)
{
	struct kallsyms *k;

	(void)state;
	assert_int_equal(read_text("0000000000000000 T vfs_read\n0000000000000000 t x\n", &k),
			 -EACCES);
	assert_int_equal(read_text("no table\n", &k), -ENODATA);
}

static void hostile_lines_are_passed_over_and_names_are_cut(void **state)
{
	char text[4000] = "ffffffff81000000\nzz T x\nffffffff81000001 T\nffffffff81000002 T \n"
			  "ffffffff81000003 T a\033[31mb\nffffffff81000004 T ";
	size_t len = strlen(text);
	struct kallsyms *k;

	(void)state;
	memset(text + len, 'n', 300);
	/* its rest looks like a line where the buffer ends */
	strcpy(text + len + 300, "\nffffffff81000005 T ");
	len = strlen(text);
	memset(text + len, 'm', 492);
	strcpy(text + len + 492, "ffffffff81000006 T forged\nffffffff81000007 T last\n");
	assert_int_equal(read_text(text, &k), 0);
	assert_null(kallsyms_name(k, 0xffffffff81000002));
	assert_string_equal(kallsyms_name(k, 0xffffffff81000003), "a");
	assert_int_equal(strlen(kallsyms_name(k, 0xffffffff81000004)), KALLSYMS_NAME_MAX);
	assert_int_equal(kallsyms_name(k, 0xffffffff81000006)[0], 'm');
	assert_string_equal(kallsyms_name(k, 0xffffffff81000007), "last");
	kallsyms_free(k);
}

static char *append(char *at, uint64_t address, const char *name, unsigned number)
{
	return at + sprintf(at, "%016llx t %s%u\n", (unsigned long long)address, name, number);
}

/* Where a run of offsets ends, where two names have the same address among those that are kept,
 * and so on. */
static uint64_t gap_before(unsigned i)
{
	static const uint64_t gaps[] = { 1, 16, 0xfffe, 0xffff, 0x10000, 0x30000, 0x40001 };

	return i == 3000 ? 1ull << 40 : gaps[i * 7 / 3 % ARRAY_SIZE(gaps)];
}

static void assert_name(struct kallsyms *k, uint64_t address, unsigned number)
{
	const char *name = kallsyms_name(k, address);
	char want[40];

	snprintf(want, sizeof(want), "a_function_%u", number);
	assert_non_null(name);
	assert_string_equal(name, want);
}

#define MANY 5000u

static void all_of_very_many_have_their_own_names(void **state)
{
	static char text[MANY * 64];
	static uint64_t addresses[MANY + 1];
	struct kallsyms *k;
	char *at = text;

	(void)state;
	addresses[0] = 0xffff800000000000;
	for (unsigned i = 0; i < MANY; i++) {
		at = append(at, addresses[i], "a_function_", i);
		addresses[i + 1] = addresses[i] + gap_before(i + 1);
	}
	assert_int_equal(read_text(text, &k), 0);
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < MANY; i++) {
			uint64_t last = addresses[i + 1] - 1;

			assert_name(k, addresses[i], i);
			/* its slot among the kept ones has another symbol by then */
			assert_name(k, addresses[(i + 2048) % MANY], (i + 2048) % MANY);
			if (last - addresses[i] <= KALLSYMS_REACH)
				assert_name(k, last, i);
			else
				assert_null(kallsyms_name(k, last));
		}
	assert_null(kallsyms_name(k, addresses[0] - 1));
	assert_null(kallsyms_name(k, UINT64_MAX));
	kallsyms_free(k);
}

static void of_two_names_for_an_address_the_last_is_taken(void **state)
{
	struct kallsyms *k;

	(void)state;
	assert_int_equal(read_text("ffffffff81002000 T first\nffffffff81001000 T before\n"
				   "ffffffff81002000 t second\nffffffff81002000 W third\n",
				   &k),
			 0);
	assert_string_equal(kallsyms_name(k, 0xffffffff81002000), "third");
	assert_string_equal(kallsyms_name(k, 0xffffffff81001fff), "before");
	kallsyms_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_the_name_of_the_function_before_it),
		cmocka_unit_test(hidden_addresses_and_nothing_at_all_are_said),
		cmocka_unit_test(hostile_lines_are_passed_over_and_names_are_cut),
		cmocka_unit_test(all_of_very_many_have_their_own_names),
		cmocka_unit_test(of_two_names_for_an_address_the_last_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

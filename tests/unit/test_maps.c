/* Lines of /proc/PID/maps, names of hidden classes, and this process's own mappings. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "agent/hotspot/class_name.h"
#include "agent/walker/native/maps.h"
#include "tests/unit/unit.h"

static bool parse(const char *text, struct maps_line *ret)
{
	return maps_parse_line(text, strlen(text), ret);
}

static void a_library_is_read_with_its_spaces(void **state)
{
	struct maps_line line;

	(void)state;
	assert_true(parse("7f0a1000-7f0a3000 r-xp 00026000 fe:01 131 /opt/my libs/a.so (deleted)",
			  &line));
	assert_int_equal(line.start, 0x7f0a1000);
	assert_int_equal(line.end, 0x7f0a3000);
	assert_int_equal(line.offset, 0x26000);
	assert_int_equal(line.device, 0xfe00000001);
	assert_int_equal(line.inode, 131);
	assert_true(line.executable);
	assert_int_equal(line.path_len, strlen("/opt/my libs/a.so (deleted)"));
	assert_memory_equal(line.path, "/opt/my libs/a.so (deleted)", line.path_len);
}

static void memory_without_a_file_has_no_path(void **state)
{
	struct maps_line line;

	(void)state;
	assert_true(parse("7f0a1000-7f0a3000 rw-p 00000000 00:00 0 ", &line));
	assert_int_equal(line.path_len, 0);
	assert_false(line.executable);
}

static void nonsense_is_no_line(void **state)
{
	static const char *const bad[] = {
		"",
		"-",
		"1000-2000",
		"2000-1000 r-xp 0 0:0 0 /a",
		"1000-2000 r-xp 0 0 0 /a",
		"x000-2000 r-xp 0 0:0 0 /a",
		"1000-2000 r-xp 0 0:0 /a",
		"11111111111111111-22222222222222222 r-xp 0 0:0 0 /a",
	};
	struct maps_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse(bad[i], &line));
}

static void own_code_has_a_mapping_with_a_build_id(void **state)
{
	uint64_t pc = (uint64_t)(uintptr_t)parse;
	struct walk_mapping mapping;

	(void)state;
	assert_int_equal(maps_refresh(), 0);
	assert_true(maps_find(pc, &mapping));
	assert_true(mapping.start <= pc && pc < mapping.end);
	assert_non_null(strstr(mapping.path, "test_maps"));
	assert_true(maps_find((uint64_t)(uintptr_t)strlen, &mapping));
	assert_non_null(strstr(mapping.path, "lib"));
	assert_true(mapping.build_id_len > 0);
	assert_false(maps_find(8, &mapping));
}

static void after_free_nothing_is_found_and_it_can_begin_again(void **state)
{
	uint64_t pc = (uint64_t)(uintptr_t)parse, empty, full;
	struct walk_mapping mapping;

	(void)state;
	maps_free();
	empty = maps_bytes();
	assert_false(maps_find(pc, &mapping));
	assert_int_equal(maps_refresh(), 0);
	assert_true(maps_find(pc, &mapping));
	full = maps_bytes();
	assert_true(full > empty);
	for (int i = 0; i < 100; i++) {
		maps_free();
		assert_int_equal(maps_refresh(), 0);
	}
	assert_int_equal(maps_bytes(), full);
	maps_free();
}

/* Every other page of a file mapped as code: no two of them may be merged into one mapping. */
static void mappings_beyond_the_room_are_counted(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = MAPS_MAX + 10;
	int fd = memfd_create("library", MFD_CLOEXEC);
	uint8_t *all = mmap(NULL, 2 * n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(fd >= 0 && all != MAP_FAILED && ftruncate(fd, (off_t)page) == 0);
	assert_int_equal(maps_refresh(), 0);
	assert_int_equal(maps_left_out(), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(mmap(all + 2 * i * page, page, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED);
	maps_free();
	assert_int_equal(maps_refresh(), 0);
	assert_in_range(maps_left_out(), 10, 100);
	munmap(all, 2 * n * page);
	close(fd);
	maps_free();
	assert_int_equal(maps_refresh(), 0);
	assert_int_equal(maps_left_out(), 0);
	maps_free();
}

static void hidden_classes_lose_what_differs_between_runs(void **state)
{
	static const char *const names[][2] = {
		{ "Ljava/lang/String;", "java/lang/String" },
		{ "Lpkg/Main$$Lambda.0x00007f01a4000c30;", "pkg/Main$$Lambda" },
		{ "Lpkg/Main$$Lambda$14.0x0000000800c03000;", "pkg/Main$$Lambda" },
		{ "Lpkg/Main$$Lambda/0x00007f01;", "pkg/Main$$Lambda" },
		{ "Lpkg/Main$$Lambda$1/1234567;", "pkg/Main$$Lambda" },
		{ "Ljava/lang/invoke/LambdaForm$MH.0x00007f01;", "java/lang/invoke/LambdaForm$MH" },
		{ "Ljava/lang/invoke/LambdaForm$MH/12345;", "java/lang/invoke/LambdaForm$MH" },
		{ "Lpkg/cafe;", "pkg/cafe" },
		{ "Lpkg/Outer$1;", "pkg/Outer$1" },
		{ "L;", "" },
		{ "", "" },
	};
	char name[80];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		strcpy(name, names[i][0]);
		names_normalise_class(name);
		assert_string_equal(name, names[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_is_read_with_its_spaces),
		cmocka_unit_test(memory_without_a_file_has_no_path),
		cmocka_unit_test(nonsense_is_no_line),
		cmocka_unit_test(own_code_has_a_mapping_with_a_build_id),
		cmocka_unit_test(after_free_nothing_is_found_and_it_can_begin_again),
		cmocka_unit_test(mappings_beyond_the_room_are_counted),
		cmocka_unit_test(hidden_classes_lose_what_differs_between_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

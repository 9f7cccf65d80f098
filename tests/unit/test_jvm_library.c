/* The library of a JVM among the lines of /proc/PID/maps. */
#include "tests/unit/fake_proc.h"

#include "daemon/discovery/jvm_library.h"
#include "daemon/ground/maps.h"

static void maps_are_read_in_pieces_of_any_size(void **state)
{
	static const char text[] = FAKE_NO_JVM FAKE_LIBJVM FAKE_NO_JVM;
	static struct maps_lines lines;
	static struct jvm_library m;

	(void)state;
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		memset(&m, 0, sizeof(m));
		for (size_t i = 0; i < sizeof(text) - 1; i += piece) {
			size_t left = sizeof(text) - 1 - i;

			maps_feed(&lines, text + i, left < piece ? left : piece, jvm_library_line,
				  &m);
		}
		assert_string_equal(m.path, "/jdk/lib/server/libjvm.so");
	}
}

static void a_line_longer_than_any_path_is_skipped_alone(void **state)
{
	static char text[20000];
	static struct maps_lines lines;
	static struct jvm_library m;
	size_t n = 9000;

	(void)state;
	memset(text, 'x', n);
	strcpy(text + n, "/libjvm.so\n" FAKE_LIBJVM);
	memset(&m, 0, sizeof(m));
	maps_feed(&lines, text, strlen(text), jvm_library_line, &m);
	assert_string_equal(m.path, "/jdk/lib/server/libjvm.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_read_in_pieces_of_any_size),
		cmocka_unit_test(a_line_longer_than_any_path_is_skipped_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

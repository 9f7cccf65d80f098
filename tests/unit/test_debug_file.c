#include "tests/unit/elf_tables.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define BUILD_ID_FILE "usr/lib/debug/.build-id/ab/cdef0123456789.debug"

/* Runs @command in a root of its own, with ROOT and STRIPPED for the directories. */
static int in_root(const char *command, char *root)
{
	char line[512];

	snprintf(line, sizeof(line), "STRIPPED=%s; ROOT=%s; %s", STRIPPED, root, command);
	return system(line);
}

/* Is the debug file found after @command has put files into an empty root? */
static bool found_after(const char *command, const char *library, bool host, const char *path)
{
	char root[] = "/tmp/kindling-root-XXXXXX";
	struct debug_places places = { -1, -1, path };
	uint32_t flags;
	int fd;
	bool found;

	assert_non_null(mkdtemp(root));
	assert_int_equal(in_root(command, root), 0);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	*(host ? &places.host_fd : &places.target_fd) = fd;
	found = names_the_private(library, &places, &flags);
	assert_int_equal(flags, found ? 0 : TABLE_EXPORTED_ONLY);
	fd_close(fd);
	assert_int_equal(in_root("rm -r $ROOT", root), 0);
	return found;
}

#define ADD(where) ADD_FILE("library.debug", where)
#define ADD_FILE(it, where) \
	"mkdir -p $(dirname $ROOT/" where ") && cp $STRIPPED/" it " $ROOT/" where

static void a_debug_file_is_found_by_build_id(void **state)
{
	(void)state;
	assert_true(found_after(ADD(BUILD_ID_FILE), "library.so", false, NULL));
	assert_true(found_after(ADD(BUILD_ID_FILE), "library.so", true, NULL));
	assert_false(found_after("true", "library.so", false, NULL));
}

static void a_debug_file_is_found_by_its_link(void **state)
{
	(void)state;
	assert_true(found_after(ADD("opt/library.debug"), "library.so", false, "/opt/library.so"));
	assert_true(found_after(ADD("opt/.debug/library.debug"), "without-id.so", false,
				"/opt/library.so"));
	assert_true(found_after(ADD("usr/lib/debug/opt/library.debug"), "without-id.so", false,
				"/opt/library.so"));
	assert_false(found_after(ADD("library.debug"), "library.so", false, "/opt/library.so"));
	/* links are resolved within the container */
	assert_false(found_after(ADD("library.debug"), "library.so", true, "/library.so"));
}

static void a_debug_file_that_is_another_s_is_not_believed(void **state)
{
	(void)state;
	/* debug files with another build-id, without one, and with a wrong checksum */
	assert_false(found_after(
		ADD(BUILD_ID_FILE) " && printf x | dd conv=notrunc of=$ROOT/" BUILD_ID_FILE
				   " status=none",
		"library.so", false, NULL));
	assert_false(
		found_after(ADD_FILE("without-id.so", BUILD_ID_FILE), "library.so", false, NULL));
	assert_false(found_after(ADD("library.debug") " && printf x >> $ROOT/library.debug",
				 "without-id.so", false, "/library.so"));
}

static void only_a_regular_file_below_the_root_is_opened(void **state)
{
	(void)state;
	assert_false(
		found_after("mkfifo $ROOT/library.debug", "without-id.so", false, "/library.so"));
	assert_false(found_after("ln -s ../../$STRIPPED/library.debug $ROOT/library.debug",
				 "without-id.so", false, "/library.so"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_debug_file_is_found_by_build_id),
		cmocka_unit_test(a_debug_file_is_found_by_its_link),
		cmocka_unit_test(a_debug_file_that_is_another_s_is_not_believed),
		cmocka_unit_test(only_a_regular_file_below_the_root_is_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

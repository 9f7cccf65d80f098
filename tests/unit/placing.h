/* For tests that place the library: a made-up root directory, with the caller's own ids. */
#pragma once

#include "tests/unit/unit.h"
#include "injector/inject.h"

#define VERSION_DIR "/root/tmp/kindling/" KINDLING_VERSION

/* What placing_setup() makes anew for each test. */
extern struct placing {
	char dir[64];
	struct inject in;
	struct fault fault;
	int library_fd;
	/* names that come before those of the file system in each directory; the test wraps readdir
	 * and fdopendir */
	unsigned other_names;
} placing;

int placing_setup(void **state);
int placing_teardown(void **state);
#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, placing_setup, placing_teardown)

/* The path of @name, in one of four buffers. */
const char *placing_path(const char *name);
bool placing_exists(const char *name);
/* Does /tmp contain a private directory? */
bool placing_has_private_dir(void);
int placing_whole(struct inject *who, int fd, bool quiet, size_t pipe_bytes, struct placement *p);
void placing_close(struct placement *p);

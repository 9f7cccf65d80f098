/* See placing.h. */
#include "tests/unit/placing.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/clock.h"

struct placing placing;

const char *placing_path(const char *name)
{
	static char path[4][256];
	static int turn;

	snprintf(path[++turn % 4], sizeof(path[0]), "%s%s", placing.dir, name);
	return path[turn % 4];
}

bool placing_exists(const char *name)
{
	struct stat st;

	return lstat(placing_path(name), &st) == 0;
}

int placing_setup(void **state)
{
	(void)state;
	snprintf(placing.dir, sizeof(placing.dir), "/tmp/kindling-test-XXXXXX");
	assert_non_null(mkdtemp(placing.dir));
	assert_int_equal(chmod(placing.dir, 0755), 0);
	assert_int_equal(mkdir(placing_path("/root"), 0755), 0);
	assert_int_equal(mkdir(placing_path("/root/tmp"), 0755), 0);
	assert_int_equal(chmod(placing_path("/root/tmp"), 01777), 0);
	placing.library_fd = open(placing_path("/library"), O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(placing.library_fd, "content", 7), 7);
	placing.fault = (struct fault){ 0 };
	placing.in = (struct inject)INJECT_NULL;
	placing.in.pid = 42;
	placing.in.uid = placing.in.ns_root_uid = geteuid();
	placing.in.gid = placing.in.ns_root_gid = getegid();
	placing.in.fault = &placing.fault;
	placing.in.deadline_mono_ns = clock_mono_ns() + 10 * NS_PER_S;
	placing.in.root_dfd = open(placing_path("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

int placing_teardown(void **state)
{
	char command[128];

	(void)state;
	close(placing.in.root_dfd);
	close(placing.library_fd);
	snprintf(command, sizeof(command), "rm -rf %s", placing.dir);
	return system(command);
}

int placing_whole(struct inject *who, int fd, bool quiet, size_t pipe_bytes, struct placement *p)
{
	int r = place_begin(who, p);

	return r < 0 ? r : place(who, fd, quiet, pipe_bytes, p);
}

void placing_close(struct placement *p)
{
	p->events_fd = fd_close(p->events_fd);
	p->control_fd = fd_close(p->control_fd);
}

/* Does /tmp contain a private directory? */
bool placing_has_private_dir(void)
{
	char command[128];

	snprintf(command, sizeof(command), "ls -d %s/root/tmp/.kindling-* >/dev/null 2>&1",
		 placing.dir);
	return system(command) == 0;
}

/* ---- names that others made in the same directories ------------------------------------------ */

static struct {
	unsigned now;
	struct dirent entry;
} strangers;
struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

DIR *__wrap_fdopendir(int fd)
{
	strangers.now = placing.other_names;
	return __real_fdopendir(fd);
}

struct dirent *__wrap_readdir(DIR *d)
{
	if (!strangers.now)
		return __real_readdir(d);
	if (strangers.now != UINT_MAX)
		strangers.now--;
	strangers.entry.d_name[0] = 'x';
	return &strangers.entry;
}

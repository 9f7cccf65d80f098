/* Places the library on a file system of its own, where /tmp is noexec or full. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "tests/unit/placing.h"

/* Mounts a tmpfs on /tmp of the made-up root; false if this test may not mount. */
static bool mount_tmp(unsigned long flags, const char *options)
{
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return false;
	r = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	assert_int_equal(r, 0);
	r = mount("tmpfs", placing_path("/root/tmp"), "tmpfs", flags, options);
	assert_int_equal(r, 0);
	close(placing.in.root_dfd); /* of the namespace before */
	placing.in.root_dfd = open(placing_path("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	placing.in.mnt_ns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return true;
}

static void unmount_tmp(void)
{
	close(placing.in.mnt_ns_fd);
	placing.in.mnt_ns_fd = -1;
	(void)umount2(placing_path("/root/tmp"), MNT_DETACH);
}

static void check_mounted(const struct placement *p)
{
	char path[256];
	struct statvfs fs;
	struct stat st;

	assert_int_equal(p->strategy, INJECT_MOUNT);
	snprintf(path, sizeof(path), "%s/root%s/%s", placing.dir, p->dir, p->library);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 7);
	assert_int_equal(statvfs(path, &fs), 0);
	assert_int_equal(fs.f_flag & ST_NOEXEC, 0);
	assert_true(fs.f_flag & ST_RDONLY && fs.f_flag & ST_NOSUID && fs.f_flag & ST_NODEV);
	assert_true(open(path, O_WRONLY) < 0);
	snprintf(path, sizeof(path), "%s/root%s/%s", placing.dir, p->dir, p->events);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void in_a_noexec_tmp_the_library_lies_on_a_mount_of_its_own(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	check_mounted(&p);
	place_remove(&placing.in, &p);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&p);
	unmount_tmp();
}

static void a_mount_can_be_in_a_private_directory(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(symlink("/", placing_path("/root/tmp/kindling")), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_true(p.private_dir[0]);
	check_mounted(&p);
	place_remove(&placing.in, &p);
	assert_false(placing_has_private_dir());
	placing_close(&p);
	unmount_tmp();
}

/* The injector's own root: the target's root is the host's. */
static void nothing_is_laid_over_the_hosts_tmp(void **state)
{
	enum inject_strategy strategy = INJECT_NOT_PLACED;
	struct placement p = PLACEMENT_NULL;
	const char *why = NULL;

	(void)state;
	if (!mount_tmp(MS_RDONLY, NULL))
		skip();
	placing.in.proc_dfd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(placing_whole(&placing.in, placing.library_fd, true, 4096, &p) < 0);
	assert_non_null(strstr(placing.fault.what, "attach.tmpfs_over_tmp is off"));
	placing.fault = (struct fault){ 0 };
	placing.in.may_cover = true;
	assert_int_equal(place_plan(&placing.in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_OVER);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), -EPERM);
	assert_non_null(strstr(placing.fault.what, "the host's"));
	assert_int_equal(placing.in.cover_fd, -1);
	placing.in.proc_dfd = fd_close(placing.in.proc_dfd);
	unmount_tmp();
}

static void a_full_tmp_is_passed_by(void **state)
{
	struct placement p = PLACEMENT_NULL;
	static char junk[65536];
	int fd;

	(void)state;
	if (!mount_tmp(0, "size=64k"))
		skip();
	fd = open(placing_path("/root/tmp/junk"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	close(fd);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	check_mounted(&p);
	place_remove(&placing.in, &p);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&p);
	unmount_tmp();
}

/* place() does what place_plan() announces, and place_plan() itself leaves nothing behind. */
static void a_look_tells_the_strategy_and_leaves_nothing(void **state)
{
	enum inject_strategy strategy = INJECT_NOT_PLACED;
	struct placement p = PLACEMENT_NULL;
	const char *why = "";

	(void)state;
	assert_int_equal(place_plan(&placing.in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_COPY);
	assert_null(why);
	assert_false(placing_exists("/root/tmp/kindling"));
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_int_equal(p.strategy, strategy);
	place_remove(&placing.in, &p);
	placing_close(&p);
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(place_plan(&placing.in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_MOUNT);
	assert_string_equal(why, "noexec");
	assert_false(placing_exists("/root/tmp/kindling"));
	unmount_tmp();
}

static void a_mount_of_a_killed_attempt_is_taken_away_and_a_strangers_is_not(void **state)
{
	struct placement p = PLACEMENT_NULL;
	struct inject other = placing.in;
	char theirs[256];

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	other = placing.in;
	other.pid = 43;
	assert_int_equal(placing_whole(&other, placing.library_fd, true, 4096, &p), 0);
	placing_close(&p);
	close(p.lock_fd);
	snprintf(theirs, sizeof(theirs), "%s/root%s/m-43-theirs", placing.dir, p.dir);
	assert_int_equal(mkdir(theirs, 0755), 0);
	assert_int_equal(mount("tmpfs", theirs, "tmpfs", 0, "uid=1000"), 0);
	place_cleanup(&placing.in); /* another target's */
	check_mounted(&p);
	place_cleanup(&other);
	assert_int_equal(umount(theirs), 0); /* it is still there */
	place_cleanup(&other);
	assert_false(placing_exists("/root/tmp/kindling"));
	close(p.mount_fd);
	unmount_tmp();
}

static void a_noexec_tmp_where_nothing_can_be_mounted_says_so(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	close(placing.in.mnt_ns_fd);
	placing.in.mnt_ns_fd = -1;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), -EACCES);
	assert_non_null(strstr(placing.fault.what, "noexec, and nothing can be mounted"));
	place_remove(&placing.in, &p);
	assert_false(placing_exists("/root/tmp/kindling"));
	unmount_tmp();
}

/* Others' names beside those of an attempt with a mount. */
static void an_attempt_takes_its_own_mount_away_however_many_names_there_are(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	check_mounted(&p);
	placing.other_names = UINT_MAX;
	place_remove(&placing.in, &p);
	placing.other_names = 0;
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&p);
	unmount_tmp();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(in_a_noexec_tmp_the_library_lies_on_a_mount_of_its_own),
		PLACE_TEST(a_mount_can_be_in_a_private_directory),
		PLACE_TEST(nothing_is_laid_over_the_hosts_tmp),
		PLACE_TEST(a_full_tmp_is_passed_by),
		PLACE_TEST(a_look_tells_the_strategy_and_leaves_nothing),
		PLACE_TEST(a_mount_of_a_killed_attempt_is_taken_away_and_a_strangers_is_not),
		PLACE_TEST(a_noexec_tmp_where_nothing_can_be_mounted_says_so),
		PLACE_TEST(an_attempt_takes_its_own_mount_away_however_many_names_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

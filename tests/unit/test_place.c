/* Places the library in a made-up root directory, with the caller's own ids and, as root, with
 * others. */
#include "tests/unit/unit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "injector/inject.h"
#include "tests/unit/opens.h"

#define VERSION_DIR "/root/tmp/kindling/" KINDLING_VERSION

static char dir[64];
static struct inject in;
static struct fault f;
static int library_fd;

static const char *in_dir(const char *name)
{
	static char path[4][256];
	static int turn;

	snprintf(path[++turn % 4], sizeof(path[0]), "%s%s", dir, name);
	return path[turn % 4];
}

static bool exists(const char *name)
{
	struct stat st;

	return lstat(in_dir(name), &st) == 0;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/kindling-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(mkdir(in_dir("/root"), 0755), 0);
	assert_int_equal(mkdir(in_dir("/root/tmp"), 0755), 0);
	assert_int_equal(chmod(in_dir("/root/tmp"), 01777), 0);
	library_fd = open(in_dir("/library"), O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(library_fd, "content", 7), 7);
	f = (struct fault){ 0 };
	in = (struct inject)INJECT_NULL;
	in.pid = 42;
	in.uid = in.ns_root_uid = geteuid();
	in.gid = in.ns_root_gid = getegid();
	in.fault = &f;
	in.deadline_mono_ns = clock_mono_ns() + 10 * NS_PER_S;
	in.root_dfd = open(in_dir("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(in.root_dfd);
	close(library_fd);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static int place_whole(struct inject *who, int fd, bool quiet, size_t pipe_bytes,
		       struct placement *p)
{
	int r = place_begin(who, p);

	return r < 0 ? r : place(who, fd, quiet, pipe_bytes, p);
}

static void close_all(struct placement *p)
{
	p->events_fd = fd_close(p->events_fd);
	p->control_fd = fd_close(p->control_fd);
}

static void placed_files_exist_and_are_removed(void **state)
{
	struct placement p = PLACEMENT_NULL;
	char path[256];
	struct stat st;

	(void)state;
	assert_int_equal(place_whole(&in, library_fd, true, 1 << 20, &p), 0);
	assert_string_equal(p.dir, "/tmp/kindling/" KINDLING_VERSION);
	assert_int_equal(strlen(p.library), strlen("libkindling-0123456789abcdef.so"));
	snprintf(path, sizeof(path), "%s/root%s/%s", dir, p.dir, p.library);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_int_equal(st.st_size, 7);
	snprintf(path, sizeof(path), "%s/root%s/%s", dir, p.dir, p.events);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(fcntl(p.events_fd, F_GETPIPE_SZ) > 65536);
	place_remove(&in, &p);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&p);
}

/* ---- devices ---- */

static bool swap_fifos; /* each file is replaced by a device as soon as it is made */
int __real_mkfifoat(int dfd, const char *name, mode_t mode);
int __wrap_mkfifoat(int dfd, const char *name, mode_t mode);

int __wrap_mkfifoat(int dfd, const char *name, mode_t mode)
{
	int r = __real_mkfifoat(dfd, name, mode);

	if (r == 0 && swap_fifos && unlinkat(dfd, name, 0) == 0)
		assert_true(make_device(dfd, name, in.uid));
	return r;
}

static int make_version_dir(void)
{
	assert_int_equal(mkdir(in_dir("/root/tmp/kindling"), 0755), 0);
	assert_int_equal(mkdir(in_dir(VERSION_DIR), 0755), 0);
	return open(in_dir(VERSION_DIR), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void a_device_in_the_place_of_the_library_is_never_opened(void **state)
{
	struct placement p = PLACEMENT_NULL;
	int dfd, watch;

	(void)state;
	assert_int_equal(place_whole(&in, library_fd, true, 65536, &p), 0);
	place_remove(&in, &p);
	close_all(&p);
	dfd = make_version_dir();
	if (!make_device(dfd, p.library, in.uid)) {
		close(dfd);
		skip();
	}
	watch = watch_opens(in_dir(VERSION_DIR));
	close(openat(dfd, p.library, O_RDONLY));
	assert_true(was_opened(watch, p.library)); /* it would be seen */
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(place_whole(&in, library_fd, true, 65536, &p), 0);
	assert_false(was_opened(watch, p.library));
	close(watch);
	close(dfd);
	place_remove(&in, &p);
	close_all(&p);
}

static void a_device_in_the_place_of_a_fifo_is_never_opened(void **state)
{
	struct placement p = PLACEMENT_NULL;
	int dfd = make_version_dir(), watch = watch_opens(in_dir(VERSION_DIR));

	(void)state;
	if (!make_device(dfd, "device", in.uid)) {
		close(dfd);
		skip();
	}
	swap_fifos = true;
	assert_int_equal(place_whole(&in, library_fd, true, 65536, &p), -EPROTO);
	swap_fifos = false;
	assert_false(was_opened(watch, "events-"));
	close(watch);
	close(dfd);
	place_remove(&in, &p);
	close_all(&p);
}

/* ---- a /tmp/kindling that others have taken ---- */

/* Does /tmp contain a private directory? */
static bool has_private_dir(void)
{
	char command[128];

	snprintf(command, sizeof(command), "ls -d %s/root/tmp/.kindling-* >/dev/null 2>&1", dir);
	return system(command) == 0;
}

/* Attaches, and checks that everything is in a directory that only the target can enter, and
 * that nothing is left afterwards. */
static void place_in_private(void)
{
	struct placement p = PLACEMENT_NULL;
	char path[256], name[PRIVATE_DIR_BYTES];
	struct stat st;

	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_int_equal(p.strategy, INJECT_COPY);
	assert_true(private_dir_name(p.dir, name));
	snprintf(path, sizeof(path), "/tmp/%s/kindling/" KINDLING_VERSION, name);
	assert_string_equal(p.dir, path);
	snprintf(path, sizeof(path), "/root/tmp/%s", name);
	assert_int_equal(lstat(in_dir(path), &st), 0);
	assert_int_equal(st.st_uid, in.uid);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "/root%s/%s", p.dir, p.library);
	assert_true(exists(path));
	snprintf(path, sizeof(path), "/root%s/%s", p.dir, p.control);
	assert_true(exists(path));
	place_remove(&in, &p);
	assert_false(has_private_dir());
	close_all(&p);
}

static void a_lock_on_the_directory_keeps_nobody_out(void **state)
{
	int dfd = make_version_dir();

	(void)state;
	assert_int_equal(flock(dfd, LOCK_EX), 0);
	place_in_private();
	close(dfd);
}

/* Another user could change names in such a directory. */
static void a_tmp_that_is_not_sticky_gets_no_private_directory(void **state)
{
	struct placement p = PLACEMENT_NULL;
	int dfd = make_version_dir();

	(void)state;
	assert_int_equal(chmod(in_dir("/root/tmp"), 0777), 0);
	assert_int_equal(flock(dfd, LOCK_EX), 0);
	in.deadline_mono_ns = clock_mono_ns() + 3600 * NS_PER_S;
	assert_int_equal(place_whole(&in, library_fd, true, 65536, &p), -EBUSY);
	assert_non_null(strstr(f.what, "another process holds a lock on /tmp/kindling/"));
	assert_true(inject_remaining_ms(&in) > 1800 * 1000); /* nearly at once */
	assert_false(has_private_dir());
	close(dfd);
	place_remove(&in, &p);
	close_all(&p);
}

static void the_switch_for_a_loud_attach_is_in_the_name(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_int_equal(place_whole(&in, library_fd, false, 4096, &p), 0);
	assert_non_null(strstr(p.library, "-loud.so"));
	assert_int_equal(fcntl(p.events_fd, F_GETPIPE_SZ), 4096);
	place_remove(&in, &p);
	close_all(&p);
}

static void the_last_of_two_attempts_takes_the_library_away(void **state)
{
	struct placement a = PLACEMENT_NULL, b = PLACEMENT_NULL;
	struct inject other = in;
	char path[256];

	(void)state;
	other.pid = 43;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &a), 0);
	assert_int_equal(place_whole(&other, library_fd, true, 4096, &b), 0);
	assert_string_equal(a.library, b.library);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", a.library);
	place_remove(&in, &a);
	assert_true(exists(path));
	snprintf(path, sizeof(path), VERSION_DIR "/%s", b.events);
	assert_true(exists(path));
	place_remove(&other, &b);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&a);
	close_all(&b);
}

static void other_content_under_the_librarys_name_is_replaced(void **state)
{
	struct placement p = PLACEMENT_NULL;
	struct library l = { 0 };
	char name[80], path[256], text[8] = "";
	int fd;

	(void)state;
	assert_int_equal(library_read(library_fd, &l), 0);
	free(l.bytes);
	snprintf(name, sizeof(name), "libkindling-%016llx.so", (unsigned long long)l.hash);
	assert_int_equal(mkdir(in_dir("/root/tmp/kindling"), 0755), 0);
	assert_int_equal(mkdir(in_dir(VERSION_DIR), 0755), 0);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", name);
	fd = open(in_dir(path), O_WRONLY | O_CREAT, 0444);
	assert_int_equal(write(fd, "CONTENT", 7), 7);
	close(fd);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_string_equal(p.library, name);
	fd = open(in_dir(path), O_RDONLY);
	assert_int_equal(read(fd, text, 7), 7);
	close(fd);
	assert_string_equal(text, "content");
	place_remove(&in, &p);
	close_all(&p);
}

static void a_link_in_the_way_is_not_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir(in_dir("/outside"), 0777), 0);
	assert_int_equal(symlink("../../outside", in_dir("/root/tmp/kindling")), 0);
	place_in_private();
	assert_int_equal(rmdir(in_dir("/outside")), 0); /* nothing in it */
	assert_int_equal(unlink(in_dir("/root/tmp/kindling")), 0);
}

static void a_directory_that_others_can_change_is_not_used(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_int_equal(mkdir(in_dir("/root/tmp/kindling"), 0777), 0);
	assert_int_equal(chmod(in_dir("/root/tmp/kindling"), 0777), 0);
	place_in_private();
	assert_int_equal(chmod(in_dir("/root/tmp"), 0777), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), -EPERM);
	assert_int_equal(f.step, FAULT_PLACEMENT);
	place_remove(&in, &p);
	assert_int_equal(rmdir(in_dir("/root/tmp/kindling")), 0);
}

static void users_that_share_a_tmp_do_not_stand_in_each_others_way(void **state)
{
	struct placement a = PLACEMENT_NULL, b = PLACEMENT_NULL;
	struct inject other = in;
	char path[256];
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	in.uid = in.gid = 4242;
	other.uid = other.gid = 4243;
	other.pid = 43;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &a), 0);
	assert_int_equal(place_whole(&other, library_fd, true, 4096, &b), 0);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", b.events);
	assert_int_equal(stat(in_dir(path), &st), 0);
	assert_int_equal(st.st_uid, 4243);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", b.library);
	assert_int_equal(stat(in_dir(path), &st), 0);
	assert_int_equal(st.st_uid, 0);
	place_remove(&in, &a);
	place_remove(&other, &b);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&a);
	close_all(&b);
}

static void make_as(uid_t uid, const char *name, mode_t mode)
{
	assert_int_equal(mkdir(in_dir(name), mode), 0);
	assert_int_equal(chmod(in_dir(name), mode), 0);
	assert_int_equal(chown(in_dir(name), uid, uid), 0);
}

static void a_stranger_who_comes_first_keeps_nobody_out(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	in.uid = in.gid = 4242;
	make_as(666, "/root/tmp/kindling", 0755);
	place_in_private();
	/* even if it is empty and has the name that we use */
	make_as(666, VERSION_DIR, 0755);
	place_in_private();
	place_cleanup(&in);
	assert_int_equal(rmdir(in_dir(VERSION_DIR)), 0);
	assert_int_equal(rmdir(in_dir("/root/tmp/kindling")), 0);
	/* in a directory of ours */
	make_as(0, "/root/tmp/kindling", 01777);
	make_as(666, VERSION_DIR, 0777);
	place_in_private();
	place_cleanup(&in);
	assert_int_equal(rmdir(in_dir(VERSION_DIR)), 0);
	/* one that root has made, in which the JVM's user cannot write */
	make_as(0, VERSION_DIR, 01755);
	place_in_private();
}

static void a_private_directory_has_its_former_name_if_that_is_free(void **state)
{
	static const char name[] = ".kindling-42-0123456789abcdef";
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_true(private_dir_name(
		"7f00-7f01 r-xp 00000000 00:1f 7 /tmp/.kindling-42-0123456789abcdef"
		"/kindling/0.1.0/libkindling-00.so (deleted)",
		in.maps.private_dir));
	assert_string_equal(in.maps.private_dir, name);
	assert_int_equal(symlink("/", in_dir("/root/tmp/kindling")), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_string_equal(p.dir, "/tmp/.kindling-42-0123456789abcdef/kindling/" KINDLING_VERSION);
	place_remove(&in, &p);
	assert_false(has_private_dir());
	close_all(&p);
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(symlink("/", in_dir("/root/tmp/.kindling-42-0123456789abcdef")), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_string_not_equal(p.private_dir, name);
	assert_int_equal(strlen(p.private_dir), strlen(name));
	place_remove(&in, &p);
	assert_true(exists("/root/tmp/.kindling-42-0123456789abcdef")); /* not ours */
	close_all(&p);
}

static void only_names_of_private_directories_are_taken_for_one(void **state)
{
	static const char *const others[] = {
		"",
		"/",
		".kindling-",
		".kindling-42",
		".kindling-42-",
		".kindling-42-0123456789abcde",
		".kindling-42-0123456789abcdef0",
		".kindling-42-0123456789abcdeg",
		".kindling-42-0123456789ABCDEF",
		".kindling--0123456789abcdef",
		".kindling-12345678901-0123456789abcdef",
		"x.kindling-42-0123456789abcdef",
		"/tmp/kindling/0.1.0/libkindling-0123.so",
	};
	char name[PRIVATE_DIR_BYTES] = "unchanged";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(private_dir_name(others[i], name));
	assert_string_equal(name, "unchanged");
	assert_true(private_dir_name(".kindling-2147483647-0123456789abcdef", name));
	assert_string_equal(name, ".kindling-2147483647-0123456789abcdef");
}

/* An attempt that is killed at any step leaves a private directory, which the next one removes. */
static void
a_private_directory_of_a_killed_attempt_is_taken_away_and_a_strangers_is_not(void **state)
{
	struct placement p = PLACEMENT_NULL, q = PLACEMENT_NULL;
	char fifo[192];

	(void)state;
	assert_int_equal(symlink("/", in_dir("/root/tmp/kindling")), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	snprintf(fifo, sizeof(fifo), "/root%s/%s", p.dir, p.control);
	private_dir_cleanup(&in); /* it runs */
	assert_true(exists(fifo));
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &q), 0);
	assert_true(exists(fifo));
	place_remove(&in, &q);
	close_all(&q);
	close_all(&p); /* the attempt was killed: its lock and FIFOs are closed, its files remain */
	p.dir_dfd = fd_close(p.dir_dfd);
	p.lock_fd = fd_close(p.lock_fd);
	assert_true(exists(fifo));
	in.pid = 43; /* another target */
	private_dir_cleanup(&in);
	assert_true(exists(fifo));
	in.pid = 42;
	assert_int_equal(mkdir(in_dir("/root/tmp/.kindling-42-0000000000000001"), 0700), 0);
	assert_int_equal(mkdir(in_dir("/root/tmp/.kindling-42-0000000000000002"), 0755), 0);
	private_dir_cleanup(&in);
	assert_false(exists(fifo));
	assert_false(exists("/root/tmp/.kindling-42-0000000000000001"));
	assert_true(exists("/root/tmp/.kindling-42-0000000000000002")); /* made by somebody else */
	assert_int_equal(rmdir(in_dir("/root/tmp/.kindling-42-0000000000000002")), 0);
	assert_false(has_private_dir());
	fd_close(p.tmp_dfd);
	fd_close(p.outer_dfd);
}

static void files_of_a_killed_attempt_are_removed(void **state)
{
	struct placement p = PLACEMENT_NULL, q = PLACEMENT_NULL;
	struct inject other = in;

	(void)state;
	other.pid = 43;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_int_equal(place_whole(&other, library_fd, true, 4096, &q), 0);
	close_all(&p);
	p.dir_dfd = fd_close(p.dir_dfd); /* killed: its lock is released, its files remain */
	p.lock_fd = fd_close(p.lock_fd);
	place_cleanup(&in);
	assert_true(exists("/root/tmp/kindling")); /* the other attempt is still at work */
	place_remove(&other, &q);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&q);
	place_cleanup(&in); /* nothing there is fine */
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- the library on a file system of its own ------------------------------------------------- */

/* Mounts a tmpfs on /tmp of the made-up root; false if this test may not mount. */
static bool mount_tmp(unsigned long flags, const char *options)
{
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return false;
	r = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	assert_int_equal(r, 0);
	r = mount("tmpfs", in_dir("/root/tmp"), "tmpfs", flags, options);
	assert_int_equal(r, 0);
	close(in.root_dfd); /* of the namespace before */
	in.root_dfd = open(in_dir("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	in.mnt_ns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return true;
}

static void unmount_tmp(void)
{
	close(in.mnt_ns_fd);
	in.mnt_ns_fd = -1;
	(void)umount2(in_dir("/root/tmp"), MNT_DETACH);
}

static void check_mounted(const struct placement *p)
{
	char path[256];
	struct statvfs fs;
	struct stat st;

	assert_int_equal(p->strategy, INJECT_MOUNT);
	snprintf(path, sizeof(path), "%s/root%s/%s", dir, p->dir, p->library);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 7);
	assert_int_equal(statvfs(path, &fs), 0);
	assert_int_equal(fs.f_flag & ST_NOEXEC, 0);
	assert_true(fs.f_flag & ST_RDONLY && fs.f_flag & ST_NOSUID && fs.f_flag & ST_NODEV);
	assert_true(open(path, O_WRONLY) < 0);
	snprintf(path, sizeof(path), "%s/root%s/%s", dir, p->dir, p->events);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void in_a_noexec_tmp_the_library_lies_on_a_mount_of_its_own(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	check_mounted(&p);
	place_remove(&in, &p);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&p);
	unmount_tmp();
}

static void a_mount_can_be_in_a_private_directory(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(symlink("/", in_dir("/root/tmp/kindling")), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_true(p.private_dir[0]);
	check_mounted(&p);
	place_remove(&in, &p);
	assert_false(has_private_dir());
	close_all(&p);
	unmount_tmp();
}

/* ---- names that others made in the same directories ---- */

static struct {
	unsigned left; /* names that come before those of the file system in each directory */
	unsigned now;
	struct dirent entry;
} strangers;
struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

DIR *__wrap_fdopendir(int fd)
{
	strangers.now = strangers.left;
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

/* An attempt that was killed: its lock and FIFOs are closed, its files remain. */
static void place_and_die(struct placement *p)
{
	assert_int_equal(place_whole(&in, library_fd, true, 4096, p), 0);
	close_all(p);
	p->dir_dfd = fd_close(p->dir_dfd);
	p->lock_fd = fd_close(p->lock_fd);
	p->tmp_dfd = fd_close(p->tmp_dfd);
	p->outer_dfd = fd_close(p->outer_dfd);
}

static void names_of_others_do_not_hide_what_a_killed_attempt_left(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	place_and_die(&p);
	/* a cleanup is bounded by time: on a machine without any for us the next one finishes it */
	for (int i = 0; i < 200 && exists("/root/tmp/kindling"); i++) {
		strangers.left = 20000;
		place_cleanup(&in);
	}
	strangers.left = 0;
	assert_false(exists("/root/tmp/kindling"));
	/* in /tmp itself */
	assert_int_equal(symlink("/", in_dir("/root/tmp/kindling")), 0);
	p = (struct placement)PLACEMENT_NULL;
	place_and_die(&p);
	assert_true(has_private_dir());
	for (int i = 0; i < 200 && has_private_dir(); i++) {
		strangers.left = 70000;
		private_dir_cleanup(&in);
	}
	strangers.left = 0;
	assert_false(has_private_dir());
}

static void an_attempt_takes_its_own_names_away_however_many_there_are(void **state)
{
	struct placement p = PLACEMENT_NULL;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	strangers.left = UINT_MAX;
	begin_ns = clock_mono_ns();
	place_remove(&in, &p);
	strangers.left = 0;
	/* the four seconds that main.c allows after a deadline are enough, also on a busy
	 * machine */
	assert_true(clock_mono_ns() - begin_ns < 20 * NS_PER_S);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&p);
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	check_mounted(&p);
	strangers.left = UINT_MAX;
	place_remove(&in, &p);
	strangers.left = 0;
	assert_false(exists("/root/tmp/kindling"));
	close_all(&p);
	unmount_tmp();
}

static void a_cleanup_spares_an_attempt_that_runs(void **state)
{
	struct placement p = PLACEMENT_NULL;
	char fifo[192];

	(void)state;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	snprintf(fifo, sizeof(fifo), "/root%s/%s", p.dir, p.control);
	place_cleanup(&in);
	assert_true(exists(fifo));
	p.events_fd = fd_close(p.events_fd); /* killed */
	place_cleanup(&in);
	assert_false(exists(fifo));
	assert_true(exists(VERSION_DIR)); /* the lock is held: it is not the last one */
	place_remove(&in, &p);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&p);
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
	in.proc_dfd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place_whole(&in, library_fd, true, 4096, &p) < 0);
	assert_non_null(strstr(f.what, "attach.tmpfs_over_tmp is off"));
	f = (struct fault){ 0 };
	in.may_cover = true;
	assert_int_equal(place_plan(&in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_OVER);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), -EPERM);
	assert_non_null(strstr(f.what, "the host's"));
	assert_int_equal(in.cover_fd, -1);
	in.proc_dfd = fd_close(in.proc_dfd);
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
	fd = open(in_dir("/root/tmp/junk"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	close(fd);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	check_mounted(&p);
	place_remove(&in, &p);
	assert_false(exists("/root/tmp/kindling"));
	close_all(&p);
	unmount_tmp();
}

/* place() does what place_plan() announces, and place_plan() itself leaves nothing behind. */
static void a_look_tells_the_strategy_and_leaves_nothing(void **state)
{
	enum inject_strategy strategy = INJECT_NOT_PLACED;
	struct placement p = PLACEMENT_NULL;
	const char *why = "";

	(void)state;
	assert_int_equal(place_plan(&in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_COPY);
	assert_null(why);
	assert_false(exists("/root/tmp/kindling"));
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_int_equal(p.strategy, strategy);
	place_remove(&in, &p);
	close_all(&p);
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	assert_int_equal(place_plan(&in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_MOUNT);
	assert_string_equal(why, "noexec");
	assert_false(exists("/root/tmp/kindling"));
	unmount_tmp();
}

static void a_look_refuses_what_an_attach_would(void **state)
{
	enum inject_strategy strategy;
	const char *why;

	(void)state;
	assert_int_equal(mkdir(in_dir("/root/tmp/kindling"), 0755), 0);
	assert_int_equal(chmod(in_dir("/root/tmp/kindling"), 0777), 0);
	assert_int_equal(place_plan(&in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_COPY);
	assert_int_equal(f.code, 0);
	assert_int_equal(chmod(in_dir("/root/tmp"), 0777), 0);
	assert_int_equal(place_plan(&in, &strategy, &why), -EPERM);
	assert_non_null(strstr(f.what, "other users can change"));
	f = (struct fault){ 0 };
	assert_int_equal(rmdir(in_dir("/root/tmp/kindling")), 0);
	assert_int_equal(symlink("/", in_dir("/root/tmp/kindling")), 0);
	assert_true(place_plan(&in, &strategy, &why) < 0);
	assert_int_equal(f.step, FAULT_PLACEMENT);
}

static void a_mount_of_a_killed_attempt_is_taken_away_and_a_strangers_is_not(void **state)
{
	struct placement p = PLACEMENT_NULL;
	struct inject other = in;
	char theirs[256];

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	other = in;
	other.pid = 43;
	assert_int_equal(place_whole(&other, library_fd, true, 4096, &p), 0);
	close_all(&p);
	close(p.lock_fd);
	snprintf(theirs, sizeof(theirs), "%s/root%s/m-43-theirs", dir, p.dir);
	assert_int_equal(mkdir(theirs, 0755), 0);
	assert_int_equal(mount("tmpfs", theirs, "tmpfs", 0, "uid=1000"), 0);
	place_cleanup(&in); /* another target's */
	check_mounted(&p);
	place_cleanup(&other);
	assert_int_equal(umount(theirs), 0); /* it is still there */
	place_cleanup(&other);
	assert_false(exists("/root/tmp/kindling"));
	close(p.mount_fd);
	unmount_tmp();
}

static void a_noexec_tmp_where_nothing_can_be_mounted_says_so(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	if (!mount_tmp(MS_NOEXEC, NULL))
		skip();
	close(in.mnt_ns_fd);
	in.mnt_ns_fd = -1;
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), -EACCES);
	assert_non_null(strstr(f.what, "noexec, and nothing can be mounted"));
	place_remove(&in, &p);
	assert_false(exists("/root/tmp/kindling"));
	unmount_tmp();
}

static void links_from_tmp_are_followed_inside_the_root_and_none_below_it(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_int_equal(rmdir(in_dir("/root/tmp")), 0);
	assert_int_equal(mkdir(in_dir("/root/var"), 0755), 0);
	assert_int_equal(mkdir(in_dir("/root/var/t"), 01777), 0);
	assert_int_equal(symlink("/var/chain", in_dir("/root/tmp")), 0);
	assert_int_equal(symlink("../../../../var/t", in_dir("/root/var/chain")), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_true(exists("/root/var/t/kindling"));
	place_remove(&in, &p);
	assert_false(exists("/root/var/t/kindling"));
	close_all(&p);
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(symlink("/var", in_dir("/root/var/t/kindling")), 0);
	assert_int_equal(chmod(in_dir("/root/var/t"), 01777), 0);
	assert_int_equal(place_whole(&in, library_fd, true, 4096, &p), 0);
	assert_true(p.private_dir[0]);
	assert_false(exists("/root/var/" KINDLING_VERSION));
	place_remove(&in, &p);
	close_all(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(placed_files_exist_and_are_removed),
		PLACE_TEST(the_switch_for_a_loud_attach_is_in_the_name),
		PLACE_TEST(a_device_in_the_place_of_the_library_is_never_opened),
		PLACE_TEST(a_device_in_the_place_of_a_fifo_is_never_opened),
		PLACE_TEST(a_lock_on_the_directory_keeps_nobody_out),
		PLACE_TEST(a_tmp_that_is_not_sticky_gets_no_private_directory),
		PLACE_TEST(the_last_of_two_attempts_takes_the_library_away),
		PLACE_TEST(other_content_under_the_librarys_name_is_replaced),
		PLACE_TEST(a_link_in_the_way_is_not_followed),
		PLACE_TEST(a_directory_that_others_can_change_is_not_used),
		PLACE_TEST(users_that_share_a_tmp_do_not_stand_in_each_others_way),
		PLACE_TEST(a_stranger_who_comes_first_keeps_nobody_out),
		PLACE_TEST(a_private_directory_has_its_former_name_if_that_is_free),
		PLACE_TEST(only_names_of_private_directories_are_taken_for_one),
		PLACE_TEST(
			a_private_directory_of_a_killed_attempt_is_taken_away_and_a_strangers_is_not),
		PLACE_TEST(files_of_a_killed_attempt_are_removed),
		PLACE_TEST(in_a_noexec_tmp_the_library_lies_on_a_mount_of_its_own),
		PLACE_TEST(a_mount_can_be_in_a_private_directory),
		PLACE_TEST(names_of_others_do_not_hide_what_a_killed_attempt_left),
		PLACE_TEST(an_attempt_takes_its_own_names_away_however_many_there_are),
		PLACE_TEST(a_cleanup_spares_an_attempt_that_runs),
		PLACE_TEST(nothing_is_laid_over_the_hosts_tmp),
		PLACE_TEST(a_full_tmp_is_passed_by),
		PLACE_TEST(a_look_tells_the_strategy_and_leaves_nothing),
		PLACE_TEST(a_look_refuses_what_an_attach_would),
		PLACE_TEST(a_mount_of_a_killed_attempt_is_taken_away_and_a_strangers_is_not),
		PLACE_TEST(a_noexec_tmp_where_nothing_can_be_mounted_says_so),
		PLACE_TEST(links_from_tmp_are_followed_inside_the_root_and_none_below_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

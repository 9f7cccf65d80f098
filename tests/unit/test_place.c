/* Places the library in a made-up root directory, with the caller's own ids and, as root, with
 * others. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "tests/unit/opens.h"
#include "tests/unit/placing.h"

static void placed_files_exist_and_are_removed(void **state)
{
	struct placement p = PLACEMENT_NULL;
	char path[256];
	struct stat st;

	(void)state;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 1 << 20, &p), 0);
	assert_string_equal(p.dir, "/tmp/kindling/" KINDLING_VERSION);
	assert_int_equal(strlen(p.library), strlen("libkindling-0123456789abcdef.so"));
	snprintf(path, sizeof(path), "%s/root%s/%s", placing.dir, p.dir, p.library);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_int_equal(st.st_size, 7);
	snprintf(path, sizeof(path), "%s/root%s/%s", placing.dir, p.dir, p.events);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(fcntl(p.events_fd, F_GETPIPE_SZ) > 65536);
	place_remove(&placing.in, &p);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&p);
}

/* ---- devices ---- */

static bool swap_fifos; /* each file is replaced by a device as soon as it is made */
int __real_mkfifoat(int dfd, const char *name, mode_t mode);
int __wrap_mkfifoat(int dfd, const char *name, mode_t mode);

int __wrap_mkfifoat(int dfd, const char *name, mode_t mode)
{
	int r = __real_mkfifoat(dfd, name, mode);

	if (r == 0 && swap_fifos && unlinkat(dfd, name, 0) == 0)
		assert_true(make_device(dfd, name, placing.in.uid));
	return r;
}

static int make_version_dir(void)
{
	assert_int_equal(mkdir(placing_path("/root/tmp/kindling"), 0755), 0);
	assert_int_equal(mkdir(placing_path(VERSION_DIR), 0755), 0);
	return open(placing_path(VERSION_DIR), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void a_device_in_the_place_of_the_library_is_never_opened(void **state)
{
	struct placement p = PLACEMENT_NULL;
	int dfd, watch;

	(void)state;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 65536, &p), 0);
	place_remove(&placing.in, &p);
	placing_close(&p);
	dfd = make_version_dir();
	if (!make_device(dfd, p.library, placing.in.uid)) {
		close(dfd);
		skip();
	}
	watch = watch_opens(placing_path(VERSION_DIR));
	close(openat(dfd, p.library, O_RDONLY));
	assert_true(was_opened(watch, p.library)); /* it would be seen */
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 65536, &p), 0);
	assert_false(was_opened(watch, p.library));
	close(watch);
	close(dfd);
	place_remove(&placing.in, &p);
	placing_close(&p);
}

static void a_device_in_the_place_of_a_fifo_is_never_opened(void **state)
{
	struct placement p = PLACEMENT_NULL;
	int dfd = make_version_dir(), watch = watch_opens(placing_path(VERSION_DIR));

	(void)state;
	if (!make_device(dfd, "device", placing.in.uid)) {
		close(dfd);
		skip();
	}
	swap_fifos = true;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 65536, &p), -EPROTO);
	swap_fifos = false;
	assert_false(was_opened(watch, "events-"));
	close(watch);
	close(dfd);
	place_remove(&placing.in, &p);
	placing_close(&p);
}

/* ---- a /tmp/kindling that others have taken ---- */

/* Attaches, and checks that everything is in a directory that only the target can enter, and
 * that nothing is left afterwards. */
static void place_in_private(void)
{
	struct placement p = PLACEMENT_NULL;
	char path[256], name[PRIVATE_DIR_BYTES];
	struct stat st;

	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_int_equal(p.strategy, INJECT_COPY);
	assert_true(private_dir_name(p.dir, name));
	snprintf(path, sizeof(path), "/tmp/%s/kindling/" KINDLING_VERSION, name);
	assert_string_equal(p.dir, path);
	snprintf(path, sizeof(path), "/root/tmp/%s", name);
	assert_int_equal(lstat(placing_path(path), &st), 0);
	assert_int_equal(st.st_uid, placing.in.uid);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "/root%s/%s", p.dir, p.library);
	assert_true(placing_exists(path));
	snprintf(path, sizeof(path), "/root%s/%s", p.dir, p.control);
	assert_true(placing_exists(path));
	place_remove(&placing.in, &p);
	assert_false(placing_has_private_dir());
	placing_close(&p);
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
	assert_int_equal(chmod(placing_path("/root/tmp"), 0777), 0);
	assert_int_equal(flock(dfd, LOCK_EX), 0);
	placing.in.deadline_mono_ns = clock_mono_ns() + 3600 * NS_PER_S;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 65536, &p), -EBUSY);
	assert_non_null(
		strstr(placing.fault.what, "another process holds a lock on /tmp/kindling/"));
	assert_true(inject_remaining_ms(&placing.in) > 1800 * 1000); /* nearly at once */
	assert_false(placing_has_private_dir());
	close(dfd);
	place_remove(&placing.in, &p);
	placing_close(&p);
}

static void the_switch_for_a_loud_attach_is_in_the_name(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, false, 4096, &p), 0);
	assert_non_null(strstr(p.library, "-loud.so"));
	assert_int_equal(fcntl(p.events_fd, F_GETPIPE_SZ), 4096);
	place_remove(&placing.in, &p);
	placing_close(&p);
}

static void the_last_of_two_attempts_takes_the_library_away(void **state)
{
	struct placement a = PLACEMENT_NULL, b = PLACEMENT_NULL;
	struct inject other = placing.in;
	char path[256];

	(void)state;
	other.pid = 43;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &a), 0);
	assert_int_equal(placing_whole(&other, placing.library_fd, true, 4096, &b), 0);
	assert_string_equal(a.library, b.library);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", a.library);
	place_remove(&placing.in, &a);
	assert_true(placing_exists(path));
	snprintf(path, sizeof(path), VERSION_DIR "/%s", b.events);
	assert_true(placing_exists(path));
	place_remove(&other, &b);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&a);
	placing_close(&b);
}

static void other_content_under_the_librarys_name_is_replaced(void **state)
{
	struct placement p = PLACEMENT_NULL;
	struct library l = { 0 };
	char name[80], path[256], text[8] = "";
	int fd;

	(void)state;
	assert_int_equal(library_read(placing.library_fd, &l), 0);
	free(l.bytes);
	snprintf(name, sizeof(name), "libkindling-%016llx.so", (unsigned long long)l.hash);
	assert_int_equal(mkdir(placing_path("/root/tmp/kindling"), 0755), 0);
	assert_int_equal(mkdir(placing_path(VERSION_DIR), 0755), 0);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", name);
	fd = open(placing_path(path), O_WRONLY | O_CREAT, 0444);
	assert_int_equal(write(fd, "CONTENT", 7), 7);
	close(fd);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_string_equal(p.library, name);
	fd = open(placing_path(path), O_RDONLY);
	assert_int_equal(read(fd, text, 7), 7);
	close(fd);
	assert_string_equal(text, "content");
	place_remove(&placing.in, &p);
	placing_close(&p);
}

static void a_link_in_the_way_is_not_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir(placing_path("/outside"), 0777), 0);
	assert_int_equal(symlink("../../outside", placing_path("/root/tmp/kindling")), 0);
	place_in_private();
	assert_int_equal(rmdir(placing_path("/outside")), 0); /* nothing in it */
	assert_int_equal(unlink(placing_path("/root/tmp/kindling")), 0);
}

static void a_directory_that_others_can_change_is_not_used(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_int_equal(mkdir(placing_path("/root/tmp/kindling"), 0777), 0);
	assert_int_equal(chmod(placing_path("/root/tmp/kindling"), 0777), 0);
	place_in_private();
	assert_int_equal(chmod(placing_path("/root/tmp"), 0777), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), -EPERM);
	assert_int_equal(placing.fault.step, FAULT_PLACEMENT);
	place_remove(&placing.in, &p);
	assert_int_equal(rmdir(placing_path("/root/tmp/kindling")), 0);
}

static void users_that_share_a_tmp_do_not_stand_in_each_others_way(void **state)
{
	struct placement a = PLACEMENT_NULL, b = PLACEMENT_NULL;
	struct inject other = placing.in;
	char path[256];
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	placing.in.uid = placing.in.gid = 4242;
	other.uid = other.gid = 4243;
	other.pid = 43;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &a), 0);
	assert_int_equal(placing_whole(&other, placing.library_fd, true, 4096, &b), 0);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", b.events);
	assert_int_equal(stat(placing_path(path), &st), 0);
	assert_int_equal(st.st_uid, 4243);
	snprintf(path, sizeof(path), VERSION_DIR "/%s", b.library);
	assert_int_equal(stat(placing_path(path), &st), 0);
	assert_int_equal(st.st_uid, 0);
	place_remove(&placing.in, &a);
	place_remove(&other, &b);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&a);
	placing_close(&b);
}

static void make_as(uid_t uid, const char *name, mode_t mode)
{
	assert_int_equal(mkdir(placing_path(name), mode), 0);
	assert_int_equal(chmod(placing_path(name), mode), 0);
	assert_int_equal(chown(placing_path(name), uid, uid), 0);
}

static void a_stranger_who_comes_first_keeps_nobody_out(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	placing.in.uid = placing.in.gid = 4242;
	make_as(666, "/root/tmp/kindling", 0755);
	place_in_private();
	/* even if it is empty and has the name that we use */
	make_as(666, VERSION_DIR, 0755);
	place_in_private();
	place_cleanup(&placing.in);
	assert_int_equal(rmdir(placing_path(VERSION_DIR)), 0);
	assert_int_equal(rmdir(placing_path("/root/tmp/kindling")), 0);
	/* in a directory of ours */
	make_as(0, "/root/tmp/kindling", 01777);
	make_as(666, VERSION_DIR, 0777);
	place_in_private();
	place_cleanup(&placing.in);
	assert_int_equal(rmdir(placing_path(VERSION_DIR)), 0);
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
		placing.in.maps.private_dir));
	assert_string_equal(placing.in.maps.private_dir, name);
	assert_int_equal(symlink("/", placing_path("/root/tmp/kindling")), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_string_equal(p.dir, "/tmp/.kindling-42-0123456789abcdef/kindling/" KINDLING_VERSION);
	place_remove(&placing.in, &p);
	assert_false(placing_has_private_dir());
	placing_close(&p);
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(symlink("/", placing_path("/root/tmp/.kindling-42-0123456789abcdef")), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_string_not_equal(p.private_dir, name);
	assert_int_equal(strlen(p.private_dir), strlen(name));
	place_remove(&placing.in, &p);
	assert_true(placing_exists("/root/tmp/.kindling-42-0123456789abcdef")); /* not ours */
	placing_close(&p);
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
	assert_int_equal(symlink("/", placing_path("/root/tmp/kindling")), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	snprintf(fifo, sizeof(fifo), "/root%s/%s", p.dir, p.control);
	private_dir_cleanup(&placing.in); /* it runs */
	assert_true(placing_exists(fifo));
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &q), 0);
	assert_true(placing_exists(fifo));
	place_remove(&placing.in, &q);
	placing_close(&q);
	placing_close(
		&p); /* the attempt was killed: its lock and FIFOs are closed, its files remain */
	p.dir_dfd = fd_close(p.dir_dfd);
	p.lock_fd = fd_close(p.lock_fd);
	assert_true(placing_exists(fifo));
	placing.in.pid = 43; /* another target */
	private_dir_cleanup(&placing.in);
	assert_true(placing_exists(fifo));
	placing.in.pid = 42;
	assert_int_equal(mkdir(placing_path("/root/tmp/.kindling-42-0000000000000001"), 0700), 0);
	assert_int_equal(mkdir(placing_path("/root/tmp/.kindling-42-0000000000000002"), 0755), 0);
	private_dir_cleanup(&placing.in);
	assert_false(placing_exists(fifo));
	assert_false(placing_exists("/root/tmp/.kindling-42-0000000000000001"));
	assert_true(placing_exists(
		"/root/tmp/.kindling-42-0000000000000002")); /* made by somebody else */
	assert_int_equal(rmdir(placing_path("/root/tmp/.kindling-42-0000000000000002")), 0);
	assert_false(placing_has_private_dir());
	fd_close(p.tmp_dfd);
	fd_close(p.outer_dfd);
}

static void files_of_a_killed_attempt_are_removed(void **state)
{
	struct placement p = PLACEMENT_NULL, q = PLACEMENT_NULL;
	struct inject other = placing.in;

	(void)state;
	other.pid = 43;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_int_equal(placing_whole(&other, placing.library_fd, true, 4096, &q), 0);
	placing_close(&p);
	p.dir_dfd = fd_close(p.dir_dfd); /* killed: its lock is released, its files remain */
	p.lock_fd = fd_close(p.lock_fd);
	place_cleanup(&placing.in);
	assert_true(placing_exists("/root/tmp/kindling")); /* the other attempt is still at work */
	place_remove(&other, &q);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&q);
	place_cleanup(&placing.in); /* nothing there is fine */
}

/* ---- names that others made in the same directories ---- */

/* An attempt that was killed: its lock and FIFOs are closed, its files remain. */
static void place_and_die(struct placement *p)
{
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, p), 0);
	placing_close(p);
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
	for (int i = 0; i < 200 && placing_exists("/root/tmp/kindling"); i++) {
		placing.other_names = 20000;
		place_cleanup(&placing.in);
	}
	placing.other_names = 0;
	assert_false(placing_exists("/root/tmp/kindling"));
	/* in /tmp itself */
	assert_int_equal(symlink("/", placing_path("/root/tmp/kindling")), 0);
	p = (struct placement)PLACEMENT_NULL;
	place_and_die(&p);
	assert_true(placing_has_private_dir());
	for (int i = 0; i < 200 && placing_has_private_dir(); i++) {
		placing.other_names = 70000;
		private_dir_cleanup(&placing.in);
	}
	placing.other_names = 0;
	assert_false(placing_has_private_dir());
}

static void an_attempt_takes_its_own_names_away_however_many_there_are(void **state)
{
	struct placement p = PLACEMENT_NULL;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	placing.other_names = UINT_MAX;
	begin_ns = clock_mono_ns();
	place_remove(&placing.in, &p);
	placing.other_names = 0;
	/* the four seconds that main.c allows after a deadline are enough, also on a busy
	 * machine */
	assert_true(clock_mono_ns() - begin_ns < 20 * NS_PER_S);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&p);
}

static void a_cleanup_spares_an_attempt_that_runs(void **state)
{
	struct placement p = PLACEMENT_NULL;
	char fifo[192];

	(void)state;
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	snprintf(fifo, sizeof(fifo), "/root%s/%s", p.dir, p.control);
	place_cleanup(&placing.in);
	assert_true(placing_exists(fifo));
	p.events_fd = fd_close(p.events_fd); /* killed */
	place_cleanup(&placing.in);
	assert_false(placing_exists(fifo));
	assert_true(placing_exists(VERSION_DIR)); /* the lock is held: it is not the last one */
	place_remove(&placing.in, &p);
	assert_false(placing_exists("/root/tmp/kindling"));
	placing_close(&p);
}

static void a_look_refuses_what_an_attach_would(void **state)
{
	enum inject_strategy strategy;
	const char *why;

	(void)state;
	assert_int_equal(mkdir(placing_path("/root/tmp/kindling"), 0755), 0);
	assert_int_equal(chmod(placing_path("/root/tmp/kindling"), 0777), 0);
	assert_int_equal(place_plan(&placing.in, &strategy, &why), 0);
	assert_int_equal(strategy, INJECT_COPY);
	assert_int_equal(placing.fault.code, 0);
	assert_int_equal(chmod(placing_path("/root/tmp"), 0777), 0);
	assert_int_equal(place_plan(&placing.in, &strategy, &why), -EPERM);
	assert_non_null(strstr(placing.fault.what, "other users can change"));
	placing.fault = (struct fault){ 0 };
	assert_int_equal(rmdir(placing_path("/root/tmp/kindling")), 0);
	assert_int_equal(symlink("/", placing_path("/root/tmp/kindling")), 0);
	assert_true(place_plan(&placing.in, &strategy, &why) < 0);
	assert_int_equal(placing.fault.step, FAULT_PLACEMENT);
}

static void links_from_tmp_are_followed_inside_the_root_and_none_below_it(void **state)
{
	struct placement p = PLACEMENT_NULL;

	(void)state;
	assert_int_equal(rmdir(placing_path("/root/tmp")), 0);
	assert_int_equal(mkdir(placing_path("/root/var"), 0755), 0);
	assert_int_equal(mkdir(placing_path("/root/var/t"), 01777), 0);
	assert_int_equal(symlink("/var/chain", placing_path("/root/tmp")), 0);
	assert_int_equal(symlink("../../../../var/t", placing_path("/root/var/chain")), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_true(placing_exists("/root/var/t/kindling"));
	place_remove(&placing.in, &p);
	assert_false(placing_exists("/root/var/t/kindling"));
	placing_close(&p);
	p = (struct placement)PLACEMENT_NULL;
	assert_int_equal(symlink("/var", placing_path("/root/var/t/kindling")), 0);
	assert_int_equal(chmod(placing_path("/root/var/t"), 01777), 0);
	assert_int_equal(placing_whole(&placing.in, placing.library_fd, true, 4096, &p), 0);
	assert_true(p.private_dir[0]);
	assert_false(placing_exists("/root/var/" KINDLING_VERSION));
	place_remove(&placing.in, &p);
	placing_close(&p);
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
		PLACE_TEST(names_of_others_do_not_hide_what_a_killed_attempt_left),
		PLACE_TEST(an_attempt_takes_its_own_names_away_however_many_there_are),
		PLACE_TEST(a_cleanup_spares_an_attempt_that_runs),
		PLACE_TEST(a_look_refuses_what_an_attach_would),
		PLACE_TEST(links_from_tmp_are_followed_inside_the_root_and_none_below_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/fake_proc.h"
#include "daemon/discovery/release.h"
#include "daemon/ground/mem.h"

#define ROOT_EXT4 "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"

static int proc_dfd, pid_dfd;
static struct jvm jvm;

static int set_up(void **state)
{
	(void)state;
	proc_dfd = fake_open();
	fake_file("9/mountinfo", ROOT_EXT4);
	fake_file("9/root/jdk/lib/server/libjvm.so", "");
	pid_dfd = openat(proc_dfd, "9", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return pid_dfd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(pid_dfd);
	close(proc_dfd);
	fake_remove("");
	return 0;
}

static const char *read_jdk(const char *libjvm)
{
	release_read(pid_dfd, libjvm, &jvm);
	return jvm.jdk;
}

static void vendor_and_version_are_read_from_the_home(void **state)
{
	(void)state;
	fake_file("9/root/jdk/release",
		  "IMPLEMENTOR=\"Eclipse Adoptium\"\nJAVA_VERSION=\"25.0.3\"\n");
	assert_string_equal(read_jdk("/jdk/lib/server/libjvm.so"), "Eclipse Adoptium 25.0.3");
	/* JDK 8 */
	fake_file("9/root/jdk8/jre/lib/amd64/server/libjvm.so", "");
	fake_file("9/root/jdk8/release", "JAVA_VERSION=\"1.8.0_402\"\r\nOS_NAME=\"Linux\"\r\n");
	assert_string_equal(read_jdk("/jdk8/jre/lib/amd64/server/libjvm.so"), "1.8.0_402");
	assert_string_equal(read_jdk("/elsewhere/libjvm.so"), "");
}

static void a_build_is_the_size_and_date_of_its_library(void **state)
{
	const struct timespec times[2] = { { 1744718400, 0 }, { 1744718400, 5 } };

	(void)state;
	fake_file("9/root/jdk/lib/server/libjvm.so", "ELF");
	assert_int_equal(utimensat(pid_dfd, "root/jdk/lib/server/libjvm.so", times, 0), 0);
	(void)read_jdk("/jdk/lib/server/libjvm.so");
	assert_string_equal(jvm.libjvm_build, "3 bytes of 2025-04-15T12:00:00Z");
	jvm.libjvm_deleted = true; /* a new process may have the pid by now */
	(void)read_jdk("/jdk/lib/server/libjvm.so");
	assert_string_equal(jvm.libjvm_build, "");
	jvm.libjvm_deleted = false;
	fake_link("9/root/link.so", "jdk/lib/server/libjvm.so");
	(void)read_jdk("/link.so");
	assert_string_equal(jvm.libjvm_build, "");
}

static void links_out_of_the_container_are_not_followed(void **state)
{
	(void)state;
	fake_file("secret", "JAVA_VERSION=\"leaked\"\n");
	fake_link("9/root/jdk/release", "../../../secret");
	assert_string_equal(read_jdk("/jdk/lib/server/libjvm.so"), "");
	fake_link("9/root/jdk2", "/");
	assert_string_equal(read_jdk("/jdk2/../../secret/libjvm.so"), "");
}

static void only_regular_files_are_waited_for(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/9/root/jdk/release", fake_root);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_string_equal(read_jdk("/jdk/lib/server/libjvm.so"), "");
}

static void a_file_system_that_may_not_answer_is_left_alone(void **state)
{
	(void)state;
	fake_file("9/root/jdk/release", "JAVA_VERSION=\"17\"\n");
	fake_file("9/mountinfo", ROOT_EXT4 "30 27 0:9 / /jdk rw - fuse.evil evil rw\n");
	assert_string_equal(read_jdk("/jdk/lib/server/libjvm.so"), "");
	fake_file("9/mountinfo", ROOT_EXT4 "30 27 0:9 / /jdkx rw - fuse.evil evil rw\n");
	assert_string_equal(read_jdk("/jdk/lib/server/libjvm.so"), "17");
}

static void mounts_on_the_way_decide_what_is_local(void **state)
{
	static const char table[] =
		ROOT_EXT4 "31 27 0:7 / /opt/a rw,relatime - nfs4 host:/x rw\n"
			  "32 27 0:8 / /opt/a/b rw master:3 propagate_from:2 - tmpfs none rw\n";

	(void)state;
	assert_true(release_is_local(table, "/opt/libjvm.so"));
	assert_true(release_is_local(table, "/opt/ab"));
	assert_false(release_is_local(table, "/opt/a"));
	/* the path leads through NFS, whose server must answer */
	assert_false(release_is_local(table, "/opt/a/b/c"));
	assert_false(release_is_local("", "/opt"));
	assert_false(release_is_local("27 1 254:0 / / rw", "/opt")); /* cut */
	assert_false(release_is_local(table, "/a b"));
}

/* The server of such a file system, a process or another machine, may never answer. */
static void only_file_systems_of_this_host_are_local(void **state)
{
	static const char *const others[] = {
		"nfs",	      "nfs4",		"cifs",	     "smb3",   "9p",	    "ceph",
		"afs",	      "gpfs",		"gfs2",	     "ocfs2",  "glusterfs", "lustre",
		"virtiofs",   "fuse",		"beegfs",    "autofs", "orangefs",  "fuseblk",
		"fuse.sshfs", "fuse.glusterfs", "fuse.ext4",
	};
	char table[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		snprintf(table, sizeof(table), ROOT_EXT4 "31 27 0:7 / /opt rw - %s host:/x rw\n",
			 others[i]);
		assert_false(release_is_local(table, "/opt/jdk/release"));
		assert_true(release_is_local(table, "/usr/jdk/release"));
	}
	/* a local file system that is mounted over it later does not help: the path still leads
	 * through it */
	assert_false(release_is_local(ROOT_EXT4 "31 27 0:7 / /opt rw - nfs4 host:/x rw\n"
						"32 31 0:8 / /opt rw - tmpfs none rw\n",
				      "/opt/jdk/release"));
}

static void a_release_without_a_version_says_nothing(void **state)
{
	char buf[64];

	(void)state;
	assert_false(release_parse("IMPLEMENTOR=\"x\"\n", buf, sizeof(buf)));
	assert_false(release_parse("XJAVA_VERSION=\"1\"\nJAVA_VERSION_DATE=\"2\"\n", buf, 64));
	assert_true(release_parse("JAVA_VERSION=17\nIMPLEMENTOR=\"N/A\"", buf, sizeof(buf)));
	assert_string_equal(buf, "17");
	assert_true(release_parse("JAVA_VERSION=\"1\x1b\"\n", buf, sizeof(buf)));
	assert_string_equal(buf, "1?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(vendor_and_version_are_read_from_the_home, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_build_is_the_size_and_date_of_its_library, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(links_out_of_the_container_are_not_followed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(only_regular_files_are_waited_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_file_system_that_may_not_answer_is_left_alone,
						set_up, tear_down),
		cmocka_unit_test(mounts_on_the_way_decide_what_is_local),
		cmocka_unit_test(only_file_systems_of_this_host_are_local),
		cmocka_unit_test(a_release_without_a_version_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A made-up /proc/PID, root directory and cgroup tree: which checks refuse an attach, and which
 * let it pass. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "injector/inject.h"

static char dir[64];
static struct inject in;
static struct fault f;

static void put(const char *name, const char *text, size_t len)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	fclose(file);
}
#define PUT(name, text) put(name, text, sizeof(text) - 1)

static void make_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int open_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

#define STAT(state) \
	"42 (a) S (b) " state " 1 42 42 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 9 0 987654 1 2"
#define STATUS(caught)                                                                       \
	"Name:\tjava\nUid:\t7\t1000\t1000\t1000\nGid:\t8\t1001\t1001\t1001\nNSpid:\t42\t7\n" \
	"SigCgt:\t" caught "\n"
#define CATCHES "0000000181005ccf"

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/kindling-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	make_dir("proc");
	make_dir("root");
	make_dir("root/tmp");
	make_dir("cgroup");
	make_dir("cgroup/pids");
	make_dir("cgroup/pids/a");
	make_dir("cgroup/pids/a/b");
	make_dir("cgroup/unified");
	make_dir("cgroup/unified/c");
	PUT("proc/stat", STAT("S"));
	PUT("proc/status", STATUS(CATCHES));
	PUT("proc/maps", "7f00-7f01 r-xp 0 08:01 9 /usr/lib/jvm/lib/server/libjvm.so\n");
	PUT("proc/cmdline", "java\0Main\0");
	PUT("proc/environ", "PATH=/bin\0");
	PUT("proc/cgroup", "7:pids:/a/b\n0::/c\n");
	PUT("proc/uid_map", "         0          0 4294967295\n");
	f = (struct fault){ 0 };
	in = (struct inject)INJECT_NULL;
	in.pid = 42;
	in.start_time = 987654;
	in.fault = &f;
	in.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	in.proc_dfd = open_dir("proc");
	in.root_dfd = open_dir("root");
	in.cgroup_dfd = open_dir("cgroup");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(in.pidfd);
	close(in.proc_dfd);
	close(in.root_dfd);
	close(in.cgroup_dfd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void an_ordinary_jvm_may_be_attached_to(void **state)
{
	(void)state;
	assert_int_equal(preflight(&in), 0);
	assert_int_equal(in.ns_pid, 7);
	assert_int_equal(in.uid, 1000); /* the effective ones */
	assert_int_equal(in.gid, 1001);
	assert_int_equal(in.ns_root_uid, 0);
	assert_true(inject_alive(&in));
	PUT("proc/stat", "42 (java) S 1 42 42 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 9 0 987655 1 2");
	assert_false(inject_alive(&in));
}

static void another_process_with_the_same_pid_is_not_touched(void **state)
{
	(void)state;
	in.start_time = 1;
	assert_int_equal(preflight(&in), -ESRCH);
	assert_int_equal(f.step, FAULT_IDENTITY);
}

static void zombies_are_gone_and_stopped_processes_come_later(void **state)
{
	(void)state;
	PUT("proc/stat", STAT("Z"));
	assert_int_equal(preflight(&in), -ESRCH);
	f = (struct fault){ 0 };
	PUT("proc/stat", STAT("T"));
	assert_int_equal(preflight(&in), -EAGAIN);
	assert_int_equal(f.flags, 0);
}

static void a_process_without_a_handler_for_sigquit_gets_no_signal(void **state)
{
	(void)state;
	PUT("proc/status", STATUS("0000000181005ccb"));
	assert_int_equal(preflight(&in), -EAGAIN);
	assert_int_equal(f.flags, FAULT_RETRY_SOON);
	f = (struct fault){ 0 };
	PUT("proc/cmdline", "java\0-Xrs\0Main\0");
	assert_int_equal(preflight(&in), -EPERM);
	assert_int_equal(f.flags, FAULT_PERMANENT);
}

static void bind_socket(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/root/tmp/.java_pid7", dir);
	assert_int_equal(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(s);
}

static void no_signal_is_needed_where_the_socket_is_the_targets_own(void **state)
{
	char text[256];

	(void)state;
	bind_socket();
	PUT("proc/status", STATUS("0000000000000000"));
	if (getuid() != 1000)
		assert_int_equal(preflight(&in), -EAGAIN); /* a stranger's */
	f = (struct fault){ 0 };
	snprintf(text, sizeof(text),
		 "Uid:\t1\t%u\t1\t1\nGid:\t1\t%u\t1\t1\nNSpid:\t42\t7\nSigCgt:\t0\n", getuid(),
		 getgid());
	put("proc/status", text, strlen(text));
	assert_int_equal(preflight(&in), 0);
}

/* doctor reports in advance what the attach would refuse. */
static void a_socket_of_somebody_else_is_told(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s;

	(void)state;
	if (getuid() != 0)
		skip();
	in.only_checks = true;
	PUT("proc/status", "Uid:\t1\t1000\t1\t1\nGid:\t1\t1000\t1\t1\nNSpid:\t42\t7\nSigCgt:\t0\n");
	assert_int_equal(preflight_identity(&in), 0);
	assert_int_equal(attach_check_name(&in), 0); /* there is none */
	bind_socket();
	assert_int_equal(attach_check_name(&in), 0); /* nobody listens any more */
	assert_non_null(strstr(in.found, "an attach removes it"));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/root/tmp/.java_pid7", dir);
	assert_int_equal(unlink(addr.sun_path), 0);
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(s, 1), 0);
	assert_int_equal(attach_check_name(&in), -EADDRINUSE);
	assert_non_null(strstr(f.what, "of uid 0, uses its attach socket's name, .java_pid7"));
	f = (struct fault){ 0 };
	assert_int_equal(chown(addr.sun_path, 1000, 1000), 0);
	assert_int_equal(attach_check_name(&in), 0); /* the JVM's own */
	close(s);
	assert_int_equal(unlink(addr.sun_path), 0);
	PUT("root/tmp/.java_pid7", "");
	assert_int_equal(attach_check_name(&in), -EEXIST);
}

static bool in_tmp(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/root/tmp/%s", dir, name);
	return access(path, F_OK) == 0;
}

/* The pidfd is this test's own process: a SIGQUIT would end the test. */
static void a_jvm_is_asked_for_a_socket_only_where_it_has_none_and_can_be(void **state)
{
	char text[256];

	(void)state;
	snprintf(text, sizeof(text),
		 "Uid:\t1\t%u\t1\t1\nGid:\t1\t%u\t1\t1\nNSpid:\t42\t7\nSigCgt:\t0\n", getuid(),
		 getgid());
	put("proc/status", text, strlen(text));
	in.deadline_mono_ns = UINT64_MAX;
	assert_int_equal(preflight_identity(&in), 0);
	assert_int_equal(attach_begin(&in), -EAGAIN);
	assert_false(in_tmp(".attach_pid7"));
	attach_abandon(&in); /* there is nothing to wait for */
	bind_socket();
	f = (struct fault){ 0 };
	assert_int_equal(attach_begin(&in), 0);
	assert_false(in_tmp(".attach_pid7"));
	attach_abandon(&in);
	assert_int_equal(f.code, 0);
}

static void a_file_in_the_place_of_the_socket_is_no_socket(void **state)
{
	(void)state;
	PUT("proc/status", STATUS("0000000000000000"));
	PUT("root/tmp/.java_pid7", "");
	assert_int_equal(preflight(&in), -EAGAIN);
}

static void other_runtimes_are_told_apart(void **state)
{
	(void)state;
	PUT("proc/maps", "7f00-7f01 r-xp 0 08:01 9 /opt/app/go-server\n");
	assert_int_equal(preflight(&in), -ENOEXEC);
	f = (struct fault){ 0 };
	PUT("proc/maps", "7f00-7f01 r-xp 0 08:01 9 /opt/lib/j9vm/libjvm.so\n"
			 "7f01-7f02 r-xp 0 08:01 9 /opt/lib/default/libj9vm29.so\n");
	assert_int_equal(preflight(&in), -EOPNOTSUPP);
	assert_int_equal(f.flags, FAULT_PERMANENT);
}

static void one_pass_over_the_mappings_tells_all(void **state)
{
	/* longer than one read: a name may lie across two */
	static const char other[] = "7e00-7e01 rw-p 0 08:01 9 /app/a-file-of-its-own\n",
			  last[] = "7f00-7f01 r--p 0 08:01 9 /lib/server/libjvm.so\n"
				   "7f01-7f02 r-xp 1000 08:01 9 /lib/server/libjvm.so\n"
				   "8000-8001 r-xp 0 08:01 9 /tmp/libkindling-1.so (deleted)\n";
	static char text[70000];
	size_t len = 0;

	(void)state;
	for (; len + sizeof(other) + sizeof(last) < sizeof(text); len += sizeof(other) - 1)
		memcpy(text + len, other, sizeof(other) - 1);
	memcpy(text + len, last, sizeof(last) - 1);
	put("proc/maps", text, len + sizeof(last) - 1);
	assert_int_equal(maps_read(in.proc_dfd, &in.maps), 0);
	assert_int_equal(in.maps.runtime, RUNTIME_HOTSPOT);
	assert_int_equal(in.maps.libjvm, 0x7f00);
	assert_int_equal(in.maps.copies, 1);
}

static void a_line_longer_than_any_path_is_left_out(void **state)
{
	static char text[100000];
	static const char last[] = "\n7f00-7f01 r--p 0 08:01 9 /lib/server/libjvm.so\n";

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(text) - sizeof(last) + 1, last, sizeof(last) - 1);
	put("proc/maps", text, sizeof(text));
	assert_int_equal(maps_read(in.proc_dfd, &in.maps), 0);
	assert_int_equal(in.maps.libjvm, 0x7f00);
}

static void the_owners_no_is_respected(void **state)
{
	(void)state;
	PUT("proc/environ", "JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism\0");
	assert_int_equal(preflight(&in), -EPERM);
	assert_int_equal(f.flags, FAULT_PERMANENT);
	f = (struct fault){ 0 };
	PUT("proc/environ", "");
	PUT("proc/cmdline", "java\0-XX:-EnableDynamicAgentLoading\0Main\0");
	assert_int_equal(preflight(&in), 0); /* a diagnostic command is not an agent */
	in.loads = true;
	assert_int_equal(preflight(&in), -EPERM);
}

static void every_group_up_to_the_root_must_have_room_for_threads(void **state)
{
	(void)state;
	PUT("cgroup/pids/a/b/pids.max", "max\n");
	PUT("cgroup/pids/a/b/pids.current", "30\n");
	PUT("cgroup/pids/a/pids.max", "34\n");
	PUT("cgroup/pids/a/pids.current", "30\n");
	assert_int_equal(preflight(&in), 0);
	PUT("cgroup/pids/a/pids.current", "31\n");
	assert_int_equal(preflight(&in), -EAGAIN);
	assert_non_null(strstr(f.what, "too few threads"));
}

static void threads_of_the_user_are_counted_against_its_limit(void **state)
{
	(void)state;
	make_dir("100");
	make_dir("101");
	PUT("100/status", "Uid:\t7\t7\t7\t7\nThreads:\t20\n");
	PUT("101/status", "Uid:\t9\t9\t9\t9\nThreads:\t500\n"); /* another user's */
	PUT("proc/limits",
	    "Max processes             24                   24                   processes\n");
	assert_int_equal(preflight(&in), 0);
	PUT("100/status", "Uid:\t7\t7\t7\t7\nThreads:\t21\n");
	assert_int_equal(preflight(&in), -EAGAIN);
	assert_non_null(strstr(f.what, "RLIMIT_NPROC"));
	f = (struct fault){ 0 };
	/* this limit is not reached on the whole host */
	PUT("loadavg", "0.00 0.01 0.05 1/20 4711\n");
	assert_int_equal(preflight(&in), 0);
	PUT("loadavg", "0.00 0.01 0.05 1/21 4711\n");
	assert_int_equal(preflight(&in), -EAGAIN);
	f = (struct fault){ 0 };
	PUT("proc/limits",
	    "Max processes             unlimited            unlimited            processes\n");
	assert_int_equal(preflight(&in), 0);
}

static void memory_that_only_caches_files_counts_as_room(void **state)
{
	(void)state;
	PUT("cgroup/unified/c/memory.max", "104857600\n");
	PUT("cgroup/unified/c/memory.current", "104000000\n");
	PUT("cgroup/unified/c/memory.stat", "anon 1\ninactive_file 90000000\n");
	assert_int_equal(preflight(&in), 0);
	PUT("cgroup/unified/c/memory.stat", "anon 1\ninactive_file 4096\n");
	assert_int_equal(preflight(&in), -EAGAIN);
	assert_non_null(strstr(f.what, "too little memory"));
	f = (struct fault){ 0 };
	PUT("cgroup/unified/c/memory.max", "max\n");
	assert_int_equal(preflight(&in), 0);
}

static void a_jvm_that_is_to_be_checkpointed_gets_no_agent(void **state)
{
	(void)state;
	PUT("proc/cmdline", "java\0-XX:CRaCCheckpointTo=/image\0Main\0");
	assert_int_equal(preflight(&in), 0);
	in.loads = true;
	assert_int_equal(preflight(&in), -EPERM);
	assert_non_null(strstr(f.what, "CRaC"));
}

static void a_frozen_group_is_not_signalled(void **state)
{
	(void)state;
	PUT("cgroup/unified/c/cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(preflight(&in), 0);
	PUT("cgroup/unified/c/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(preflight(&in), -EAGAIN);
	assert_non_null(strstr(f.what, "frozen"));
}

static void the_root_of_a_user_namespace_is_found(void **state)
{
	(void)state;
	PUT("proc/uid_map", "1000 1000 1\n");
	assert_int_equal(preflight(&in), 0);
	assert_int_equal(in.ns_root_uid, 1000);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_deleted_attach_socket_is_known_by_what_listens(void **state)
{
	(void)state;
	assert_int_equal(jdk_socket_inode("00ff: 00000002 00000000 00010000 0001 01 33489 "
					  "/tmp/.java_pid7.tmp\n",
					  7),
			 33489);
	/* sockets of another JVM, one that does not listen, and one with another name */
	assert_int_equal(jdk_socket_inode("00ff: 00000002 00000000 00010000 0001 01 33489 "
					  "/tmp/.java_pid7.tmp\n",
					  8),
			 0);
	assert_int_equal(jdk_socket_inode("00ff: 00000002 00000000 00000000 0001 03 33489 "
					  "/tmp/.java_pid7.tmp\n",
					  7),
			 0);
	assert_int_equal(jdk_socket_inode("00ff: 00000002 00000000 00010000 0001 01 5 /run/x\n", 7),
			 0);
	assert_int_equal(jdk_socket_inode("Num       RefCount Protocol Flags\n", 7), 0);
}

static void a_copy_of_the_agent_is_counted_once(void **state)
{
	(void)state;
	assert_true(copies_is_one("7f00-7f10 r-xp 00009000 fe:00 42 "
				  "/tmp/kindling/0.1.0/libkindling-0123.so (deleted)\n"));
	assert_false(copies_is_one("7f00-7f10 rw-p 00009000 fe:00 42 "
				   "/tmp/kindling/0.1.0/libkindling-0123.so\n"));
	assert_false(copies_is_one("7f00-7f10 r-xp 00009000 fe:00 42 /usr/lib/libc.so.6\n"));
	assert_false(copies_is_one("libkindling-"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(an_ordinary_jvm_may_be_attached_to),
		TREE_TEST(another_process_with_the_same_pid_is_not_touched),
		TREE_TEST(zombies_are_gone_and_stopped_processes_come_later),
		TREE_TEST(a_process_without_a_handler_for_sigquit_gets_no_signal),
		TREE_TEST(no_signal_is_needed_where_the_socket_is_the_targets_own),
		TREE_TEST(a_socket_of_somebody_else_is_told),
		TREE_TEST(a_jvm_is_asked_for_a_socket_only_where_it_has_none_and_can_be),
		TREE_TEST(a_file_in_the_place_of_the_socket_is_no_socket),
		TREE_TEST(other_runtimes_are_told_apart),
		TREE_TEST(one_pass_over_the_mappings_tells_all),
		TREE_TEST(a_line_longer_than_any_path_is_left_out),
		TREE_TEST(the_owners_no_is_respected),
		TREE_TEST(every_group_up_to_the_root_must_have_room_for_threads),
		TREE_TEST(threads_of_the_user_are_counted_against_its_limit),
		TREE_TEST(memory_that_only_caches_files_counts_as_room),
		TREE_TEST(a_jvm_that_is_to_be_checkpointed_gets_no_agent),
		TREE_TEST(a_frozen_group_is_not_signalled),
		TREE_TEST(the_root_of_a_user_namespace_is_found),
		cmocka_unit_test(a_deleted_attach_socket_is_known_by_what_listens),
		cmocka_unit_test(a_copy_of_the_agent_is_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

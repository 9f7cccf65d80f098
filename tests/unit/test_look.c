/*
 * Children that examine processes, and do not answer. The child is this program again, with made-up
 * behaviour for each pid: 7 does not answer and cannot be killed (it reads a pipe that is held), 8
 * dies, 9 takes long; for all others the result is the pid.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/discovery/look.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "tests/unit/held_pipe.h"

#define SILENT	 7
#define DEADLY	 8
#define LAZY	 9
#define LAZY_NS	 (700 * NS_PER_MS)
#define HOSTILE	 1001 /* tenants */
#define HONEST	 1002
#define VARIABLE "KINDLING_TEST_LOOK"

static int child(const char *fifo)
{
	static struct look_answer a;
	struct look_question q;
	int fds[LOOK_FDS];
	char byte;

	while (look_receive(3, &q, sizeof(q), fds, 0) == (ssize_t)sizeof(q)) {
		if (q.pid == SILENT)
			(void)!read(open(fifo, O_RDONLY), &byte, 1);
		if (q.pid == DEADLY)
			return 1;
		if (q.pid == LAZY)
			usleep(LAZY_NS / 1000);
		a.number = q.number;
		a.result = q.pid;
		(void)look_send(3, &a, sizeof(a), fds, LOOK_FDS, 0);
		for (int i = 0; i < LOOK_FDS; i++)
			fd_close(fds[i]);
	}
	return 0;
}

static struct loop *loop;
static struct look *look;
static struct held_pipe held;
static char fifo[64];
static int reader_fd = -1, writer_fd = -1;

/* What became of a question. */
struct asked {
	struct look_ticket *ticket;
	int result; /* INT32_MAX = no answer yet */
	int fd;
	uint64_t mono_ns; /* when it came */
};

static void on_answer(void *userdata, const struct look_answer *a, int fds[LOOK_FDS])
{
	struct asked *x = userdata;

	x->ticket = NULL;
	x->result = a->result;
	x->fd = TAKE_FD(fds[0]);
	x->mono_ns = clock_mono_ns();
}

static int ask_of(struct asked *x, enum look_kind kind, pid_t pid, uint64_t tenant, int fd)
{
	const struct look_question q = { .kind = kind, .pid = pid };

	*x = (struct asked){ .result = INT32_MAX, .fd = -1 };
	return look_ask(look, &q, tenant, fd, on_answer, x, &x->ticket);
}

static int ask(struct asked *x, pid_t pid, uint64_t tenant)
{
	return ask_of(x, LOOK_CWD, pid, tenant, -1);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(fifo, sizeof(fifo), "/tmp/kindling-test-look-%d", (int)getpid());
	if (mkfifo(fifo, 0600) < 0)
		return -1;
	setenv(VARIABLE, fifo, 1);
	if (loop_new(&loop) < 0)
		return -1;
	return look_new(loop, "/proc/self/exe", &look);
}

static int tear_down(void **state)
{
	(void)state;
	held_pipe_end(&held);
	look = look_free(look);
	loop = loop_free(loop);
	fd_close(reader_fd);
	fd_close(writer_fd);
	return unlink(fifo);
}

#define RUN_UNTIL(condition)                                         \
	do {                                                         \
		uint64_t until_ns = clock_mono_ns() + 60 * NS_PER_S; \
		while (!(condition) && clock_mono_ns() < until_ns)   \
			(void)loop_round(loop, 20 * NS_PER_MS);      \
		assert_true(condition);                              \
	} while (0)

static unsigned stuck(void)
{
	struct look_counts c;

	look_counts(look, &c);
	return c.stuck;
}

static void many_questions_are_all_answered(void **state)
{
	struct asked all[100];

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&all[i], 100 + i, HONEST), 0);
	for (int i = 0; i < 100; i++)
		RUN_UNTIL(all[i].result == 100 + i);
}

static void a_descriptor_goes_there_and_comes_back(void **state)
{
	struct stat ours, theirs;
	struct asked x;
	int fd = memfd_create("test", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(fstat(fd, &ours), 0);
	assert_int_equal(ask_of(&x, LOOK_FACTS, 5, HONEST, fd), 0);
	RUN_UNTIL(x.result == 5);
	assert_int_equal(fstat(x.fd, &theirs), 0);
	assert_int_equal(theirs.st_ino, ours.st_ino);
	close(x.fd);
}

static void a_cancelled_question_gets_no_answer(void **state)
{
	struct asked asked, queued, other, last;

	(void)state;
	assert_int_equal(ask(&asked, LAZY, HOSTILE), 0);
	assert_int_equal(ask(&other, LAZY, HOSTILE), 0);
	assert_int_equal(ask(&queued, 5, HOSTILE), 0);
	look_cancel(asked.ticket);
	look_cancel(queued.ticket);
	assert_int_equal(ask(&last, 6, HOSTILE), 0);
	RUN_UNTIL(last.result == 6 && other.result == LAZY);
	assert_int_equal(asked.result, INT32_MAX);
	assert_int_equal(queued.result, INT32_MAX);
	look_cancel(NULL);
}

static void a_tenant_with_slow_answers_waits_for_itself(void **state)
{
	struct asked slow[6], quick[20];
	uint64_t begin = clock_mono_ns();

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(ask(&slow[i], LAZY, HOSTILE), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ask(&quick[i], 100 + i, HONEST), 0);
	for (int i = 0; i < 20; i++)
		RUN_UNTIL(quick[i].result == 100 + i);
	/* the tenant that asked first: all children that it may have are busy */
	for (int i = 0; i < 6; i++)
		assert_int_equal(slow[i].result, INT32_MAX);
	for (int i = 0; i < 6; i++)
		RUN_UNTIL(slow[i].result == LAZY);
	assert_true(slow[5].mono_ns - begin >= 6 / LOOK_TENANT_LANES * LAZY_NS);
}

static void a_scan_asks_about_some_at_a_time_and_does_not_wait_for_slow_ones(void **state)
{
	struct asked slow[LOOK_TENANT_SCAN], x;
	uint64_t slow_ns = clock_mono_ns() + LOOK_SLOW_NS + 20 * NS_PER_MS;

	(void)state;
	for (int i = 0; i < LOOK_TENANT_SCAN; i++)
		assert_int_equal(ask_of(&slow[i], LOOK_JVM, LAZY, HOSTILE, -1), 0);
	assert_int_equal(ask_of(&x, LOOK_JVM, 5, HOSTILE, -1), -EAGAIN);
	assert_int_equal(ask_of(&x, LOOK_JVM, 5, HONEST, -1), 0);
	RUN_UNTIL(clock_mono_ns() > slow_ns);
	assert_int_equal(ask_of(&x, LOOK_JVM, 5, HOSTILE, -1), -EALREADY);
	RUN_UNTIL(slow[0].result == LAZY);
	assert_int_equal(ask_of(&x, LOOK_JVM, 5, HOSTILE, -1), 0);
	RUN_UNTIL(x.result == 5);
}

static void one_tenants_questions_leave_room_for_anothers(void **state)
{
	struct asked *many = calloc(LOOK_TENANT_QUEUE + LOOK_TENANT_LANES + 1, sizeof(*many)), x;
	int n = 0, r = 0;

	(void)state;
	while (n <= LOOK_TENANT_QUEUE + LOOK_TENANT_LANES && r == 0)
		r = ask(&many[n++], LAZY, HOSTILE);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(ask(&x, 5, HONEST), 0);
	RUN_UNTIL(x.result == 5);
	for (int i = 0; i < n; i++)
		look_cancel(many[i].ticket);
	free(many);
}

static void one_that_dies_is_replaced(void **state)
{
	struct asked x;

	(void)state;
	assert_int_equal(ask(&x, DEADLY, HONEST), 0);
	RUN_UNTIL(x.result == -EIO);
	assert_int_equal(ask(&x, 5, HONEST), 0);
	RUN_UNTIL(x.result == 5);
	RUN_UNTIL(stuck() == 0); /* it was waited for */
}

static void one_that_does_not_answer_is_given_up(void **state)
{
	/* docs/security.md: a tenant may have four children that hang forever */
	enum { STUCK_MAX = 4 };
	struct asked silent[STUCK_MAX + 1], x;
	uint64_t begin = clock_mono_ns();
	struct look_counts c;

	(void)state;
	reader_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer_fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (!held_pipe_begin(&held, writer_fd))
		skip();
	for (int i = 0; i <= STUCK_MAX; i++)
		assert_int_equal(ask(&silent[i], SILENT, HOSTILE), 0);
	assert_int_equal(ask(&x, 5, HONEST), 0);
	RUN_UNTIL(x.result == 5); /* a request of another tenant does not wait */
	assert_int_equal(silent[0].result, INT32_MAX);
	for (int i = 0; i < STUCK_MAX; i++) {
		RUN_UNTIL(silent[i].result == -ETIMEDOUT);
		assert_true(silent[i].mono_ns - begin >= LOOK_ANSWER_NS);
	}
	/* no tenant has more of them, including those that wait */
	RUN_UNTIL(silent[STUCK_MAX].result == -EBUSY);
	assert_int_equal(stuck(), STUCK_MAX);
	assert_int_equal(ask(&x, 5, HOSTILE), -EBUSY);
	look_counts(look, &c);
	assert_int_equal(c.given_up, STUCK_MAX);
	assert_true(c.refused > 0);
	assert_int_equal(ask(&x, 5, HONEST), 0);
	RUN_UNTIL(x.result == 5);
	held_pipe_end(&held);
	RUN_UNTIL(stuck() == 0);
	assert_int_equal(ask(&x, 5, HOSTILE), 0);
	RUN_UNTIL(x.result == 5);
}

/* ---- what is found out ----------------------------------------------------------------------- */

static struct look_answer find(struct look_question q, int fd, int fds[LOOK_FDS])
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct look_answer a = { 0 };

	fds[0] = fds[1] = -1;
	look_find_out(proc_dfd, &q, fd, &a, fds);
	return a;
}

static uint64_t own_start_time(void)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int dfd = proc_open(proc_dfd, getpid());
	struct proc_stat stat;
	char text[1024];

	assert_true(proc_read(dfd, "stat", text, sizeof(text)) > 0);
	assert_true(proc_parse_stat(text, &stat));
	return stat.start_time;
}

static bool is_path_only(int fd)
{
	return fcntl(fd, F_GETFL) & O_PATH;
}

static void a_mapped_file_is_found_by_its_place_and_by_its_path(void **state)
{
	struct look_question q = { .kind = LOOK_MAPPED,
				   .pid = getpid(),
				   .start_time = own_start_time() };
	int fds[LOOK_FDS], fd;
	struct look_answer a;
	struct stat st, root;
	char name[64];
	void *p;

	(void)state;
	snprintf(name, sizeof(name), "/tmp/kindling-test-mapped-%d", (int)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fstat(fd, &st), 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	/* by its path alone */
	snprintf(q.mapped.path, sizeof(q.mapped.path), "%s", name);
	a = find(q, -1, fds);
	assert_int_equal(a.result, 0);
	assert_int_equal(a.file.st_ino, st.st_ino);
	assert_true(is_path_only(fds[0]) && is_path_only(fds[1]));
	assert_int_equal(stat("/", &st), 0);
	assert_int_equal(fstat(fds[1], &root), 0);
	assert_int_equal(root.st_ino, st.st_ino);
	close(fds[0]);
	close(fds[1]);
	/* found by its file offset, when the mapping has no path any more */
	unlink(name);
	assert_int_equal(find(q, -1, fds).result, -ENOENT);
	q.mapped.begin = (uintptr_t)p;
	q.mapped.end = q.mapped.begin + 4096;
	a = find(q, -1, fds);
	if (geteuid() == 0) {
		assert_int_equal(a.result, 0);
		assert_int_equal(a.file.st_nlink, 0);
		close(fds[0]);
		close(fds[1]);
	}
	munmap(p, 4096);
	/* a device is no file */
	q.mapped.end = 0;
	snprintf(q.mapped.path, sizeof(q.mapped.path), "/dev/null");
	assert_int_equal(find(q, -1, fds).result, -EINVAL);
	assert_int_equal(fds[0], -1);
	/* another process with the same pid */
	q.start_time++;
	assert_int_equal(find(q, -1, fds).result, -ESRCH);
}

static void the_last_words_of_a_jvm_are_found_in_its_working_directory(void **state)
{
	struct look_question cwd = { .kind = LOOK_CWD,
				     .pid = getpid(),
				     .start_time = own_start_time() };
	struct look_question q = { .kind = LOOK_HS_ERR };
	char dir[] = "/tmp/kindling-test-XXXXXX", before[4096];
	int fds[LOOK_FDS], none[LOOK_FDS];

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(find(cwd, -1, fds).result, 0);
	assert_true(is_path_only(fds[0]));
	q.hs_err.ns_pid = 4711;
	q.hs_err.uid = getuid();
	q.hs_err.since_s = time(NULL) - 60;
	assert_int_equal(find(q, fds[0], none).result, 0);
	close(open("hs_err_pid4711.log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(find(q, fds[0], none).result, 1);
	q.hs_err.since_s = time(NULL) + 60; /* an old one */
	assert_int_equal(find(q, fds[0], none).result, 0);
	q.hs_err.since_s = 0;
	q.hs_err.uid = getuid() + 1;
	assert_int_equal(find(q, fds[0], none).result, 0);
	close(fds[0]);
	unlink("hs_err_pid4711.log");
	assert_int_equal(chdir(before), 0);
	rmdir(dir);
}

#define LOOK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOK_TEST(many_questions_are_all_answered),
		LOOK_TEST(a_descriptor_goes_there_and_comes_back),
		LOOK_TEST(a_cancelled_question_gets_no_answer),
		LOOK_TEST(a_tenant_with_slow_answers_waits_for_itself),
		LOOK_TEST(a_scan_asks_about_some_at_a_time_and_does_not_wait_for_slow_ones),
		LOOK_TEST(one_tenants_questions_leave_room_for_anothers),
		LOOK_TEST(one_that_dies_is_replaced),
		LOOK_TEST(one_that_does_not_answer_is_given_up),
		cmocka_unit_test(a_mapped_file_is_found_by_its_place_and_by_its_path),
		cmocka_unit_test(the_last_words_of_a_jvm_are_found_in_its_working_directory),
	};

	if (getenv(VARIABLE))
		return child(getenv(VARIABLE));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

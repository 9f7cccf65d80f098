#include "tests/unit/symbols_asked.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

struct room {
	char dir[40];
	uint64_t begin, end, offset;
	char path[1024];
	struct loop *loop;
	struct symbols *s;
};

static void open_room(struct room *r)
{
	strcpy(r->dir, "/tmp/kindling-symbols-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &r->begin, &r->end,
			       &r->offset, r->path));
	assert_int_equal(loop_new(&r->loop), 0);
	start(r->loop, r->dir, &r->s);
}

static void close_room(struct room *r)
{
	char command[64];

	symbols_free(r->s);
	loop_free(r->loop);
	snprintf(command, sizeof(command), "rm -r %s", r->dir);
	assert_int_equal(system(command), 0);
}

/* Runs the loop without answering, until @n requests are made or @ms have passed. */
static void wait_asked(struct room *r, unsigned n, unsigned ms)
{
	uint64_t deadline = clock_mono_ns() + ms * NS_PER_MS;

	while (n_asked < n && clock_mono_ns() < deadline)
		assert_int_equal(loop_round(r->loop, 5 * NS_PER_MS), 0);
}

static void want(struct room *r, const struct symbols_process *p, const char *path)
{
	symbols_want(r->s, p, r->begin, r->end, path, NULL, 0);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* One request at a time for each tenant: a tenant with a thousand unanswered ones delays nobody
 * else's. */
static void a_slow_tenant_delays_only_itself(void **state)
{
	const struct symbols_process hostile = { getpid(), 1, "uid-1" },
				     honest = { getpid(), 2, "uid-2" };
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct symbols_counts counts;
	const char *name = NULL;
	struct room r;
	char path[32];

	(void)state;
	open_room(&r);
	for (int i = 0; i < 500; i++) {
		snprintf(path, sizeof(path), "/lib/%d.so", i);
		want(&r, &hostile, path);
	}
	/* the requests of one frame: the loop runs before the next one */
	assert_int_equal(n_asked, 0);
	wait_asked(&r, 2, 100);
	assert_int_equal(n_asked, 1);
	assert_string_equal(asked[0].tenant, "uid-1");
	want(&r, &honest, r.path);
	while (!name && clock_mono_ns() < deadline) {
		wait_asked(&r, 2, 10);
		if (n_asked == 2)
			answer(r.s, 1);
		name = symbols_lookup(r.s, getpid(), 2, r.path, r.offset);
	}
	assert_non_null(name);
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.opening, 1);
	assert_int_equal(counts.refused, 0);
	close_room(&r);
	assert_int_equal(n_cancelled, 1);
}

/* As many tenants as there are places do not answer: others get their turn when those are given
 * up. */
static void places_that_are_taken_are_free_after_an_answer(void **state)
{
	struct symbols_counts counts;
	char tenant[16];
	struct room r;

	(void)state;
	open_room(&r);
	for (int i = 0; i < OPENINGS_MAX + 1; i++) {
		struct symbols_process p = { getpid(), (uint64_t)i + 1, tenant };

		snprintf(tenant, sizeof(tenant), "uid-%d", i);
		want(&r, &p, "/slow");
		want(&r, &p, "/slower");
	}
	wait_asked(&r, OPENINGS_MAX + 1, 100);
	assert_int_equal(n_asked, OPENINGS_MAX);
	symbols_opened(r.s, asked[0].ticket, -ETIMEDOUT, -1, -1, NULL, 0);
	forget(0);
	wait_asked(&r, OPENINGS_MAX, 60000);
	assert_int_equal(n_asked, OPENINGS_MAX);
	for (unsigned i = 0; i < n_asked; i++) /* the tenant that had not had a turn */
		assert_string_equal(asked[i].path, "/slow");
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.failed, 1);
	close_room(&r);
}

/* A process keeps its tenant even if none of its files could be opened. */
static void a_process_without_files_keeps_its_tenant(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	struct room r;

	(void)state;
	open_room(&r);
	want(&r, &p, "/a");
	wait_asked(&r, 1, 60000);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 0);
	forget(0);
	while (r.s->seconds < 2) /* unused tenants are freed once a second */
		assert_int_equal(loop_round(r.loop, 50 * NS_PER_MS), 0);
	want(&r, &p, "/b");
	wait_asked(&r, 1, 60000);
	assert_int_equal(n_asked, 1);
	assert_string_equal(asked[0].tenant, "uid-1");
	assert_string_equal(asked[0].path, "/b");
	close_room(&r);
}

/* A path that takes long costs its tenant a pause twenty times as long; the time that its
 * request waited in the queue behind others does not count. */
static void after_a_slow_answer_a_tenant_rests(void **state)
{
	const struct symbols_process slow = { getpid(), 1, "uid-1" };
	uint64_t answered;
	struct room r;

	(void)state;
	open_room(&r);
	want(&r, &slow, "/a");
	want(&r, &slow, "/b");
	want(&r, &slow, "/c");
	wait_asked(&r, 1, 60000);
	usleep(200000);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 20 * NS_PER_MS);
	answered = clock_mono_ns();
	forget(0);
	wait_asked(&r, 1, 60000);
	assert_string_equal(asked[0].path, "/b");
	assert_in_range(clock_mono_ns() - answered, 380 * NS_PER_MS, 3000 * NS_PER_MS);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 10000);
	answered = clock_mono_ns();
	forget(0);
	wait_asked(&r, 1, 60000);
	assert_string_equal(asked[0].path, "/c");
	assert_in_range(clock_mono_ns() - answered, 0, 300 * NS_PER_MS);
	close_room(&r);
}

static void an_end_cancels_what_was_asked(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	struct symbols_counts counts;
	struct stat st = { .st_mode = S_IFREG };
	struct room r;
	uint64_t ticket;
	int fds;

	(void)state;
	open_room(&r);
	want(&r, &p, "/a");
	want(&r, &p, "/b");
	wait_asked(&r, 1, 60000);
	ticket = asked[0].ticket;
	symbols_end(r.s, getpid(), 1);
	assert_int_equal(n_cancelled, 1);
	wait_asked(&r, 1, 200);
	assert_int_equal(n_asked, 0);
	fds = open_fds();
	symbols_opened(r.s, ticket, 0, open("/", O_PATH), open("/", O_PATH), &st, 0); /* too late */
	assert_int_equal(open_fds(), fds);
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.opening, 0);
	close_room(&r);
}

static void files_that_were_not_opened_are_wanted_again(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	struct symbols_counts counts;
	struct stat st = { .st_mode = S_IFCHR };
	struct room r;
	int fds;

	(void)state;
	open_room(&r);
	refusal = -EBUSY;
	want(&r, &p, "/a");
	wait_asked(&r, 1, 50);
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.refused, 1);
	refusal = -EAGAIN; /* asked again by itself */
	want(&r, &p, "/a");
	wait_asked(&r, 1, 50);
	assert_int_equal(n_asked, 0);
	refusal = 0;
	wait_asked(&r, 1, 60000);
	assert_int_equal(n_asked, 1);
	want(&r, &p, "/a"); /* once is enough */
	fds = open_fds();
	symbols_opened(r.s, asked[0].ticket, 0, open("/dev/null", O_PATH), -1, &st,
		       0); /* no file */
	assert_int_equal(open_fds(), fds);
	forget(0);
	want(&r, &p, "/a");
	wait_asked(&r, 1, 60000);
	assert_int_equal(n_asked, 1);
	close_room(&r);
}

/* If another file is mapped there when the answer comes, the new mapping is requested. */
static void a_new_mapping_is_asked_for_anew(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	const char *name = NULL;
	struct room r;

	(void)state;
	open_room(&r);
	symbols_want(r.s, &p, r.end, r.end + 4096, r.path, NULL, 0);
	wait_asked(&r, 1, 60000);
	want(&r, &p, r.path);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 0);
	forget(0);
	wait_asked(&r, 1, 60000);
	assert_int_equal(asked[0].begin, r.begin);
	while (!name && clock_mono_ns() < deadline) {
		go_round(r.loop, r.s);
		name = symbols_lookup(r.s, getpid(), 1, r.path, r.offset);
	}
	assert_non_null(name);
	close_room(&r);
}

static void a_tenant_s_cpu_time_is_given_back_slowly(void **state)
{
	struct tenant t = { 0 };

	(void)state;
	tenant_refill(&t, NS_PER_S);
	assert_true(tenant_is_full(&t) && t.cpu_ns > 0);
	t.cpu_ns = -5 * (int64_t)NS_PER_S;
	tenant_refill(&t, 101 * NS_PER_S);
	assert_int_equal(t.cpu_ns, -4 * (int64_t)NS_PER_S);
	tenant_refill(&t, 100000 * NS_PER_S);
	assert_true(tenant_is_full(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_tenant_delays_only_itself),
		cmocka_unit_test(places_that_are_taken_are_free_after_an_answer),
		cmocka_unit_test(a_process_without_files_keeps_its_tenant),
		cmocka_unit_test(after_a_slow_answer_a_tenant_rests),
		cmocka_unit_test(an_end_cancels_what_was_asked),
		cmocka_unit_test(files_that_were_not_opened_are_wanted_again),
		cmocka_unit_test(a_new_mapping_is_asked_for_anew),
		cmocka_unit_test(a_tenant_s_cpu_time_is_given_back_slowly),
	};

	symbols_program = KINDLING_SYMBOLS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The file in which a daemon leaves, for the next one, up to when each JVM was sampled. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/host/gaps.h"

static char dir[] = "/tmp/test_gaps-XXXXXX", path[64];
static uint64_t start_time;

static uint64_t own_start_time(void)
{
	char text[1024] = "", *p;
	FILE *f = fopen("/proc/self/stat", "re");
	unsigned long long n = 0;

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	p = strrchr(text, ')');
	for (int i = 0; i < 20; i++)
		p = strchr(p + 1, ' ');
	assert_int_equal(sscanf(p, "%llu", &n), 1);
	return n;
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sampled", dir);
	start_time = own_start_time();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(dir);
}

static struct gaps_last last_of(pid_t pid, uint64_t start, uint64_t cpu_ns, uint64_t ago_ns)
{
	return (struct gaps_last){ .pid = pid,
				   .start_time = start,
				   .cpu_ns = cpu_ns,
				   .mono_ns = clock_mono_ns() - ago_ns };
}

static void write_some(const struct gaps_last *list, unsigned n)
{
	struct gaps *g = NULL;

	assert_int_equal(gaps_open(dir, &g), 0);
	gaps_begin(g);
	for (unsigned i = 0; i < n; i++)
		gaps_add(g, &list[i]);
	assert_int_equal(gaps_write(g), 0);
	gaps_free(g);
}

static void clear(void)
{
	assert_int_equal(truncate(path, 0), 0);
}

static void a_process_that_lives_is_told_of_once(void **state)
{
	struct gaps_last list[2] = { last_of(getpid(), start_time, 77, NS_PER_S),
				     last_of(getpid(), start_time + 1, 88, NS_PER_S) };
	struct gaps *g = NULL;
	struct gaps_last ret;

	(void)state;
	write_some(list, 2);
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_false(gaps_take(g, getpid(), start_time + 1, &ret)); /* that one has ended */
	assert_true(gaps_take(g, getpid(), start_time, &ret));
	assert_int_equal(ret.cpu_ns, 77);
	assert_int_equal(ret.mono_ns, list[0].mono_ns);
	assert_false(gaps_take(g, getpid(), start_time, &ret));
	gaps_free(g);
	clear();
}

/* If a daemon ends before it writes down a gap that it has counted, the next one counts it. */
static void an_owed_gap_is_kept_with_its_process(void **state)
{
	struct gaps_last last = last_of(getpid(), start_time, 77, NS_PER_S), ret;
	struct gaps *g = NULL;
	FILE *f;

	(void)state;
	last.owed_ns = 3 * NS_PER_S;
	last.owed_cpu_ns = 2 * NS_PER_S;
	write_some(&last, 1);
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_true(gaps_take(g, getpid(), start_time, &ret));
	assert_int_equal(ret.owed_ns, 3 * NS_PER_S);
	assert_int_equal(ret.owed_cpu_ns, 2 * NS_PER_S);
	gaps_free(g);
	f = fopen(path, "re+"); /* as an older version writes it */
	assert_non_null(f);
	assert_int_equal(fseek(f, -(long)strlen(" 3000000000 2000000000\n"), SEEK_END), 0);
	assert_int_equal(fputs("\n", f) >= 0 && fflush(f) == 0, 1);
	assert_int_equal(ftruncate(fileno(f), ftell(f)), 0);
	fclose(f);
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_true(gaps_take(g, getpid(), start_time, &ret));
	assert_int_equal(ret.cpu_ns, 77);
	assert_int_equal(ret.owed_cpu_ns, 0);
	gaps_free(g);
	clear();
}

static void a_process_not_sampled_yet_stays_in_the_file(void **state)
{
	struct gaps_last last = last_of(getpid(), start_time, 77, NS_PER_S), ret;
	struct gaps *g = NULL;

	(void)state;
	write_some(&last, 1);
	write_some(NULL, 0); /* a daemon that met nobody */
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_true(gaps_take(g, getpid(), start_time, &ret));
	assert_int_equal(ret.cpu_ns, 77);
	gaps_begin(g);
	assert_int_equal(gaps_write(g), 0); /* shorter than it was */
	gaps_free(g);
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_false(gaps_take(g, getpid(), start_time, &ret));
	gaps_free(g);
}

static void a_daemon_that_was_switched_off_for_long_is_no_gap(void **state)
{
	struct gaps_last last = last_of(getpid(), start_time, 77, GAPS_MAX_NS + NS_PER_S), ret;
	struct gaps *g = NULL;

	(void)state;
	write_some(&last, 1);
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_false(gaps_take(g, getpid(), start_time, &ret));
	gaps_free(g);
	clear();
}

/* A write that was cut short leaves lines of the earlier write behind its own: the first line of
 * a JVM counts. */
static void invalid_lines_are_skipped(void **state)
{
	struct gaps_last last = last_of(getpid(), start_time, 77, NS_PER_S), ret;
	char line[200] = "", boot[40];
	struct gaps *g = NULL;
	unsigned long long mono;
	FILE *f;

	(void)state;
	write_some(&last, 1);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%39s %*d %*u %*u %llu", boot, &mono), 2);
	fclose(f);
	snprintf(line, sizeof(line),
		 "%s %d %llu 66 %llu\n-4 5 6\nother-boot %d %llu 55 %llu\n%s %d %llu 44", boot,
		 getpid(), (unsigned long long)start_time, mono, getpid(),
		 (unsigned long long)start_time, mono, boot, getpid(),
		 (unsigned long long)start_time);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(line, f) > 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(gaps_open(dir, &g), 0);
	assert_true(gaps_take(g, getpid(), start_time, &ret));
	assert_int_equal(ret.cpu_ns, 66);
	gaps_free(g);
	clear();
}

static void without_a_directory_nothing_is_kept(void **state)
{
	struct gaps_last ret;
	struct gaps *g = NULL;

	(void)state;
	assert_false(gaps_take(NULL, 1, 1, &ret));
	assert_int_equal(gaps_open("/nonexistent", &g), 0);
	gaps_begin(g);
	assert_int_equal(gaps_write(g), -ENOENT);
	gaps_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_lives_is_told_of_once),
		cmocka_unit_test(an_owed_gap_is_kept_with_its_process),
		cmocka_unit_test(a_process_not_sampled_yet_stays_in_the_file),
		cmocka_unit_test(a_daemon_that_was_switched_off_for_long_is_no_gap),
		cmocka_unit_test(invalid_lines_are_skipped),
		cmocka_unit_test(without_a_directory_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

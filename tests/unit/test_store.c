#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "daemon/core/clock.h"
#include "daemon/store/store.h"

static char dir[64];
static uint64_t t0;

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/kindling-store-XXXXXX");
	t0 = clock_real_ns() / (3600 * NS_PER_S) * (3600 * NS_PER_S);
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct profile *window(uint64_t begin, uint64_t weight)
{
	struct profile_process q = { .pid = 1 };
	struct profile_thread t = { .tid = 2 };
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	t.process = profile_process(p, &q);
	profile_add(p, profile_thread(p, &t), 0, 1, weight);
	p->begin_real_ns = begin;
	p->end_real_ns = begin + 10 * NS_PER_S;
	return p;
}

static int append(struct store *s, uint64_t begin, uint64_t weight)
{
	struct profile *p = window(begin, weight);
	int r = store_append(s, p);

	profile_free(p);
	return r;
}

static uint64_t stored(struct store *s, uint64_t from, uint64_t to)
{
	struct profile *p;
	uint64_t weight;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(store_query(s, from, to, NULL, p), 0);
	weight = p->n_rows ? p->rows[0].weight_ns : 0;
	profile_free(p);
	return weight;
}

static struct store *opened(void)
{
	struct store *s;

	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, 1 << 30, &s), 0);
	return s;
}

static void windows_survive_a_restart_and_are_found_by_time(void **state)
{
	struct store *s = opened();

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(append(s, t0 + i * 10 * NS_PER_S, 1), 0);
	store_free(s);
	s = opened();
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 10);
	assert_int_equal(stored(s, t0 + 20 * NS_PER_S, t0 + 40 * NS_PER_S), 2);
	assert_int_equal(stored(s, t0 + 200 * NS_PER_S, t0 + 300 * NS_PER_S), 0);
	store_free(s);
}

static int open_segment(int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%llu.seg", dir, (unsigned long long)(t0 / (3600 * NS_PER_S)));
	return open(path, flags);
}

static void a_torn_tail_is_cut_and_the_rest_is_kept(void **state)
{
	struct store *s = opened();
	struct store_counts c;
	struct stat st;
	int fd;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(append(s, t0 + i * 10 * NS_PER_S, 1), 0);
	store_free(s);
	fd = open_segment(O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size - 5), 0);
	close(fd);
	s = opened();
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 2);
	assert_int_equal(append(s, t0 + 50 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 3);
	store_counts(s, &c);
	assert_int_equal(c.torn, 1);
	store_free(s);
}

static void a_flipped_bit_is_found(void **state)
{
	struct store *s = opened();
	uint8_t byte;
	int fd;

	(void)state;
	assert_int_equal(append(s, t0, 1), 0);
	store_free(s);
	fd = open_segment(O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, 60), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, 60), 1);
	close(fd);
	s = opened();
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 0);
	store_free(s);
}

static void a_full_disk_drops_windows_and_counts_them(void **state)
{
	struct rlimit old, small;
	struct store_counts c;
	struct store *s = opened();

	(void)state;
	assert_int_equal(append(s, t0, 1), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	small = (struct rlimit){ 100, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (uint64_t i = 1; i < 5; i++)
		(void)append(s, t0 + i * 10 * NS_PER_S, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	store_counts(s, &c);
	assert_true(c.dropped_windows >= 3);
	assert_int_equal(c.dropped_windows + c.windows, 5);
	assert_int_equal(append(s, t0 + 60 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), c.windows + 1);
	store_free(s);
}

static void old_segments_are_unlinked(void **state)
{
	struct store *s;

	(void)state;
	assert_int_equal(store_new(dir, 2 * 3600 * NS_PER_S, 1 << 30, &s), 0);
	assert_int_equal(append(s, t0 - 5 * 3600 * NS_PER_S, 1), 0);
	assert_int_equal(append(s, t0 - 1 * 3600 * NS_PER_S, 1), 0);
	assert_int_equal(append(s, t0, 1), 0);
	assert_int_equal(append(s, t0 + 3600 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, 0, UINT64_MAX), 3);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(windows_survive_a_restart_and_are_found_by_time, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_torn_tail_is_cut_and_the_rest_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flipped_bit_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_drops_windows_and_counts_them, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(old_segments_are_unlinked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/store/store.h"

static char dir[64];
static uint64_t t0; /* a window's begin */

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/kindling-store-XXXXXX");
	t0 = clock_real_ns() / (600 * NS_PER_S) * (600 * NS_PER_S);
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct store *opened(void)
{
	struct store *s;

	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, 1 << 30, &s), 0);
	return s;
}

/* Two JVMs, each a tenant of its own; @weight in second @second for one of them. */
static struct profile *slice(uint64_t second, uint64_t weight)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = t0 + second * NS_PER_S;
	p->end_real_ns = p->begin_real_ns + NS_PER_S;
	for (uint32_t pid = 1; pid <= 2; pid++) {
		struct profile_process q = { .pid = pid, .start_time = 3, .tenant = 100 + pid };
		struct profile_thread t = { .process = profile_process(p, &q), .tid = 9 };

		profile_add(p, profile_thread(p, &t), 0, 1, pid == 1 ? weight : 1);
	}
	return p;
}

static void journal(struct store *s, uint64_t second, uint64_t weight)
{
	struct profile *p = slice(second, weight);
	uint8_t *bytes;
	size_t len;

	assert_int_equal(store_journal_bytes(p, &bytes, &len), 0);
	assert_int_equal(store_journal(s, p->begin_real_ns, bytes, len), 0);
	free(bytes);
	profile_free(p);
}

static void append(struct store *s, uint64_t second, uint64_t weight)
{
	struct profile *p = slice(second, weight);

	assert_int_equal(store_append(s, p), 0);
	profile_free(p);
}

static uint64_t weight_of(struct store *s, uint32_t pid)
{
	const struct profile_filter f = { .pids = &pid, .n_pids = 1 };
	struct profile *p;
	uint64_t weight = 0;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(store_query(s, 0, UINT64_MAX, &f, p), 0);
	for (uint32_t i = 0; i < p->n_rows; i++)
		weight += p->rows[i].weight;
	for (uint32_t i = 0; i < p->n_processes; i++)
		assert_int_equal(p->processes[i].tenant, 100 + pid);
	profile_free(p);
	return weight;
}

static uint64_t recovered(struct store *s)
{
	struct store_counts c;

	store_counts(s, &c);
	return c.recovered_windows;
}

static unsigned journals(void)
{
	char command[128];
	unsigned n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "ls %s | grep -c 'jnl$'", dir);
	f = popen(command, "r");
	assert_int_equal(fscanf(f, "%u", &n), 1);
	pclose(f);
	return n;
}

static void the_seconds_of_an_open_window_are_there_after_a_death(void **state)
{
	struct store *s = opened();

	(void)state;
	journal(s, 0, 10);
	journal(s, 1, 20);
	journal(s, 1, 25); /* the window changed: its last version counts */
	journal(s, 2, 40);
	assert_int_equal(weight_of(s, 1), 0);
	store_free(s);
	s = opened();
	assert_int_equal(recovered(s), 1);
	assert_int_equal(weight_of(s, 1), 75);
	assert_int_equal(weight_of(s, 2), 3);
	assert_int_equal(journals(), 0);
	store_free(s);
	s = opened();
	assert_int_equal(recovered(s), 0);
	assert_int_equal(weight_of(s, 1), 75);
	store_free(s);
}

static void a_window_that_was_closed_has_no_journal(void **state)
{
	struct store *s = opened();

	(void)state;
	journal(s, 0, 10);
	journal(s, 10, 3); /* of the next window */
	append(s, 0, 11);
	assert_int_equal(journals(), 1);
	store_free(s);
	s = opened();
	assert_int_equal(recovered(s), 1);
	assert_int_equal(weight_of(s, 1), 14);
	store_free(s);
}

/* Killed between the two steps: the window is in the store, and its journal still exists. */
static void a_window_is_not_taken_twice(void **state)
{
	struct store *s = opened();
	char command[256];

	(void)state;
	journal(s, 0, 10);
	snprintf(command, sizeof(command), "cd %s && f=$(ls *.jnl) && cp $f kept && echo $f >name",
		 dir);
	assert_int_equal(system(command), 0);
	append(s, 0, 11);
	store_free(s);
	snprintf(command, sizeof(command), "cd %s && mv kept $(cat name)", dir);
	assert_int_equal(system(command), 0);
	s = opened();
	assert_int_equal(recovered(s), 0);
	assert_int_equal(journals(), 0);
	assert_int_equal(weight_of(s, 1), 11);
	store_free(s);
}

static void two_deaths_in_one_window_lose_neither_half(void **state)
{
	struct store *s = opened();

	(void)state;
	journal(s, 0, 10);
	journal(s, 1, 20);
	store_free(s);
	s = opened();
	journal(s, 4, 300);
	store_free(s);
	s = opened();
	assert_int_equal(recovered(s), 1);
	journal(s, 6, 4000);
	append(s, 6, 4000);
	store_free(s);
	s = opened();
	assert_int_equal(recovered(s), 0);
	assert_int_equal(weight_of(s, 1), 4330);
	store_free(s);
}

static int open_only_journal(int flags, off_t *ret_size)
{
	char command[128], name[64], path[160];
	struct stat st;
	FILE *f;
	int fd;

	snprintf(command, sizeof(command), "ls %s | grep 'jnl$'", dir);
	f = popen(command, "r");
	assert_int_equal(fscanf(f, "%63s", name), 1);
	pclose(f);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags);
	assert_int_equal(fstat(fd, &st), 0);
	*ret_size = st.st_size;
	return fd;
}

static void a_journal_torn_anywhere_gives_what_was_whole(void **state)
{
	(void)state;
	for (off_t cut = 0;; cut += 13) {
		struct store *s = opened();
		uint64_t weight;
		off_t size;
		int fd;

		journal(s, 0, 10);
		journal(s, 1, 200);
		journal(s, 1, 300);
		store_free(s);
		fd = open_only_journal(O_RDWR, &size);
		if (cut >= size) {
			close(fd);
			break;
		}
		assert_int_equal(ftruncate(fd, size - cut), 0);
		close(fd);
		s = opened();
		weight = weight_of(s, 1);
		assert_true(weight == 310 || (cut && (weight == 210 || weight == 10)) ||
			    (cut && weight == 0));
		assert_true(cut || weight == 310);
		store_free(s);
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(set_up(NULL), 0);
	}
}

static void damage_costs_a_second_and_no_other(void **state)
{
	off_t size = 1;

	(void)state;
	for (off_t at = 0; at < size; at += 17) {
		struct store *s = opened();
		uint64_t weight;
		uint8_t byte;
		int fd;

		journal(s, 0, 10);
		journal(s, 1, 200);
		journal(s, 2, 3000);
		store_free(s);
		fd = open_only_journal(O_RDWR, &size);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		s = opened();
		weight = weight_of(s, 1);
		assert_true(weight == 3200 || weight == 3010 || weight == 210);
		store_free(s);
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(set_up(NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_seconds_of_an_open_window_are_there_after_a_death, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_window_that_was_closed_has_no_journal, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_window_is_not_taken_twice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_deaths_in_one_window_lose_neither_half, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_journal_torn_anywhere_gives_what_was_whole,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_costs_a_second_and_no_other, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

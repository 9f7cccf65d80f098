#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/store/store_priv.h"

#define WINDOW_NS (10 * NS_PER_S)
#define PROCESSES 3u
#define WINDOWS	  8u

static char dir[64];
static uint64_t t0; /* the beginning of an hour, some hours ago */

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/kindling-store-XXXXXX");
	t0 = (clock_real_ns() / HOUR_NS - 3) * HOUR_NS;
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

	assert_int_equal(store_new(dir, 24 * HOUR_NS, 1 << 30, &s), 0);
	return s;
}

/* Window @i, of several processes. */
static void append(struct store *s, uint32_t i)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = t0 + i * WINDOW_NS;
	p->end_real_ns = p->begin_real_ns + WINDOW_NS;
	for (uint32_t k = 0; k < PROCESSES; k++) {
		struct profile_process q = { .pid = 100 + k, .start_time = 7, .tenant = 11 + k };
		struct profile_thread t = { .tid = 1 };

		t.process = profile_process(p, &q);
		t.name = profile_string(p, "main");
		profile_add(p, profile_thread(p, &t), 0, 1, 1000 * k + i);
	}
	assert_int_equal(store_append(s, p), 0);
	profile_free(p);
}

static int segment(int flags)
{
	char name[STORE_NAME_SIZE], path[128];
	int fd;

	store_file_name(STORE_SEGMENT, t0 / HOUR_NS * PARTS_MAX, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags);
	assert_true(fd >= 0);
	return fd;
}

static off_t segment_bytes(void)
{
	int fd = segment(O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);

	close(fd);
	return size;
}

/* The position of contents @number, or of the @number-th window behind it if @window. */
static off_t place_of(int fd, uint32_t number, bool window)
{
	struct header h;
	uint32_t n = 0;

	for (off_t at = 0; record_next(fd, &at, &h); at = record_end(&h, at))
		if (contents_is(&h) != window && n++ == number)
			return at;
	fail();
	return 0;
}

static void spoil(int fd, off_t at)
{
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

/* Every window whose header is there is found, and nothing else; as it is and for one process. */
static void check(void)
{
	int fd = segment(O_RDONLY);
	struct index x = INDEX_NULL;
	struct header h;
	uint32_t n = 0;

	assert_int_equal(index_scan(fd, NULL, &x), 0);
	for (off_t at = 0; record_next(fd, &at, &h); at = record_end(&h, at)) {
		const struct index_process *q = index_find(&x, h.pid, h.start_time);
		bool found = false;

		if (contents_is(&h)) {
			assert_null(q);
			continue;
		}
		assert_non_null(q);
		assert_int_equal(q->tenant, h.tenant);
		for (uint32_t i = q->first; i < q->first + q->n; i++)
			found |= x.entries[i].at == (uint64_t)at &&
				 x.entries[i].begin_real_ns == h.begin_real_ns &&
				 x.entries[i].end_real_ns == h.end_real_ns;
		assert_true(found);
		n++;
	}
	assert_int_equal(n, x.n_entries);
	for (uint32_t i = 0; i < x.n_processes; i++) {
		const struct profile_filter f = { .pids = &x.processes[i].pid, .n_pids = 1 };
		struct index one = INDEX_NULL;

		assert_int_equal(index_scan(fd, &f, &one), 0);
		assert_int_equal(one.n_processes, 1);
		assert_int_equal(one.n_entries, x.processes[i].n);
		assert_int_equal(one.processes[0].samples, x.processes[i].samples);
		assert_int_equal(one.processes[0].bytes, x.processes[i].bytes);
		index_deinit(&one);
	}
	index_deinit(&x);
	close(fd);
}

static void fill(uint32_t n)
{
	struct store *s = opened();

	for (uint32_t i = 0; i < n; i++)
		append(s, i);
	store_free(s);
}

static void a_scan_reads_contents_and_not_each_header(void **state)
{
	struct index x = INDEX_NULL;
	int fd;

	(void)state;
	fill(WINDOWS);
	check();
	/* a header that contents make needless; that of the last window behind them is read */
	fd = segment(O_RDWR);
	spoil(fd, place_of(fd, 1, true));
	assert_int_equal(index_scan(fd, NULL, &x), 0);
	assert_int_equal(x.n_entries, WINDOWS * PROCESSES);
	index_deinit(&x);
	close(fd);
}

static void a_window_of_one_process_has_no_contents(void **state)
{
	struct profile *p;
	uint8_t *record;
	struct header h;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(record_make_all(p, 0, &record, &len), 0);
	memcpy(&h, record, sizeof(h));
	assert_false(contents_is(&h));
	assert_int_equal(len, sizeof(h) + h.zstd_len);
	free(record);
	profile_free(p);
}

static void damaged_contents_change_nothing(void **state)
{
	int fd;

	(void)state;
	fill(WINDOWS);
	for (uint32_t i = 0; i < WINDOWS; i += 2) {
		fd = segment(O_RDWR);
		spoil(fd, place_of(fd, i, false) + (off_t)sizeof(struct header) + i);
		close(fd);
		check();
	}
	fd = segment(O_RDWR);
	spoil(fd, place_of(fd, 1, false) + 20); /* its header */
	close(fd);
	check();
}

/* A write is torn anywhere, and the next window takes the place of what was cut off. */
static void contents_of_a_torn_append_are_not_believed(void **state)
{
	off_t before, whole;

	(void)state;
	fill(2);
	before = segment_bytes();
	fill(1);
	whole = segment_bytes();
	for (off_t size = before + 1; size <= whole; size += size < whole - 9 ? 7 : 1) {
		struct store *s;
		int fd = segment(O_RDWR);

		assert_int_equal(ftruncate(fd, before), 0);
		close(fd);
		fill(1);
		fd = segment(O_RDWR);
		assert_int_equal(ftruncate(fd, size), 0);
		close(fd);
		s = opened();
		append(s, 5);
		append(s, 6);
		store_free(s);
		check();
	}
}

static void a_segment_that_lost_windows_has_no_contents(void **state)
{
	struct store *s;
	struct header h;
	int fd;

	(void)state;
	fill(WINDOWS);
	s = opened();
	shares_give_up(s, (uint64_t)segment_bytes() / 2);
	store_free(s);
	fd = segment(O_RDONLY);
	for (off_t at = 0; record_next(fd, &at, &h); at = record_end(&h, at))
		assert_false(contents_is(&h));
	close(fd);
	check();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_scan_reads_contents_and_not_each_header, set_up,
						tear_down),
		cmocka_unit_test(a_window_of_one_process_has_no_contents),
		cmocka_unit_test_setup_teardown(damaged_contents_change_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(contents_of_a_torn_append_are_not_believed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_segment_that_lost_windows_has_no_contents, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

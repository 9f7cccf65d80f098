#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "daemon/ground/clock.h"
#include "daemon/store/index_file.h"
#include "daemon/store/store_priv.h"

#define WINDOW_NS (10 * NS_PER_S)
#define HOURS	  3u
#define WINDOWS	  (HOURS * 360)
#define PROCESSES 3u

static char dir[64];
static uint64_t t0; /* the beginning of an hour, some hours ago */

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/kindling-store-XXXXXX");
	t0 = (clock_real_ns() / HOUR_NS - HOURS - 1) * HOUR_NS;
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* The content of window @i for process @k: every query has a different answer. */
static uint64_t weight_of(uint32_t k, uint32_t i)
{
	return (k + 1) * 1000003ull + i * 17ull;
}

static bool is_there(uint32_t k, uint32_t i)
{
	return k != 2 || i / 90 % 2 == 0; /* a process that comes and goes */
}

static void fill_window(struct profile *p, uint32_t i, uint64_t begin)
{
	char pod[32];

	p->begin_real_ns = begin;
	p->end_real_ns = begin + WINDOW_NS;
	for (uint32_t k = 0; k < PROCESSES; k++) {
		struct profile_process q = { .pid = 100 + k, .start_time = 7, .tenant = 11 + k };
		struct profile_thread t = { .tid = 1 };

		if (!is_there(k, i))
			continue;
		snprintf(pod, sizeof(pod), "shop/cart-%u", k);
		q.name = profile_string(p, "Cart");
		q.pod = profile_string(p, pod);
		q.labels = profile_string(p, "service=cart\n");
		t.process = profile_process(p, &q);
		t.name = profile_string(p, "main");
		profile_add(p, profile_thread(p, &t), 0, 1, weight_of(k, i));
		profile_add_cpu(p, t.process, 5);
	}
}

static void append(struct store *s, uint32_t i)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	fill_window(p, i, t0 + i * WINDOW_NS);
	assert_int_equal(store_append(s, p), 0);
	profile_free(p);
}

static struct store *opened(void)
{
	struct store *s;

	assert_int_equal(store_new(dir, 24 * HOUR_NS, 1 << 30, &s), 0);
	return s;
}

static struct store *filled(void)
{
	struct store *s = opened();

	for (uint32_t i = 0; i < WINDOWS; i++)
		append(s, i);
	return s;
}

/* Queries for all processes or one: accounts, rows, CPU time. */
static void ask(struct store *s, const uint32_t *k, uint32_t from, uint32_t to)
{
	const uint32_t pid = k ? 100 + *k : 0;
	const uint64_t start_time = 7;
	const struct profile_filter f = { .pids = &pid,
					  .start_times = &start_time,
					  .n_pids = k ? 1 : 0 };
	uint64_t weight = 0, samples = 0, got = 0;
	struct profile *p;

	for (uint32_t i = from; i < to; i++)
		for (uint32_t j = 0; j < PROCESSES; j++)
			if ((!k || *k == j) && is_there(j, i)) {
				weight += weight_of(j, i);
				samples++;
			}
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(store_query(s, t0 + from * WINDOW_NS, t0 + to * WINDOW_NS, &f, p), 0);
	for (uint32_t i = 0; i < p->n_rows; i++)
		got += p->rows[i].weight;
	assert_int_equal(got, weight);
	assert_int_equal(profile_samples(p), samples);
	assert_int_equal(profile_cpu_ns(p), 5 * samples);
	profile_free(p);
}

static void ask_everything(struct store *s)
{
	static const uint32_t spans[][2] = {
		{ 0, WINDOWS }, { 0, 1 },     { 0, 360 },   { 360, 720 }, { 359, 361 },
		{ 1, WINDOWS }, { 60, 120 },  { 59, 121 },  { 61, 119 },  { 200, 900 },
		{ 90, 180 },	{ 300, 725 }, { 719, 720 }, { 1, 1079 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		ask(s, NULL, spans[i][0], spans[i][1]);
		for (uint32_t k = 0; k < PROCESSES; k++)
			ask(s, &k, spans[i][0], spans[i][1]);
	}
}

static unsigned count_files(const char *suffix)
{
	char command[128];
	unsigned n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "ls %s | grep -c '%s$'", dir, suffix);
	f = popen(command, "r");
	assert_int_equal(fscanf(f, "%u", &n), 1);
	pclose(f);
	return n;
}

static void remove_files(const char *suffix)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -f %s/*%s", dir, suffix);
	assert_int_equal(system(command), 0);
}

static void answers_are_the_same_with_sums_with_indexes_and_by_scans(void **state)
{
	struct store *s = filled();

	(void)state;
	ask_everything(s);
	assert_int_equal(count_files(".idx"), 0);
	store_upkeep(s);
	/* the last window is still being written */
	assert_int_equal(count_files(".idx"), HOURS * SLOTS - 1);
	assert_int_equal(count_files(".sum"), HOURS - 1);
	ask_everything(s);
	store_free(s);
	s = opened();
	store_upkeep(s);
	assert_int_equal(count_files(".idx"), HOURS * SLOTS);
	assert_int_equal(count_files(".sum"), HOURS);
	ask_everything(s);
	store_free(s);
}

/* Where there are sums, windows are not read: only the length of these remains. */
static void hours_and_ten_minutes_are_read_from_sums(void **state)
{
	const uint32_t k = 0;
	struct store *s = filled();
	char command[200];

	(void)state;
	store_free(s);
	s = opened();
	store_upkeep(s);
	snprintf(
		command, sizeof(command),
		"for f in %s/*.seg; do tail -c +9 $f | tr '\\000-\\377' X >$f.x;"
		" dd if=$f.x of=$f seek=8 bs=64k oflag=seek_bytes conv=notrunc 2>/dev/null || exit 1; rm $f.x; done",
		dir);
	assert_int_equal(system(command), 0);
	ask(s, NULL, 0, WINDOWS);
	ask(s, &k, 0, 360);
	remove_files(".sum");
	ask(s, NULL, 0, WINDOWS);
	ask(s, &k, 60, 180);
	store_free(s);
}

static void a_late_window_counts_and_its_segment_is_indexed_anew(void **state)
{
	const uint32_t k = 1;
	struct store *s = filled();
	struct profile *p;
	uint64_t got = 0;

	(void)state;
	store_upkeep(s);
	append(s, 3); /* the same again, into a segment that was closed */
	ask(s, &k, 4, WINDOWS);
	for (int round = 0; round < 2; round++) {
		const uint32_t pid = 101;
		const struct profile_filter f = { .pids = &pid, .n_pids = 1 };

		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(store_query(s, t0, t0 + 4 * WINDOW_NS, &f, p), 0);
		got = profile_samples(p);
		assert_int_equal(got, 5);
		profile_free(p);
		append(s, WINDOWS + (uint32_t)round);
		store_upkeep(s);
	}
	assert_int_equal(count_files(".sum"), HOURS);
	store_free(s);
}

static off_t size_of(const char *name)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void flip(const char *name, off_t at)
{
	char path[160];
	uint8_t byte;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void cut(const char *name, off_t size)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(truncate(path, size), 0);
}

static void no_damage_to_an_index_changes_an_answer(void **state)
{
	struct store *s = filled();
	char index[STORE_NAME_SIZE], sums[STORE_NAME_SIZE];
	uint64_t segment = t0 / HOUR_NS * PARTS_MAX + SLOT_PARTS; /* windows 60 to 119 */

	(void)state;
	store_upkeep(s);
	store_file_name(STORE_INDEX, segment, index);
	store_file_name(STORE_SUMS, segment, sums);
	for (off_t at = 0; at < size_of(index); at += 11) {
		flip(index, at);
		for (uint32_t k = 0; k < PROCESSES; k++) {
			ask(s, &k, 60, 120);
			ask(s, &k, 70, 110);
		}
		flip(index, at);
	}
	for (off_t at = 0; at < size_of(sums); at += 7) {
		const uint32_t k = (uint32_t)(at % PROCESSES);

		flip(sums, at);
		ask(s, &k, 0, 360);
		flip(sums, at);
	}
	for (off_t size = size_of(index) - 1; size > 0; size -= size / 9 + 1) {
		cut(index, size);
		ask(s, NULL, 60, 120);
	}
	cut(index, 0);
	cut(sums, 100);
	ask_everything(s);
	/* and the index is made anew */
	store_free(s);
	s = opened();
	store_upkeep(s);
	assert_true(size_of(index) > 500);
	assert_true(size_of(sums) > 500);
	ask_everything(s);
	store_free(s);
}

static void copy_file(const char *from, const char *to)
{
	char command[300];

	snprintf(command, sizeof(command), "cp %s/%s %s/%s", dir, from, dir, to);
	assert_int_equal(system(command), 0);
}

/* As if both segments had the same length, which happens. */
static void make_cover(const char *name, uint64_t bytes)
{
	struct index_header h;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	h.covered = bytes;
	h.crc = 0;
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	close(fd);
}

static void the_index_of_another_segment_or_of_a_longer_one_is_not_believed(void **state)
{
	uint64_t segment = t0 / HOUR_NS * PARTS_MAX;
	struct store *s = filled();
	char index[STORE_NAME_SIZE], other[STORE_NAME_SIZE], name[STORE_NAME_SIZE];
	const uint32_t k = 0;

	(void)state;
	store_upkeep(s);
	store_file_name(STORE_INDEX, segment, index);
	store_file_name(STORE_INDEX, segment + 3 * SLOT_PARTS, other);
	copy_file(other, index);
	make_cover(index, store_file_bytes(s, STORE_SEGMENT, segment));
	ask(s, &k, 0, 61);
	ask(s, &k, 30, 55);
	store_upkeep(s);
	/* the segment has lost its end since: its last windows contain all processes */
	store_file_name(STORE_SEGMENT, segment + SLOT_PARTS, name);
	cut(name, size_of(name) - 1);
	ask(s, &k, 60, 119);
	ask(s, &k, 65, 115);
	store_free(s);
}

static int collect(void *userdata, const struct profile *window)
{
	uint64_t *last = userdata;

	assert_int_equal(window->n_processes, 1);
	assert_true(window->begin_real_ns > last[0]);
	last[0] = window->begin_real_ns;
	last[1]++;
	last[2] += window->rows[0].weight;
	return 0;
}

/* Another process reads the files that this one is writing. */
static void a_reader_gets_windows_one_by_one_and_each_once(void **state)
{
	struct store *s = opened(), *reader;
	uint64_t cursor = t0, last[3] = { 0 }, weight = 0;

	(void)state;
	assert_int_equal(store_open(dir, &reader), 0);
	for (uint32_t i = 0; i < WINDOWS; i++) {
		append(s, i);
		weight += i + 1 < WINDOWS ? weight_of(0, i) : 0;
		if (i % 61 && i + 1 < WINDOWS)
			continue;
		if (i % 3 == 0)
			store_upkeep(s);
		/* the newest segment is left for later */
		assert_int_equal(store_each_window(reader, 100, 7, cursor, t0 + i * WINDOW_NS,
						   collect, last),
				 0);
		cursor = t0 + i * WINDOW_NS;
	}
	assert_int_equal(last[1], WINDOWS - 1);
	assert_int_equal(last[2], weight);
	store_free(reader);
	store_free(s);
}

/* Queries a reader that has made queries before, and a new one. */
static void ask_both(struct store *old)
{
	struct store_process *a, *b;
	struct store *new;
	uint32_t n, n_new;

	assert_int_equal(store_open(dir, &new), 0);
	assert_int_equal(store_processes_unnamed(old, 0, UINT64_MAX, &a, &n), 0);
	assert_int_equal(store_processes_unnamed(new, 0, UINT64_MAX, &b, &n_new), 0);
	assert_int_equal(n, n_new);
	assert_memory_equal(a, b, n * sizeof(*a));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t last[2][3] = { { 0 } };

		assert_int_equal(
			store_each_window(old, a[i].pid, 7, 0, UINT64_MAX, collect, last[0]), 0);
		assert_int_equal(
			store_each_window(new, a[i].pid, 7, 0, UINT64_MAX, collect, last[1]), 0);
		assert_memory_equal(last[0], last[1], sizeof(last[0]));
		assert_int_equal(last[0][1], a[i].windows);
	}
	store_processes_free(a, n);
	store_processes_free(b, n);
	store_free(new);
}

/* Cuts bytes off the segment's end, as a failed write does. */
static void cut_segment(off_t bytes)
{
	char name[STORE_NAME_SIZE], path[128];
	struct stat st;

	store_file_name(STORE_SEGMENT, t0 / HOUR_NS * PARTS_MAX, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - bytes), 0);
}

static void a_reader_that_keeps_an_index_finds_what_a_new_one_finds(void **state)
{
	static const uint32_t windows[] = {
		3, 4, 1, 5, 50, 2, 51, 6, 7, 0, 8
	}; /* of one segment */
	struct store *s = opened(), *reader;

	(void)state;
	assert_int_equal(store_open(dir, &reader), 0);
	ask_both(reader);
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		append(s, windows[i]);
		ask_both(reader);
		if (i % 4 != 2)
			continue;
		store_free(s);
		cut_segment(i == 2 ? 1 : 200);
		ask_both(reader);
		s = opened();
		append(s, 20 + (uint32_t)i); /* about as long as the part that was cut off */
		ask_both(reader);
	}
	store_free(reader);
	store_free(s);
}

static void the_processes_are_listed_with_what_there_is_of_them(void **state)
{
	struct store_process *list;
	struct store *s = filled();
	uint32_t n;

	(void)state;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(store_processes(s, 0, UINT64_MAX, &list, &n), 0);
		assert_int_equal(n, PROCESSES);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(list[i].pid, 100 + i);
			assert_string_equal(list[i].name, "Cart");
			assert_string_equal(list[i].jdk, "");
			assert_string_equal(list[i].labels, "service=cart\n");
			assert_true(list[i].bytes > 1000);
		}
		assert_string_equal(list[1].pod, "shop/cart-1");
		assert_int_equal(list[0].windows, WINDOWS);
		assert_int_equal(list[2].samples, WINDOWS / 2);
		assert_int_equal(list[0].begin_real_ns, t0);
		assert_int_equal(list[0].end_real_ns, t0 + WINDOWS * WINDOW_NS);
		store_processes_free(list, n);
		store_upkeep(s);
	}
	/* there are two in the second quarter of an hour */
	assert_int_equal(store_processes(s, t0 + 1200 * NS_PER_S, t0 + 1500 * NS_PER_S, &list, &n),
			 0);
	assert_int_equal(n, 2);
	store_processes_free(list, n);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			answers_are_the_same_with_sums_with_indexes_and_by_scans, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(hours_and_ten_minutes_are_read_from_sums, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_late_window_counts_and_its_segment_is_indexed_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_damage_to_an_index_changes_an_answer, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			the_index_of_another_segment_or_of_a_longer_one_is_not_believed, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_reader_gets_windows_one_by_one_and_each_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_reader_that_keeps_an_index_finds_what_a_new_one_finds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_processes_are_listed_with_what_there_is_of_them,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>
#include "daemon/ground/clock.h"
#include "daemon/profile/profile_priv.h"
#include "daemon/store/store_priv.h"

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
	weight = p->n_rows ? p->rows[0].weight : 0;
	profile_free(p);
	return weight;
}

static struct store *opened(void)
{
	struct store *s;

	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, 1 << 30, &s), 0);
	return s;
}

static void a_window_that_had_to_wait_too_long_is_in_the_note_until_one_is_written(void **state)
{
	struct store *s = opened();
	char note[STORE_NOTE_MAX];
	struct store_counts c;

	(void)state;
	store_missed(s);
	store_counts(s, &c);
	store_note(&c, note);
	assert_non_null(strstr(note, "(the disk is too slow for it)"));
	assert_int_equal(append(s, t0, 1), 0);
	store_counts(s, &c);
	store_note(&c, note);
	assert_string_equal(note, "");
	store_free(s);
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

	snprintf(path, sizeof(path), "%s/%llu.seg", dir,
		 (unsigned long long)(t0 / (3600 * NS_PER_S)));
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

/* A user who wants the space removes the files, or the directory, below the running daemon. */
static void a_history_that_was_removed_begins_again(void **state)
{
	struct store *s = opened();
	char command[128], note[STORE_NOTE_MAX];
	struct store_counts c;

	(void)state;
	assert_int_equal(append(s, t0, 1), 0);
	snprintf(command, sizeof(command), "rm %s/*", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(append(s, t0 + 10 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 1);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	assert_true(store_is_gone(s));
	assert_int_equal(append(s, t0 + 20 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 1);
	store_free(s);
	s = opened();
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 1);

	/* a directory that cannot be made again */
	snprintf(command, sizeof(command), "rm -r %s && touch %s", dir, dir);
	assert_int_equal(system(command), 0);
	assert_true(append(s, t0 + 30 * NS_PER_S, 1) < 0);
	store_counts(s, &c);
	assert_int_equal(c.dropped_windows, 1);
	store_note(&c, note);
	assert_non_null(strstr(note, "the history stopped"));
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

static void flip(off_t at)
{
	uint8_t byte;
	int fd = open_segment(O_RDWR);

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static off_t segment_size(void)
{
	struct stat st;
	int fd = open_segment(O_RDONLY);

	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_size;
}

static void damage_in_the_middle_costs_one_window_and_no_other(void **state)
{
	static const off_t places[] = { 3, 20, 30, 47, 55 }; /* magic, times, lengths, CRC, data */
	off_t first;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct store *s = opened();
		struct store_counts c;

		assert_int_equal(append(s, t0, 1), 0);
		first = segment_size();
		assert_int_equal(append(s, t0 + 10 * NS_PER_S, 10), 0);
		assert_int_equal(append(s, t0 + 20 * NS_PER_S, 100), 0);
		store_free(s);
		flip(first + places[i]);
		s = opened();
		assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 101);
		/* opened for writing: good records behind the damage are not cut off */
		assert_int_equal(append(s, t0 + 30 * NS_PER_S, 1000), 0);
		assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 1101);
		store_counts(s, &c);
		assert_int_equal(c.torn, 0);
		store_free(s);
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(set_up(NULL), 0);
	}
}

static void a_tail_torn_anywhere_is_cut(void **state)
{
	off_t first, whole;

	(void)state;
	for (off_t cut = 1;; cut += 7) {
		struct store *s = opened();
		struct store_counts c;
		int fd;

		assert_int_equal(append(s, t0, 1), 0);
		first = segment_size();
		assert_int_equal(append(s, t0 + 10 * NS_PER_S, 10), 0);
		whole = segment_size();
		store_free(s);
		if (first + cut >= whole)
			break;
		fd = open_segment(O_RDWR);
		assert_int_equal(ftruncate(fd, first + cut), 0);
		close(fd);
		s = opened();
		assert_int_equal(append(s, t0 + 10 * NS_PER_S, 100), 0);
		assert_int_equal(segment_size(), whole);
		assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 101);
		store_counts(s, &c);
		assert_int_equal(c.torn, 1);
		store_free(s);
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(set_up(NULL), 0);
	}
}

static void a_segment_of_another_version_is_left_alone(void **state)
{
	static const char theirs[] = "KNDGseg9 of a later day";
	char back[sizeof(theirs)];
	struct store *s = opened();
	int fd;

	(void)state;
	assert_int_equal(append(s, t0, 1), 0);
	store_free(s);
	s = opened();
	fd = open_segment(O_RDWR | O_TRUNC);
	assert_int_equal(write(fd, theirs, sizeof(theirs)), sizeof(theirs));
	close(fd);
	assert_int_equal(append(s, t0, 1), 0);
	assert_int_equal(append(s, t0 + 10 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 2);
	store_free(s);
	s = opened();
	assert_int_equal(append(s, t0 + 20 * NS_PER_S, 1), 0);
	assert_int_equal(stored(s, t0, t0 + 100 * NS_PER_S), 3);
	store_free(s);
	fd = open_segment(O_RDONLY);
	assert_int_equal(read(fd, back, sizeof(back)), sizeof(theirs));
	assert_memory_equal(back, theirs, sizeof(theirs));
	close(fd);
}

/* A window that does not compress: about 16 bytes for each row. */
static int append_large(struct store *s, uint64_t begin, int rows)
{
	struct profile *p = window(begin, 1);
	uint64_t x = begin;
	int r;

	for (int i = 0; i < rows; i++) {
		struct profile_thread t = { .tid = (uint32_t)i };

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		profile_add(p, profile_thread(p, &t), 0, 1, x >> 8);
	}
	r = store_append(s, p);
	profile_free(p);
	return r;
}

static void the_size_stays_below_its_bound_within_one_hour(void **state)
{
	const uint64_t max = 1 << 20;
	struct store_counts c;
	struct store *s;

	(void)state;
	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, max, &s), 0);
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(append_large(s, t0 + i * 10 * NS_PER_S, 1000), 0);
		store_counts(s, &c);
		assert_true(c.bytes <= max);
	}
	assert_in_range(c.segments, 4, 12);
	assert_true(c.bytes > max / 2);
	store_free(s);
	/* and the order is known again after a restart */
	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, max, &s), 0);
	{
		struct store_counts again;

		store_counts(s, &again);
		assert_int_equal(again.bytes, c.bytes);
		assert_int_equal(again.segments, c.segments);
	}
	store_free(s);
}

/* A window with two tenants: one with a weight of 1, the other with @threads threads. */
static int append_of_two(struct store *s, uint64_t begin, uint32_t threads)
{
	const struct profile_process small = { .pid = 1, .tenant = 33 },
				     large = { .pid = 2, .tenant = 22 };
	struct profile *p = window(begin, 0);
	struct profile_thread t = { .process = profile_process(p, &small), .tid = 2 };
	static uint32_t x = 1;
	int r;

	profile_add(p, profile_thread(p, &t), 0, 1, 1);
	t.process = profile_process(p, &large);
	for (uint32_t i = 0; i < threads; i++) {
		x = x * 1664525 + 1013904223; /* random, so that zstd cannot compress it */
		t.tid = x;
		profile_add(p, profile_thread(p, &t), 0, 1, x >> 8);
	}
	r = store_append(s, p);
	profile_free(p);
	return r;
}

static uint64_t windows_of(struct store *s, uint32_t pid)
{
	const struct profile_filter f = { .pids = &pid, .n_pids = 1 };
	struct profile *p;
	uint64_t samples;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(store_query(s, 0, UINT64_MAX, &f, p), 0);
	samples = profile_samples(p);
	profile_free(p);
	return samples;
}

static int note_begin(void *userdata, const struct profile *window)
{
	struct {
		uint64_t first_ns, n;
	} *kept = userdata;

	if (kept->n++ == 0)
		kept->first_ns = window->begin_real_ns;
	return 0;
}

/* Those of process @pid that are left are the last ones: none is missing up to @last_ns. */
static void assert_the_newest_are_left(struct store *s, uint32_t pid, uint64_t last_ns)
{
	struct {
		uint64_t first_ns, n;
	} kept = { 0 };

	assert_int_equal(store_each_window(s, pid, 0, 0, UINT64_MAX, note_begin, &kept), 0);
	assert_int_equal(kept.first_ns + (kept.n - 1) * 10 * NS_PER_S, last_ns);
}

/* Of 150 windows with 5 MB of one tenant there is room for 1 MiB. */
static void a_tenant_that_fills_its_windows_shortens_its_own_history(void **state)
{
	const uint64_t max = 1 << 20;
	struct store_counts c, again;
	struct store *s;
	uint64_t large;

	(void)state;
	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, max, &s), 0);
	for (uint64_t i = 0; i < 150; i++) {
		assert_int_equal(append_of_two(s, t0 + i * 10 * NS_PER_S, 4000), 0);
		store_counts(s, &c);
		assert_true(c.bytes <= max);
		/* the large tenant may use what the small one leaves of its half */
		assert_true(i < 75 || c.bytes > max * 3 / 4);
		if (i % 10 == 9)
			assert_the_newest_are_left(s, 2, t0 + i * 10 * NS_PER_S);
	}
	assert_int_equal(windows_of(s, 1), 2 * 150);
	large = windows_of(s, 2);
	assert_in_range(large, 4000 * 10, 4000 * 60);
	assert_true(c.bytes > max / 2);
	store_free(s);
	/* and the shares are known again after a restart */
	assert_int_equal(store_new(dir, 24 * 3600 * NS_PER_S, max, &s), 0);
	store_counts(s, &again);
	assert_int_equal(again.bytes, c.bytes);
	assert_int_equal(append_of_two(s, t0 + 1505 * NS_PER_S, 1), 0);
	assert_int_equal(windows_of(s, 1), 2 * 151);
	assert_int_equal(windows_of(s, 2), large + 1);
	store_counts(s, &c);
	assert_int_equal(c.torn, 0);
	store_free(s);
}

/* Appends @n records without windows to segment @hour, each like the one of which @like is a
 * copy. */
static void add_headers(uint64_t hour, struct header like, uint64_t tenant, unsigned n)
{
	struct header *all = calloc(n, sizeof(*all));
	char path[96];
	FILE *f;

	like.tenant = like.pid = (uint32_t)tenant;
	like.begin_real_ns = like.end_real_ns = hour * HOUR_NS;
	like.zstd_len = like.data_crc = like.header_crc = 0;
	like.header_crc = (uint32_t)crc32(0, (const Bytef *)&like, sizeof(like));
	for (unsigned i = 0; i < n; i++)
		all[i] = like;
	snprintf(path, sizeof(path), "%s/%llu.seg", dir, (unsigned long long)hour);
	f = fopen(path, "ae");
	assert_non_null(f);
	assert_int_equal(fwrite(all, sizeof(*all), n, f), n);
	fclose(f);
	free(all);
}

/* As 200 processes leave them in a day: tenant 22 has 115 MB, of which 45 MB may stay. */
static void a_tenant_with_millions_of_windows_shortens_its_own_history(void **state)
{
	const uint64_t hours = 16, first = clock_real_ns() / HOUR_NS - hours, max = 45 << 20;
	const struct header h = { .begin_real_ns = 1, .end_real_ns = 1 };
	struct index_process q[2] = { 0 };
	struct store_counts c;
	struct header like;
	uint8_t *record;
	struct store *s;
	size_t len;

	(void)state;
	assert_int_equal(record_pack(&h, (const uint8_t *)"", 0, &record, &len), 0);
	memcpy(&like, record, sizeof(like));
	free(record);
	for (uint64_t i = 0; i < hours; i++) {
		add_headers(first + i, like, 22, 100000);
		add_headers(first + i, like, 11, 10);
	}
	assert_int_equal(store_new(dir, 100 * HOUR_NS, max, &s), 0);
	store_counts(s, &c);
	assert_in_range(c.bytes, max - max / 8 - 200, max - max / 8);
	for (uint64_t i = 0; i < hours; i++) {
		int fd = store_open_segment(s, (first + i) * PARTS_MAX, O_RDONLY);
		struct index x = INDEX_NULL;

		assert_true(fd >= 0);
		assert_int_equal(index_scan(fd, NULL, &x), 0);
		for (uint32_t k = 0; k < x.n_processes; k++) {
			q[x.processes[k].tenant == 22].n += x.processes[k].n;
			if (x.processes[k].tenant == 22) /* the newest ones */
				assert_true(i >= hours - 6);
		}
		index_deinit(&x);
		close(fd);
	}
	assert_int_equal(q[0].n, hours * 10);
	assert_int_equal(q[1].n, c.bytes / sizeof(like) - hours * 10);
	store_free(s);
}

/* A window of a single tenant with @threads threads. */
static void append_threads(struct store *s, uint64_t begin, uint64_t tenant, uint32_t threads)
{
	const struct profile_process q = { .pid = (uint32_t)tenant, .tenant = tenant };
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = begin;
	p->end_real_ns = begin + 10 * NS_PER_S;
	for (uint32_t i = 0; i < threads; i++) {
		struct profile_thread t = { .process = profile_process(p, &q), .tid = i };

		profile_add(p, profile_thread(p, &t), 0, 1, 1);
	}
	assert_int_equal(store_append(s, p), 0);
	profile_free(p);
}

/* A query reads the windows of tenants with large ones first, and still has room for tenants
 * that came later. */
static void a_query_has_room_for_all_tenants(void **state)
{
	struct store *s = opened();
	struct profile *p;

	(void)state;
	append_threads(s, t0, 22, 12000);
	append_threads(s, t0 + 10 * NS_PER_S, 11, 500);
	assert_int_equal(profile_new(&p), 0);
	profile_limit(p, 1 << 20, 0);
	assert_int_equal(store_query(s, 0, UINT64_MAX, NULL, p), 0);
	assert_true(p->overflow > 0);
	for (uint32_t i = 0; i < p->n_rows; i++)
		if (p->processes[p->threads[p->rows[i].thread].process].tenant == 11)
			assert_false(profile_is_full(p, p->rows[i].thread, p->rows[i].node));
	profile_free(p);
	store_free(s);
}

static void a_disk_that_is_really_full_drops_windows_until_there_is_room(void **state)
{
	char filler[128];
	struct store_counts c;
	struct store *s;
	int failed = 0, good = 0, r = 0;
	uint64_t begin_ns = clock_real_ns();
	char note[STORE_NOTE_MAX];

	(void)state;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=256k") < 0) {
		skip();
		return;
	}
	s = opened();
	assert_int_equal(append_large(s, t0, 1000), 0);
	snprintf(filler, sizeof(filler), "dd if=/dev/zero of=%s/filler bs=4k count=50 2>/dev/null",
		 dir);
	assert_int_equal(system(filler), 0);
	for (uint64_t i = 1; i < 20; i++) {
		r = append_large(s, t0 + i * 10 * NS_PER_S, 1000);
		good += r == 0;
		failed += r == -ENOSPC;
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(good + failed, 19);
	store_counts(s, &c);
	assert_int_equal(c.dropped_windows, failed);
	assert_int_equal(c.windows, good + 1);
	assert_in_range(c.failing_since_ns, begin_ns, clock_real_ns());
	store_note(&c, note);
	assert_non_null(strstr(note, "(No space left on device)"));
	assert_non_null(strstr(note, "the history continues when there is room on the disk"));
	snprintf(filler, sizeof(filler), "%s/filler", dir);
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(append(s, t0 + 1000 * NS_PER_S, 7), 0);
	assert_int_equal(stored(s, t0 + 1000 * NS_PER_S, t0 + 1001 * NS_PER_S), 7);
	store_counts(s, &c);
	store_note(&c, note);
	assert_string_equal(note, "");
	store_free(s);
	s = opened();
	/* no half of a record was left anywhere */
	assert_int_equal(append(s, t0 + 1010 * NS_PER_S, 7), 0);
	store_counts(s, &c);
	assert_int_equal(c.torn, 0);
	store_free(s);
	assert_int_equal(umount(dir), 0);
}

static void other_files_are_not_touched(void **state)
{
	static const char *const names[] = { "seg",
					     ".seg",
					     "-1.seg",
					     "1-0.seg",
					     "1x.seg",
					     "1.seg.bak",
					     "99999999999999999999999.seg" };
	struct store *s = opened();
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	store_free(s);
	assert_int_equal(store_new(dir, 1, 1, &s), 0);
	assert_int_equal(append(s, t0, 5), 0);
	assert_int_equal(stored(s, t0, t0 + 1), 5);
	store_free(s);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(rmdir(path), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_window_that_had_to_wait_too_long_is_in_the_note_until_one_is_written,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(windows_survive_a_restart_and_are_found_by_time,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_torn_tail_is_cut_and_the_rest_is_kept, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_flipped_bit_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_drops_windows_and_counts_them, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_history_that_was_removed_begins_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(old_segments_are_unlinked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_in_the_middle_costs_one_window_and_no_other,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_tail_torn_anywhere_is_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_segment_of_another_version_is_left_alone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_size_stays_below_its_bound_within_one_hour,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_tenant_that_fills_its_windows_shortens_its_own_history, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_tenant_with_millions_of_windows_shortens_its_own_history, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_query_has_room_for_all_tenants, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_files_are_not_touched, set_up, tear_down),
		/* last, because it enters a mount namespace of its own */
		cmocka_unit_test_setup_teardown(
			a_disk_that_is_really_full_drops_windows_until_there_is_room, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

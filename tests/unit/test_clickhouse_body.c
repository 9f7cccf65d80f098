/* Bodies for ClickHouse: what is packed is unpacked the same, in blocks and in gzip; damaged ones
 * are refused; halves together are the whole. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/clickhouse/rows.h"
#include "daemon/ground/mem.h"
#include "daemon/upload/clickhouse_body.h"

#define BLOCK_HEADERS 25

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("body", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int unpack(const void *bytes, size_t len, enum clickhouse_form form, struct text_out *rows)
{
	int fd = file_of(bytes, len), r;

	memset(rows, 0, sizeof(*rows));
	r = clickhouse_unpack(fd, len, form, rows);
	fd_close(fd);
	return r;
}

/* 1.5 MB that compress to a third, in pieces of 10 kB: several blocks. */
static void fill(struct clickhouse_body *b, enum clickhouse_form form, struct text_out *rows)
{
	memset(b, 0, sizeof(*b));
	memset(rows, 0, sizeof(*rows));
	b->pack.form = form;
	for (uint32_t i = 0; i < 150; i++) {
		uint32_t piece[2500];

		for (uint32_t k = 0; k < 2500; k++)
			piece[k] = (i * 2500 + k) * 2654435761u % 5000;
		text_bytes(rows, piece, sizeof(piece));
		assert_int_equal(clickhouse_body_add(b, piece, sizeof(piece)), 0);
	}
	assert_int_equal(clickhouse_body_end(b), 0);
	assert_int_equal(b->raw, rows->len);
}

static void what_is_packed_is_unpacked(void **state)
{
	(void)state;
	for (enum clickhouse_form form = CLICKHOUSE_ZSTD; form <= CLICKHOUSE_GZIP; form++) {
		struct text_out rows, again;
		struct clickhouse_body b;

		fill(&b, form, &rows);
		assert_in_range(b.pack.len, 100000, 1000000);
		assert_int_equal(unpack(b.pack.bytes, b.pack.len, form, &again), 0);
		assert_int_equal(again.len, rows.len);
		assert_memory_equal(again.p, rows.p, rows.len);
		free(rows.p);
		free(again.p);
		clickhouse_body_deinit(&b);
	}
}

/* As the server reads them: by its documentation, not by clickhouse_unpack(). */
static void blocks_have_the_servers_format(void **state)
{
	static const uint8_t no_checksum[16];
	struct clickhouse_body b;
	struct text_out rows;
	size_t at = 0, raw = 0;
	unsigned blocks = 0;

	(void)state;
	fill(&b, CLICKHOUSE_ZSTD, &rows);
	while (at < b.pack.len) {
		const uint8_t *p = b.pack.bytes + at;
		uint32_t len, raw_len;

		assert_true(b.pack.len - at > BLOCK_HEADERS);
		memcpy(&len, p + 17, 4);
		memcpy(&raw_len, p + 21, 4);
		assert_memory_equal(p, no_checksum, 16);
		assert_int_equal(p[16], 0x90);
		assert_memory_equal(p + BLOCK_HEADERS, "\x28\xb5\x2f\xfd", 4); /* RFC 8878 */
		assert_true(p[BLOCK_HEADERS + 4] & 4); /* the frame has a checksum */
		at += 16 + len;
		raw += raw_len;
		blocks++;
	}
	assert_int_equal(at, b.pack.len);
	assert_int_equal(raw, rows.len);
	assert_int_equal(blocks, 3);
	free(rows.p);
	clickhouse_body_deinit(&b);
}

static void damaged_bodies_are_refused(void **state)
{
	struct text_out rows, again;
	struct clickhouse_body b;
	uint8_t *p;
	size_t len;

	(void)state;
	fill(&b, CLICKHOUSE_ZSTD, &rows);
	len = b.pack.len;
	p = malloc(len);
	memcpy(p, b.pack.bytes, len);
	for (size_t at = 16; at < 60; at++) { /* headers, and the begin of the frame */
		p[at] ^= 0x40;
		assert_true(unpack(p, len, CLICKHOUSE_ZSTD, &again) < 0 ||
			    memcmp(again.p, rows.p, rows.len) == 0);
		p[at] ^= 0x40;
		free(again.p);
	}
	p[len / 2] ^= 1; /* only a checksum tells */
	assert_int_equal(unpack(p, len, CLICKHOUSE_ZSTD, &again), -EBADMSG);
	p[len / 2] ^= 1;
	free(again.p);
	for (size_t less = 1; less < 40; less++) {
		assert_int_equal(unpack(p, len - less, CLICKHOUSE_ZSTD, &again), -EBADMSG);
		free(again.p);
		assert_int_equal(unpack(p, less, CLICKHOUSE_ZSTD, &again), -EBADMSG);
		free(again.p);
		assert_int_equal(unpack(p, less, CLICKHOUSE_GZIP, &again), -EBADMSG);
		free(again.p);
	}
	free(p);
	free(rows.p);
	clickhouse_body_deinit(&b);
}

static void another_form_has_the_same_rows(void **state)
{
	struct text_out rows, again = { 0 };
	struct clickhouse_body b;
	int fd, gzip;
	size_t len;

	(void)state;
	fill(&b, CLICKHOUSE_ZSTD, &rows);
	fd = file_of(b.pack.bytes, b.pack.len);
	gzip = clickhouse_body_to_gzip(fd, b.pack.len, &len);
	assert_true(gzip >= 0);
	assert_int_equal(clickhouse_unpack(gzip, len, CLICKHOUSE_GZIP, &again), 0);
	assert_int_equal(again.len, rows.len);
	assert_memory_equal(again.p, rows.p, rows.len);
	fd_close(gzip);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(clickhouse_body_to_gzip(fd, b.pack.len - 1, &len), -EBADMSG);
	fd_close(fd);
	free(again.p);
	free(rows.p);
	clickhouse_body_deinit(&b);
}

static struct clickhouse_rows rows_of_samples(unsigned n)
{
	struct profile *p;
	struct profile_process q = { .pid = 7, .start_time = 8 };
	struct profile_thread t = { .tid = 9 };
	struct clickhouse_rows rows;

	assert_int_equal(profile_new(&p), 0);
	q.name = profile_string(p, "org.shop.Main");
	q.pod = q.container = q.container_id = q.jdk = q.labels = profile_string(p, "");
	t.process = profile_process(p, &q);
	for (unsigned i = 0; i < n; i++) {
		char name[20];

		snprintf(name, sizeof(name), "thread-%u", i);
		t.name = profile_string(p, name);
		t.tid = 9 + i;
		profile_add(p, profile_thread(p, &t), 0, 1 + i, 10000000);
	}
	assert_int_equal(clickhouse_rows_make(p, "node", NULL, &rows), 0);
	profile_free(p);
	return rows;
}

static void halves_are_the_whole(void **state)
{
	struct clickhouse_rows rows = rows_of_samples(50);
	const struct text_out *samples = &rows.tables[CLICKHOUSE_SAMPLES];

	(void)state;
	for (enum clickhouse_form form = CLICKHOUSE_ZSTD; form <= CLICKHOUSE_GZIP; form++) {
		struct clickhouse_body b = { .pack.form = form }, halves[2];
		struct text_out first, second;
		int fd;

		assert_int_equal(clickhouse_body_add(&b, samples->p, samples->len), 0);
		assert_int_equal(clickhouse_body_end(&b), 0);
		fd = file_of(b.pack.bytes, b.pack.len);
		assert_int_equal(
			clickhouse_body_cut(fd, b.pack.len, form, CLICKHOUSE_SAMPLES, halves), 0);
		fd_close(fd);
		assert_int_equal(unpack(halves[0].pack.bytes, halves[0].pack.len, form, &first), 0);
		assert_int_equal(unpack(halves[1].pack.bytes, halves[1].pack.len, form, &second),
				 0);
		assert_int_equal(halves[0].samples + halves[1].samples, rows.samples);
		assert_in_range(halves[0].samples, 1, rows.samples - 1);
		text_bytes(&first, second.p, second.len);
		assert_int_equal(first.len, samples->len);
		assert_memory_equal(first.p, samples->p, samples->len);
		free(first.p);
		free(second.p);
		for (int i = 0; i < 2; i++)
			clickhouse_body_deinit(&halves[i]);
		clickhouse_body_deinit(&b);
	}
	clickhouse_rows_deinit(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_is_unpacked),
		cmocka_unit_test(blocks_have_the_servers_format),
		cmocka_unit_test(damaged_bodies_are_refused),
		cmocka_unit_test(another_form_has_the_same_rows),
		cmocka_unit_test(halves_are_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

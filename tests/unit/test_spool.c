/* A sink's files on disk: a body is complete or absent, and the accounts survive incomplete
 * writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/upload/http.h"
#include "daemon/upload/ledger.h"
#include "daemon/upload/otlp_answer.h"
#include "daemon/upload/spool.h"

static char dir[] = "/tmp/kindling-spool-XXXXXX";
static int dfd;

static int make_dir(void **state)
{
	(void)state;
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	dfd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY) : -1;
	return dfd < 0 ? -1 : 0;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	close(dfd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void put(uint64_t seq, const char *body)
{
	struct spool_header h = { .samples = 7, .key = "k", .content_type = "t", .target = "n" };

	assert_int_equal(spool_write(dfd, seq, &h, body, strlen(body)), 0);
}

static void a_body_is_read_as_it_was_written(void **state)
{
	struct spool_header h;
	char buf[16] = "";
	size_t n;
	uint64_t *list;
	int fd;

	(void)state;
	put(12, "hello");
	put(3, "");
	fd = spool_open(dfd, 12, true, &h);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(h.samples, 7);
	close(fd);
	list = spool_list(dfd, &n);
	assert_int_equal(n, 2);
	assert_int_equal(list[0], 3);
	assert_int_equal(list[1], 12);
	free(list);
	spool_remove(dfd, 12);
	assert_int_equal(spool_open(dfd, 12, true, &h), -ENOENT);
}

static void a_damaged_body_is_none(void **state)
{
	struct spool_header h;
	int fd;

	(void)state;
	put(1, "hello");
	fd = openat(dfd, "1.up", O_WRONLY);
	assert_int_equal(pwrite(fd, "J", 1, sizeof(h)), 1);
	assert_int_equal(spool_open(dfd, 1, true, &h), -EBADMSG);
	assert_int_equal(pwrite(fd, "J", 1, 100), 1); /* in the header */
	assert_int_equal(spool_open(dfd, 1, false, &h), -EBADMSG);
	assert_int_equal(ftruncate(fd, 10), 0);
	assert_int_equal(spool_open(dfd, 1, false, &h), -EBADMSG);
	close(fd);
}

static void a_torn_write_leaves_the_accounts_before_it(void **state)
{
	struct ledger l;
	bool is_new;
	int fd = ledger_open(dfd, &l, &is_new);

	(void)state;
	assert_true(is_new);
	assert_int_equal(l.next_seq, 1);
	l.taken = 10;
	l.in_spool = 4;
	l.delivered = 5;
	l.dropped[LEDGER_REFUSED] = 1;
	assert_int_equal(ledger_write(fd, &l, true), 0);
	l.in_spool = 0;
	l.delivered = 9;
	assert_int_equal(ledger_write(fd, &l, false), 0);
	close(fd);
	fd = ledger_open(dfd, &l, &is_new);
	assert_false(is_new);
	assert_int_equal(l.delivered, 9);
	/* it was written over the older of the two slots */
	for (off_t at = 0; at <= 512; at += 512) {
		struct ledger torn;
		uint8_t byte, other;
		int again;

		assert_int_equal(pread(fd, &byte, 1, at + 60), 1);
		other = byte ^ 0x40;
		assert_int_equal(pwrite(fd, &other, 1, at + 60), 1);
		again = ledger_open(dfd, &torn, &is_new);
		assert_false(is_new);
		assert_true(torn.delivered == 9 || torn.delivered == 5);
		close(again);
		assert_int_equal(pwrite(fd, &byte, 1, at + 60), 1);
	}
	close(fd);
}

static void accounts_that_do_not_add_up_are_not_believed(void **state)
{
	struct ledger l;
	bool is_new;
	int fd = ledger_open(dfd, &l, &is_new);

	(void)state;
	l.taken = 10;
	assert_int_equal(ledger_write(fd, &l, false), 0);
	close(fd);
	fd = ledger_open(dfd, &l, &is_new);
	assert_int_equal(l.taken, 0);
	close(fd);
}

static void servers_words_are_understood(void **state)
{
	static const uint8_t partial[] = "\x0a\x09\x08\x02\x12\x05wrong";
	struct otlp_answer a;

	(void)state;
	assert_int_equal(http_retry_after("120", 0), 120 * NS_PER_S);
	assert_int_equal(http_retry_after("999999999999", 0), 86400 * NS_PER_S);
	assert_int_equal(http_retry_after("12x", 0), 0);
	assert_int_equal(http_retry_after("", 0), 0);
	assert_int_equal(http_retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 40 * NS_PER_S),
			 60 * NS_PER_S);
	assert_int_equal(otlp_answer_read(partial, sizeof(partial) - 1, &a), 0);
	assert_int_equal(a.rejected, 2);
	assert_string_equal(a.message, "wrong");
	assert_int_equal(otlp_answer_read(partial, sizeof(partial) - 3, &a), -EBADMSG);
	assert_int_equal(otlp_answer_read(partial, 0, &a), 0);
	assert_int_equal(a.rejected, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(a_body_is_read_as_it_was_written),
		TEST(a_damaged_body_is_none),
		TEST(a_torn_write_leaves_the_accounts_before_it),
		TEST(accounts_that_do_not_add_up_are_not_believed),
		cmocka_unit_test(servers_words_are_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

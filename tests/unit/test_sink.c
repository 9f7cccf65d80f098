/* Bodies that a server refuses: when they are given up, and under which cause they are counted. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/upload/sink.h"
#include "daemon/upload/upload.h"

#define SAMPLES	 7
#define ATTEMPTS 10 /* RESETS_GIVE_UP of sink.c */

/* ---- a type of sink whose server is the test ------------------------------------------------- */

static struct sink_file *sent; /* NULL = nothing is in flight */

static int test_open(struct sink *s, char *why, size_t why_size)
{
	(void)s;
	(void)why;
	(void)why_size;
	return 0;
}

static int test_send(struct sink *s, struct sink_file *f)
{
	(void)s;
	sent = f;
	return 0;
}

static void test_cancel(struct sink *s, struct sink_file *f)
{
	(void)s;
	(void)f;
	sent = NULL;
}

static int test_part(struct sink *s, const struct sink_interval *in, const struct profile *p,
		     unsigned word, unsigned part)
{
	(void)s;
	(void)in;
	(void)p;
	(void)word;
	(void)part;
	return -EMSGSIZE;
}

static const struct sink_type test_type = {
	.open = test_open,
	.send = test_send,
	.cancel = test_cancel,
	.part = test_part,
	.in_flight_max = 1,
};
/* instead of those in sinks.c */
const struct sink_type *const sink_types[SINK_TYPE_COUNT] = { [SINK_FILES] = &test_type };

/* ---- a sink ---------------------------------------------------------------------------------- */

static char dir[64];
static int dfd;
static struct upload upload;
static struct sink *sink;
static const struct config_sink config = { .name = "test",
					   .type = SINK_FILES,
					   .interval_ns = NS_PER_S,
					   .spool_bytes = 1 << 20,
					   .spool_age_ns = 3600 * NS_PER_S };

static int set_up(void **state)
{
	const struct sink_secrets secrets = { 0 };
	char why[200] = "";

	(void)state;
	strcpy(dir, "/tmp/kindling-sink-XXXXXX");
	dfd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY) : -1;
	if (dfd < 0 || loop_new(&upload.loop) < 0)
		return -1;
	return sink_new(&upload, &config, dfd, &secrets, &sink, why, sizeof(why));
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	sink = sink_free(sink);
	upload.loop = loop_free(upload.loop);
	close(dfd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void put_body(void)
{
	const struct sink_interval in = { .begin_real_ns = clock_real_ns(),
					  .end_real_ns = clock_real_ns(),
					  .part = 1 };

	assert_int_equal(sink_put_now(sink, &in, "key", "text/plain", "body", 4, SAMPLES), 0);
}

/* Makes the sink send now, whatever it waits for. */
static bool try_to_send(void)
{
	sent = NULL;
	sink->next_try_mono_ns = 0;
	sink_run(sink); /* this round may only find out that a body cannot be divided */
	sink->next_try_mono_ns = 0;
	if (!sent)
		sink_run(sink);
	return sent;
}

/* The error that http.c reports after several resets of one body. */
static void answer_by_reset(void)
{
	sent->resets++;
	sent->only_reset = true;
	sink_done(sent, SINK_TOO_LARGE, 0, "the stream was reset");
}

static uint64_t sum_of_dropped(void)
{
	uint64_t n = 0;

	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++)
		n += sink->ledger.dropped[i];
	return n;
}

static void assert_accounts(uint64_t delivered, enum ledger_cause cause, uint64_t dropped)
{
	assert_int_equal(sink->ledger.delivered, delivered);
	assert_int_equal(sink->ledger.dropped[cause], dropped);
	assert_int_equal(sum_of_dropped(), dropped);
	assert_int_equal(sink->ledger.taken, sink->ledger.delivered + sink->ledger.in_spool +
						     sink->ledger.lost_unconfirmed + dropped);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_body_that_is_always_reset_is_given_up_and_counted_so(void **state)
{
	unsigned attempts = 0;

	(void)state;
	put_body();
	while (try_to_send() && attempts < 2 * ATTEMPTS) {
		assert_accounts(0, LEDGER_RESET, 0);
		answer_by_reset();
		attempts++;
	}
	assert_int_equal(attempts, ATTEMPTS);
	assert_int_equal(sink->n_files, 0);
	assert_int_equal(sink->ledger.in_spool, 0);
	assert_accounts(0, LEDGER_RESET, SAMPLES);
}

static void a_body_that_arrives_after_resets_is_delivered(void **state)
{
	(void)state;
	put_body();
	for (unsigned i = 0; i + 1 < ATTEMPTS; i++) {
		assert_true(try_to_send());
		answer_by_reset();
	}
	assert_true(try_to_send());
	sink_done(sent, SINK_CONFIRMED, 0, "");
	assert_accounts(SAMPLES, LEDGER_RESET, 0);
}

static void a_body_that_the_server_calls_too_large_is_not_counted_as_reset(void **state)
{
	(void)state;
	put_body();
	assert_true(try_to_send());
	answer_by_reset();
	assert_true(try_to_send());
	sent->only_reset = false; /* there was an answer */
	sink_done(sent, SINK_TOO_LARGE, 0, "HTTP 413");
	assert_false(try_to_send());
	assert_accounts(0, LEDGER_TOO_LARGE, SAMPLES);
}

static void the_cause_has_its_name_in_the_status(void **state)
{
	(void)state;
	assert_string_equal(ledger_cause_names[LEDGER_RESET], "reset");
}

/* A JVM names its service as it likes; keys are names of files and paths in URLs. */
static void a_service_s_name_cannot_leave_its_directory(void **state)
{
	static const struct {
		const char *name, *word;
	} names[] = {
		{ "../../etc/cron.d/x", "-.-..-etc-cron.d-x" },
		{ "..", "-." },
		{ "/etc/passwd", "-etc-passwd" },
		{ "a\nb\r\tc", "a-b--c" },
		{ "a%2f..?b#c&d", "a-2f..-b-c-d" },
		{ "caf\xc3\xa9 \xff", "caf----" },
		{ "", "" },
	};
	char word[32], long_name[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		sink_key_word(names[i].name, word, sizeof(word));
		assert_string_equal(word, names[i].word);
	}
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	sink_key_word(long_name, word, sizeof(word));
	assert_int_equal(strlen(word), sizeof(word) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_body_that_is_always_reset_is_given_up_and_counted_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_body_that_arrives_after_resets_is_delivered,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_body_that_the_server_calls_too_large_is_not_counted_as_reset, set_up,
			tear_down),
		cmocka_unit_test(a_service_s_name_cannot_leave_its_directory),
		cmocka_unit_test(the_cause_has_its_name_in_the_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

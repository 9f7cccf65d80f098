/* Traces for Perfetto, from answers whose names a JVM has invented. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/timeline_files.h"
#include "daemon/ground/utf8.h"
#include "perfetto.pb-c.h"

static bool is_whole(const char *text)
{
	uint32_t code;
	size_t n;

	for (; *text; text += n) {
		n = utf8_character(text, strlen(text), &code);
		if (n == 0)
			return false;
	}
	return true;
}

/* A wait for a lock of this class, which another thread holds. */
static cJSON *answer_with_class(const char *class_name)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{\"pid\":1,\"name\":\"x\",\"from_ns\":0,\"reasons\":{\"lock\":[\"enter\"]},"
		 "\"threads\":[{\"tid\":7,\"thread\":\"a\"},{\"tid\":8,\"thread\":\"b\"}],"
		 "\"frames\":[],\"nodes\":[[0,0]],\"traces\":[],\"locks\":[[\"%s\",\"1f\"]],"
		 "\"lock\":[[1,5,1000,0,0,0,0,1,2,0,0,1,0,-1]]}",
		 class_name);
	return cJSON_Parse(text);
}

/* Counts the events with a name; those that are cut within a character are *ret_broken. */
static unsigned count_names(const char *bytes, size_t len, unsigned *ret_broken)
{
	Perfetto__Trace *trace = perfetto__trace__unpack(NULL, len, (const uint8_t *)bytes);
	unsigned n = 0;

	*ret_broken = 0;
	assert_non_null(trace);
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__TrackEvent *e = trace->packet[i]->track_event;

		if (!e || !e->name)
			continue;
		n++;
		*ret_broken += !is_whole(e->name);
	}
	perfetto__trace__free_unpacked(trace, NULL);
	return n;
}

/* Names are cut at two lengths, which an odd and an even number of bytes in front tell apart. */
static void a_name_is_never_cut_inside_a_character(void **state)
{
	char name[2048] = "";
	unsigned broken;
	size_t len;

	(void)state;
	for (unsigned before = 0; before < 2; before++) {
		cJSON *answer;
		char *bytes;

		name[0] = '\0';
		memset(name, 'L', before);
		for (size_t at = before; at + 3 < sizeof(name); at += 2)
			memcpy(name + at, "\xc3\xa9", 3);
		answer = answer_with_class(name);
		assert_non_null(answer);
		bytes = timeline_pftrace(answer, &len);
		assert_non_null(bytes);
		assert_int_equal(count_names(bytes, len, &broken), 2);
		assert_int_equal(broken, 0);
		free(bytes);
		cJSON_Delete(answer);
	}
}

/* Numbers of threads, stacks, locks and traces that the tables do not have. */
static void numbers_beyond_the_tables_are_nothing(void **state)
{
	cJSON *answer = cJSON_Parse(
		"{\"pid\":1e300,\"from_ns\":-1,\"threads\":[{}],\"frames\":[],\"nodes\":[[0,0],[0,9]],"
		"\"locks\":[],\"traces\":[[1,2]],"
		"\"lock\":[[5,-1e18,1e18,1,9,99,255,7,99,1,99,1,1,-1],[1,0,0,2,1,0,0,-4,1,0],[],7],"
		"\"cpu\":[[-3,0,0,1,1]],\"band\":[[0,0,0,0,0,77],[0,0,0,0,0,-1]]}");
	unsigned broken;
	size_t len;
	char *bytes;

	(void)state;
	assert_non_null(answer);
	bytes = timeline_pftrace(answer, &len);
	assert_non_null(bytes);
	assert_true(count_names(bytes, len, &broken) >= 3);
	free(bytes);
	cJSON_Delete(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_never_cut_inside_a_character),
		cmocka_unit_test(numbers_beyond_the_tables_are_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/unit.h"
#include "daemon/cli/cli.h"

static size_t columns;

static const char *clean(const char *s, size_t width)
{
	static char buf[256];

	columns = text_clean(s, width, buf, sizeof(buf));
	return buf;
}

static void good_text_stays_as_it_is(void **state)
{
	(void)state;
	assert_string_equal(clean("com.Größe €", SIZE_MAX), "com.Größe €");
	assert_int_equal(columns, 11);
	assert_string_equal(clean("", 0), "");
	assert_int_equal(columns, 0);
}

static void control_characters_are_escaped(void **state)
{
	(void)state;
	assert_string_equal(clean("a\x1b[31m\n\x7f", SIZE_MAX), "a\\x1b[31m\\x0a\\x7f");
	assert_string_equal(clean("\xc2\x9b", SIZE_MAX), "\\xc2\\x9b"); /* C1 CSI */
	assert_string_equal(clean("\xe2\x80\xae", SIZE_MAX), "\\xe2\\x80\\xae"); /* right to left */
	assert_string_equal(clean("\xc2\xa0", SIZE_MAX), "\xc2\xa0");
}

static void invalid_utf8_is_escaped(void **state)
{
	(void)state;
	assert_string_equal(clean("\xff", SIZE_MAX), "\\xff");
	assert_string_equal(clean("\xc0\x80", SIZE_MAX), "\\xc0\\x80"); /* overlong */
	assert_string_equal(clean("\xed\xa0\x80", SIZE_MAX), "\\xed\\xa0\\x80"); /* surrogate */
	assert_string_equal(clean("x\xe2\x82", SIZE_MAX), "x\\xe2\\x82"); /* cut */
}

static void wide_text_ends_in_an_ellipsis(void **state)
{
	(void)state;
	assert_string_equal(clean("abcdef", 6), "abcdef");
	assert_string_equal(clean("abcdef", 5), "abcd…");
	assert_int_equal(columns, 5);
	assert_string_equal(clean("äöüß", 3), "äö…");
	/* an escape sequence is written whole or not at all */
	assert_string_equal(clean("abc\x1b", 5), "abc…");
	assert_int_equal(columns, 4);
	assert_string_equal(clean("abc", 1), "…");
	assert_string_equal(clean("abc", 0), "");
}

static void a_small_buffer_holds_whole_characters(void **state)
{
	char buf[8];

	(void)state;
	for (size_t size = 5; size <= sizeof(buf); size++) {
		(void)text_clean("ääääääää", SIZE_MAX, buf, size);
		assert_true(strlen(buf) < size);
		for (const char *p = buf; *p; p += (unsigned char)*p == 0xe2 ? 3 : 2)
			assert_true(strncmp(p, "ä", 2) == 0 || strcmp(p, "…") == 0);
	}
}

static char *printed(void (*print)(FILE *to, const void *what), const void *what)
{
	static char *text;
	size_t len;
	FILE *f;

	free(text);
	f = open_memstream(&text, &len);
	print(f, what);
	fclose(f);
	return text;
}

static const struct column three[] = { { "PID", true, 0 },
				       { "NAME", false, 6 },
				       { "STATE", false, 0 } };

static void print_wide(FILE *to, const void *t)
{
	table_print(to, t, 80);
}

static void print_narrow(FILE *to, const void *t)
{
	table_print(to, t, 20);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
	struct table t = { .columns = three, .n_columns = 3 };
	char(*row)[CELL_MAX] = table_row(&t);

	(void)state;
	strcpy(row[0], "4711");
	strcpy(row[1], "Größe");
	strcpy(row[2], "failed");
	table_below(&t, "  why: %d", 5);
	table_below(&t, "  note");
	row = table_row(&t);
	strcpy(row[0], "5");
	strcpy(row[1], "a\x1b");
	strcpy(row[2], "gone");
	assert_string_equal(printed(print_wide, &t), " PID NAME  STATE\n"
						     "4711 Größe failed\n"
						     "  why: 5\n"
						     "  note\n"
						     "   5 a\\x1b gone\n");
	table_free(&t);
}

static void a_table_that_is_too_wide_cuts_what_may_be_cut(void **state)
{
	struct table t = { .columns = three, .n_columns = 3 };
	char(*row)[CELL_MAX] = table_row(&t);

	(void)state;
	strcpy(row[0], "4711");
	strcpy(row[1], "org.shop.Main");
	strcpy(row[2], "streaming");
	assert_string_equal(printed(print_narrow, &t),
			    " PID NAME   STATE\n"
			    "4711 org.s… streaming\n"); /* 6: its least */
	table_free(&t);
}

static void print_empty(FILE *to, const void *t)
{
	table_below((struct table *)(uintptr_t)t, "nowhere"); /* without a row, nothing happens */
	table_print(to, t, 80);
}

static void a_table_without_rows_is_its_head(void **state)
{
	struct table t = { .columns = three, .n_columns = 3 };

	(void)state;
	assert_string_equal(printed(print_empty, &t), "PID NAME STATE\n");
	table_free(&t);
}

static void print_screen(FILE *to, const void *text)
{
	screen_print(to, text, 3, 5);
}

static void a_screen_is_cut_at_its_width_and_height(void **state)
{
	(void)state;
	assert_string_equal(printed(print_screen, "a\n1234567\nc\n"),
			    "\033[Ha\033[K\n1234…\033[K\n\033[J");
	assert_string_equal(printed(print_screen, ""), "\033[H\033[J");
	assert_string_equal(printed(print_screen, "no newline"), "\033[Hno n…\033[K\n\033[J");
	/* colours take no columns; other escape sequences are shown as text */
	assert_string_equal(printed(print_screen, "a\033[32mbc\033[0mde\n"),
			    "\033[Ha\033[32mbc\033[0mde\033[K\n\033[J");
	assert_string_equal(printed(print_screen, "a\033[32mbcdefg\033[0m\n"),
			    "\033[Ha\033[32mbcd…\033[0m\033[K\n\033[J");
	assert_string_equal(printed(print_screen, "\033[2J\n"), "\033[H\\x1b…\033[K\n\033[J");
}

static void print_top(FILE *to, const void *text)
{
	cJSON *top = cJSON_Parse(text);

	assert_non_null(top);
	top_print(to, top, 1);
	cJSON_Delete(top);
}

#define TOP(event, unit, of, weight)                                                    \
	"{\"sort\":\"self\",\"event\":\"" event "\",\"unit\":\"" unit "\",\"of\":\"" of \
	"\",\"seconds\":5,"                                                             \
	"\"targets\":[{\"pid\":7,\"name\":\"app\",\"samples\":12,\"weight\":" weight    \
	",\"methods\":[{\"name\":\"m\","                                                \
	"\"self\":0.5,\"total\":1}]}]}"
#define TABLE "   self%   total%  method\n   50.00   100.00  m\n\nthe last 5 s, sorted by self%"

static void top_says_how_much_of_what(void **state)
{
	(void)state;
	assert_string_equal(printed(print_top, TOP("cpu", "ns", "CPU", "7500000000")),
			    "7 app: 1.50 CPUs, 12 samples\n" TABLE);
	assert_string_equal(printed(print_top, TOP("lock", "ns", "waiting", "20000000000")),
			    "7 app: 4.00 s/s of waiting, 12 samples\n" TABLE);
	assert_string_equal(printed(print_top, TOP("alloc", "bytes", "allocation", "10485760")),
			    "7 app: 2.00 MiB/s of allocation, 12 samples\n" TABLE);
}

static void print_status(FILE *to, const void *text)
{
	cJSON *status = cJSON_Parse(text);

	assert_non_null(status);
	status_print(to, status, 120, false);
	cJSON_Delete(status);
}

static void status_says_what_is_collected_and_what_is_not(void **state)
{
	const char *text = printed(
		print_status, "{\"targets\":[{\"pid\":7,\"state\":\"streaming\",\"name\":\"app\","
			      "\"events\":[\"cpu\",\"lock\"],\"notes\":[{\"step\":\"lock\","
			      "\"what\":\"monitors are left out\"}]}]}");

	(void)state;
	assert_non_null(strstr(text, "cpu,lock"));
	assert_non_null(strstr(text, "\n        lock: monitors are left out\n"));
}

static void status_says_that_the_history_stands_still(void **state)
{
	(void)state;
	assert_non_null(
		strstr(printed(print_status, "{\"store\":{\"note\":\"the history stands\"}}"),
		       "\nthe history stands\n"));
	assert_null(strstr(printed(print_status, "{\"store\":{\"note\":null}}"), "history"));
}

static size_t status_width;
static bool status_colours;

static void print_status_in(FILE *to, const void *text)
{
	cJSON *status = cJSON_Parse(text);

	assert_non_null(status);
	status_print(to, status, status_width, status_colours);
	cJSON_Delete(status);
}

static size_t widest_line(const char *text)
{
	char buf[8192];
	size_t widest = 0;

	for (; *text; text += strcspn(text, "\n") + 1) {
		char line[1024];
		size_t w;

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		w = text_clean(line, SIZE_MAX, buf, sizeof(buf));
		widest = w > widest ? w : widest;
	}
	return widest;
}

/* As long as they come. */
#define JVM(state, more)                                                                             \
	"{\"pid\":4194301,\"ns_pid\":4194301,\"state\":\"" state "\"," more                          \
	"\"jdk\":\"Eclipse Adoptium 25.0.1+8-LTS\",\"name\":\"org.apache.catalina.startup.Boot\","   \
	"\"events\":[\"cpu\",\"lock\",\"alloc\"],\"engine\":\"cpu-timer\",\"interval_ns\":22500000," \
	"\"samples\":{\"taken\":12345678,\"delivered\":12345670,\"dropped\":{\"full\":8}},"          \
	"\"agent\":{\"session_ns\":1,\"cpus\":0.5,\"cpus_last_minute\":0.0125,\"bytes\":3145728}}"
#define POD "\"container_id\":\"0123456789ab\",\"pod\":\"production/shop-7d9f8b6c5-x2x4z\","

static void status_fits_eighty_columns_and_shows_all_on_a_wider_screen(void **state)
{
	static const char one[] = "{\"version\":\"1\",\"targets\":[" JVM(
		"streaming", POD
		"\"note\":\"a sentence that is so long that it has to go on on the next line of "
		"a narrow screen, whole\",") "," JVM("injecting", "") "]}";
	const char *text;

	(void)state;
	status_width = 80;
	text = printed(print_status_in, one);
	assert_in_range(widest_line(text), 60, 80);
	assert_non_null(strstr(text, "4194301"));
	assert_non_null(strstr(text, "streaming"));
	assert_non_null(strstr(text, "AGENT%"));
	assert_null(strstr(text, "DELIVERED"));
	assert_non_null(strstr(text, "\n        a sentence that is so long"));
	assert_non_null(strstr(text, "narrow screen, whole\n"));
	status_width = 4096;
	text = printed(print_status_in, one);
	for (const char *const *p = (const char *const[]){ "NSPID", "JDK", "ENGINE", "DELIVERED",
							   "12345678", "MEM", "3.0M", NULL };
	     *p; p++)
		assert_non_null(strstr(text, *p));
}

static void status_on_a_very_narrow_screen_keeps_who_it_is_and_how_it_is(void **state)
{
	static const char one[] = "{\"targets\":[" JVM("streaming", POD) "]}";
	const char *text;

	(void)state;
	status_width = 40;
	text = printed(print_status_in, one);
	assert_in_range(widest_line(text), 20, 40);
	assert_non_null(strstr(text, "4194301"));
	assert_non_null(strstr(text, "streaming"));
	assert_non_null(strstr(text, "NAME"));
	assert_null(strstr(text, "AGENT%"));
}

static void states_have_colours_where_they_are_asked_for(void **state)
{
	static const char both[] = "{\"targets\":[" JVM("streaming", "") "," JVM("failed", "") "]}";
	const char *text;

	(void)state;
	status_width = 4096;
	assert_null(strchr(printed(print_status_in, both), '\033'));
	status_colours = true;
	text = printed(print_status_in, both);
	status_colours = false;
	assert_non_null(strstr(text, " \033[32mstreaming\033[0m "));
	assert_non_null(strstr(text, " \033[31mfailed\033[0m    ")); /* padded behind it */
}

static void status_of_jvms_on_the_host_needs_no_container(void **state)
{
	static const char one[] = "{\"targets\":[" JVM("streaming", "") "]}";

	(void)state;
	status_width = 80;
	assert_null(strstr(printed(print_status_in, one), "CONTAINER"));
	status_width = 200;
	assert_non_null(strstr(printed(print_status_in, one), "CONTAINER"));
}

static void an_agent_costs_what_it_costs_now_and_nothing_after_the_end(void **state)
{
	const char *text;

	(void)state;
	status_width = 4096;
	text = printed(print_status_in, "{\"targets\":[" JVM("streaming", "") "]}");
	assert_non_null(strstr(text, "1.25 3.0M"));
	text = printed(
		print_status_in,
		"{\"targets\":[" JVM("gone", "\"ended_s\":130,\"note\":\"it was slow\",") "]}");
	assert_non_null(strstr(text, "ended 2m"));
	assert_null(strstr(text, "3.0M"));
	assert_null(strstr(text, "1.25"));
	assert_null(strstr(text, "it was slow"));
	assert_non_null(strstr(text, "0 of 0 JVMs streaming; 1 has ended\n"));
}

#define OUT(pid, reason) \
	"{\"pid\":" pid ",\"state\":\"excluded\",\"name\":\"app\",\"reason\":\"" reason "\"}"

static unsigned count_of(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void a_reason_that_many_share_is_said_once_on_a_screen(void **state)
{
	static const char many[] = "{\"targets\":[" OUT("1", "no rule") "," OUT(
		"2", "no rule") "," OUT("3", "no rule") "," OUT("4", "another") "]}";
	const char *text;

	(void)state;
	status_width = 80;
	text = printed(print_status_in, many);
	assert_int_equal(count_of(text, "no rule"), 1);
	assert_non_null(strstr(text, "these 3: no rule\n"));
	assert_non_null(strstr(text, "        another\n"));
	status_width = WIDTH_ANY;
	assert_int_equal(count_of(printed(print_status_in, many), "no rule"),
			 3); /* grep finds it */
}

static void print_narrow_label(FILE *to, const void *text)
{
	print_labelled(to, "  ok ", text, 5, 30);
}

static void a_sentence_goes_on_below_its_beginning(void **state)
{
	(void)state;
	assert_string_equal(printed(print_narrow_label, "one word"), "  ok one word\n");
	assert_string_equal(printed(print_narrow_label, "Größe and so on and so forth, until"),
			    "  ok Größe and so on and so\n"
			    "     forth, until\n");
	assert_string_equal(printed(print_narrow_label, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b\x1b"),
			    "  ok aaaaaaaaaaaaaaaaaaaaaaaaa\n"
			    "     aaaaa b\\x1b\n");
	assert_string_equal(printed(print_narrow_label, ""), "  ok \n");
}

static char files[200];

static int note_file(void *userdata, const char *path, unsigned events)
{
	size_t len = strlen(files);

	(void)userdata;
	snprintf(files + len, sizeof(files) - len, "%s=%u ", path, events);
	return CLI_OK;
}

static const char *files_of(const char *output, const char *format, unsigned events)
{
	const struct record_arguments a = { .output = output, .format = format, .events = events };

	files[0] = '\0';
	assert_int_equal(record_files(&a, note_file, NULL), CLI_OK);
	return files;
}

static void a_recording_is_one_file_or_one_an_event(void **state)
{
	(void)state;
	assert_string_equal(files_of("a.html", "html", 1), "a.html=1 ");
	assert_string_equal(files_of("a.html", "html", 3), "a.cpu.html=1 a.lock.html=2 ");
	assert_string_equal(files_of("a.pb.gz", "pb.gz", 7), "a.pb.gz=7 ");
	assert_string_equal(files_of("a.pb.gz", "txt", 6), "a.pb.gz.lock=2 a.pb.gz.alloc=4 ");
	assert_string_equal(files_of("out", "collapsed", 3), "out.cpu=1 out.lock=2 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_text_stays_as_it_is),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(invalid_utf8_is_escaped),
		cmocka_unit_test(wide_text_ends_in_an_ellipsis),
		cmocka_unit_test(a_small_buffer_holds_whole_characters),
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
		cmocka_unit_test(a_table_that_is_too_wide_cuts_what_may_be_cut),
		cmocka_unit_test(a_table_without_rows_is_its_head),
		cmocka_unit_test(a_screen_is_cut_at_its_width_and_height),
		cmocka_unit_test(top_says_how_much_of_what),
		cmocka_unit_test(status_says_what_is_collected_and_what_is_not),
		cmocka_unit_test(status_says_that_the_history_stands_still),
		cmocka_unit_test(status_fits_eighty_columns_and_shows_all_on_a_wider_screen),
		cmocka_unit_test(status_on_a_very_narrow_screen_keeps_who_it_is_and_how_it_is),
		cmocka_unit_test(states_have_colours_where_they_are_asked_for),
		cmocka_unit_test(status_of_jvms_on_the_host_needs_no_container),
		cmocka_unit_test(an_agent_costs_what_it_costs_now_and_nothing_after_the_end),
		cmocka_unit_test(a_reason_that_many_share_is_said_once_on_a_screen),
		cmocka_unit_test(a_sentence_goes_on_below_its_beginning),
		cmocka_unit_test(a_recording_is_one_file_or_one_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

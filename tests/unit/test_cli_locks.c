#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/cli/lock_text.h"

static char *text;

static int forget(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

static cJSON *parsed(const char *json)
{
	cJSON *o = cJSON_Parse(json);

	assert_non_null(o);
	return o;
}

static const char *printed(void (*print)(FILE *to, const cJSON *json), const char *json)
{
	cJSON *o = parsed(json);
	size_t len;
	FILE *f;

	forget(NULL);
	f = open_memstream(&text, &len);
	print(f, o);
	fclose(f);
	cJSON_Delete(o);
	return text;
}

static void print_event(FILE *to, const cJSON *e)
{
	event_print(to, e, true);
}

static void print_locks(FILE *to, const cJSON *o)
{
	locks_print(to, o, 2, 4096);
}

static void print_narrow(FILE *to, const cJSON *o)
{
	locks_print(to, o, 2, 80);
}

static void print_graph(FILE *to, const cJSON *o)
{
	lock_graph_print(to, o, 160);
}

static void print_threads(FILE *to, const cJSON *o)
{
	threads_print(to, o, "wait", 2, 140);
}

static const char *duration(double ns)
{
	static char buf[32];

	duration_text(ns, buf, sizeof(buf));
	return buf;
}

static void durations_are_short(void **state)
{
	(void)state;
	assert_string_equal(duration(0), "0us");
	assert_string_equal(duration(850e3), "850us");
	assert_string_equal(duration(23.44e6), "23.4ms");
	assert_string_equal(duration(1.2e9), "1.2s");
	assert_string_equal(duration(59.96e9), "0m59s");
	assert_string_equal(duration(123e9), "2m03s");
	assert_string_equal(duration(5.5 * 3600e9), "5h30m");
}

static void a_wait_is_one_line(void **state)
{
	(void)state;
	assert_non_null(strstr(
		printed(print_event,
			"{\"event\":\"lock\",\"ts_ns\":1e18,\"pid\":4711,\"tid\":12,\"thread\":\"w\\u001b1\","
			"\"kind\":\"enter\",\"duration_ns\":23400000,\"open\":false,\"lock\":{\"class\":"
			"\"org.shop.Stock\",\"id\":\"1a2b\"},\"owner\":{\"tid\":13,\"thread\":\"hog\"},"
			"\"stack\":[\"java.lang.Thread.run\",\"org.shop.Main.sell\"]}"),
		" 4711 12 \"w\\x1b1\" lock 23.4ms enter org.shop.Stock@1a2b held by \"hog\" (13) "
		"org.shop.Main.sell java.lang.Thread.run\n"));
	assert_non_null(strstr(
		printed(print_event,
			"{\"event\":\"lock\",\"ts_ns\":1e18,\"pid\":1,\"tid\":2,\"thread\":\"\",\"kind\":\"park\","
			"\"duration_ns\":2e9,\"open\":true,\"lock\":{\"class\":null,\"id\":null},\"owner\":null,"
			"\"stack\":[]}"),
		"lock 2s so far park (unnamed)\n"));
}

#define TARGET \
	"{\"pid\":7,\"name\":\"Shop\",\"state\":\"streaming\",\"collected\":true,\"seconds\":60,"

static const char some_locks[] =
	"{\"targets\":[" TARGET
	"\"waits\":1305,\"open\":2,\"min_wait_ns\":1e6,\"total_ns\":3e9,\"n_locks\":3,\"short_waits\":10572,"
	"\"short_waits_ns\":1.2e9,\"idle_waits\":21400,\"lost\":1,\"lost_ns\":2e6,\"locks\":["
	"{\"lock\":{\"class\":\"org.shop.Main$Stock\",\"id\":\"f\"},\"kind\":\"enter\",\"waits\":4,\"open\":1,"
	"\"total_ns\":2e9,\"longest_ns\":1e9,\"waiters\":[{\"tid\":1,\"thread\":\"w1\"},"
	"{\"tid\":null,\"virtual_id\":7,\"thread\":\"virtual #7\"}],\"more_waiters\":true,"
	"\"waiters_at\":[{\"frame\":\"org.shop.Main.sellEverythingThatIsLeft\",\"ns\":1,\"stack\":[\"a.B.c\"]},{\"frame\":\"x.Y.z\"}],"
	"\"owners\":[{\"tid\":3,\"thread\":\"own<er>\",\"ns\":5e8}],\"owners_at\":[{\"frame\":\"org.shop.Main.count\"}]},"
	"{\"lock\":{\"class\":\"B\",\"id\":null},\"kind\":\"park\",\"idle\":true},"
	"{\"lock\":{\"class\":\"C\",\"id\":null},\"kind\":\"park\"}]}]}";

static void locks_are_a_table(void **state)
{
	const char *out = printed(print_locks, some_locks);

	(void)state;
	assert_non_null(strstr(
		out, "7 Shop: last 60 s: 1,305 waits of 1 ms and more and 2 that go on (3 s); "
		     "10,572 shorter (1.2 s); 21,400 idle, not shown; 1 lost on the way (2 ms)\n"));
	assert_non_null(strstr(
		out, "LOCK                ID KIND        WAITS NOW TOTAL LONGEST WAITERS AT"));
	assert_non_null(strstr(out,
			       "org.shop.Main$Stock f  enter           4   1    2s      1s "
			       "org.shop.Main.sellEverythingThatIsLeft, x.Y.z org.shop.Main.count "
			       "w1, virtual #7, ... own<er>\n"));
	assert_non_null(strstr(out, "B                   -  park (idle)"));
	assert_non_null(strstr(out, "and 1 more locks; -n shows more\n"));
}

static void locks_fit_80_columns(void **state)
{
	const char *out = printed(print_narrow, some_locks), *end;

	(void)state;
	out = strchr(out, '\n') + 1; /* the line above is wrapped by the terminal */
	assert_non_null(
		strstr(out, "LOCK  KIND  WAITS NOW TOTAL LONGEST WAITERS AT         OWNERS AT\n"));
	assert_non_null(strstr(
		out, "Stock enter     4   1    2s      1s \u2026rythingThatIsLeft Main.count\n"
		     "  f: w1, virtual #7, ...; held by own<er>\n"));
	assert_non_null(strstr(out, "  -, idle: -\n"));
	for (; (end = strchr(out, '\n')); out = end + 1)
		assert_true(end - out <= 80 + 2); /* an ellipsis is three bytes */
}

static void classes_of_locks_are_a_table(void **state)
{
	const char *out;

	(void)state;
	out = printed(
		print_locks,
		"{\"targets\":[" TARGET
		"\"waits\":6,\"open\":0,\"total_ns\":3e9,\"n_classes\":4,\"classes\":["
		"{\"class\":\"A\",\"locks\":340,\"more_locks\":true,\"kind\":\"enter\",\"waits\":4,\"open\":1,"
		"\"total_ns\":2e9,\"longest_ns\":1e9,\"waiters\":[{\"tid\":1,\"thread\":\"w1\"}],"
		"\"owners\":[{\"tid\":2,\"thread\":\"o2\"}]},"
		"{\"class\":null,\"locks\":2,\"more_locks\":false,\"kind\":\"park\"},"
		"{\"class\":\"C\",\"locks\":1,\"kind\":\"park\"}]}]}");
	assert_non_null(strstr(
		out,
		"CLASS     LOCKS KIND  WAITS NOW TOTAL LONGEST WAITERS AT OWNERS AT WAITERS OWNERS"));
	assert_non_null(strstr(
		out,
		"A          340+ enter     4   1    2s      1s -          -         w1      o2\n"));
	assert_non_null(strstr(out, "(unnamed)     2 park "));
	assert_non_null(strstr(out, "and 2 more classes; -n shows more\n"));
}

static void a_page_has_all_of_it_while_nobody_waits(void **state)
{
	cJSON *o = parsed(some_locks);
	size_t len;

	(void)state;
	text = lock_html(o, &len);
	assert_int_equal(strlen(text), len);
	assert_non_null(strstr(text, "10,572 shorter"));
	assert_non_null(strstr(text, "org.shop.Main$Stock@f"));
	assert_non_null(strstr(text, "waited at org.shop.Main.sellEverythingThatIsLeft"));
	assert_non_null(strstr(text, "<pre>a.B.c\n</pre>"));
	assert_non_null(strstr(text, "The stack is no longer kept."));
	assert_non_null(strstr(text, "who kept whom waiting"));
	assert_non_null(strstr(text, "own&lt;er&gt;"));
	assert_null(strstr(text, "<er>"));
	assert_non_null(strstr(text, "Nobody waits for long right now."));
	assert_null(strstr(text, "<script"));
	cJSON_Delete(o);
}

static void threads_are_told_by_what_numbers_they_have(void **state)
{
	static const struct {
		const char *json, *words;
	} threads[] = {
		{ "{\"tid\":4711,\"ns_tid\":7,\"thread\":\"w\"}", "\"w\" (4711)" },
		{ "{\"tid\":null,\"ns_tid\":7,\"thread\":\"w\"}", "\"w\" (7 in its container)" },
		{ "{\"tid\":null,\"virtual_id\":53,\"thread\":\"w\"}", "\"w\" (virtual #53)" },
		{ "{\"tid\":null,\"virtual_id\":53,\"thread\":\"virtual #53\"}", "virtual #53" },
		{ "{\"tid\":null,\"virtual_id\":null,\"thread\":\"[unnamed virtual threads]\"}",
		  "[unnamed virtual threads]" },
		{ "{\"tid\":4711,\"thread\":\"\"}", "thread 4711" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		cJSON *o = parsed(threads[i].json);
		char words[100];

		thread_text(o, "thread", words, sizeof(words));
		assert_string_equal(words, threads[i].words);
		cJSON_Delete(o);
	}
}

static void virtual_threads_are_part_of_the_graph(void **state)
{
	(void)state;
	assert_string_equal(
		printed(print_graph,
			"{\"targets\":[" TARGET "\"graph\":{\"n_waits\":2,\"waits\":["
			"{\"tid\":null,\"virtual_id\":7,\"thread\":\"virtual #7\",\"kind\":\"enter\",\"waiting_ns\":2e9,"
			"\"lock\":{\"class\":\"L\",\"id\":\"1\"},\"owner\":{\"tid\":null,\"virtual_id\":8,\"thread\":\"virtual #8\"}},"
			"{\"tid\":null,\"virtual_id\":8,\"thread\":\"virtual #8\",\"kind\":\"enter\",\"waiting_ns\":2e9,"
			"\"lock\":{\"class\":\"L\",\"id\":\"2\"},\"owner\":{\"tid\":8,\"thread\":\"hog\"}}],"
			"\"blockers\":[{\"tid\":8,\"thread\":\"hog\",\"behind\":2}]}}]}"),
		"7 Shop: 2 threads wait long\n"
		"\"hog\" (8) keeps 2 threads waiting\n"
		"  virtual #8: enter of L@2 for 2s\n"
		"    virtual #7: enter of L@1 for 2s\n");
}

static void an_empty_answer_says_why(void **state)
{
	(void)state;
	assert_string_equal(printed(print_locks, "{\"targets\":[]}"),
			    "no JVM is being profiled; `kindling status` says why\n");
	assert_string_equal(printed(print_locks, "{\"targets\":[" TARGET "\"locks\":[]}]}"),
			    "7 Shop: last 60 s: 0 waits (0 us)\n");
	assert_non_null(
		strstr(printed(print_locks, "{\"targets\":[{\"pid\":7,\"name\":\"S\",\"state\":"
					    "\"streaming\",\"collected\":false,\"locks\":[]}]}"),
		       "waits are not collected in this JVM"));
	assert_string_equal(printed(print_locks,
				    "{\"targets\":[{\"pid\":7,\"name\":\"S\",\"state\":\"failed\","
				    "\"locks\":[]}]}"),
			    "7 S: it is failed; `kindling status` says why\n");
	assert_string_equal(
		printed(print_graph, "{\"targets\":[" TARGET "\"graph\":{\"waits\":[]}}]}"),
		"7 Shop: nobody waits for long right now\n");
	assert_string_equal(printed(print_threads,
				    "{\"targets\":[{\"pid\":7,\"name\":\"S\",\"state\":\"found\","
				    "\"threads\":[]}]}"),
			    "7 S: no threads are known. The JVM is found, and `kindling status` "
			    "says more\n");
}

#define WAIT(tid, name, kind, owner, more)                                                    \
	"{\"tid\":" #tid ",\"thread\":\"" name "\",\"kind\":\"" kind "\",\"waiting_ns\":2e9," \
	"\"lock\":{\"class\":\"L\",\"id\":\"" #tid "\"},\"owner\":" owner ",\"stack\":[]" more "}"
#define OWNER(tid) "{\"tid\":" #tid ",\"thread\":\"t" #tid "\"}"
#define DEAD	   ",\"cycle\":1,\"deadlock\":true"

static const char deadlock[] =
	"{\"targets\":[" TARGET
	"\"graph\":{\"n_waits\":6,\"deadlocks\":1,\"waits\":[" WAIT(1, "a", "enter", OWNER(2), DEAD) "," WAIT(
		2, "b", "park", OWNER(1),
		DEAD) "," WAIT(3, "c", "enter", OWNER(2),
			       "") "," WAIT(4, "d", "enter", OWNER(9),
					    "") "," WAIT(5, "e<b>&\\\"'", "park", OWNER(4),
							 "") "," WAIT(6, "f", "wait", OWNER(9),
								      "") "],\"blockers\":[{\"tid\":9,\"thread\":\"hog\",\"behind\":2}]}}]}";

static void the_graph_is_a_tree(void **state)
{
	(void)state;
	assert_string_equal(printed(print_graph, deadlock),
			    "7 Shop: 6 threads wait long, 1 DEADLOCK\n"
			    "deadlock: each of these waits for the next, the last for the first\n"
			    "  \"a\" (1): enter of L@1 for 2s\n"
			    "  \"b\" (2): park of L@2 for 2s\n"
			    "    \"c\" (3): enter of L@3 for 2s\n"
			    "\"hog\" (9) keeps 2 threads waiting\n"
			    "  \"d\" (4): enter of L@4 for 2s\n"
			    "    \"e<b>&\"'\" (5): park of L@5 for 2s\n"
			    "waiting; the owner is not known\n"
			    "  \"f\" (6): wait of L@6 for 2s\n");
}

static void a_drawing_has_no_markup_from_outside(void **state)
{
	cJSON *o = parsed(deadlock);
	size_t len;

	(void)state;
	text = lock_svg(o, &len);
	assert_non_null(strstr(text, "e&lt;b&gt;&amp;&quot;&#39;"));
	assert_null(strstr(text, "<b>"));
	assert_non_null(strstr(text, "class=\"dead\""));
	assert_non_null(strstr(text, "class=\"arc\""));
	assert_int_equal(strlen(text), len);
	free(text);
	text = lock_html(o, &len);
	assert_null(strstr(text, "<b>"));
	assert_null(strstr(text, "<script"));
	assert_non_null(strstr(text, "default-src 'none'"));
	assert_non_null(strstr(text, "<svg "));
	cJSON_Delete(o);
}

static void more_than_fits_is_counted(void **state)
{
	char *json = malloc(1 << 20);
	struct graph_rows rows;
	size_t len = 0;
	cJSON *o;

	(void)state;
	len += (size_t)sprintf(json + len, "{\"n_waits\":3000,\"waits\":[");
	for (int i = 1; i <= 2000; i++)
		len += (size_t)sprintf(json + len,
				       "%s{\"tid\":%d,\"kind\":\"enter\",\"owner\":{\"tid\":%d}}",
				       i > 1 ? "," : "", i, i + 1);
	sprintf(json + len, "],\"blockers\":[{\"tid\":2001,\"behind\":2000}]}");
	o = parsed(json);
	assert_true(graph_rows_new(o, &rows));
	assert_true(rows.n <= GRAPH_ROWS_MAX);
	assert_int_equal(rows.rows[rows.n - 1].kind, GRAPH_MORE);
	assert_int_equal(rows.rows[rows.n - 1].number + (double)(rows.n - 2), 3000);
	graph_rows_free(&rows);
	cJSON_Delete(o);
	free(json);
}

static void threads_come_in_the_order_asked_for(void **state)
{
	const char *out;

	(void)state;
	out = printed(
		print_threads,
		"{\"targets\":[" TARGET
		"\"virtual_threads\":3,\"virtual\":[{\"container\":\"pool\","
		"\"state\":\"waiting\",\"count\":3,\"mounted\":0,\"class\":\"Q\"}],\"threads\":["
		"{\"tid\":1,\"name\":\"low\",\"state\":\"running\",\"cpu\":0.5,\"wait\":0},"
		"{\"tid\":2,\"name\":\"mid\",\"state\":\"waiting\",\"wait\":0.1,\"waiting\":{\"kind\":"
		"\"enter\",\"ns\":2e9,\"lock\":{\"class\":\"L\",\"id\":\"1\"},\"owner\":{\"tid\":3,"
		"\"thread\":\"top\"}}},"
		"{\"tid\":null,\"virtual_id\":55,\"virtual\":true,\"java_id\":55,\"name\":\"top\",\"state\":\"unknown\","
		"\"wait\":0.9,\"last_lock\":{\"class\":\"M\",\"id\":\"2\"}}]}]}");
	assert_non_null(strstr(out, "7 Shop: 3 threads, shares of the last 60 s\n"));
	assert_non_null(strstr(out, "3 virtual threads: 3 waiting for Q (pool)\n"));
	assert_true(strstr(out, "#55 top") < strstr(out, "2 mid"));
	assert_non_null(strstr(out, "2s enter L@1 of \"top\" (3)"));
	assert_non_null(strstr(out, "and 1 more threads\n"));
	assert_null(strstr(out, "low"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(durations_are_short, forget),
		cmocka_unit_test_teardown(a_wait_is_one_line, forget),
		cmocka_unit_test_teardown(locks_are_a_table, forget),
		cmocka_unit_test_teardown(locks_fit_80_columns, forget),
		cmocka_unit_test_teardown(classes_of_locks_are_a_table, forget),
		cmocka_unit_test_teardown(a_page_has_all_of_it_while_nobody_waits, forget),
		cmocka_unit_test_teardown(threads_are_told_by_what_numbers_they_have, forget),
		cmocka_unit_test_teardown(virtual_threads_are_part_of_the_graph, forget),
		cmocka_unit_test_teardown(an_empty_answer_says_why, forget),
		cmocka_unit_test_teardown(the_graph_is_a_tree, forget),
		cmocka_unit_test_teardown(a_drawing_has_no_markup_from_outside, forget),
		cmocka_unit_test_teardown(more_than_fits_is_counted, forget),
		cmocka_unit_test_teardown(threads_come_in_the_order_asked_for, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The sum in the header of every format equals that of its body, whatever was filtered out. */
#include "tests/unit/unit.h"
#include "tests/unit/jfr_packed.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <zlib.h>
#include "daemon/report/report.h"
#include "pprof.pb-c.h"

#define CPU  (1u << WIRE_EVENT_CPU)
#define LOCK (1u << WIRE_EVENT_LOCK)

struct sums {
	uint64_t samples, weight;
};

static uint32_t on_stack(struct profile *p, const char *method)
{
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = -1 };

	f.class_name = profile_string(p, "org.shop.Cart");
	f.method = profile_string(p, method);
	return profile_node(p, 0, profile_intern_frame(p, &f));
}

static void add(struct profile *p, uint32_t thread, const char *method, struct profile_row row)
{
	struct profile_process *q = (struct profile_process *)(uintptr_t)p->processes;
	struct profile_losses *l = &q->accounts.of[row.event];

	row.thread = thread;
	row.node = on_stack(p, method);
	profile_add_row(p, &row);
	/* in the way in which they are counted when they arrive */
	for (int i = 0; i < 2; i++, l = &p->accounts.of[row.event]) {
		l->taken += row.samples;
		l->delivered += row.samples;
		l->taken_weight += row.weight;
		l->delivered_weight += row.weight;
	}
}

/* CPU time of two threads at intervals that change, and waits, some of them idle. Samples were
 * lost. */
static struct profile *example(void)
{
	const struct profile_accounts lost = { .of = { { 3, 60000000, 0, 0, 3, 60000000, 0 },
						       { 1, 9, 0, 0, 1, 9, 0 } } };
	struct profile_process q = { .pid = 7, .start_time = 1 };
	struct profile_thread t = { .tid = 8 };
	struct profile *p;
	uint32_t one, two;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1000000000;
	p->end_real_ns = 3000000000;
	/* only once: nothing else in the file is about it */
	p->interval[WIRE_EVENT_CPU] = 114000000;
	p->interval[WIRE_EVENT_LOCK] = 1000000;
	q.name = profile_string(p, "org.shop.Main");
	q.note = profile_string(p, "shares of short runs may be off");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "worker-one");
	one = profile_thread(p, &t);
	t.name = profile_string(p, "worker-two");
	two = profile_thread(p, &t);
	profile_add_accounts(p, 0, &lost);
	profile_add_cpu(p, 0, 2000000000);
	add(p, one, "total", (struct profile_row){ .samples = 70, .weight = 700000001 });
	add(p, one, "price", (struct profile_row){ .samples = 3, .weight = 342000000 });
	add(p, two, "total", (struct profile_row){ .samples = 29, .weight = 858000000 });
	for (int idle = 0; idle < 2; idle++)
		for (uint32_t i = 0; i < 2; i++)
			add(p, i ? one : two, "await",
			    (struct profile_row){ .event = WIRE_EVENT_LOCK,
						  .wait = WIRE_WAIT_PARK,
						  .idle = idle,
						  .samples = 5 + i,
						  .weight = 77000000 });
	return p;
}

static struct profile *part_of(const char *thread)
{
	const struct profile_filter filter = { .thread = thread };
	struct profile *all = example(), *part;

	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, all, &filter), 0);
	profile_free(all);
	return part;
}

/* ---- the sums of the bodies ------------------------------------------------------------------ */

static struct sums rows_of_json(const cJSON *json)
{
	struct sums s = { 0 };
	const cJSON *row;

	cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "rows"))
	{
		s.samples += (uint64_t)cJSON_GetArrayItem(row, 2)->valuedouble;
		s.weight += (uint64_t)cJSON_GetArrayItem(row, 3)->valuedouble;
	}
	return s;
}

/* Under "self s  self%  total s  total%  samples  method": each stack is one method here. */
static struct sums rows_of_txt(const char *out)
{
	static const char head[] = " method\n";
	const char *table = strstr(out, head);
	struct sums s = { 0 };
	unsigned long long n;
	double seconds;

	assert_non_null(table);
	for (const char *line = table + strlen(head);
	     line[0] && sscanf(line, "%lf %*f%% %*f %*f%% %llu", &seconds, &n) == 2;
	     line += strcspn(line, "\n") + 1) {
		s.samples += n;
		s.weight += (uint64_t)(seconds * 1000 + 0.5); /* the file shows ms */
	}
	return s;
}

static struct sums lines_of_collapsed(const char *out)
{
	struct sums s = { 0 };

	for (const char *at = out; *at; at = strchr(at, '\n') + 1)
		s.weight += strtoull(strchr(at, ' ') + 1, NULL, 10);
	return s;
}

static Pprof__Profile *unpacked(const char *out, size_t len)
{
	static uint8_t bytes[1 << 20];
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)out,
		       .avail_in = (uInt)len,
		       .next_out = bytes,
		       .avail_out = sizeof(bytes) };

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return pprof__profile__unpack(NULL, z.total_out, bytes);
}

struct jfr_sums {
	struct sums rows, said, lost;
	uint64_t samples, interval, process_cpu_ns;
	bool summary;
};

/* Types of jfr_priv.h: 101 jdk.ExecutionSample, 110 kindling.CpuTime, 111 kindling.Accounts. */
static struct jfr_sums sums_of_jfr(const char *out, size_t len, const char *summary)
{
	struct jfr_sums s = { 0 };

	for (const char *at = out + 68, *next; at < out + len; at = next) {
		const char *p = at;
		uint64_t v[12], type;

		next = at + packed(&p);
		type = packed(&p);
		for (int i = 0; i < 10 && (type == 110 || type == 111); i++)
			v[i] = p < next ? packed(&p) : 0;
		s.samples += type == 101;
		if (type == 110) {
			s.rows.samples += v[3];
			s.rows.weight += v[4];
		} else if (type == 111) {
			s.lost = (struct sums){ v[3], v[4] };
			s.interval = v[5];
			s.said = (struct sums){ v[6], v[7] };
			s.process_cpu_ns = v[8];
			s.summary = memmem(at, (size_t)(next - at), summary, strlen(summary));
		}
	}
	return s;
}

/* ---- the formats ----------------------------------------------------------------------------- */

static void says(const char *out, const char *text)
{
	if (!strstr(out, text))
		fail_msg("\"%s\" is not in: %s", text, out);
}

__attribute__((noinline)) /* gcc 12 thinks that what it returns points to its local */
static char *
written(const struct profile *p, enum report_format format, unsigned events, size_t *len)
{
	const struct report_options o = { .events = events };
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, len), 0);
	return out;
}

static double number(const cJSON *json, const char *object, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(cJSON_GetObjectItem(json, object), key);

	assert_true(cJSON_IsNumber(v));
	return v->valuedouble;
}

static void check_json(const struct profile *p, unsigned event, struct sums expected,
		       const char *rate, const char *absent)
{
	size_t len;
	char *out = written(p, REPORT_JSON, event, &len);
	cJSON *json = cJSON_Parse(out);
	struct sums s = rows_of_json(json);

	assert_int_equal(s.samples, expected.samples);
	assert_int_equal(s.weight, expected.weight);
	assert_int_equal(number(json, "view", "samples"), expected.samples);
	assert_int_equal(number(json, "view", "weight_ns"), expected.weight);
	assert_string_equal(cJSON_GetObjectItem(json, "rate")->valuestring, rate);
	assert_string_equal(cJSON_GetObjectItem(json, "absent")->valuestring, absent);
	assert_int_equal(number(json, "losses", "taken"),
			 number(json, "losses", "delivered") + number(json, "losses", "dropped"));
	assert_int_equal(number(json, "losses", "taken_ns"),
			 number(json, "losses", "delivered_ns") +
				 number(json, "losses", "dropped_ns"));
	cJSON_Delete(json);
	free(out);
	out = written(p, REPORT_HTML, event, &len);
	says(out, rate);
	free(out);
}

/* @rate: the header's text after the sum; @absent: its text about missing data. */
static void check(const struct profile *p, unsigned event, struct sums expected, const char *sum,
		  const char *rate, const char *absent)
{
	struct sums s;
	char text[300];
	size_t len;
	char *out;

	check_json(p, event, expected, rate, absent);
	snprintf(text, sizeof(text), ", %s, %s\n", sum, rate);
	out = written(p, REPORT_TXT, event, &len);
	says(out, text);
	says(out, absent);
	s = rows_of_txt(out);
	assert_int_equal(s.samples, expected.samples);
	assert_int_equal(s.weight, (expected.weight + 500000) / 1000000);
	free(out);

	out = written(p, REPORT_COLLAPSED, event, &len);
	assert_int_equal(lines_of_collapsed(out).weight, expected.weight);
	free(out);
}

static void check_pprof(const struct profile *p, struct sums expected, const char *sum,
			const char *rate)
{
	struct sums s = { 0 };
	char text[300];
	size_t len;
	char *out = written(p, REPORT_PPROF, CPU, &len);
	Pprof__Profile *u = unpacked(out, len);

	assert_non_null(u);
	for (size_t i = 0; i < u->n_sample; i++) {
		s.samples += (uint64_t)u->sample[i]->value[0];
		s.weight += (uint64_t)u->sample[i]->value[1];
	}
	assert_int_equal(s.samples, expected.samples);
	assert_int_equal(s.weight, expected.weight);
	assert_int_equal(u->period, expected.weight / expected.samples);
	/* the second line is for programs that read the file back */
	assert_int_equal(u->n_comment, 2);
	assert_string_equal(u->string_table[u->default_sample_type], "cpu");
	assert_string_equal(u->string_table[u->mapping[0]->filename], "org.shop.Main");
	snprintf(text, sizeof(text),
		 "kindling: %s, %s; "
		 "105 samples taken = 102 delivered + 3 dropped (0.060 s dropped)",
		 sum, rate);
	says(u->string_table[u->comment[0]], text);
	says(u->string_table[u->comment[0]], "; shares of short runs may be off");
	pprof__profile__free_unpacked(u, NULL);
	free(out);
}

static void check_jfr(const struct profile *p, struct sums expected, const char *rate)
{
	size_t len;
	char *out = written(p, REPORT_JFR, CPU, &len);
	struct jfr_sums s = sums_of_jfr(out, len, rate);

	assert_int_equal(s.samples, expected.samples);
	assert_memory_equal(&s.rows, &expected, sizeof(expected));
	assert_memory_equal(&s.said, &expected, sizeof(expected));
	assert_int_equal(s.lost.samples, 3);
	assert_int_equal(s.lost.weight, 60000000);
	assert_int_equal(s.interval, expected.weight / expected.samples);
	assert_int_equal(s.process_cpu_ns, 2000000000);
	assert_true(s.summary);
	free(out);
}

static void every_header_is_what_its_body_adds_up_to(void **state)
{
	static const struct sums all = { 102, 1900000001 };
	static const char rate[] = "102 samples, mean interval 18.6 ms, "
				   "coverage 95.0 % of the 2.000 s used";
	struct profile *p = example();

	(void)state;
	check(p, CPU, all, "1.900 s of CPU", rate, "");
	check_pprof(p, all, "1.900 s of CPU", rate);
	check_jfr(p, all, rate);
	check(p, LOCK, (struct sums){ 11, 154000000 }, "0.154 s of waiting",
	      "11 waits of 1 ms and more, mean wait 14 ms",
	      "11 waits of threads that were idle, 0.154 s in all, not shown; --idle shows them\n");
	profile_free(p);
}

static void a_filter_by_thread_is_in_header_and_body_alike(void **state)
{
	static const struct sums one = { 73, 1042000001 };
	/* coverage is of all its threads, because the kernel counts their CPU time together */
	static const char rate[] = "73 samples, mean interval 14.3 ms, "
				   "coverage 95.0 % of the 2.000 s used";
	struct profile *p = part_of("worker-one");

	(void)state;
	check(p, CPU, one, "1.042 s of CPU", rate,
	      "29 samples of other threads, 0.858 s in all, not shown\n");
	check_pprof(p, one, "1.042 s of CPU", rate);
	check_jfr(p, one, rate);
	check(p, LOCK, (struct sums){ 6, 77000000 }, "0.077 s of waiting",
	      "6 waits of 1 ms and more, mean wait 12.8 ms",
	      "6 waits of threads that were idle, 0.077 s in all, not shown; --idle shows them\n"
	      "10 waits of other threads, 0.154 s in all, not shown\n");
	profile_free(p);
}

static void a_view_with_nothing_in_it_says_so(void **state)
{
	struct profile *p = part_of("nobody");
	size_t len;
	char *out = written(p, REPORT_TXT, CPU, &len);

	(void)state;
	says(out, ", 0.000 s of CPU, 0 samples, coverage 95.0 %");
	says(out, "102 samples of other threads");
	free(out);
	profile_free(p);
}

/* The number of the first sample's label @key; -1 = it has no such label. */
static int64_t number_in_label(const Pprof__Profile *u, const char *key)
{
	for (size_t i = 0; i < u->sample[0]->n_label; i++)
		if (strcmp(u->string_table[u->sample[0]->label[i]->key], key) == 0)
			return u->sample[0]->label[i]->num;
	return -1;
}

static void pprof_names_virtual_threads_by_their_ids(void **state)
{
	static const struct {
		uint32_t tid;
		int64_t number, id;
	} threads[] = { { 8, 8, -1 },
			{ WIRE_VIRTUAL_TID + 53, -1, 53 },
			{ WIRE_VIRTUAL_TID, -1, -1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		struct profile *p = example();
		struct profile_thread *t = (struct profile_thread *)(uintptr_t)p->threads;
		Pprof__Profile *u;
		size_t len;
		char *out;

		for (uint32_t k = 0; k < p->n_threads; k++)
			t[k].tid = threads[i].tid;
		out = written(p, REPORT_PPROF, CPU, &len);
		u = unpacked(out, len);
		assert_non_null(u);
		assert_int_equal(number_in_label(u, "tid"), threads[i].number);
		assert_int_equal(number_in_label(u, "virtual_id"), threads[i].id);
		pprof__profile__free_unpacked(u, NULL);
		free(out);
		profile_free(p);
	}
}

/* The number of strings in the table that equal @text. */
static unsigned strings_like(const Pprof__Profile *u, const char *text)
{
	unsigned n = 0;

	for (size_t i = 0; i < u->n_string_table; i++)
		n += strcmp(u->string_table[i], text) == 0;
	return n;
}

static void pprof_has_only_strings_that_something_names(void **state)
{
	struct profile *p = example();
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = 7 };
	struct profile_row row = { .samples = 1, .weight = 1000000 };
	const Pprof__Function *fn;
	unsigned found = 0;
	Pprof__Profile *u;
	size_t len;
	char *out;

	(void)state;
	f.class_name = profile_string(p, "org.shop.Cart\xc3");
	f.method = profile_string(p, "addAll");
	f.signature = profile_string(p, "(I)V");
	f.file = profile_string(p, "Cart.java");
	row.node = profile_node(p, 0, profile_intern_frame(p, &f));
	profile_add_row(p, &row);
	out = written(p, REPORT_PPROF, CPU, &len);
	u = unpacked(out, len);
	assert_non_null(u);
	assert_int_equal(strings_like(u, "addAll"), 0);
	assert_int_equal(strings_like(u, "(I)V"), 0);
	assert_int_equal(strings_like(u, "Cart.java"), 1);
	for (uint32_t i = 0; i < p->n_threads; i++)
		assert_int_equal(strings_like(u, p->strings[p->threads[i].name]), 1);
	assert_int_equal(u->n_function, u->n_location);
	for (size_t i = 0; i < u->n_function; i++) {
		fn = u->function[i];
		assert_int_equal(fn->id, i + 1);
		assert_int_equal(u->location[i]->id, fn->id);
		assert_int_equal(u->location[i]->line[0]->function_id, fn->id);
		if (strcmp(u->string_table[fn->name], "org.shop.Cart.addAll") != 0)
			continue;
		found++;
		assert_string_equal(u->string_table[fn->system_name],
				    "org.shop.Cart.addAll(I)V [c2]");
		assert_string_equal(u->string_table[fn->filename], "Cart.java");
		assert_int_equal(u->location[i]->line[0]->line, 7);
	}
	assert_int_equal(found, 1);
	pprof__profile__free_unpacked(u, NULL);
	free(out);
	profile_free(p);
}

static void pprof_opens_with_cpu_time_of_the_program_also_beside_waits(void **state)
{
	struct profile *p = example();
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1 };
	struct profile_row row = { .samples = 1, .weight = 1000000 };
	Pprof__Profile *u;
	size_t len;
	char *out;

	(void)state;
	f.method = profile_string(p, "Parker::park(bool, long)");
	f.module = profile_string(p, "/usr/lib/jvm/lib/server/libjvm.so");
	row.node = profile_node(p, 0, profile_intern_frame(p, &f));
	profile_add_row(p, &row);
	out = written(p, REPORT_PPROF, CPU | LOCK, &len);
	u = unpacked(out, len);
	assert_non_null(u);
	assert_string_equal(u->string_table[u->default_sample_type], "cpu");
	assert_int_equal(u->n_mapping, 2);
	assert_string_equal(u->string_table[u->mapping[0]->filename], "org.shop.Main");
	for (size_t i = 0; i < u->n_location; i++)
		assert_in_range(u->location[i]->mapping_id, i + 1 == u->n_location ? 0 : 1, 2);
	pprof__profile__free_unpacked(u, NULL);
	free(out);
	/* programs that read JFR print class.method() */
	out = written(p, REPORT_JFR, CPU, &len);
	assert_non_null(memmem(out, len, "\3\11libjvm.so", 11));
	assert_non_null(memmem(out, len, "\3\14Parker::park", 14));
	assert_null(memmem(out, len, "Parker::park(", 13));
	free(out);
	profile_free(p);
}

static void the_note_is_in_every_header_of_cpu_time(void **state)
{
	static const enum report_format formats[] = { REPORT_HTML, REPORT_TXT, REPORT_JSON };
	struct profile *p = example();
	size_t len;
	char *out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		out = written(p, formats[i], CPU, &len);
		says(out, "shares of short runs may be off");
		free(out);
		out = written(p, formats[i], LOCK, &len);
		assert_null(strstr(out, "shares of short runs"));
		free(out);
	}
	out = written(p, REPORT_JFR, CPU, &len);
	assert_non_null(memmem(out, len, "shares of short runs may be off", 31));
	free(out);
	profile_free(p);
}

/* @note: one of PROFILE_NOTE_... */
static void is_in_reports_of_times_off_the_cpu_alone(const char *note)
{
	static const enum report_format formats[] = { REPORT_HTML, REPORT_TXT, REPORT_JSON };
	struct profile_process q = { .pid = 9, .start_time = 1 };
	struct profile_thread t = { .tid = 9 };
	struct profile *p = example();
	size_t len;
	char *out;

	q.note = profile_string(p, note);
	t.process = profile_process(p, &q);
	add(p, profile_thread(p, &t), "await",
	    (struct profile_row){ .event = WIRE_EVENT_OFFCPU, .samples = 1, .weight = 9000000 });
	q.pid = 10; /* said once of all */
	profile_process(p, &q);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		out = written(p, formats[i], CPU, &len);
		assert_null(strstr(out, note));
		says(out, "shares of short runs may be off");
		free(out);
		out = written(p, formats[i], 1u << WIRE_EVENT_OFFCPU, &len);
		says(out, note);
		assert_null(strstr(out, "shares of short runs"));
		free(out);
	}
	out = written(p, REPORT_TXT, 1u << WIRE_EVENT_OFFCPU, &len);
	assert_null(strstr(strstr(out, note) + 1, note));
	free(out);
	profile_free(p);
}

static void a_note_about_times_off_the_cpu_is_in_their_reports_alone(void **state)
{
	(void)state;
	is_in_reports_of_times_off_the_cpu_alone(PROFILE_NOTE_OFFCPU);
	is_in_reports_of_times_off_the_cpu_alone(PROFILE_NOTE_SPARED);
	is_in_reports_of_times_off_the_cpu_alone(PROFILE_NOTE_QUEUED);
	is_in_reports_of_times_off_the_cpu_alone(PROFILE_NOTE_SPARED_QUEUED);
}

static void coverage_is_not_said_where_a_part_of_the_cpu_time_is_unknown(void **state)
{
	struct profile *p = example();
	size_t len;
	char *out;

	(void)state;
	p->cpu_unknown = true;
	out = written(p, REPORT_TXT, CPU, &len);
	says(out, "102 samples, mean interval 18.6 ms\n");
	free(out);
	profile_free(p);
}

static void a_file_of_nothing_is_valid_and_says_so(void **state)
{
	static const enum report_format with_json[] = { REPORT_JSON, REPORT_SPEEDSCOPE,
							REPORT_OTLP_JSON };
	struct profile *p;
	cJSON *json;
	size_t len;
	char *out;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	out = written(p, REPORT_TXT, CPU, &len);
	assert_string_equal(out,
			    "nothing was recorded of these JVMs in that time: the newest samples "
			    "arrive within a second, and `kindling status` tells why a JVM is "
			    "not profiled\n");
	free(out);
	for (size_t i = 0; i < sizeof(with_json) / sizeof(with_json[0]); i++) {
		out = written(p, with_json[i], CPU, &len);
		json = cJSON_ParseWithOpts(out, NULL, true);
		assert_non_null(json);
		cJSON_Delete(json);
		free(out);
	}
	out = written(p, REPORT_HTML, CPU, &len);
	says(out, "{\"title\":\"nothing recorded\",");
	free(out);
	for (int format = 0; format < REPORT_FORMAT_COUNT; format++)
		free(written(p, (enum report_format)format, CPU, &len));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_header_is_what_its_body_adds_up_to),
		cmocka_unit_test(a_filter_by_thread_is_in_header_and_body_alike),
		cmocka_unit_test(a_view_with_nothing_in_it_says_so),
		cmocka_unit_test(a_file_of_nothing_is_valid_and_says_so),
		cmocka_unit_test(pprof_names_virtual_threads_by_their_ids),
		cmocka_unit_test(pprof_has_only_strings_that_something_names),
		cmocka_unit_test(pprof_opens_with_cpu_time_of_the_program_also_beside_waits),
		cmocka_unit_test(the_note_is_in_every_header_of_cpu_time),
		cmocka_unit_test(a_note_about_times_off_the_cpu_is_in_their_reports_alone),
		cmocka_unit_test(coverage_is_not_said_where_a_part_of_the_cpu_time_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

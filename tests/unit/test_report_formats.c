/* speedscope and OTLP files: their sums are right, and every index in them is valid. */
#include "tests/unit/unit.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include "daemon/report/report.h"
#include "otlp.pb-c.h"

#define CPU  (1u << WIRE_EVENT_CPU)
#define LOCK (1u << WIRE_EVENT_LOCK)

static uint32_t node_of(struct profile *p, uint32_t parent, const char *class_name,
			const char *method, uint8_t kind)
{
	struct profile_frame f = { .kind = kind, .line = 7 };

	f.class_name = profile_string(p, class_name);
	f.method = profile_string(p, method);
	f.signature = profile_string(p, "()V");
	f.file = profile_string(p, "Cart.java");
	return profile_node(p, parent, profile_intern_frame(p, &f));
}

static uint32_t thread_of(struct profile *p, uint32_t pid, const char *process, uint32_t tid,
			  const char *name)
{
	struct profile_process q = { .pid = pid, .ns_pid = 1, .start_time = pid };
	struct profile_thread t = { .tid = tid };

	q.name = profile_string(p, process);
	q.pod = profile_string(p, "shop/cart-1");
	q.container_id = profile_string(p, "0123456789ab");
	q.labels = profile_string(p, pid == 7 ? "pod=cart-1\nservice=shop\nteam=a\n" : "");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, name);
	return profile_thread(p, &t);
}

/* Two JVMs, three threads, CPU time and waits; one method is both compiled and interpreted. */
static struct profile *example(void)
{
	struct profile_row wait = {
		.event = WIRE_EVENT_LOCK, .wait = WIRE_WAIT_PARK, .samples = 2, .weight = 9000000
	};
	struct profile *p;
	uint32_t main_thread, worker, other, run, fast, slow;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1700000000000000001ull;
	p->end_real_ns = p->begin_real_ns + 1000000000;
	main_thread = thread_of(p, 7, "org.shop.Main", 8, "main");
	worker = thread_of(p, 7, "org.shop.Main", WIRE_VIRTUAL_TID + 53, "");
	other = thread_of(p, 9, "org.shop.Other", 10, "main \"<\" \xff");
	run = node_of(p, 0, "org.shop.Cart", "run", WIRE_KIND_C2);
	fast = node_of(p, run, "org.shop.Cart", "sum", WIRE_KIND_C2);
	slow = node_of(p, run, "org.shop.Cart", "sum", WIRE_KIND_INTERPRETED);
	profile_add(p, main_thread, fast, 3, 30000000);
	profile_add(p, main_thread, slow, 1, 10000000);
	profile_add(p, worker, fast, 2, 50000000);
	profile_add(p, other, 0, 1, 7000000);
	wait.thread = worker;
	wait.node = run;
	profile_add_row(p, &wait);
	profile_book_rows(p);
	return p;
}

static char *written(enum report_format format, struct report_options o, size_t *len)
{
	struct profile *p = example();
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, len), 0);
	profile_free(p);
	return out;
}

/* ---- speedscope ------------------------------------------------------------------------------ */

static cJSON *speedscope(struct report_options o)
{
	size_t len;
	char *out = written(REPORT_SPEEDSCOPE, o, &len);
	cJSON *json = cJSON_Parse(out);

	assert_non_null(json);
	free(out);
	return json;
}

/* Checks a profile's name, the sum of its weights, that there are as many weights as stacks, and
 * that the stacks' frames exist. */
static double check_speedscope(const cJSON *json, int i, const char *name, const char *unit)
{
	const cJSON *profile = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "profiles"), i);
	const cJSON *samples = cJSON_GetObjectItem(profile, "samples"), *stack, *frame, *weight;
	const cJSON *weights = cJSON_GetObjectItem(profile, "weights");
	int frames = cJSON_GetArraySize(
		cJSON_GetObjectItem(cJSON_GetObjectItem(json, "shared"), "frames"));
	double sum = 0;

	assert_string_equal(cJSON_GetObjectItem(profile, "name")->valuestring, name);
	assert_string_equal(cJSON_GetObjectItem(profile, "unit")->valuestring, unit);
	assert_int_equal(cJSON_GetArraySize(samples), cJSON_GetArraySize(weights));
	cJSON_ArrayForEach(stack, samples)
	{
		assert_true(cJSON_GetArraySize(stack) > 0);
		cJSON_ArrayForEach(frame, stack) assert_in_range(frame->valueint, 0, frames - 1);
	}
	cJSON_ArrayForEach(weight, weights) sum += weight->valuedouble;
	assert_int_equal(sum, cJSON_GetObjectItem(profile, "endValue")->valuedouble);
	return sum;
}

static void speedscope_has_a_profile_for_each_event(void **state)
{
	cJSON *json = speedscope((struct report_options){ .events = CPU | LOCK });

	(void)state;
	assert_int_equal(check_speedscope(json, 0, "CPU", "nanoseconds"), 97000000);
	assert_int_equal(check_speedscope(json, 1, "waiting", "nanoseconds"), 9000000);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "profiles")), 2);
	cJSON_Delete(json);
}

static void speedscope_has_a_profile_for_each_thread(void **state)
{
	cJSON *json = speedscope((struct report_options){ .threads = true });

	(void)state;
	assert_int_equal(check_speedscope(json, 0, "CPU of  virtual #53", "nanoseconds"), 50000000);
	assert_int_equal(check_speedscope(json, 1, "CPU of main tid=8", "nanoseconds"), 40000000);
	assert_int_equal(check_speedscope(json, 2, "CPU of main \"<\"  tid=10", "nanoseconds"),
			 7000000);
	cJSON_Delete(json);
}

static void speedscope_frames_that_print_the_same_are_one(void **state)
{
	cJSON *json = speedscope((struct report_options){ .merge = true });
	const cJSON *frames = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "shared"), "frames");
	const cJSON *stack = cJSON_GetArrayItem(
		cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "profiles"), 0),
				    "samples"),
		1);

	(void)state;
	/* run, sum; two JVMs, which a merged file does not separate; [no stack] */
	assert_int_equal(cJSON_GetArraySize(frames), 5);
	assert_int_equal(cJSON_GetArraySize(stack), 2);
	cJSON_Delete(json);
	json = speedscope((struct report_options){ 0 });
	stack = cJSON_GetArrayItem(
		cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "profiles"), 0),
				    "samples"),
		0);
	assert_int_equal(cJSON_GetArraySize(stack), 3); /* its JVM is the first */
	cJSON_Delete(json);
}

static void speedscope_of_nothing_is_a_file_that_opens(void **state)
{
	cJSON *json = speedscope((struct report_options){ .exclude = "." });

	(void)state;
	assert_int_equal(check_speedscope(json, 0, "CPU", "nanoseconds"), 0);
	cJSON_Delete(json);
}

/* ---- OTLP ------------------------------------------------------------------------------------ */

static Otlp__ExportRequest *otlp(void)
{
	size_t len;
	char *out = written(REPORT_OTLP, (struct report_options){ .events = CPU | LOCK }, &len);
	Otlp__ExportRequest *r = otlp__export_request__unpack(NULL, len, (uint8_t *)out);

	free(out);
	assert_non_null(r);
	return r;
}

static const char *attribute(const Otlp__ProfilesDictionary *d, const int32_t *indices, size_t n,
			     const char *key)
{
	static char number[32];

	for (size_t i = 0; i < n; i++) {
		const Otlp__KeyValueAndUnit *a = d->attribute_table[indices[i]];

		assert_in_range(indices[i], 1, d->n_attribute_table - 1);
		if (strcmp(d->string_table[a->key_strindex], key) != 0)
			continue;
		if (a->value->value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE)
			return a->value->string_value;
		snprintf(number, sizeof(number), "%lld", (long long)a->value->int_value);
		return number;
	}
	return NULL;
}

static int64_t check_otlp_profile(const Otlp__ProfilesDictionary *d, const Otlp__Profile *p,
				  const char *type, const char *samples)
{
	int64_t sum = 0;

	assert_string_equal(d->string_table[p->sample_type->type_strindex], type);
	assert_string_equal(d->string_table[p->sample_type->unit_strindex], "nanoseconds");
	assert_string_equal(
		attribute(d, p->attribute_indices, p->n_attribute_indices, "kindling.samples"),
		samples);
	assert_true(p->period > 0);
	assert_int_equal(p->duration_nano, 1000000000);
	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Stack *stack = d->stack_table[p->samples[i]->stack_index];

		assert_in_range(p->samples[i]->stack_index, 1, d->n_stack_table - 1);
		assert_int_equal(p->samples[i]->n_values, 1);
		assert_true(stack->n_location_indices > 0);
		assert_non_null(attribute(d, p->samples[i]->attribute_indices,
					  p->samples[i]->n_attribute_indices, "thread.name"));
		sum += p->samples[i]->values[0];
	}
	return sum;
}

static void otlp_has_a_resource_for_each_jvm_and_a_profile_for_each_event(void **state)
{
	Otlp__ExportRequest *r = otlp();
	const Otlp__ProfilesDictionary *d = r->dictionary;
	Otlp__Profile **of;

	(void)state;
	assert_int_equal(r->n_resource_profiles, 2);
	of = r->resource_profiles[0]->scope_profiles[0]->profiles;
	assert_int_equal(r->resource_profiles[0]->scope_profiles[0]->n_profiles, 2);
	assert_int_equal(check_otlp_profile(d, of[0], "cpu", "6"), 90000000);
	assert_int_equal(check_otlp_profile(d, of[1], "delay", "2"), 9000000);
	assert_int_equal(of[0]->period, 15000000);
	/* a method that ran both interpreted and compiled is one sample of its thread */
	assert_int_equal(of[0]->n_samples, 2);
	assert_int_equal(of[0]->samples[0]->values[0], 40000000);
	assert_string_equal(attribute(d, of[1]->samples[0]->attribute_indices,
				      of[1]->samples[0]->n_attribute_indices, "kindling.wait"),
			    "park");
	of = r->resource_profiles[1]->scope_profiles[0]->profiles;
	assert_int_equal(check_otlp_profile(d, of[0], "cpu", "1"), 7000000);
	assert_string_equal(attribute(d, of[0]->samples[0]->attribute_indices,
				      of[0]->samples[0]->n_attribute_indices, "thread.name"),
			    "main \"<\" ");
	otlp__export_request__free_unpacked(r, NULL);
}

static const char *resource(const Otlp__ExportRequest *r, int i, const char *key)
{
	const Otlp__Resource *of = r->resource_profiles[i]->resource;
	const char *found = NULL;

	for (size_t n = 0; n < of->n_attributes; n++)
		if (strcmp(of->attributes[n]->key, key) == 0) {
			assert_null(found);
			found = of->attributes[n]->value->string_value;
		}
	return found;
}

static void otlp_resources_are_called_as_labels_say_or_as_the_jvm_is(void **state)
{
	Otlp__ExportRequest *r = otlp();

	(void)state;
	assert_string_equal(resource(r, 0, "service.name"), "shop");
	assert_string_equal(resource(r, 0, "k8s.pod.name"), "cart-1");
	assert_string_equal(resource(r, 0, "team"), "a");
	assert_string_equal(resource(r, 1, "service.name"), "org.shop.Other");
	assert_string_equal(resource(r, 1, "k8s.pod.name"), "cart-1");
	assert_string_equal(resource(r, 1, "k8s.namespace.name"), "shop");
	assert_string_equal(resource(r, 1, "container.id"), "0123456789ab");
	otlp__export_request__free_unpacked(r, NULL);
}

static void otlp_tables_begin_empty_and_every_index_leads_into_them(void **state)
{
	Otlp__ExportRequest *r = otlp();
	const Otlp__ProfilesDictionary *d = r->dictionary;

	(void)state;
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(d->stack_table[0]->n_location_indices, 0);
	assert_int_equal(d->location_table[0]->n_lines, 0);
	assert_int_equal(d->function_table[0]->name_strindex, 0);
	assert_null(d->attribute_table[0]->value);
	assert_int_equal(d->n_link_table, 1);
	assert_int_equal(d->n_mapping_table, 1);
	for (size_t i = 1; i < d->n_stack_table; i++)
		for (size_t n = 0; n < d->stack_table[i]->n_location_indices; n++)
			assert_in_range(d->stack_table[i]->location_indices[n], 1,
					d->n_location_table - 1);
	for (size_t i = 1; i < d->n_location_table; i++)
		assert_in_range(d->location_table[i]->lines[0]->function_index, 1,
				d->n_function_table - 1);
	for (size_t i = 1; i < d->n_function_table; i++)
		assert_in_range(d->function_table[i]->name_strindex, 1, d->n_string_table - 1);
	for (size_t i = 1; i < d->n_string_table; i++)
		for (size_t n = i + 1; n < d->n_string_table; n++)
			assert_string_not_equal(d->string_table[i], d->string_table[n]);
	otlp__export_request__free_unpacked(r, NULL);
}

static void otlp_json_is_the_same_request(void **state)
{
	size_t len;
	char *out = written(REPORT_OTLP_JSON, (struct report_options){ .events = CPU }, &len);
	cJSON *json = cJSON_Parse(out), *of, *value;

	(void)state;
	assert_non_null(json);
	of = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "resourceProfiles"), 0);
	of = cJSON_GetArrayItem(cJSON_GetObjectItem(of, "scopeProfiles"), 0);
	of = cJSON_GetArrayItem(cJSON_GetObjectItem(of, "profiles"), 0);
	assert_string_equal(cJSON_GetObjectItem(of, "timeUnixNano")->valuestring,
			    "1700000000000000001");
	value = cJSON_GetArrayItem(
		cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(of, "samples"), 0),
				    "values"),
		0);
	assert_string_equal(value->valuestring, "40000000");
	of = cJSON_GetObjectItem(json, "dictionary");
	assert_string_equal(
		cJSON_GetArrayItem(cJSON_GetObjectItem(of, "stringTable"), 0)->valuestring, "");
	assert_int_equal(
		cJSON_GetArraySize(cJSON_GetArrayItem(cJSON_GetObjectItem(of, "stackTable"), 0)),
		0);
	cJSON_Delete(json);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speedscope_has_a_profile_for_each_event),
		cmocka_unit_test(speedscope_has_a_profile_for_each_thread),
		cmocka_unit_test(speedscope_frames_that_print_the_same_are_one),
		cmocka_unit_test(speedscope_of_nothing_is_a_file_that_opens),
		cmocka_unit_test(otlp_has_a_resource_for_each_jvm_and_a_profile_for_each_event),
		cmocka_unit_test(otlp_resources_are_called_as_labels_say_or_as_the_jvm_is),
		cmocka_unit_test(otlp_tables_begin_empty_and_every_index_leads_into_them),
		cmocka_unit_test(otlp_json_is_the_same_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

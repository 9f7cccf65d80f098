#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/profile/profile.h"
#include "proto/wire.h"

static uint32_t frame(struct profile *p, const char *class_name, const char *method)
{
	struct profile_frame f = { .kind = WIRE_KIND_JAVA, .line = 3 };

	f.class_name = profile_string(p, class_name);
	f.method = profile_string(p, method);
	return profile_intern_frame(p, &f);
}

static uint32_t thread(struct profile *p, uint32_t pid, const char *name)
{
	struct profile_process q = { .pid = pid, .start_time = pid * 10, .name = profile_string(p, "app") };
	struct profile_thread t = { .tid = pid + 1, .name = profile_string(p, name) };

	t.process = profile_process(p, &q);
	return profile_thread(p, &t);
}

static struct profile *example(uint32_t pid)
{
	struct profile *p;
	uint32_t a, b;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1000;
	p->end_real_ns = 2000;
	p->losses = (struct profile_losses){ 5, 50, 4, 40, 1, 10 };
	a = profile_node(p, 0, frame(p, "T", "run"));
	b = profile_node(p, a, frame(p, "T", "work"));
	profile_add(p, thread(p, pid, "one"), b, 1, 10);
	profile_add(p, thread(p, pid, "one"), b, 1, 10);
	profile_add(p, thread(p, pid, "two"), a, 2, 20);
	return p;
}

static void equal_things_have_one_id(void **state)
{
	struct profile *p = example(7);

	(void)state;
	assert_int_equal(p->n_rows, 2);
	assert_int_equal(p->n_nodes, 3);
	assert_int_equal(p->rows[0].samples, 2);
	assert_int_equal(p->rows[0].weight_ns, 20);
	assert_int_equal(profile_string(p, "work"), profile_string(p, "work"));
	assert_int_equal(profile_string(p, ""), 0);
	profile_free(p);
}

static void merging_keeps_every_weight_and_filters_by_process(void **state)
{
	struct profile *a = example(7), *b = example(8), *sum;
	const uint32_t pid = 8;
	const struct profile_filter only_8 = { .pids = &pid, .n_pids = 1 };
	const struct profile_filter two = { .thread = "tw" };
	uint64_t weight = 0;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, a, NULL), 0);
	assert_int_equal(profile_merge(sum, b, NULL), 0);
	for (uint32_t i = 0; i < sum->n_rows; i++)
		weight += sum->rows[i].weight_ns;
	assert_int_equal(weight, 80);
	assert_int_equal(sum->n_nodes, 3); /* the same stacks */
	assert_int_equal(sum->losses.taken, 10);
	sum = profile_free(sum);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, a, &only_8), 0);
	assert_int_equal(sum->n_rows, 0);
	assert_int_equal(profile_merge(sum, b, &only_8), 0);
	assert_int_equal(sum->n_rows, 2);
	sum = profile_free(sum);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, a, &two), 0);
	assert_int_equal(sum->n_rows, 1);
	assert_int_equal(sum->rows[0].weight_ns, 20);
	profile_free(sum);
	profile_free(a);
	profile_free(b);
}

static void bytes_give_the_same_profile_back(void **state)
{
	struct profile *p = example(7), *q;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(q->n_rows, p->n_rows);
	assert_memory_equal(q->rows, p->rows, p->n_rows * sizeof(*p->rows));
	assert_memory_equal(&q->losses, &p->losses, sizeof(p->losses));
	assert_string_equal(q->strings[q->frames[1].method], "work");
	profile_free(q);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(profile_decode(bytes, cut, &q), -EBADMSG);
	free(bytes);
	profile_free(p);
}

static const char *lookup(void *userdata, const char *module, uint64_t offset)
{
	(void)userdata;
	return strcmp(module, "/lib/libjvm.so") == 0 && offset == 16 ? "JavaThread::run()" : NULL;
}

static void native_frames_get_names(void **state)
{
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1, .offset = 16 };
	struct profile *p;
	uint32_t id;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	f.module = profile_string(p, "/lib/libjvm.so");
	id = profile_intern_frame(p, &f);
	profile_symbolize(p, lookup, NULL);
	assert_string_equal(p->strings[p->frames[id].method], "JavaThread::run()");
	/* a later sample finds the frame that has its name now */
	assert_int_equal(profile_intern_frame(p, &p->frames[id]), id);
	profile_free(p);
}

static void many_entries_stay_apart(void **state)
{
	struct profile *p;
	char name[32];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (int i = 0; i < 50000; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_int_equal(profile_node(p, (uint32_t)i, frame(p, "C", name)), i + 1);
	}
	assert_int_equal(p->n_nodes, 50001);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_things_have_one_id),
		cmocka_unit_test(merging_keeps_every_weight_and_filters_by_process),
		cmocka_unit_test(bytes_give_the_same_profile_back),
		cmocka_unit_test(native_frames_get_names),
		cmocka_unit_test(many_entries_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

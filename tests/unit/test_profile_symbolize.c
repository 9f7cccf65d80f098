#include "tests/unit/made_profile.h"

static const char *lookup(void *userdata, const struct profile_process *process, const char *module,
			  uint64_t offset)
{
	(void)userdata;
	(void)process;
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
	/* a later sample finds the frame with its new name */
	assert_int_equal(profile_intern_frame(p, &p->frames[id]), id);
	profile_free(p);
}

static const char *lookup_of_process(void *userdata, const struct profile_process *process,
				     const char *module, uint64_t offset)
{
	(void)module;
	(void)offset;
	assert_ptr_equal(userdata, process ? process - process->pid : NULL);
	return !process ? NULL : process->pid == 0 ? "malloc" : "POISON";
}

/* Two processes with different files at one path: each frame gets its name from its own
 * process's file. */
static void native_frames_get_names_of_their_own_process(void **state)
{
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1, .offset = 16 };
	struct profile *p, *sum;
	uint32_t id[2];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_new(&sum), 0);
	f.module = profile_string(p, "/lib/libc.so.6");
	for (uint32_t i = 0; i < 2; i++) {
		const struct profile_process q = { .pid = i, .start_time = 1 };
		struct profile_thread t = { .process = profile_process(p, &q), .tid = i };

		f.scope = t.process + 1;
		profile_add(p, profile_thread(p, &t),
			    profile_node(p, 0, profile_intern_frame(p, &f)), 1, 10);
	}
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(sum->n_frames, 2);
	profile_symbolize(sum, lookup_of_process, (void *)(uintptr_t)sum->processes);
	for (uint32_t i = 0; i < 2; i++)
		id[sum->threads[sum->rows[i].thread].tid] =
			sum->frames[sum->nodes[sum->rows[i].node].frame].method;
	assert_string_equal(sum->strings[id[0]], "malloc");
	assert_string_equal(sum->strings[id[1]], "POISON");
	profile_free(sum);
	profile_free(p);
}

static void the_function_that_clone_calls_is_start_thread(void **state)
{
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1, .offset = 16 };
	uint32_t clone, root, start, again, other;
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	f.module = profile_string(p, "/lib/libc.so.6");
	f.method = profile_string(p, "clone3");
	clone = profile_intern_frame(p, &f);
	f.method = 0;
	start = profile_intern_frame(p, &f);
	f.offset = 32;
	again = profile_intern_frame(p, &f);
	f.module = profile_string(p, "/lib/libother.so");
	other = profile_intern_frame(p, &f);
	root = profile_node(p, 0, clone);
	(void)profile_node(p, profile_node(p, root, start), again);
	(void)profile_node(p, root, other);
	profile_symbolize(p, lookup, NULL);
	assert_string_equal(p->strings[p->frames[start].method], "start_thread");
	assert_int_equal(p->frames[again].method, 0);
	assert_int_equal(p->frames[other].method, 0);
	profile_free(p);
}

static void a_frame_that_had_its_name_and_one_that_gets_it_become_one(void **state)
{
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1, .offset = 16 };
	struct profile *p, *q;
	uint32_t t, a, b;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	t = thread(p, 1, "main");
	f.module = profile_string(p, "/lib/libjvm.so");
	a = profile_node(p, 0, profile_intern_frame(p, &f));
	f.method = profile_string(p, "JavaThread::run()");
	b = profile_node(p, 0, profile_intern_frame(p, &f));
	assert_int_not_equal(a, b);
	profile_add(p, t, a, 1, 10);
	profile_add(p, t, b, 1, 10);
	profile_symbolize(p, lookup, NULL);
	assert_int_equal(p->n_rows, 1);
	assert_int_equal(p->n_nodes, 2);
	assert_int_equal(p->rows[0].weight, 20);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	profile_free(q);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native_frames_get_names),
		cmocka_unit_test(native_frames_get_names_of_their_own_process),
		cmocka_unit_test(the_function_that_clone_calls_is_start_thread),
		cmocka_unit_test(a_frame_that_had_its_name_and_one_that_gets_it_become_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/profile/profile_priv.h"
#include "proto/wire.h"

static uint32_t frame(struct profile *p, const char *class_name, const char *method)
{
	struct profile_frame f = { .kind = WIRE_KIND_JAVA, .line = 3 };
	bool full = false;

	f.class_name = profile_text(p, class_name, &full);
	f.method = profile_text(p, method, &full);
	return full ? UINT32_MAX : profile_intern_frame(p, &f);
}

static uint32_t thread(struct profile *p, uint32_t pid, const char *name)
{
	struct profile_process q = { .pid = pid,
				     .start_time = pid * 10,
				     .name = profile_string(p, "app") };
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
	p->accounts.of[WIRE_EVENT_CPU] = (struct profile_losses){ 5, 50, 4, 40, 1, 10, 0 };
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
	assert_int_equal(p->rows[0].weight, 20);
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
		weight += sum->rows[i].weight;
	assert_int_equal(weight, 80);
	assert_int_equal(sum->n_nodes, 3); /* the same stacks */
	assert_int_equal(sum->accounts.of[WIRE_EVENT_CPU].taken, 10);
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
	assert_int_equal(sum->rows[0].weight, 20);
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
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	assert_string_equal(q->strings[q->frames[1].method], "work");
	profile_free(q);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(profile_decode(bytes, cut, &q), -EBADMSG);
	free(bytes);
	profile_free(p);
}

static const char *lookup(void *userdata, const struct profile_process *process, const char *module,
			  uint64_t offset)
{
	(void)userdata;
	(void)process;
	return strcmp(module, "/lib/libjvm.so") == 0 && offset == 16 ? "JavaThread::run()" : NULL;
}

static void what_was_decoded_is_found_by_who_looks_for_it(void **state)
{
	struct profile *p = example(7), *q;
	uint8_t *bytes;
	uint32_t node;
	size_t len;

	(void)state;
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	node = profile_node(q, 0, frame(q, "T", "run"));
	node = profile_node(q, node, frame(q, "T", "work"));
	profile_add(q, thread(q, 7, "one"), node, 1, 10);
	assert_int_equal(q->n_strings, p->n_strings);
	assert_int_equal(q->n_frames, p->n_frames);
	assert_int_equal(q->n_processes, p->n_processes);
	assert_int_equal(q->n_threads, p->n_threads);
	assert_int_equal(q->n_nodes, p->n_nodes);
	assert_int_equal(q->n_rows, p->n_rows);
	assert_int_equal(q->rows[0].weight, 30);
	/* and has room for more */
	profile_add(q, thread(q, 8, "three"), profile_node(q, node, frame(q, "U", "new")), 1, 5);
	assert_int_equal(q->n_rows, p->n_rows + 1);
	assert_string_equal(q->strings[q->frames[2].class_name], "U");
	profile_free(q);
	profile_free(p);
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

static const char *lookup_of_process(void *userdata, const struct profile_process *process,
				     const char *module, uint64_t offset)
{
	(void)module;
	(void)offset;
	assert_ptr_equal(userdata, process ? process - process->pid : NULL);
	return !process ? NULL : process->pid == 0 ? "malloc" : "POISON";
}

/* Two processes' files at one path: each frame's name is of its own. */
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

static void what_clone_calls_in_its_own_library_is_start_thread(void **state)
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

static uint64_t weight_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		sum += p->rows[i].weight;
	return sum;
}

static uint64_t samples_of_full(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		uint32_t node = p->rows[i].node;

		if (node && strcmp(p->strings[p->frames[p->nodes[node].frame].method],
				   "[profile full]") == 0)
			sum += p->rows[i].samples;
	}
	return sum;
}

static struct profile *full_profile(size_t limit, int stacks)
{
	struct profile *p;
	char name[32];

	assert_int_equal(profile_new(&p), 0);
	profile_limit(p, limit, 0);
	for (int i = 0; i < stacks; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		profile_add(p, thread(p, 1 + (uint32_t)i % 3, name),
			    profile_node(p, profile_node(p, 0, frame(p, "C", name)),
					 frame(p, "D", name)),
			    1, 10);
	}
	return p;
}

static void what_does_not_fit_is_said_and_its_weight_is_kept(void **state)
{
	struct profile *p = full_profile(1 << 20, 50000), *sum, *q;
	const uint32_t pid = 2;
	const struct profile_filter only_2 = { .pids = &pid, .n_pids = 1 };
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_true(profile_bytes(p) < 2 << 20);
	assert_int_equal(weight_of(p), 500000);
	assert_in_range(p->overflow, 1, 49999);
	assert_int_equal(samples_of_full(p), p->overflow);
	/* full or not, it can be read back, */
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(weight_of(q), 500000);
	assert_int_equal(q->overflow, p->overflow);
	free(bytes);
	/* and merging counts nothing twice: not the full ones, not those of others */
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(sum->overflow, 2 * p->overflow);
	assert_int_equal(weight_of(sum), 1000000);
	sum = profile_free(sum);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, &only_2), 0);
	assert_int_equal(sum->overflow, samples_of_full(sum));
	assert_in_range(weight_of(sum), 166660, 166680);
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

/* What @tenant adds: @n stacks of its own on a root that all have. Those that found no room. */
static uint64_t add_stacks(struct profile *p, uint64_t tenant, uint32_t n)
{
	const struct profile_process q = { .pid = (uint32_t)tenant,
					   .start_time = 1,
					   .tenant = tenant };
	struct profile_thread t = { .tid = 1 };
	uint64_t full = p->overflow;
	uint32_t root;
	char name[32];

	profile_payer(p, tenant);
	t.process = profile_process(p, &q);
	root = profile_node(p, 0, frame(p, "Thread", "run"));
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "m%u-%u", (unsigned)tenant, i);
		profile_add(p, profile_thread(p, &t), profile_node(p, root, frame(p, "C", name)), 1,
			    1);
	}
	return p->overflow - full;
}

static uint64_t full_of(const struct profile *p, uint64_t tenant)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		if (p->processes[p->threads[p->rows[i].thread].process].tenant == tenant &&
		    profile_is_full(p, p->rows[i].thread, p->rows[i].node))
			n += p->rows[i].samples;
	return n;
}

static void no_tenant_takes_the_room_of_another(void **state)
{
	struct profile *p, *sum;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_new(&sum), 0);
	profile_limit(p, 2 << 20, 5);
	profile_limit(sum, 2 << 20, 5);
	/* three that take what they get, before and after one that needs little */
	assert_in_range(add_stacks(p, 100, 20000), 10000, 19999);
	assert_in_range(add_stacks(p, 101, 20000), 10000, 19999);
	assert_int_equal(add_stacks(p, 1, 300), 0);
	assert_in_range(add_stacks(p, 102, 20000), 10000, 19999);
	assert_int_equal(add_stacks(p, 1, 300), 0);
	assert_true(p->index->bytes < 2 << 20);
	/* and where profiles are added up, by rows in any order */
	for (int i = 0; i < 5; i++)
		assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(full_of(sum, 1), 0);
	assert_true(full_of(sum, 102) > 0);
	assert_int_equal(weight_of(sum), 5 * weight_of(p));
	profile_free(sum);
	profile_free(p);
}

/* Two of a profile have a class in common, and the first to pay for its name cannot. */
static void a_text_that_one_tenant_cannot_pay_is_paid_by_another(void **state)
{
	struct profile *sum, *p;
	uint32_t leaf = UINT32_MAX;
	uint64_t full;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_new(&p), 0);
	profile_limit(sum, 2 << 20, 5);
	assert_true(add_stacks(sum, 100, 20000) > 0);
	full = full_of(sum, 100);
	for (int i = 0; i < 2; i++) {
		const uint32_t tenant = i ? 1 : 100;
		const struct profile_process q = { .pid = tenant,
						   .start_time = 1,
						   .tenant = tenant };
		struct profile_thread t = { .process = profile_process(p, &q), .tid = 1 };

		profile_add(p, profile_thread(p, &t),
			    profile_node(p, 0, frame(p, "Both", i ? "one" : "other")), 1, 1);
	}
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(full_of(sum, 100), full + 1);
	assert_int_equal(full_of(sum, 1), 0);
	for (uint32_t i = 0; i < sum->n_rows; i++)
		if (sum->processes[sum->threads[sum->rows[i].thread].process].tenant == 1)
			leaf = sum->rows[i].node;
	assert_string_equal(sum->strings[sum->frames[sum->nodes[leaf].frame].class_name], "Both");
	profile_free(sum);
	profile_free(p);
}

static void a_table_at_its_own_limit_can_be_read_back(void **state)
{
	struct profile *p, *q;
	struct profile_frame f = { .kind = WIRE_KIND_NATIVE, .line = -1 };
	uint32_t t;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit(p, SIZE_MAX, 0);
	t = thread(p, 1, "main");
	for (uint32_t i = 0; i < PROFILE_NODES_MAX + 5; i++) {
		f.offset = i;
		profile_add(p, t, profile_node(p, 0, profile_intern_frame(p, &f)), 1, 1);
	}
	assert_int_equal(weight_of(p), PROFILE_NODES_MAX + 5);
	/* the root, the spare ones and the five; the root takes a node's place too */
	assert_in_range(p->overflow, PROFILE_SPARE + 5, PROFILE_SPARE + 6);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(q->n_nodes, p->n_nodes);
	assert_int_equal(weight_of(q), PROFILE_NODES_MAX + 5);
	free(bytes);
	profile_free(q);
	profile_free(p);
}

static void losses_go_with_their_process(void **state)
{
	const struct profile_accounts mine = { .of = { { 10, 100, 8, 80, 2, 20, 0 } } },
				      others = { .of = { { 5, 50, 5, 50, 0, 0, 0 } } };
	struct profile *p = example(7), *sum, *q;
	struct profile_process process = { .pid = 8, .start_time = 80 };
	const uint32_t pid = 8;
	const struct profile_filter only_8 = { .pids = &pid, .n_pids = 1 };
	uint8_t *bytes;
	size_t len;

	(void)state;
	p->accounts.of[WIRE_EVENT_CPU] = (struct profile_losses){ 0 };
	profile_add_accounts(p, 0, &others);
	profile_add_accounts(p, profile_process(p, &process), &mine);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 15);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, &only_8), 0);
	assert_memory_equal(&sum->accounts, &mine, sizeof(mine));
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	assert_int_equal(sum->accounts.of[WIRE_EVENT_CPU].taken, 25);
	assert_int_equal(sum->accounts.of[WIRE_EVENT_CPU].dropped, 4);
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

static void a_process_learns_its_names_later(void **state)
{
	struct profile_process q = { .pid = 7, .start_time = 70 };
	struct profile *p = example(7);

	(void)state;
	q.name = profile_string(p, "other");
	q.jdk = profile_string(p, "Debian 17");
	assert_int_equal(profile_process(p, &q), 0);
	assert_string_equal(p->strings[p->processes[0].jdk], "Debian 17");
	assert_string_equal(p->strings[p->processes[0].name], "app");
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

static void weights_stay_at_the_end_of_their_numbers(void **state)
{
	struct profile *p = example(7);

	(void)state;
	profile_add(p, 0, 2, UINT64_MAX, UINT64_MAX);
	assert_true(p->rows[0].weight == UINT64_MAX);
	assert_true(p->rows[0].samples == UINT64_MAX);
	profile_free(p);
}

static void any_changed_byte_is_refused_or_harmless(void **state)
{
	struct profile *p = example(7), *q, *sum;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	for (size_t at = 0; at < len; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[at] ^= (uint8_t)(1u << bit);
			if (profile_decode(bytes, len, &q) == 0) {
				assert_int_equal(profile_merge(sum, q, NULL), 0);
				profile_free(q);
			}
			bytes[at] ^= (uint8_t)(1u << bit);
		}
	free(bytes);
	profile_free(sum);
	profile_free(p);
}

static void a_very_deep_stack_is_merged_whole(void **state)
{
	struct profile *p, *sum;
	uint32_t node = 0, t;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	t = thread(p, 1, "main");
	for (int i = 0; i < 20000; i++)
		node = profile_node(p, node, frame(p, "C", "recurse"));
	profile_add(p, t, node, 1, 10);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, p, NULL), 0);
	assert_int_equal(sum->n_nodes, 20001);
	profile_free(sum);
	profile_free(p);
}

static void a_string_is_cut_between_characters(void **state)
{
	char text[PROFILE_STRING_MAX + 10];
	struct profile *p;
	uint32_t id;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text + PROFILE_STRING_MAX - 1, "\xc3\xbc", 2);
	assert_int_equal(profile_new(&p), 0);
	id = profile_string(p, text);
	assert_int_equal(strlen(p->strings[id]), PROFILE_STRING_MAX - 1);
	assert_int_equal(profile_string(p, text), id);
	profile_free(p);
}

static void add_wait(struct profile *p, uint32_t t, uint32_t node, enum wire_wait wait, bool idle)
{
	const struct profile_row row = {
		.thread = t,
		.node = node,
		.event = WIRE_EVENT_LOCK,
		.wait = (uint8_t)wait,
		.idle = idle,
		.samples = 1,
		.weight = 1000,
	};

	profile_add_row(p, &row);
}

/* CPU on two stacks; on one of them two waits for a monitor, one park, one idle park. */
static struct profile *mixed(void)
{
	struct profile *p = example(7);
	uint32_t t = thread(p, 7, "one");

	add_wait(p, t, 2, WIRE_WAIT_ENTER, false);
	add_wait(p, t, 2, WIRE_WAIT_ENTER, false);
	add_wait(p, t, 2, WIRE_WAIT_PARK, false);
	add_wait(p, t, 2, WIRE_WAIT_PARK, true);
	p->interval[WIRE_EVENT_LOCK] = 1000000;
	p->accounts.of[WIRE_EVENT_LOCK] = (struct profile_losses){ 4, 4000, 4, 4000, 0, 0, 0 };
	p->accounts.short_waits = 9;
	p->accounts.short_waits_ns = 99;
	return p;
}

static void events_of_one_stack_stay_apart(void **state)
{
	struct profile *p = mixed();

	(void)state;
	assert_int_equal(p->n_rows, 2 + 3);
	assert_int_equal(p->n_nodes, 3);
	assert_int_equal(profile_events(p), 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK);
	profile_free(p);
}

static void a_filter_by_event_takes_its_accounts_alone(void **state)
{
	const struct profile_filter lock = { .events = 1u << WIRE_EVENT_LOCK, .no_idle = true };
	const struct profile_filter cpu = { .events = 1u << WIRE_EVENT_CPU };
	struct profile *p = mixed(), *part;

	(void)state;
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &lock), 0);
	assert_int_equal(weight_of(part), 3000);
	assert_int_equal(profile_events(part), 1u << WIRE_EVENT_LOCK);
	assert_int_equal(part->accounts.of[WIRE_EVENT_CPU].taken, 0);
	assert_int_equal(part->interval[WIRE_EVENT_CPU], 0);
	assert_int_equal(part->accounts.short_waits, 9);
	/* what was delivered is in it, or said to be left out */
	assert_int_equal(part->idle_left_out[WIRE_EVENT_LOCK].samples, 1);
	assert_int_equal(profile_samples(part) + 1, part->accounts.of[WIRE_EVENT_LOCK].delivered);
	part = profile_free(part);
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &cpu), 0);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples, 0);
	assert_int_equal(weight_of(part), 40);
	assert_int_equal(part->accounts.of[WIRE_EVENT_LOCK].taken, 0);
	assert_int_equal(part->accounts.short_waits, 0);
	assert_int_equal(part->idle_left_out[WIRE_EVENT_LOCK].samples, 0);
	profile_free(part);
	profile_free(p);
}

static void what_other_threads_did_is_counted_beside_it(void **state)
{
	const uint32_t pid = 7;
	const struct profile_filter one = { .thread = "one", .no_idle = true },
				    of_7 = { .thread = "nobody", .pids = &pid, .n_pids = 1 };
	struct profile *p = mixed(), *part;
	uint64_t others;

	(void)state;
	/* another thread's, another process's */
	add_wait(p, thread(p, 7, "two"), 2, WIRE_WAIT_PARK, true);
	add_wait(p, thread(p, 8, "two"), 2, WIRE_WAIT_PARK, false);
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &one), 0);
	assert_int_equal(part->idle_left_out[WIRE_EVENT_LOCK].samples, 1);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples, 2);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].weight, 2000);
	others = profile_samples(p) - profile_samples(part) - 1;
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples +
				 part->threads_left_out[WIRE_EVENT_CPU].samples,
			 others);
	part = profile_free(part);
	assert_int_equal(profile_new(&part), 0);
	assert_int_equal(profile_merge(part, p, &of_7), 0);
	assert_int_equal(part->threads_left_out[WIRE_EVENT_LOCK].samples, 5);
	profile_free(part);
	profile_free(p);
}

static void cpu_time_and_note_of_a_process_are_kept(void **state)
{
	struct profile_process process = { .pid = 8, .start_time = 80 };
	struct profile *p = example(7), *q, *sum;
	const uint32_t pid = 8;
	const struct profile_filter only_8 = { .pids = &pid, .n_pids = 1 };
	uint8_t *bytes;
	size_t len;

	(void)state;
	process.note = profile_string(p, "counted by hand");
	profile_add_cpu(p, profile_process(p, &process), 30);
	profile_add_cpu(p, 0, 4);
	profile_add_cpu(p, UINT32_MAX, 1);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	assert_int_equal(profile_cpu_ns(q), 34);
	assert_false(q->cpu_unknown);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, &only_8), 0);
	assert_int_equal(profile_merge(sum, q, &only_8), 0);
	assert_int_equal(sum->n_processes, 1); /* though it has neither rows nor losses */
	assert_int_equal(profile_cpu_ns(sum), 60);
	assert_string_equal(sum->strings[sum->processes[0].note], "counted by hand");
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

static void labels_of_a_process_are_kept(void **state)
{
	struct profile_process process = { .pid = 8, .start_time = 80 };
	struct profile *p = example(7), *q, *sum;
	uint8_t *bytes;
	size_t len;

	(void)state;
	process.labels = profile_string(p, "service=shop\n");
	profile_add_cpu(p, profile_process(p, &process), 30);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	free(bytes);
	assert_int_equal(profile_new(&sum), 0);
	assert_int_equal(profile_merge(sum, q, NULL), 0);
	process.labels = 0;
	assert_string_equal(sum->strings[sum->processes[profile_process(sum, &process)].labels],
			    "service=shop\n");
	profile_free(sum);
	profile_free(q);
	profile_free(p);
}

static void events_survive_being_written(void **state)
{
	struct profile *p = mixed(), *q;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	assert_int_equal(q->n_rows, p->n_rows);
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	assert_memory_equal(q->interval, p->interval, sizeof(p->interval));
	for (uint32_t i = 0; i < p->n_rows; i++) {
		assert_int_equal(q->rows[i].event, p->rows[i].event);
		assert_int_equal(q->rows[i].wait, p->rows[i].wait);
		assert_int_equal(q->rows[i].idle, p->rows[i].idle);
		assert_int_equal(q->rows[i].weight, p->rows[i].weight);
	}
	free(bytes);
	profile_free(q);
	profile_free(p);
}

/* As a release before wrote it: one process, one thread, one stack of CPU time. Its losses are of
 * another second than its row. */
static void a_segment_without_events_is_cpu_time(void **state)
{
	static const uint8_t old[] = {
		'K', 'P', 'R', 'F', 2,	 10, 20, 5, 0, 0, /* version; begin, end, interval, budget,
							     overflow */
		9,   90,  8,   80,  1,	 10, /* losses */
		3,   1,	  'C', 1,   'm', /* strings "", "C", "m" */
		1,   1,	  4,   1,   2,	 0,  0,	 0, 0, /* one frame */
		1,   7,	  7,   9,   0,	 0,  0,	 0, 0, 9, 90, 8, 80, 1, 10, /* one process */
		1,   0,	  8,   0, /* one thread */
		2,   0,	  0, /* the root and one node */
		1,   0,	  1,   2,   20, /* one row */
	};
	struct profile *p;

	(void)state;
	assert_int_equal(profile_decode(old, sizeof(old), &p), 0);
	assert_int_equal(p->n_rows, 1);
	assert_int_equal(p->rows[0].event, WIRE_EVENT_CPU);
	assert_int_equal(p->rows[0].weight, 20);
	assert_int_equal(p->interval[WIRE_EVENT_CPU], 5);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 3);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].delivered_weight, 20);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].delivered, 2);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].dropped_weight, 10);
	assert_true(p->cpu_unknown);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_things_have_one_id),
		cmocka_unit_test(merging_keeps_every_weight_and_filters_by_process),
		cmocka_unit_test(bytes_give_the_same_profile_back),
		cmocka_unit_test(what_was_decoded_is_found_by_who_looks_for_it),
		cmocka_unit_test(native_frames_get_names),
		cmocka_unit_test(native_frames_get_names_of_their_own_process),
		cmocka_unit_test(what_clone_calls_in_its_own_library_is_start_thread),
		cmocka_unit_test(many_entries_stay_apart),
		cmocka_unit_test(what_does_not_fit_is_said_and_its_weight_is_kept),
		cmocka_unit_test(no_tenant_takes_the_room_of_another),
		cmocka_unit_test(a_text_that_one_tenant_cannot_pay_is_paid_by_another),
		cmocka_unit_test(a_table_at_its_own_limit_can_be_read_back),
		cmocka_unit_test(losses_go_with_their_process),
		cmocka_unit_test(events_of_one_stack_stay_apart),
		cmocka_unit_test(a_filter_by_event_takes_its_accounts_alone),
		cmocka_unit_test(what_other_threads_did_is_counted_beside_it),
		cmocka_unit_test(cpu_time_and_note_of_a_process_are_kept),
		cmocka_unit_test(labels_of_a_process_are_kept),
		cmocka_unit_test(events_survive_being_written),
		cmocka_unit_test(a_segment_without_events_is_cpu_time),
		cmocka_unit_test(a_process_learns_its_names_later),
		cmocka_unit_test(a_frame_that_had_its_name_and_one_that_gets_it_become_one),
		cmocka_unit_test(weights_stay_at_the_end_of_their_numbers),
		cmocka_unit_test(any_changed_byte_is_refused_or_harmless),
		cmocka_unit_test(a_very_deep_stack_is_merged_whole),
		cmocka_unit_test(a_string_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

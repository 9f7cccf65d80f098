/* Profiles made for tests, and sums over them. */
#pragma once

#include "tests/unit/unit.h"
#include "daemon/profile/profile_priv.h"
#include "proto/wire.h"

static inline uint32_t frame(struct profile *p, const char *class_name, const char *method)
{
	struct profile_frame f = { .kind = WIRE_KIND_JAVA, .line = 3 };
	bool full = false;

	f.class_name = profile_text(p, class_name, &full);
	f.method = profile_text(p, method, &full);
	return full ? UINT32_MAX : profile_intern_frame(p, &f);
}

static inline uint32_t thread(struct profile *p, uint32_t pid, const char *name)
{
	struct profile_process q = { .pid = pid,
				     .start_time = pid * 10,
				     .name = profile_string(p, "app") };
	struct profile_thread t = { .tid = pid + 1, .name = profile_string(p, name) };

	t.process = profile_process(p, &q);
	return profile_thread(p, &t);
}

static inline struct profile *example(uint32_t pid)
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

static inline uint64_t weight_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		sum += p->rows[i].weight;
	return sum;
}

static inline void add_wait(struct profile *p, uint32_t t, uint32_t node, enum wire_wait wait,
			    bool idle)
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

/* A profile with CPU time on two stacks; one of them also has two waits for a monitor, a park
 * and an idle park. */
static inline struct profile *mixed(void)
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

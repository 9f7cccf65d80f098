/* Helpers for tests that add waits to a struct locks and query it. */
#pragma once

#include "tests/unit/unit.h"
#include "daemon/locks/locks.h"

#define S  1000000000ull
#define MS 1000000ull
static const uint64_t t0 = 5000 * S;

static struct locks *locks;

static inline int begin(void **state)
{
	(void)state;
	return locks_new(t0, &locks);
}

static inline int end(void **state)
{
	(void)state;
	locks = locks_free(locks);
	return 0;
}

static inline struct stream_lock entered(uint32_t tid, const char *class_name, uint32_t identity,
					 uint64_t begin_ns, uint64_t duration_ns)
{
	return (struct stream_lock){
		.tid = tid,
		.begin_ns = begin_ns,
		.duration_ns = duration_ns,
		.wait = WIRE_WAIT_ENTER,
		.class_name = class_name,
		.identity = identity,
		.thread = "",
		.owner = "",
		.waits = 1,
	};
}

static inline void add(struct stream_lock w)
{
	locks_add(locks, NULL, &w, false, w.begin_ns + w.duration_ns);
}

static inline void add_open(struct stream_lock w, bool idle)
{
	w.flags |= WIRE_LOCK_OPEN;
	locks_add(locks, NULL, &w, idle, w.begin_ns + w.duration_ns);
}

static inline uint32_t n_open(void)
{
	struct locks_open *list;
	uint32_t n;

	assert_int_equal(locks_open(locks, t0 + 60 * S, &list, &n), 0);
	free(list);
	return n;
}

static inline struct locks_rows ask(uint64_t now, uint64_t last, bool idle)
{
	struct locks_rows r;

	assert_int_equal(locks_query(locks, now, last, idle, LOCKS_BY_LOCK, &r), 0);
	return r;
}

static inline struct locks_thread_rows list(uint64_t now, uint64_t last)
{
	struct locks_thread_rows r;

	assert_int_equal(locks_threads(locks, now, 0, last, &r), 0);
	return r;
}

static inline const struct locks_thread_row *thread(const struct locks_thread_rows *r, uint32_t tid)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->rows[i].tid == tid)
			return &r->rows[i];
	return NULL;
}

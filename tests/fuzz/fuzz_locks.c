/* Makes calls chosen by arbitrary bytes: no crash, bounded memory, and all rows together have as
 * many waits as were added. */
#include <stdlib.h>
#include <string.h>
#include "daemon/locks/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct call {
	uint8_t what, wait, flags, name;
	uint16_t tid, owner, identity, advance_ms;
	uint32_t begin, duration;
};

static void check_classes(const struct locks *l, uint64_t now, uint64_t waits)
{
	struct locks_rows rows;

	if (locks_query(l, now, UINT64_MAX, true, LOCKS_BY_CLASS, &rows) < 0)
		abort();
	for (uint32_t i = 0; i < rows.n; i++)
		waits -= rows.rows[i].waits;
	if (waits)
		abort();
	locks_rows_free(&rows);
}

static void check(struct locks *l, uint64_t now, uint64_t waits)
{
	struct locks_thread_rows threads;
	struct locks_open *open;
	struct lock_graph graph;
	struct locks_rows rows;
	uint32_t n;

	check_classes(l, now, waits);
	if (locks_query(l, now, UINT64_MAX, true, LOCKS_BY_LOCK, &rows) < 0 ||
	    locks_threads(l, now, now / 3, now, &threads) < 0 ||
	    locks_open(l, now, &open, &n) < 0 || lock_graph_new(open, n, &graph) < 0)
		abort();
	for (uint32_t i = 0; i < rows.n; i++)
		waits -= rows.rows[i].waits;
	for (uint32_t i = 0; i < graph.n; i++)
		if (graph.edges[i].cycle > graph.n_cycles || graph.edges[i].next >= (int32_t)graph.n)
			abort();
	if (waits || locks_bytes(l) > LOCKS_THREAD_BYTES_MAX + (64u << 20))
		abort();
	lock_graph_free(&graph);
	free(open);
	locks_thread_rows_free(&threads);
	locks_rows_free(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now = 100000000000ull, waits = 0;
	struct locks *l;
	struct call c;

	if (locks_new(now, &l) < 0)
		return 0;
	for (size_t at = 0; at + sizeof(c) <= size; at += sizeof(c)) {
		char name[4] = "";
		struct stream_lock lock;
		struct wire_thread thread;
		struct stream_sample sample;

		memcpy(&c, data + at, sizeof(c));
		name[0] = (char)c.name;
		/* less than ten minutes in total, so nothing may have expired at the end */
		now += c.advance_ms % 128 * 1000000ull;
		if (now > 600000000000ull)
			break;
		lock = (struct stream_lock){ .begin_ns = now - c.begin, .duration_ns = c.duration, .tid = c.tid,
					     .owner_tid = c.owner, .wait = c.wait, .flags = c.flags,
					     .class_name = name, .identity = c.identity, .node = 1,
					     .waits = 1 + c.duration % 5 };
		thread = (struct wire_thread){ .tid = c.tid | (uint32_t)c.wait << 31, .flags = c.flags };
		sample = (struct stream_sample){ .mono_ns = now - c.begin, .tid = c.tid, .weight_ns = c.duration };
		if (c.what % 8 == 0)
			locks_thread(l, &thread, name, now);
		else if (c.what % 8 == 1)
			locks_sample(l, &sample, now);
		else if (c.what == 2)
			locks_session(l);
		else if (c.what == 10)
			locks_reset(l);
		else {
			locks_add(l, NULL, &lock, c.what & 1, now);
			if (c.wait < WIRE_WAIT_COUNT && !(c.flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED)))
				waits += lock.waits;
		}
	}
	check(l, now, waits);
	locks_free(l);
	return 0;
}

/* See graph.h. At most one edge leads out of each thread, so following the edges once finds all
 * cycles. */
#include "daemon/locks/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_tid(const void *a, const void *b)
{
	const struct lock_edge *x = a, *y = b;

	if (x->wait->tid != y->wait->tid)
		return x->wait->tid < y->wait->tid ? -1 : 1;
	/* a thread's newest wait comes first; the ends of older ones were lost */
	return x->wait->begin_ns > y->wait->begin_ns ? -1 : x->wait->begin_ns < y->wait->begin_ns;
}

static int32_t edge_of(const struct lock_graph *g, uint32_t tid)
{
	uint32_t low = 0, high = g->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->edges[middle].wait->tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return tid && low < g->n && g->edges[low].wait->tid == tid ? (int32_t)low : -1;
}

/* The thread that blocks this one; 0 = unknown. A thread in Object.wait waits for a
 * notification: its monitor's owner does not block it. */
static uint32_t blocker_of(const struct locks_open *w)
{
	return w->wait == WIRE_WAIT_WAIT || w->owner_tid == w->tid ? 0 : w->owner_tid;
}

/* Keeps one wait of each thread. The number that all unnamed virtual threads share is not a
 * thread. */
static void keep_threads(struct lock_graph *g)
{
	uint32_t n = 0;

	qsort(g->edges, g->n, sizeof(*g->edges), by_tid);
	for (uint32_t i = 0; i < g->n; i++)
		if (!n || g->edges[n - 1].wait->tid != g->edges[i].wait->tid ||
		    g->edges[i].wait->tid == WIRE_VIRTUAL_TID)
			g->edges[n++] = g->edges[i];
	g->n = n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t owner = blocker_of(g->edges[i].wait);

		g->edges[i].next = owner == WIRE_VIRTUAL_TID ? -1 : edge_of(g, owner);
	}
}

static void mark_cycle(struct lock_graph *g, uint32_t first)
{
	bool deadlock = true;
	uint32_t i = first;

	g->n_cycles++;
	do {
		g->edges[i].cycle = g->n_cycles;
		deadlock &= !(g->edges[i].wait->flags & WIRE_LOCK_TIMED);
		i = (uint32_t)g->edges[i].next;
	} while (i != first);
	g->n_deadlocks += deadlock;
	do {
		g->edges[i].deadlock = deadlock;
		i = (uint32_t)g->edges[i].next;
	} while (i != first);
}

/* @mark: for each edge the number of the walk that visited it. A walk that comes to its own mark
 * has found a cycle. */
static void find_cycles(struct lock_graph *g, uint32_t *mark)
{
	for (uint32_t start = 0; start < g->n; start++) {
		int32_t at = (int32_t)start;

		while (at >= 0 && !mark[at]) {
			mark[at] = start + 1;
			at = g->edges[at].next;
		}
		if (at >= 0 && mark[at] == start + 1 && !g->edges[at].cycle)
			mark_cycle(g, (uint32_t)at);
	}
}

/*
 * Counts the threads behind each edge, in the order from threads that nobody waits for to the
 * owners: an edge's turn comes after all edges that lead to it, so one pass suffices. @waiting: for
 * each edge, how many of those are still to come.
 */
static void count_behind(struct lock_graph *g, uint32_t *waiting, uint32_t *queue)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n; i++)
		if (g->edges[i].next >= 0)
			waiting[g->edges[i].next]++;
	for (uint32_t i = 0; i < g->n; i++)
		if (!waiting[i] && !g->edges[i].cycle)
			queue[n++] = i;
	for (uint32_t i = 0; i < n; i++) {
		struct lock_edge *e = &g->edges[queue[i]];

		if (e->next < 0)
			continue;
		g->edges[e->next].behind += e->behind + 1;
		if (!--waiting[e->next] && !g->edges[e->next].cycle)
			queue[n++] = (uint32_t)e->next;
	}
	/* backwards, so that the edge that this one leads to has its depth already */
	for (uint32_t i = n; i-- > 0;) {
		struct lock_edge *e = &g->edges[queue[i]];

		e->depth = e->next >= 0 ? g->edges[e->next].depth + 1 : 1;
	}
}

static int blockers_by_tid(const void *a, const void *b)
{
	const struct lock_blocker *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int blockers_by_number(const void *a, const void *b)
{
	const struct lock_blocker *x = a, *y = b;

	if (x->behind != y->behind)
		return x->behind > y->behind ? -1 : 1;
	return blockers_by_tid(a, b);
}

static void find_blockers(struct lock_graph *g)
{
	struct lock_blocker *b = g->blockers;
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t owner = blocker_of(g->edges[i].wait);

		if (owner && g->edges[i].next < 0)
			b[n++] = (struct lock_blocker){ owner, g->edges[i].behind + 1 };
	}
	qsort(b, n, sizeof(*b), blockers_by_tid);
	for (uint32_t i = 0; i < n; i++) {
		if (kept && b[kept - 1].tid == b[i].tid)
			b[kept - 1].behind += b[i].behind;
		else
			b[kept++] = b[i];
	}
	g->n_blockers = kept;
	qsort(b, kept, sizeof(*b), blockers_by_number);
}

int lock_graph_new(const struct locks_open *waits, uint32_t n, struct lock_graph *ret)
{
	struct lock_graph g = { .n = n };
	uint32_t *marks = calloc(3 * (size_t)n + 1, sizeof(*marks));

	g.edges = calloc((size_t)n + 1, sizeof(*g.edges));
	g.blockers = calloc((size_t)n + 1, sizeof(*g.blockers));
	if (!marks || !g.edges || !g.blockers) {
		free(marks);
		lock_graph_free(&g);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		g.edges[i].wait = &waits[i];
	keep_threads(&g);
	find_cycles(&g, marks);
	count_behind(&g, marks + n, marks + 2 * (size_t)n);
	find_blockers(&g);
	free(marks);
	*ret = g;
	return 0;
}

void lock_graph_free(struct lock_graph *g)
{
	free(g->edges);
	free(g->blockers);
	g->edges = NULL;
	g->blockers = NULL;
	g->n = g->n_blockers = 0;
}

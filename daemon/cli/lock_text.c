/* See lock_text.h. */
#include "daemon/cli/lock_text.h"

#include <stdlib.h>
#include <string.h>

void duration_text(double ns, char *buf, size_t size)
{
	if (ns < 999500)
		snprintf(buf, size, "%.0fus", ns / 1e3);
	else if (ns < 999.5e6)
		snprintf(buf, size, "%.3gms", ns / 1e6);
	else if (ns < 59.95e9)
		snprintf(buf, size, "%.3gs", ns / 1e9);
	else if (ns < 3599.5e9)
		snprintf(buf, size, "%.0fm%02.0fs", (double)(long)(ns / 60e9),
			 (double)((long)(ns / 1e9) % 60));
	else
		snprintf(buf, size, "%.0fh%02.0fm", (double)(long)(ns / 3600e9),
			 (double)((long)(ns / 60e9) % 60));
}

void lock_text(const cJSON *lock, char *buf, size_t size)
{
	const char *class_name = json_text_of(lock, "class"), *id = json_text_of(lock, "id");

	if (!*class_name && !*id)
		snprintf(buf, size, "(unnamed)");
	else
		snprintf(buf, size, "%s%s%s", *class_name ? class_name : "?", *id ? "@" : "", id);
}

void lock_text_brief(const cJSON *lock, char *buf, size_t size)
{
	char text[1024], *dot;

	lock_text(lock, text, sizeof(text));
	dot = strrchr(text, '.');
	snprintf(buf, size, "%s", dot && dot[1] ? dot + 1 : text);
}

static bool lock_text_is_of_the_jdk(const char *frame)
{
	static const char *const prefixes[] = { "java.", "jdk.", "sun.", "[" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(frame, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return !strchr(frame, '.'); /* a native function, of libjvm or libc */
}

/* The first frame from the leaf that is not the JDK's, else the leaf; "" if there is no stack. */
static const char *lock_place(const cJSON *stack)
{
	const char *leaf = "";

	for (int i = cJSON_GetArraySize(stack); i-- > 0;) {
		const cJSON *frame = cJSON_GetArrayItem(stack, i);

		if (!cJSON_IsString(frame))
			continue;
		if (!lock_text_is_of_the_jdk(frame->valuestring))
			return frame->valuestring;
		if (!*leaf)
			leaf = frame->valuestring;
	}
	return leaf;
}

void frame_text_brief(const char *frame, char *buf, size_t size)
{
	const char *method = strrchr(frame, '.'), *begin = method;

	while (begin && begin > frame && begin[-1] != '.')
		begin--;
	snprintf(buf, size, "%s", begin ? begin : frame);
}

bool thread_is_virtual(const cJSON *thread)
{
	return json_get(thread, "virtual_id") != NULL;
}

void tid_text(const cJSON *thread, char *buf, size_t size)
{
	if (json_number_of(thread, "tid") > 0)
		snprintf(buf, size, "%.0f", json_number_of(thread, "tid"));
	else if (json_number_of(thread, "virtual_id") > 0)
		snprintf(buf, size, "#%.0f", json_number_of(thread, "virtual_id"));
	else if (json_number_of(thread, "ns_tid") > 0)
		snprintf(buf, size, "%.0f in its container", json_number_of(thread, "ns_tid"));
	else
		snprintf(buf, size, "-");
}

void thread_text(const cJSON *thread, const char *key, char *buf, size_t size)
{
	const char *name = json_text_of(thread, key);
	char tid[48];

	tid_text(thread, tid, sizeof(tid));
	if (!*name)
		snprintf(buf, size, "thread %s", tid);
	else if (strncmp(name, "virtual #", 9) == 0 || strcmp(tid, "-") == 0)
		snprintf(buf, size, thread_is_virtual(thread) ? "%s" : "\"%s\"", name);
	else
		snprintf(buf, size, "\"%s\" (%s%s)", name,
			 thread_is_virtual(thread) ? "virtual " : "", tid);
}

/* A key for a thread's number that is different for virtual threads and for threads of which
 * only the container's number is known. */
static double lock_text_key_of(const cJSON *thread)
{
	static const double virtual = 1ll << 32, foreign = 1ll << 40;

	if (json_number_of(thread, "tid") > 0)
		return json_number_of(thread, "tid");
	if (thread_is_virtual(thread))
		return virtual + json_number_of(thread, "virtual_id");
	return json_number_of(thread, "ns_tid") > 0 ? foreign + json_number_of(thread, "ns_tid")
						    : 0;
}

/* ---- the graph as a tree ---- */

#define DEPTH_MAX 24

struct item {
	const cJSON *wait;
	double tid, owner; /* owner: the blocker's lock_text_key_of(); 0 = none */
	int cycle;
	bool done;
};

struct building {
	struct graph_rows *to;
	struct item *items;
	size_t n;
	bool failed;
};

static int lock_text_add_row(struct building *b, struct graph_row row)
{
	struct graph_rows *g = b->to;

	if (g->n >= GRAPH_ROWS_MAX)
		return -1;
	if (g->n == g->cap) {
		size_t cap = g->cap ? 2 * g->cap : 32;
		struct graph_row *rows = realloc(g->rows, cap * sizeof(*rows));

		if (!rows) {
			b->failed = true;
			return -1;
		}
		g->rows = rows;
		g->cap = cap;
	}
	row.next = -1;
	g->rows[g->n] = row;
	return (int)g->n++;
}

static int add_wait(struct building *b, struct item *i, unsigned depth, int parent)
{
	int row = lock_text_add_row(
		b, (struct graph_row){ .kind = GRAPH_WAIT,
				       .depth = depth,
				       .parent = parent,
				       .wait = i->wait,
				       .deadlock = cJSON_IsTrue(json_get(i->wait, "deadlock")) });

	if (row >= 0)
		i->done = true;
	return row;
}

/* Adds the threads that wait for @tid, and recursively those that wait for them, down to a
 * bounded depth. */
static void add_behind(struct building *b, double tid, unsigned depth, int parent)
{
	for (size_t i = 0; i < b->n && depth < DEPTH_MAX; i++) {
		struct item *x = &b->items[i];
		int row;

		if (x->done || x->cycle || x->owner != tid)
			continue;
		row = add_wait(b, x, depth, parent);
		if (row < 0)
			return;
		add_behind(b, x->tid, depth + 1, row);
	}
}

static struct item *item_of(struct building *b, double tid, int cycle)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].tid == tid && b->items[i].cycle == cycle && !b->items[i].done)
			return &b->items[i];
	return NULL;
}

/* Adds a cycle, in which each thread comes after the one that it waits for; then the threads
 * that wait for any of them. */
static void add_circle(struct building *b, struct item *first)
{
	bool deadlock = cJSON_IsTrue(json_get(first->wait, "deadlock"));
	int head = lock_text_add_row(
		b, (struct graph_row){ .kind = deadlock ? GRAPH_DEADLOCK : GRAPH_CIRCLE,
				       .parent = -1,
				       .deadlock = deadlock });
	size_t begin = b->to->n;

	for (struct item *x = first; x; x = item_of(b, x->owner, first->cycle))
		if (add_wait(b, x, 1, head) < 0)
			return;
	for (size_t i = begin; i < b->to->n; i++)
		b->to->rows[i].next = (int)(i + 1 < b->to->n ? i + 1 : begin);
	for (size_t i = begin, end = b->to->n; i < end; i++)
		add_behind(b, lock_text_key_of(b->to->rows[i].wait), 2, (int)i);
}

static void add_trees(struct building *b, const cJSON *graph)
{
	const cJSON *blocker;
	int head = -1;

	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].cycle && !b->items[i].done)
			add_circle(b, &b->items[i]);
	cJSON_ArrayForEach(blocker, json_get(graph, "blockers"))
	{
		int row = lock_text_add_row(
			b, (struct graph_row){ .kind = GRAPH_BLOCKER,
					       .parent = -1,
					       .thread = blocker,
					       .number = json_number_of(blocker, "behind") });

		if (row >= 0)
			add_behind(b, lock_text_key_of(blocker), 1, row);
	}
	for (size_t i = 0; i < b->n; i++) {
		int row;

		if (b->items[i].done || b->items[i].owner)
			continue;
		if (head < 0)
			head = lock_text_add_row(
				b, (struct graph_row){ .kind = GRAPH_NOBODY, .parent = -1 });
		row = add_wait(b, &b->items[i], 1, head);
		if (row >= 0)
			add_behind(b, b->items[i].tid, 2, row);
	}
}

static void read_item(const cJSON *wait, struct item *ret)
{
	const cJSON *owner = json_get(wait, "owner");

	*ret = (struct item){ .wait = wait,
			      .tid = lock_text_key_of(wait),
			      .cycle = (int)json_number_of(wait, "cycle") };
	/* a thread in Object.wait waits for a notification, not for the owner */
	if (strcmp(json_text_of(wait, "kind"), "wait") != 0)
		ret->owner = lock_text_key_of(owner);
	if (ret->owner == ret->tid)
		ret->owner = 0;
}

static void lock_text_add_rest(struct building *b, const cJSON *graph)
{
	double shown = 0, all = json_number_of(graph, "n_waits");
	struct graph_rows *g = b->to;

	for (size_t i = 0; i < g->n; i++)
		shown += g->rows[i].kind == GRAPH_WAIT;
	if (all <= shown)
		return;
	if (g->n >= GRAPH_ROWS_MAX) {
		g->n--;
		shown -= g->rows[g->n].kind == GRAPH_WAIT;
	}
	lock_text_add_row(
		b, (struct graph_row){ .kind = GRAPH_MORE, .parent = -1, .number = all - shown });
}

bool graph_rows_new(const cJSON *graph, struct graph_rows *ret)
{
	const cJSON *waits = json_get(graph, "waits"), *wait;
	struct building b = { .to = ret };

	memset(ret, 0, sizeof(*ret));
	b.items = calloc((size_t)cJSON_GetArraySize(waits) + 1, sizeof(*b.items));
	if (!b.items)
		return false;
	cJSON_ArrayForEach(wait, waits) read_item(wait, &b.items[b.n++]);
	add_trees(&b, graph);
	lock_text_add_rest(&b, graph);
	free(b.items);
	if (b.failed)
		graph_rows_free(ret);
	return !b.failed;
}

void graph_rows_free(struct graph_rows *g)
{
	free(g->rows);
	memset(g, 0, sizeof(*g));
}

static void wait_text(const cJSON *w, char *buf, size_t size)
{
	char thread[600], lock[600], time[32];
	const char *kind = json_text_of(w, "kind"), *place = lock_place(json_get(w, "stack"));
	bool timed = cJSON_IsTrue(json_get(w, "timed"));

	thread_text(w, "thread", thread, sizeof(thread));
	lock_text(json_get(w, "lock"), lock, sizeof(lock));
	duration_text(json_number_of(w, "waiting_ns"), time, sizeof(time));
	/* such as "worker" (7): enter of org.shop.Stock@1a for 3.2s, at org.shop.Main.sell */
	snprintf(buf, size, "%s: %s of %s for %s%s%s%s", thread, *kind ? kind : "wait", lock, time,
		 timed ? ", with a time limit" : "", *place ? ", at " : "", place);
}

void graph_row_text(const struct graph_row *row, char *buf, size_t size)
{
	char thread[600];

	switch (row->kind) {
	case GRAPH_DEADLOCK:
		snprintf(buf, size,
			 "deadlock: each of these waits for the next, the last for the first");
		break;
	case GRAPH_CIRCLE:
		snprintf(buf, size,
			 "a cycle that a time limit may end: each waits for the next, the last for "
			 "the first");
		break;
	case GRAPH_BLOCKER:
		thread_text(row->thread, "thread", thread, sizeof(thread));
		snprintf(buf, size, "%s keeps %.0f thread%s waiting", thread, row->number,
			 row->number == 1 ? "" : "s");
		break;
	case GRAPH_NOBODY:
		snprintf(buf, size, "waiting; the owner is not known");
		break;
	case GRAPH_WAIT:
		wait_text(row->wait, buf, size);
		break;
	case GRAPH_MORE:
		snprintf(buf, size, "and %.0f more; --json has up to 2000", row->number);
		break;
	}
}

/*
 * What the commands about locks share: texts for locks and times, and the graph of who blocks whom
 * as the rows of a tree, which are printed (command_locks.c) or drawn (lock_draw.c).
 */
#pragma once

#include "daemon/cli/cli.h"

/* Writes "850us", "23.4ms", "1.24s", "2m03s" or "5h12m". */
void duration_text(double ns, char *buf, size_t size);
/* Writes "org.shop.Stock@1a2b3c", or "(unnamed)": a park without a blocker, or a lock that nothing
 * names. */
void lock_text(const cJSON *lock, char *buf, size_t size);
/* The same without the package, for columns that may be cut. */
void lock_text_brief(const cJSON *lock, char *buf, size_t size);
/* Writes "Main.sell" for "org.shop.Main.sell". */
void frame_text_brief(const char *frame, char *buf, size_t size);
/* Writes a thread's number: "4711", "#53" for a virtual thread, "7 in its container" or "-". */
void tid_text(const cJSON *thread, char *buf, size_t size);
bool thread_is_virtual(const cJSON *thread);
/* Writes a thread: "worker-1" (4711) or "worker-1" (virtual #53); without a name virtual #53 or
 * thread 4711. */
void thread_text(const cJSON *thread, const char *key, char *buf, size_t size);

enum graph_kind {
	GRAPH_DEADLOCK, /* a heading: the rows below wait for each other in a cycle */
	GRAPH_CIRCLE, /* likewise, but one of these waits has a time limit */
	GRAPH_BLOCKER, /* a thread that blocks others and does not wait */
	GRAPH_NOBODY, /* a heading: waits for an unknown owner */
	GRAPH_WAIT, /* a thread that waits */
	GRAPH_MORE, /* how many more rows there are */
};

struct graph_row {
	enum graph_kind kind;
	unsigned depth; /* indentation in columns */
	int parent; /* the row of the blocker or of the heading; -1 = none */
	int next; /* in a cycle the row that this one waits for, else -1 */
	const cJSON *wait; /* of GRAPH_WAIT; borrowed */
	const cJSON *thread; /* of GRAPH_BLOCKER; borrowed */
	double number; /* of GRAPH_BLOCKER: threads that wait for it; of GRAPH_MORE: rows */
	bool deadlock; /* in a cycle that is a deadlock */
};

struct graph_rows {
	struct graph_row *rows;
	size_t n, cap;
};

#define GRAPH_ROWS_MAX 400

/* Makes rows of @graph, part of an answer of /v1/locks, which is borrowed. false = no memory. */
bool graph_rows_new(const cJSON *graph, struct graph_rows *ret);
void graph_rows_free(struct graph_rows *g);
/* Writes a row without its indentation; the text is not safe for a terminal yet. */
void graph_row_text(const struct graph_row *row, char *buf, size_t size);

/* lock_draw.c: an SVG of an answer of /v1/locks with its graph; malloc'ed, NULL = no memory. */
char *lock_svg(const cJSON *locks, size_t *ret_len);
/* lock_page.c: a page of such an answer, with stacks; malloc'ed, NULL = no memory. */
char *lock_html(const cJSON *locks, size_t *ret_len);
/* Writes text for XML and its attributes. */
void put_escaped(FILE *to, const char *s);
bool put_svg(FILE *to, const cJSON *locks);

/* command_locks.c: the JVMs of an answer; prints that there are none. */
const cJSON *targets_of(FILE *to, const cJSON *answer);
/* lock_print.c: prints the JVM's name; false = there is nothing to show for it, which was
 * printed. */
bool print_name_of_collected(FILE *to, const cJSON *target);
/* Prints "last 60 s: 305 waits of 1 ms and more (887 ms); 10,572 shorter (1.2 s)". */
void locks_summary(FILE *to, const cJSON *target);

/* Print answers, wherever they come from. */
void locks_print(FILE *to, const cJSON *locks, int rows, size_t width);
void lock_graph_print(FILE *to, const cJSON *locks, size_t width);
/* Prints "of 40 s of 12 threads, in percent: cpu 12.0, ..."; nothing if the times are unknown. */
void threads_times_print(FILE *to, const cJSON *times);
void threads_print(FILE *to, const cJSON *threads, const char *sort, int rows, size_t width);

/*
 * Shared by the commands about locks: texts for locks and times, and the graph of who blocks whom
 * as rows of a tree, which is printed (command_locks.c) or drawn (lock_draw.c).
 */
#pragma once

#include "daemon/cli/cli.h"

/* "850us", "23.4ms", "1.24s", "2m03s", "5h12m" */
void duration_text(double ns, char *buf, size_t size);
/* "org.shop.Stock@1a2b3c"; "an unknown lock" */
void lock_text(const cJSON *lock, char *buf, size_t size);
/* The same without the package: for columns that may be cut. */
void lock_text_brief(const cJSON *lock, char *buf, size_t size);
/* "Main.sell" of "org.shop.Main.sell" */
void frame_text_brief(const char *frame, char *buf, size_t size);
/* Its number: "4711", "#53" of a virtual thread, "7 in its container", "-". */
void tid_text(const cJSON *thread, char *buf, size_t size);
bool thread_is_virtual(const cJSON *thread);
/* A thread: "worker-1" (4711), "worker-1" (virtual #53), virtual #53; without a name thread
 * 4711. */
void thread_text(const cJSON *thread, const char *key, char *buf, size_t size);

enum graph_kind {
	GRAPH_DEADLOCK, /* a heading: its rows wait for each other in a cycle */
	GRAPH_CIRCLE, /* likewise, but one of the waits has a time limit */
	GRAPH_BLOCKER, /* a thread that does not wait itself */
	GRAPH_NOBODY, /* a heading: waits without an owner that is known */
	GRAPH_WAIT, /* a thread that waits */
	GRAPH_MORE, /* a number of rows is not shown */
};

struct graph_row {
	enum graph_kind kind;
	unsigned depth; /* indentation in columns */
	int parent; /* row of the blocker, or of the heading; -1 = none */
	int next; /* in a cycle: the row that it waits for; otherwise -1 */
	const cJSON *wait; /* WAIT; borrowed */
	const cJSON *thread; /* BLOCKER */
	double number; /* BLOCKER: how many threads wait for it; MORE: how many rows */
	bool deadlock; /* part of a cycle */
};

struct graph_rows {
	struct graph_row *rows;
	size_t n, cap;
};

#define GRAPH_ROWS_MAX 400

/* @graph: as in /v1/locks; borrowed as long as the rows live. false = no memory. */
bool graph_rows_new(const cJSON *graph, struct graph_rows *ret);
void graph_rows_free(struct graph_rows *g);
/* One row as text, without its position in the tree; not yet safe for a terminal. */
void graph_row_text(const struct graph_row *row, char *buf, size_t size);

/* lock_draw.c: @locks is the answer of /v1/locks with a graph. malloc'ed text, NULL = no memory. */
char *lock_svg(const cJSON *locks, size_t *ret_len);
/* lock_page.c: the same with stacks, as a page. */
char *lock_html(const cJSON *locks, size_t *ret_len);
/* For text and attributes of XML. */
void put_escaped(FILE *to, const char *s);
bool put_svg(FILE *to, const cJSON *locks);

/* command_locks.c: the JVMs of an answer; prints a message if there are none. */
const cJSON *targets_of(FILE *to, const cJSON *answer);
/* lock_print.c: prints its name; false = there is nothing to show, and that was printed. */
bool print_name_of_collected(FILE *to, const cJSON *target);
/* "last 60 s: 305 waits of 1 ms and more (887 ms); 10,572 shorter (1.2 s)" */
void locks_summary(FILE *to, const cJSON *target);

/* Prints an answer, whatever its source. */
void locks_print(FILE *to, const cJSON *locks, int rows, size_t width);
void lock_graph_print(FILE *to, const cJSON *locks, size_t width);
/* "of 40 s of 12 threads, in percent: cpu 12.0, ..."; nothing without times. */
void threads_times_print(FILE *to, const cJSON *times);
void threads_print(FILE *to, const cJSON *threads, const char *sort, int rows, size_t width);

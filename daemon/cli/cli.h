/*
 * What the commands of `kindling` share: client.c (the daemon's API), input.c (files), output.c
 * (files, text that is safe to print), table.c (columns), time.c (durations and moments), own.c
 * (without a daemon).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/usage.h"
#include "daemon/report/read.h"

/* exit statuses */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NO_DAEMON = 3 };

extern const char *cli_socket; /* --socket, $KINDLING_SOCKET or the default */

int cli_main(int argc, char **argv);
int command_status(int argc, char **argv);
int command_top(int argc, char **argv);
int command_tail(int argc, char **argv);
int command_locks(int argc, char **argv);
int command_threads(int argc, char **argv);
int command_timeline(int argc, char **argv);
int command_traces(int argc, char **argv);
int command_report(int argc, char **argv);
int command_history(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_record(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_detach(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_clickhouse(int argc, char **argv);
int command_config(int argc, char **argv);
int command_sink(int argc, char **argv);
int command_metrics(int argc, char **argv);
int command_bugreport(int argc, char **argv);
int command_health(int argc, char **argv);

/* Arguments of each command: see the command's file. */
extern const struct usage usage_status, usage_top, usage_tail, usage_locks, usage_threads,
	usage_timeline, usage_traces, usage_report, usage_history, usage_convert, usage_record, usage_attach,
	usage_detach, usage_doctor, usage_clickhouse, usage_config, usage_sink, usage_metrics,
	usage_bugreport, usage_health;
/* The same for `report`, `top` and `locks` with --source. */
extern const struct usage usage_source_report, usage_source_top, usage_source_locks;

/* A row for each command: its table of options and its function. The last one has no usage. */
struct cli_command {
	const struct usage *usage, *with_source;
	int (*run)(int argc, char **argv);
};
extern const struct cli_command cli_commands[];
extern const struct usage usage_kindling; /* of the program: options before a command */

#define CLI_TARGET_ABOUT \
	"TARGET is a pid, a container or its id, a pod, a service or part of a name from `kindling status`"
#define CLI_FORMATS "html collapsed txt pb.gz json jfr speedscope otlp otlp.json"

/* Reads the options of a command into @into; optind is the first argument that is not an option.
 * Returns -1 to continue, else the exit status: --help or an error was printed. */
int cli_parse(const struct usage *u, int argc, char **argv, void *into);
/* --help to stdout, or, after a wrong option, its first line to stderr; returns the exit status. */
int cli_usage(const struct usage *u, enum usage_result result);
int cli_wrong(const char *command, const char *what); /* Prints a sentence and how to get help:
						       * CLI_USAGE */

/* targets.c, for completions of shells: prints a line for each JVM, its pid and name with a tab
 * between them. */
int cli_targets(void);

/* ---- client.c ------------------------------------------------------------------------------- */

#define PATH_MAX_BYTES 8192

struct reply {
	long status; /* HTTP; 0 = no daemon */
	uint64_t samples, dropped; /* of a profile */
	bool denied; /* client_look(): this user may not open the socket */
	char *body; /* NUL-terminated, never NULL after success; freed by reply_free() */
	size_t len, cap;
};

/* One request. CLI_OK (status 2xx), or an exit status after printing the error. */
int client_request(const char *method, const char *path, struct reply *ret);
/* GET with an Accept header, of which only 500 bytes are sent. */
int client_accepting(const char *accept, const char *path, struct reply *ret);
/* Like client_request(), but prints nothing if no daemon listens: CLI_NO_DAEMON. */
int client_try(const char *method, const char *path, struct reply *ret);
/* The same, and prints nothing at all. */
int client_look(const char *method, const char *path, struct reply *ret);
/* Calls @on_line for every line until it returns false, Ctrl-C, or the daemon ends. */
int client_stream(const char *path, bool (*on_line)(void *userdata, const char *line),
		  void *userdata);
void reply_free(struct reply *r);
/* The parsed answer, for cJSON_Delete(). NULL if it is not JSON, after printing that. */
cJSON *reply_json(const struct reply *r);
/* Appends "?key=value" or "&key=value", escaped; @value NULL adds nothing. */
void path_add(char *path, size_t size, const char *key, const char *value);

/* ---- input.c -------------------------------------------------------------------------------- */

/* Reads a profile from a file; @format: its name, NULL = the suffix of @path. CLI_OK, or an exit
 * status after printing the error. */
int read_profile(const char *path, const char *format, struct report_reading *r,
		 struct profile **ret);

/* ---- output.c ------------------------------------------------------------------------------- */

extern volatile int cli_interrupted; /* Ctrl-C was pressed */
void cli_catch_interrupt(void); /* also notices a new terminal size, which only ends a pause */
/* Writes a file completely or not at all: a file beside it, then rename. "-" is stdout. CLI_OK or
 * CLI_FAILED after printing the error. */
int write_file(const char *path, const char *bytes, size_t len);
/* The format by name or suffix; NULL after printing the known ones. */
const char *format_of(const char *format, const char *path);
/* "flame.html: 512 samples, 0 dropped. Open it in a browser."; nothing for stdout. @events: bits.
 */
void say_written(const char *path, const char *format, unsigned events, uint64_t samples,
		 uint64_t dropped);
/*
 * A printable form of @s: control characters (also those of C1, which terminals obey) and bytes
 * that are not UTF-8 become \xNN, and text wider than @width columns is cut with an ellipsis.
 * Returns the columns used; @buf always has whole characters. SIZE_MAX = any width.
 */
size_t text_clean(const char *s, size_t width, char *buf, size_t size);
void print_text(FILE *to, const char *s);
/* The same, with @label before the first line. */
void print_labelled(FILE *to, const char *label, const char *s, size_t indent, size_t width);
/* Prints @s, made safe, indented by @indent columns on lines of @width, broken at spaces; with a
 * newline at its end. */
void print_wrapped(FILE *to, const char *s, size_t indent, size_t width);
const char *json_text_of(const cJSON *o, const char *key); /* "" if missing or null */
double json_number_of(const cJSON *o, const char *key); /* 0 if missing */
const cJSON *json_get(const cJSON *o, const char *key);

/* ---- table.c -------------------------------------------------------------------------------- */

#define COLUMNS_MAX 16
#define CELL_MAX    320

struct column {
	const char *head;
	bool right; /* numbers */
	size_t shrink_to; /* may be cut to this many columns when the table is too wide; 0 = never
			   */
};
struct table {
	const struct column *columns;
	/* for each column: the order in which columns are left out if the table is still too wide,
	 * the largest first; 0 = never. NULL = all stay. */
	const unsigned char *leave_out;
	/* Escape sequence before a cell, TABLE_PLAIN follows it; "" = none. NULL = the table has no
	 * colours. */
	const char *(*colour_of)(size_t column, const char *cell);
	size_t n_columns, n_rows;
	char (*cells)[CELL_MAX]; /* row after row */
	char **below; /* a line below each row, or NULL */
};
/* Adds a row of empty cells; returns its cells, or NULL without memory. */
char (*table_row(struct table *t))[CELL_MAX];
void table_below(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints @text made safe by text_clean(), indented, broken at spaces if it is wider than @width */
void table_note(struct table *t, const char *text, size_t width);
void table_print(FILE *to, const struct table *t, size_t width);
void table_free(struct table *t);
#define TABLE_PLAIN  "\033[0m"
#define TABLE_GREEN  "\033[32m"
#define TABLE_YELLOW "\033[33m"
#define TABLE_RED    "\033[31m"
#define TABLE_DIM    "\033[2m"
bool terminal_has_colours(void); /* stdout is a terminal, and NO_COLOR is not set */
#define WIDTH_ANY 4096 /* stdout is a file or a pipe: nothing is cut */
size_t terminal_width(void); /* of stdout, at least 40; WIDTH_ANY if it is not a terminal */

/* ---- screen.c: output that is refreshed, and keys ------------------------------------------ */

void screen_open(void); /* clears the screen; keys are read one by one without echo */
void screen_close(void);
void screen_size(unsigned short *ret_rows, unsigned short *ret_columns);
void screen_show(const char *text);
void screen_print(FILE *to, const char *text, unsigned short rows, unsigned short columns);
/* Waits for a key; 0 = none within @ms, or the size changed. 'q' after Ctrl-C. */
int screen_key(int ms);

/* ---- time.c --------------------------------------------------------------------------------- */

/* the span that the daemon's tables of waits and threads cover */
#define LAST_MAX_NS (600 * NS_PER_S)
/* "30s", "1.5h", "2m30s"; a bare number is seconds. 0 is refused. */
bool parse_length(const char *s, uint64_t *ret_ns);
/* The same for places where a bare number would be a mistake: -EINVAL, @why has a sentence about it
 * or is empty. */
int parse_interval(const char *s, uint64_t *ret_ns, char *why, size_t why_size);
/* "@1700000000"; local time: "14:05[:30]" (the last such moment), "2026-11-21 14:05[:30]"; behind
 * seconds also ".25". */
bool parse_moment(const char *s, uint64_t now_ns, uint64_t *ret_ns);
/* span.c. A span in the options of commands about the past; NULL = not given. */
struct span_words {
	const char *command, *last, *from, *to;
};
/* Appends it to @path in the daemon's format. -1 = done, else the exit status after printing the
 * error. */
int path_add_span(char *path, size_t size, const struct span_words *w);

/* ---- printing recordings, with or without the daemon ---------------------------------------- */

void status_print(FILE *to, const cJSON *status, size_t width, bool colours);
void history_print(FILE *to, const cJSON *history, size_t width);
void top_print(FILE *to, const cJSON *top, int rows);
void event_print(FILE *to, const cJSON *event, bool with_stack);

struct record_arguments {
	const char *target, *output, *format, *thread;
	uint64_t duration_ns, interval_ns, min_wait_ns;
	unsigned events; /* bits 1 << enum wire_event */
	bool threads, annotate, idle, trace_ids;
};
/* Calls @write for each file of the recording, with the events that go into it; events that a
 * format cannot hold together get files of their own, "out.lock.html". Returns the first status
 * that is not OK. */
int record_files(const struct record_arguments *a,
		 int (*write)(void *userdata, const char *path, unsigned events), void *userdata);
void record_progress(const struct record_arguments *a, double elapsed_s, double samples);
/* Events that were not collected, and why; "" prints nothing. */
void record_notes(const struct record_arguments *a, const char *notes);
/* The recording ended early, and why. */
void record_ended(double elapsed_s, const char *why);
#define CANDIDATES_MAX 64
struct jvm;
/* own.c: all JVMs of this host that @word matches best; returns how many, at most
 * CANDIDATES_MAX. */
unsigned own_find(const char *word, struct jvm *found);
/* own.c: attach, record, detach, in this process. */
int record_by_ourselves(const struct record_arguments *a);

/*
 * What the commands of kindling share: client.c (kindlingd's API), input.c (reading files),
 * output.c (writing files, text that is safe to print), table.c (columns), time.c and span.c
 * (durations and moments), screen.c (refreshed output), own.c (recording without kindlingd).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/usage.h"
#include "daemon/report/json_out.h"
#include "daemon/report/read.h"
#include "daemon/report/report.h"

/* exit statuses */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NO_DAEMON = 3 };

extern const char *cli_socket; /* --socket, else $KINDLING_SOCKET, else the default */

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

/* The options of each command; defined in the command's file. */
extern const struct usage usage_status, usage_top, usage_tail, usage_locks, usage_threads,
	usage_timeline, usage_traces, usage_report, usage_history, usage_convert, usage_record,
	usage_attach, usage_detach, usage_doctor, usage_clickhouse, usage_config, usage_sink,
	usage_metrics, usage_bugreport, usage_health;
/* The usages of commands that have --source. */
extern const struct usage usage_source_report, usage_source_top, usage_source_locks;

/* One command: its options and its function. The last one in the table has no usage. */
struct cli_command {
	const struct usage *usage, *with_source;
	int (*run)(int argc, char **argv);
};
extern const struct cli_command cli_commands[];
extern const struct usage usage_kindling; /* kindling itself: the options before a command */

#define CLI_TARGET_ABOUT \
	"TARGET is a pid, a container or its id, a pod, a service or part of a name from `kindling status`"
#define CLI_FORMATS "html collapsed txt pb.gz json jfr speedscope otlp otlp.json"

/* Reads a command's options into @into; then optind is the first argument that is not an option.
 * -1 = go on, else the exit status: --help, or an error, was printed. */
int cli_parse(const struct usage *u, int argc, char **argv, void *into);
/* Prints --help to stdout, or after an error the first line of it to stderr. Returns the exit
 * status. */
int cli_usage(const struct usage *u, enum usage_result result);
int cli_wrong(const char *command,
	      const char *what); /* prints the error and how to get help; CLI_USAGE */

/* targets.c, for the completions of shells: prints the pid and the name of each JVM, separated
 * by a tab. */
int cli_targets(void);

/* ---- client.c ------------------------------------------------------------------------------- */

#define PATH_MAX_BYTES 8192

struct reply {
	long status; /* HTTP status; 0 = no daemon answered */
	struct report_counts counts; /* of the profile in the answer */
	bool denied; /* set by client_look(): this user may not open the socket */
	char *body; /* NUL-terminated; not NULL after success; freed by reply_free() */
	size_t len, cap;
};

/* Sends a request. CLI_OK (any 2xx status), or an exit status after printing the error. */
int client_request(const char *method, const char *path, struct reply *ret);
/* GET with the header Accept, cut to 500 bytes. */
int client_accepting(const char *accept, const char *path, struct reply *ret);
/* Like client_request(), but if no daemon listens it prints nothing: CLI_NO_DAEMON. */
int client_try(const char *method, const char *path, struct reply *ret);
/* Like client_request(), but never prints anything. */
int client_look(const char *method, const char *path, struct reply *ret);
/* Passes on each line of an answer until @on_line returns false, Ctrl-C is pressed or the daemon
 * ends. */
int client_stream(const char *path, bool (*on_line)(void *userdata, const char *line),
		  void *userdata);
void reply_free(struct reply *r);
/* Parses the answer; free with cJSON_Delete(). NULL = not JSON, after printing that. */
cJSON *reply_json(const struct reply *r);
/* Appends "?key=value" or "&key=value", escaped. @value NULL: nothing. */
void path_add(char *path, size_t size, const char *key, const char *value);

/* ---- input.c -------------------------------------------------------------------------------- */

/* Reads a profile from a file. @format: its name; NULL = as the suffix of @path says. CLI_OK, or
 * an exit status after printing the error. */
int read_profile(const char *path, const char *format, struct report_reading *r,
		 struct profile **ret);

/* ---- output.c ------------------------------------------------------------------------------- */

extern volatile int cli_interrupted; /* Ctrl-C was pressed */
void cli_catch_interrupt(void); /* on Ctrl-C sets cli_interrupted; a change of the terminal's size
				   only ends a pause */
/* Writes a file completely or not at all, by a temporary file and rename; "-" is stdout. A device, a
 * named pipe and whatever is in /dev are written to, not replaced. CLI_OK, or CLI_FAILED after
 * printing the error. */
int write_file(const char *path, const char *bytes, size_t len);
/* The name of the format by its name or the file's suffix; NULL after printing the known ones. */
const char *format_of(const char *format, const char *path);
/* Prints "flame.html: 512 samples, 0 dropped. Open it in a browser."; nothing if @path is
 * stdout. @events: bits. */
void output_report_written(const char *path, const char *format, unsigned events,
			   const struct report_counts *counts);
/* Likewise for what @options select of @p. */
void output_profile_written(const char *path, const char *format, const struct profile *p,
			    const struct report_options *options);
/*
 * Makes @s safe to print: control characters (those of C1 as well, which terminals obey) and
 * invalid UTF-8 become \xNN; text wider than @width columns is cut, with an ellipsis. @buf always
 * ends after a whole character. Returns the columns that it takes. @width SIZE_MAX: any width.
 */
size_t text_clean(const char *s, size_t width, char *buf, size_t size);
void print_text(FILE *to, const char *s);
/* Like print_wrapped(), with @label before the first line. */
void print_labelled(FILE *to, const char *label, const char *s, size_t indent, size_t width);
/* Prints @s, made safe, indented by @indent columns and broken at spaces into lines of @width,
 * with a newline at its end. */
void print_wrapped(FILE *to, const char *s, size_t indent, size_t width);
const char *json_text_of(const cJSON *o, const char *key); /* "" if it is missing or null */
double json_number_of(const cJSON *o, const char *key); /* 0 if it is missing */
const cJSON *json_get(const cJSON *o, const char *key);
/* Writes what was parsed, as json_out.h's functions write a value. */
void json_add_parsed(struct text_out *to, const char *key, const cJSON *value);

/* ---- table.c -------------------------------------------------------------------------------- */

#define COLUMNS_MAX 16
#define CELL_MAX    320

struct column {
	const char *head;
	bool right; /* aligned to the right, for numbers */
	size_t shrink_to; /* may be cut to this many columns if the table is too wide; 0 = never */
};
struct table {
	const struct column *columns;
	/* for each column when it is left out of a table that is too wide: the largest number
	 * first; 0 = never. NULL = no column is. */
	const unsigned char *leave_out;
	/* The escape sequence before a cell, which TABLE_PLAIN ends; "" = none. NULL = no
	 * colours. */
	const char *(*colour_of)(size_t column, const char *cell);
	size_t n_columns, n_rows;
	char (*cells)[CELL_MAX]; /* row by row */
	char **below; /* for each row a line below it, or NULL */
};
/* Adds a row of empty cells and returns them; NULL without memory. */
char (*table_row(struct table *t))[CELL_MAX];
void table_below(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds @text below the last row: made safe, indented, broken at spaces into lines of @width. */
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
size_t terminal_width(void); /* of stdout in columns, at least 40; WIDTH_ANY if it is no terminal */

/* ---- screen.c: output that is refreshed, and keys ------------------------------------------ */

void screen_open(void); /* clears the screen; keys are read singly and not echoed */
void screen_close(void);
void screen_size(unsigned short *ret_rows, unsigned short *ret_columns);
void screen_show(const char *text);
void screen_print(FILE *to, const char *text, unsigned short rows, unsigned short columns);
/* Waits for a key: 0 = none came within @ms, or the terminal's size changed; 'q' also after
 * Ctrl-C. */
int screen_key(int ms);

/* ---- time.c --------------------------------------------------------------------------------- */

/* the longest span of the daemon's tables of waits and threads */
#define LAST_MAX_NS (600 * NS_PER_S)
/* Parses "30s", "1.5h", "2m30s" to ns; a bare number is seconds. false: not such, or 0. */
bool parse_length(const char *s, uint64_t *ret_ns);
/* The same, but a bare number is refused, because its unit would be a guess. -EINVAL: @why has a
 * sentence, or is "". */
int parse_interval(const char *s, uint64_t *ret_ns, char *why, size_t why_size);
/* Parses "@1700000000" (since 1970) and local times: "14:05[:30]" (the last time it was that),
 * "2026-11-21 14:05[:30]"; seconds may have a fraction. *ret is in ns since 1970. */
bool parse_moment(const char *s, uint64_t now_ns, uint64_t *ret_ns);
/* span.c. A span of the past in a command's options; NULL = not given. */
struct span_words {
	const char *command, *last, *from, *to;
};
/* Finds out the span, in ns since 1970; *ret_from_ns is 0 if neither --last nor --from is given.
 * -1 = done, else the exit status after printing the error. */
int span_parse(const struct span_words *w, uint64_t now_ns, uint64_t *ret_from_ns,
	       uint64_t *ret_to_ns);
/* Appends the span to @path. -1 = done, else the exit status after printing the error. */
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
/* Calls @write for each file of the recording with the events for it. Events that a format
 * cannot hold in one file get files of their own, "out.lock.html". Returns the first status that
 * is not CLI_OK. */
int record_files(const struct record_arguments *a,
		 int (*write)(void *userdata, const char *path, unsigned events), void *userdata);
void record_progress(const struct record_arguments *a, double elapsed_s, double samples);
/* Prints which events were not collected, and why; nothing for "", or if CPU samples alone were
 * asked for, and there are some. */
void record_notes(const struct record_arguments *a, double samples, const char *notes);
/* Prints that the recording ended early, and why. */
void record_ended(double elapsed_s, const char *why);
#define CANDIDATES_MAX 64
struct jvm;
/* own.c: finds those JVMs of this host that match @word best. Returns their number, at most
 * CANDIDATES_MAX. */
unsigned own_find(const char *word, struct jvm *found);
/* own.c: attaches, records and detaches in this process. Returns the exit status. */
int record_by_ourselves(const struct record_arguments *a);

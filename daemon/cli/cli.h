/* What the commands of `kindling` share. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* exit statuses */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NO_DAEMON = 3 };

extern const char *cli_socket; /* --socket, $KINDLING_SOCKET or the default */

int command_status(int argc, char **argv);
int command_top(int argc, char **argv);
int command_tail(int argc, char **argv);
int command_report(int argc, char **argv);
int command_record(int argc, char **argv);

/* ---- client.c: the daemon's API --------------------------------------------------------------- */

struct reply {
	long status; /* HTTP; 0 = no daemon */
	char *body; /* NUL-terminated; freed by reply_free() */
	size_t len;
};

/* One request. CLI_OK (status 2xx), or an exit status after saying why on stderr. */
int client_request(const char *method, const char *path, struct reply *ret);
/* The same, but a missing daemon is not said: CLI_NO_DAEMON. */
int client_try(const char *method, const char *path, struct reply *ret);
/* Calls @on_line for every line until it returns false or the daemon ends. */
int client_stream(const char *path, bool (*on_line)(void *userdata, const char *line), void *userdata);
void reply_free(struct reply *r);
/* Appends "&key=value", escaped; @value NULL adds nothing. */
void path_add(char *path, size_t size, const char *key, const char *value);

/* ---- output.c -------------------------------------------------------------------------------------- */

extern volatile int cli_interrupted; /* Ctrl-C came */
void cli_catch_interrupt(void);
/* Whole or not at all: a file beside it, then rename. "-" is stdout. CLI_OK or CLI_FAILED, said. */
int write_file(const char *path, const char *bytes, size_t len);
/* The format by name or suffix; NULL after saying what there is. */
const char *format_of(const char *format, const char *path);
/* Prints @s cut to @width columns, control characters replaced, padded when @pad. */
void print_cell(const char *s, int width, bool pad);
const char *json_text(const cJSON *o, const char *key); /* "" if missing or null */
double json_number(const cJSON *o, const char *key);

/* Writes files, and makes text from JVMs safe for a terminal. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/replace.h"
#include "daemon/ground/utf8.h"
#include "daemon/report/event_names.h"

volatile int cli_interrupted;

static void on_interrupt(int signo)
{
	(void)signo;
	cli_interrupted = 1;
}

static void on_resize(int signo)
{
	(void)signo;
}

void cli_catch_interrupt(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = on_resize;
	sigaction(SIGWINCH, &action, NULL);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* /dev/null, /dev/stdout and named pipes are written to: root may replace them, and must not. */
static bool output_is_no_file(const char *path)
{
	struct stat st;

	return strncmp(path, "/dev/", 5) == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

static int output_write_to(const char *path, const char *bytes, size_t len)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : replace_write_all(fd, bytes, len);
}

static int output_replace(const char *path, const char *bytes, size_t len)
{
	CLEANUP(freep) char *temp = NULL;
	struct replace file = { .dfd = AT_FDCWD, .name = path, .mode = 0666, .exclusive = true };

	if (asprintf(&temp, "%s.%d.tmp", path, (int)getpid()) < 0)
		return -ENOMEM;
	file.temp = temp;
	return replace_with(&file, bytes, len);
}

int write_file(const char *path, const char *bytes, size_t len)
{
	int r;

	if (strcmp(path, "-") == 0)
		return fwrite(bytes, 1, len, stdout) == len && fflush(stdout) == 0 ? CLI_OK
										   : CLI_FAILED;
	r = output_is_no_file(path) ? output_write_to(path, bytes, len)
				    : output_replace(path, bytes, len);
	if (r < 0)
		fprintf(stderr, "kindling: %s: %s\n", path, strerror(-r));
	return r < 0 ? CLI_FAILED : CLI_OK;
}

static const struct {
	const char *name, *next;
} formats[REPORT_FORMAT_COUNT] = {
	[REPORT_HTML] = { "html", "Open it in a browser" },
	[REPORT_COLLAPSED] = { "collapsed", "Any flame graph tool reads it" },
	[REPORT_TXT] = { "txt", "Read it with less" },
	[REPORT_PPROF] = { "pb.gz", "Look at it with: go tool pprof -top" },
	[REPORT_JSON] = { "json", "Read it with jq" },
	[REPORT_OTLP] = { "otlp", "Post it to http://HOST:4318/v1development/profiles" },
	[REPORT_OTLP_JSON] = { "otlp.json", "Post it to http://HOST:4318/v1development/profiles" },
	[REPORT_SPEEDSCOPE] = { "speedscope", "Open it in https://www.speedscope.app" },
	[REPORT_JFR] = { "jfr", "Look at it with JDK Mission Control, or: jfr summary" },
};

const char *format_of(const char *format, const char *path)
{
	char list[200];
	int f;

	if (format)
		f = report_format_by_name(format);
	else
		f = strcmp(path, "-") == 0 ? REPORT_TXT : report_format_by_path(path);
	if (f >= 0)
		return formats[f].name;
	if (format)
		fprintf(stderr, "kindling: the format %s is unknown: use %s\n", format,
			report_format_list(false, list, sizeof(list)));
	else
		fprintf(stderr, "kindling: the format of %s is unknown: use %s, or --format\n",
			path, report_format_list(true, list, sizeof(list)));
	return NULL;
}

/* Says what left all samples out of a file. false: nothing did, there were none. */
static bool says_what_left_out(const struct report_counts *c)
{
	if (c->filtered)
		fprintf(stderr,
			"%" PRIu64 " others were left out by --thread, --include or --exclude.\n",
			c->filtered);
	else if (c->idle)
		fprintf(stderr, "%" PRIu64 " waits for work were left out; --idle shows them.\n",
			c->idle);
	return c->filtered || c->idle;
}

/* Why a file has no samples. */
static const char *nothing_of(unsigned events)
{
	if (events == 1u << WIRE_EVENT_CPU)
		return "A JVM that is idle, stopped or frozen uses no CPU time and has no samples; look at a longer time. "
		       "`kindling status` tells why a JVM is not profiled, `kindling doctor` whether it is stopped.";
	if (events == 1u << WIRE_EVENT_LOCK)
		return "No wait of min_wait or longer has ended in this time; `kindling locks "
		       "--graph` shows waits in progress.";
	return "There was no such event; `kindling status` shows which events are collected.";
}

void output_profile_written(const char *path, const char *format, const struct profile *p,
			    const struct report_options *options)
{
	struct report_counts c;

	report_count(p, options, &c);
	output_report_written(path, format, options->events, &c);
}

void output_report_written(const char *path, const char *format, unsigned events,
			   const struct report_counts *c)
{
	int f = report_format_by_name(format);
	const char *what = report_events[report_event_of(events)].samples;

	if (strcmp(path, "-") == 0)
		return;
	fprintf(stderr, "%s: %" PRIu64 " %s, %" PRIu64 " dropped. ", path, c->samples,
		events & (events - 1) ? "samples" : what, c->dropped);
	if (c->samples == 0 && says_what_left_out(c))
		return;
	if (c->samples == 0)
		fprintf(stderr, "%s\n", nothing_of(events));
	else if (f == REPORT_PPROF || f == REPORT_TXT || f == REPORT_JSON || f == REPORT_JFR)
		fprintf(stderr, "%s %s\n", formats[f].next, path);
	else
		fprintf(stderr, "%s.\n", f >= 0 ? formats[f].next : "");
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Does the character change the direction of the text after it? Then it could make a name look
 * like another one. */
static bool turns_direction(uint32_t code)
{
	return code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/* The length of a printable character in UTF-8; 0 = it must be escaped. */
static size_t output_printable(const char *s)
{
	uint32_t code;
	size_t n = utf8_character(s, strnlen(s, 4), &code);

	return n && !utf8_is_control(code) && !turns_direction(code) ? n : 0;
}

/* Takes one character: *ret_columns is its width, @piece its safe form, whose length is
 * returned. */
static size_t next_piece(const char **s, char piece[8], size_t *ret_columns)
{
	const char *p = *s;
	size_t n = output_printable(p);

	if (n) {
		memcpy(piece, p, n);
		*s += n;
		*ret_columns = 1;
		return n;
	}
	*s += 1;
	*ret_columns = 4;
	return (size_t)snprintf(piece, 8, "\\x%02x", (unsigned char)p[0]);
}

size_t text_clean(const char *s, size_t width, char *buf, size_t size)
{
	size_t len = 0, columns = 0, cut_len = 0, cut_columns = 0, n, c;
	char piece[8];

	while (*s) {
		n = next_piece(&s, piece, &c);
		if (columns + c > width || len + n + 4 > size) {
			/* back to where the ellipsis fits */
			len = cut_len;
			columns = cut_columns;
			if (columns < width && len + 4 <= size) {
				memcpy(buf + len, "…", 3);
				len += 3;
				columns++;
			}
			break;
		}
		memcpy(buf + len, piece, n);
		len += n;
		columns += c;
		if (columns < width) {
			cut_len = len;
			cut_columns = columns;
		}
	}
	buf[len] = '\0';
	return columns;
}

void print_text(FILE *to, const char *s)
{
	char piece[8];
	size_t columns;

	while (*s) {
		size_t n = next_piece(&s, piece, &columns);

		fwrite(piece, 1, n, to);
	}
}

/* The length of the first line of @s, broken at the last space within @width columns. */
static size_t output_line_of(const char *s, size_t width)
{
	size_t columns = 0, i = 0, space = 0;

	for (; s[i]; i++) {
		if (((unsigned char)s[i] & 0xc0) == 0x80) /* not the first byte of a character */
			continue;
		if (columns++ == width)
			return space ? space : i;
		if (s[i] == ' ')
			space = i;
	}
	return i;
}

void print_wrapped(FILE *to, const char *s, size_t indent, size_t width)
{
	char clean[4096];
	const char *rest = clean;

	(void)text_clean(s, SIZE_MAX, clean, sizeof(clean));
	width = width > indent + 20 ? width - indent : 20;
	do {
		size_t n = output_line_of(rest, width);

		fprintf(to, "%*s%.*s\n", (int)indent, "", (int)n, rest);
		rest += n + strspn(rest + n, " ");
	} while (*rest);
}

void print_labelled(FILE *to, const char *label, const char *s, size_t indent, size_t width)
{
	size_t len = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	print_wrapped(f, s, indent, width);
	if (fclose(f) == 0 && len > indent)
		fprintf(to, "%-*s%s", (int)indent, label, text + indent);
	free(text);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

const cJSON *json_get(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

const char *json_text_of(const cJSON *o, const char *key)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

double json_number_of(const cJSON *o, const char *key)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

void json_add_parsed(struct text_out *to, const char *key, const cJSON *value)
{
	const cJSON *o;

	if (cJSON_IsObject(value) || cJSON_IsArray(value)) {
		if (cJSON_IsObject(value))
			json_begin_object(to, key);
		else
			json_begin_list(to, key);
		cJSON_ArrayForEach(o, value) json_add_parsed(to, o->string, o);
		if (cJSON_IsObject(value))
			json_end_object(to);
		else
			json_end_list(to);
	} else if (cJSON_IsString(value)) {
		json_add_string(to, key, value->valuestring);
	} else if (cJSON_IsNumber(value)) {
		json_add_double(to, key, value->valuedouble);
	} else if (cJSON_IsBool(value)) {
		json_add_bool(to, key, cJSON_IsTrue(value));
	} else {
		json_add_null(to, key);
	}
}

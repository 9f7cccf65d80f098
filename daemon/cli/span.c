/* A span of the past in the options of commands: --last, or --from and --to. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/clock.h"

/* Writes "2026-11-21 14:05:00". */
static void date_text(uint64_t ns, char *buf, size_t size)
{
	time_t s = (time_t)(ns / NS_PER_S);
	struct tm tm;

	strftime(buf, size, "%Y-%m-%d %H:%M:%S", localtime_r(&s, &tm));
}

/* Parses a moment. -1 = go on, else the exit status. */
static int read_moment(const char *command, const char *option, const char *word, uint64_t now_ns,
		       uint64_t *ret_ns)
{
	char why[100];

	if (!word || parse_moment(word, now_ns, ret_ns))
		return -1;
	snprintf(why, sizeof(why), "%s takes 14:05, \"2026-11-21 14:05\" or @SECONDS", option);
	return cli_wrong(command, why);
}

/* Says that a time of day later than now was taken as yesterday's. */
static void span_note_yesterday(const char *option, const char *word, uint64_t now_ns, uint64_t ns)
{
	char date[32], now[32];

	if (!word || strpbrk(word, "@-"))
		return;
	date_text(ns, date, sizeof(date));
	date_text(now_ns, now, sizeof(now));
	if (strncmp(date, now, 10) != 0)
		fprintf(stderr, "kindling: %s %s is in the future (it is %s): using %s\n", option,
			word, now + 11, date);
}

static int refuse_future(const char *command, uint64_t from_ns, uint64_t now_ns)
{
	char why[128], from[32], now[32];

	date_text(from_ns, from, sizeof(from));
	date_text(now_ns, now, sizeof(now));
	snprintf(why, sizeof(why), "--from %s is in the future: it is %s", from, now);
	return cli_wrong(command, why);
}

static int span_parse_range(const struct span_words *w, uint64_t now, uint64_t *from, uint64_t *to)
{
	int r = read_moment(w->command, "--from", w->from, now, from);

	if (r < 0)
		r = read_moment(w->command, "--to", w->to, now, to);
	if (r >= 0)
		return r;
	if (*from > now)
		return refuse_future(w->command, *from, now);
	span_note_yesterday("--from", w->from, now, *from);
	if (*to < *from && !strpbrk(w->to, "@-"))
		*to = now; /* --to 14:10 at 14:07 means now */
	else
		span_note_yesterday("--to", w->to, now, *to);
	return *from >= *to ? cli_wrong(w->command, "--from is not before --to") : -1;
}

int span_parse(const struct span_words *w, uint64_t now_ns, uint64_t *ret_from_ns,
	       uint64_t *ret_to_ns)
{
	uint64_t last;

	*ret_from_ns = 0;
	*ret_to_ns = now_ns;
	if (!w->last)
		return span_parse_range(w, now_ns, ret_from_ns, ret_to_ns);
	if (w->from || w->to)
		return cli_wrong(w->command, "use --last, or --from and --to");
	if (!parse_length(w->last, &last))
		return cli_wrong(w->command, "--last takes a duration such as 60s");
	*ret_from_ns = now_ns - (last < now_ns ? last : now_ns);
	return -1;
}

int path_add_span(char *path, size_t size, const struct span_words *w)
{
	uint64_t from, to;
	char text[32];
	int r = span_parse(w, clock_real_ns(), &from, &to);

	if (r >= 0)
		return r;
	path_add(path, size, "last", w->last);
	snprintf(text, sizeof(text), "%" PRIu64, from);
	path_add(path, size, "from", w->from ? text : NULL);
	snprintf(text, sizeof(text), "%" PRIu64, to);
	path_add(path, size, "to", w->to ? text : NULL);
	return -1;
}

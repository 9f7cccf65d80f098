/* See source.h: turns options into a query, and the answer into a profile. */
#include "daemon/cli/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/report_rows.h"
#include "daemon/clickhouse/answer.h"
#include "daemon/report/event_names.h"
#include "daemon/report/methods.h"
#include "daemon/report/patterns.h"
#include "daemon/report/view.h"

#define LOCK_ROWS_MAX  500
#define TOP_ROWS       20
#define SOURCE_LAST_NS (60 * NS_PER_S)

struct source_arguments {
	const char *command, *source, *last, *from, *to, *output, *format, *type, *thread, *include,
		*exclude, *rows_word, *sort, *by;
	const char *selectors[CLICKHOUSE_SELECTORS];
	unsigned events, rows;
	bool all, merge, idle, threads, annotate, reverse, once, json;
	struct changes changes;
	struct source_server server;
	struct clickhouse_question question;
};

static const struct usage_row report_rows[] = {
	OPTIONS_OF_SOURCE(struct source_arguments),
	OPTION_FLAG('a', "all", struct source_arguments, all, "all JVMs"),
	OPTIONS_OF_REPORT(struct source_arguments),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_source_report = {
	"report",
	"a report of a whole cluster",
	"kindling report --source URL --service NAME|--all [--last 60s | --from TIME [--to TIME]]\n"
	"                -o FILE [OPTION...]",
	"Writes what JVMs of a whole cluster did, from ClickHouse, as `kindling report` does from the history "
	"of one host: the same formats, the same options. Sinks deliver no waits for work.",
	report_rows,
	NULL,
	"kindling report --source clickhouse://ch.example/kindling --service shop --last 1h -o flame.html\n"
	"kindling report --source clickhouse://ch.example/kindling --service shop --diff version=1.4..version=1.5 "
	"-o changed.html",
};

static const struct usage_row top_rows[] = {
	OPTIONS_OF_SOURCE(struct source_arguments),
	OPTION_TEXT('l', "last", "DURATION", struct source_arguments, last,
		    "how far to look back (default 60s); or:"),
	OPTION_TEXT(0, "from", "TIME", struct source_arguments, from,
		    "14:05, \"2026-11-21 14:05\" or @SECONDS since 1970"),
	OPTION_TEXT(0, "to", "TIME", struct source_arguments, to,
		    "in the same forms (default: now)"),
	OPTION_CHOICE('S', "sort", "KEY", "self total", struct source_arguments, sort,
		      "self (the default) or total"),
	OPTION_CHOICE('e', "event", "EVENT", "cpu lock alloc wall offcpu", struct source_arguments,
		      type, "cpu (the default), lock, alloc, wall or offcpu"),
	OPTION_HIDDEN("type", struct source_arguments, type),
	OPTION_FLAG('i', "idle", struct source_arguments, idle,
		    "also waits for work, if they were delivered"),
	OPTION_TEXT('t', "thread", "WORD", struct source_arguments, thread,
		    "only threads whose name contains WORD"),
	OPTION_TEXT('n', "rows", "N", struct source_arguments, rows_word,
		    "show N methods (default 20)"),
	OPTION_FLAG(0, "once", struct source_arguments, once,
		    "has no effect: with --source the "
		    "table is always printed once"),
	OPTION_FLAG('j', "json", struct source_arguments, json,
		    "one JSON object; the JVMs in `targets` have sums and no methods of their own"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_source_top = {
	"top",
	"the methods that used the most CPU time in a whole cluster",
	"kindling top --source URL [--service NAME] [--last 60s] [OPTION...]",
	"Prints once which methods used the most CPU time in a whole cluster, from ClickHouse.",
	top_rows,
	NULL,
	"kindling top --source clickhouse://ch.example/kindling --service shop --last 10m",
};

static const struct usage_row locks_rows[] = {
	OPTIONS_OF_SOURCE(struct source_arguments),
	OPTION_TEXT('l', "last", "DURATION", struct source_arguments, last,
		    "how far to look back (default 60s); or:"),
	OPTION_TEXT(0, "from", "TIME", struct source_arguments, from,
		    "14:05, \"2026-11-21 14:05\" or @SECONDS since 1970"),
	OPTION_TEXT(0, "to", "TIME", struct source_arguments, to,
		    "in the same forms (default: now)"),
	OPTION_FLAG('i', "idle", struct source_arguments, idle,
		    "also waits for work, if they were delivered"),
	OPTION_TEXT('t', "thread", "WORD", struct source_arguments, thread,
		    "only threads whose name contains WORD"),
	OPTION_TEXT('n', "rows", "N", struct source_arguments, rows_word,
		    "show N rows (default 20)"),
	OPTION_CHOICE(0, "by", "WORD", "class", struct source_arguments, by,
		      "class (the default): ClickHouse has no single locks"),
	OPTION_FLAG('j', "json", struct source_arguments, json, "one JSON object"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_source_locks = {
	"locks",
	"the classes of locks that a whole cluster's threads waited for",
	"kindling locks --source URL [--service NAME] [--last 60s] [OPTION...]",
	"Prints the classes of locks that a whole cluster's threads waited for longest, from ClickHouse. "
	"Identities and owners of locks stay on each node: run `kindling locks` there.",
	locks_rows,
	NULL,
	"kindling locks --source clickhouse://ch.example/kindling --last 1h",
};

static const struct usage *source_usage_of(const char *command)
{
	return strcmp(command, "top") == 0     ? &usage_source_top
	       : strcmp(command, "locks") == 0 ? &usage_source_locks
					       : &usage_source_report;
}

bool source_is_asked(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--source") == 0 || strncmp(argv[i], "--source=", 9) == 0)
			return true;
	return false;
}

/* ---- options -------------------------------------------------------------------------------- */

static int source_parse_options(int argc, char **argv, struct source_arguments *a)
{
	int r = cli_parse(source_usage_of(a->command), argc, argv, a);

	if (r >= 0)
		return r;
	if (optind < argc)
		return cli_wrong(a->command,
				 "with --source name JVMs by --service, --pod, --node ...");
	return -1;
}

static int source_parse_range(struct source_arguments *a, uint64_t now_ns)
{
	struct clickhouse_question *q = &a->question;
	const struct span_words words = { a->command, a->last, a->from, a->to };
	int r = span_parse(&words, now_ns, &q->from_ns, &q->to_ns);

	if (r < 0 && !a->from && !a->last)
		q->from_ns = q->to_ns > SOURCE_LAST_NS ? q->to_ns - SOURCE_LAST_NS : 0;
	return r;
}

/* Parses the arguments. -1 = go on, else the exit status. */
static int source_parse(int argc, char **argv, struct source_arguments *a)
{
	int r = source_parse_options(argc, argv, a);
	char why[200];

	if (r >= 0)
		return r;
	if (!source_parse_url(a->source, &a->server, why, sizeof(why)))
		return cli_wrong(a->command, why);
	a->events = 1u << WIRE_EVENT_CPU;
	if (a->type && !report_events_by_name(a->type, &a->events))
		return cli_wrong(a->command, "--event takes cpu, lock, alloc, wall or offcpu");
	a->rows = a->rows_word ? (unsigned)strtoul(a->rows_word, NULL, 10) : TOP_ROWS;
	if (!a->rows || a->rows > LOCK_ROWS_MAX)
		return cli_wrong(a->command, "-n takes a number of rows, at most 500");
	a->question.database = a->server.database;
	a->question.events = a->events;
	memcpy(a->question.selectors, a->selectors, sizeof(a->selectors));
	return source_parse_range(a, clock_real_ns());
}

/* ---- the profile ---------------------------------------------------------------------------- */

static int source_report_bad(const struct source_arguments *a, int error,
			     const struct clickhouse_answered *what)
{
	if (error == -EBADMSG)
		fprintf(stderr,
			"kindling: %s: row %" PRIu64
			" of %s.%s is not what kindling " KINDLING_VERSION
			" expects: compare its columns with those of `kindling clickhouse schema`\n",
			a->server.url, what->bad_row, a->server.database,
			clickhouse_table_names[what->bad]);
	else
		fprintf(stderr, "kindling: %s\n", strerror(-error));
	return CLI_FAILED;
}

static int source_ask_table(const struct source_arguments *a, enum clickhouse_table table,
			    struct reply *ret)
{
	struct text_out sql = { 0 };
	int r = CLI_FAILED;

	memset(ret, 0, sizeof(*ret));
	clickhouse_put_question(&sql, &a->question, table);
	if (!sql.failed)
		r = source_ask(&a->server, sql.p, ret);
	free(sql.p);
	return r;
}

/* Applies the filters that the daemon of one host would apply to its history. */
static int source_filter(const struct source_arguments *a, struct profile *all,
			 struct profile **ret)
{
	const struct profile_filter filter = { .thread = a->thread,
					       .events = a->events,
					       .no_idle = !a->idle };
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = profile_new(&p);

	if (r == 0)
		r = profile_merge(p, all, &filter);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

static int cli_source_profile(const struct source_arguments *a, struct profile **ret)
{
	/* stacks last, so that those of samples that nodes deliver meanwhile are in the answer */
	static const enum clickhouse_table order[CLICKHOUSE_TABLES] = { CLICKHOUSE_SAMPLES,
									CLICKHOUSE_PROCESSES,
									CLICKHOUSE_STACKS };
	struct reply replies[CLICKHOUSE_TABLES] = { 0 };
	CLEANUP(profile_freep) struct profile *all = NULL;
	struct clickhouse_answered what = { 0 };
	struct clickhouse_answers answers;
	int r = CLI_OK, error;

	for (unsigned i = 0; i < CLICKHOUSE_TABLES && r == CLI_OK; i++) {
		r = source_ask_table(a, order[i], &replies[order[i]]);
		answers.bytes[order[i]] = replies[order[i]].body;
		answers.len[order[i]] = replies[order[i]].len;
	}
	if (r == CLI_OK) {
		error = clickhouse_profile(&answers, &what, &all);
		if (error == 0)
			error = source_filter(a, all, ret);
		if (error < 0)
			r = source_report_bad(a, error, &what);
	}
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++)
		reply_free(&replies[i]);
	if (r == CLI_OK && !what.rows[CLICKHOUSE_PROCESSES])
		fputs("kindling: ClickHouse has no such JVM in this time; sinks deliver at the end of "
		      "each interval (60s by default)\n",
		      stderr);
	if (r == CLI_OK && what.without_stack)
		fprintf(stderr,
			"kindling: the stacks of %" PRIu64 " samples are not in ClickHouse (yet)\n",
			what.without_stack);
	return r;
}

/* ---- report --------------------------------------------------------------------------------- */

static int source_check_pattern(const char *option, const char *pattern)
{
	char why[300], sentence[340];

	if (!pattern || report_pattern_is_fine(pattern, why, sizeof(why)))
		return -1;
	snprintf(sentence, sizeof(sentence), "%s %s", option, why);
	return cli_wrong("report", sentence);
}

/* Checks the options of a report. -1 = go on, else the exit status. */
static int source_check_report(struct source_arguments *a, enum report_format *ret)
{
	char why[128];
	int r;

	if (!a->output)
		return cli_wrong("report", "-o FILE is missing: the file to write");
	for (unsigned i = 0; i < CLICKHOUSE_SELECTORS && !a->all; i++)
		a->all = a->selectors[i];
	a->changes.keys = clickhouse_selector_names;
	if (!a->all)
		a->all = changes_select(&a->changes);
	if (!a->all)
		return cli_wrong("report", "name a --service, --pod, --node ... or take --all");
	r = source_check_pattern("--include", a->include);
	if (r < 0)
		r = source_check_pattern("--exclude", a->exclude);
	if (r >= 0)
		return r;
	a->format = format_of(a->format, a->output);
	if (!a->format)
		return CLI_USAGE;
	*ret = (enum report_format)report_format_by_name(a->format);
	if (!report_takes(*ret, a->events, why, sizeof(why)) ||
	    (a->reverse && !report_reverses(*ret, why, sizeof(why))))
		return cli_wrong("report", why);
	return -1;
}

static struct report_options source_options(const struct source_arguments *a)
{
	return (struct report_options){ .threads = a->threads,
					.merge = a->merge,
					.annotate = a->annotate,
					.events = a->events,
					.idle = a->idle,
					.reverse = a->reverse,
					.include = a->include,
					.exclude = a->exclude };
}

static int source_report_failure(int error)
{
	fprintf(stderr, "kindling: %s\n",
		error == -ETIME ? "matching --include and --exclude takes longer than 5 s"
				: strerror(-error));
	return CLI_FAILED;
}

/* changes.fetch: fetches the profile of one side. */
static int source_fetch(void *userdata, const struct changes_side *side, struct profile **ret)
{
	struct source_arguments a = *(const struct source_arguments *)userdata;
	int r = -1;

	if (*side->from) {
		a.from = side->from;
		a.to = side->to;
		r = source_parse_range(&a, clock_real_ns());
	}
	for (unsigned i = 0; i < CLICKHOUSE_SELECTORS; i++)
		if (strcmp(side->key, clickhouse_selector_names[i]) == 0)
			a.question.selectors[i] = side->value;
	return r < 0 ? cli_source_profile(&a, ret) : r;
}

/* Checks --diff and --baseline. -1 = go on, else the exit status. */
static int source_check_changes(struct source_arguments *a)
{
	struct changes *c = &a->changes;

	c->command = "report";
	c->thread = a->thread;
	c->options = source_options(a);
	c->keys = clickhouse_selector_names;
	c->fetch = source_fetch;
	c->userdata = a;
	return changes_check(c, a->format, a->last || a->from || a->to);
}

int source_report(int argc, char **argv)
{
	struct source_arguments a = { .command = "report" };
	struct report_options o;
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) char *bytes = NULL;
	enum report_format format = REPORT_HTML;
	size_t len;
	int r = source_parse(argc, argv, &a);

	if (r < 0)
		r = source_check_report(&a, &format);
	if (r < 0)
		r = source_check_changes(&a);
	if (r < 0 && changes_are_asked(&a.changes))
		return changes_write(&a.changes, a.format, a.output);
	if (r >= 0)
		return r;
	r = cli_source_profile(&a, &p);
	if (r != CLI_OK)
		return r;
	o = source_options(&a);
	r = report_write(p, format, &o, &bytes, &len);
	if (r < 0)
		return source_report_failure(r);
	r = write_file(a.output, bytes, len);
	if (r == CLI_OK)
		output_profile_written(a.output, a.format, p, &o);
	return r;
}

/* The length of the range in seconds. */
static double source_seconds(const struct source_arguments *a)
{
	return (double)(a->question.to_ns - a->question.from_ns) / 1e9;
}

/* ---- top ------------------------------------------------------------------------------------ */

static void source_print_methods(const struct source_arguments *a, const struct profile *p,
				 const struct report_methods *m, enum wire_event event)
{
	char text[REPORT_TEXT_MAX];
	struct report_view view = report_view_of(p, event);
	double all = view.weight ? (double)view.weight : 1;

	printf("%u JVM%s: %s, %s\n", p->n_processes, p->n_processes == 1 ? "" : "s",
	       report_sum_text(p, event, text, sizeof(text)),
	       report_rate_text(p, event, (char[REPORT_TEXT_MAX]){ 0 }, REPORT_TEXT_MAX));
	printf("%8s %8s  %s\n", "self%", "total%", "method");
	for (uint32_t i = 0; i < m->n && i < a->rows; i++) {
		printf("%8.2f %8.2f  ", 100 * (double)m->methods[i].self / all,
		       100 * (double)m->methods[i].total / all);
		print_text(stdout, m->methods[i].name);
		putchar('\n');
	}
}

int source_top(int argc, char **argv)
{
	struct source_arguments a = { .command = "top", .sort = "self" };
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(report_index_freep) struct report_index *index = NULL;
	struct report_methods methods;
	int r = source_parse(argc, argv, &a);
	bool by_self = strcmp(a.sort, "self") == 0;

	if (r < 0 && !by_self && strcmp(a.sort, "total") != 0)
		r = cli_wrong("top", "--sort takes self or total");
	if (r >= 0)
		return r;
	r = cli_source_profile(&a, &p);
	if (r != CLI_OK)
		return r;
	if (report_index_new(p, &index) < 0 ||
	    report_methods(p, index, UINT32_MAX, by_self ? REPORT_BY_SELF : REPORT_BY_TOTAL,
			   &methods) < 0)
		return CLI_FAILED;
	if (a.json) {
		r = source_json_top(p, &methods, report_event_of(a.events), a.sort, a.rows,
				    source_seconds(&a));
	} else {
		source_print_methods(&a, p, &methods, report_event_of(a.events));
		r = fflush(stdout) == 0 && !ferror(stdout) ? CLI_OK : CLI_FAILED;
	}
	report_methods_free(&methods);
	return r;
}

/* ---- locks ---------------------------------------------------------------------------------- */

/* Splits "org.shop.Lock\tpark\t12\t512\t25600000000"; false = not such a line. */
static bool source_read_lock(char *line, struct source_lock *ret)
{
	char *field[5], *save = NULL;
	size_t n = 0;

	for (char *word = strtok_r(line, "\t", &save); word && n < 5;
	     word = strtok_r(NULL, "\t", &save))
		field[n++] = word;
	if (n != 5)
		return false;
	*ret = (struct source_lock){ .class_name = field[0],
				     .kind = field[1],
				     .jvms = strtoull(field[2], NULL, 10),
				     .waits = strtoull(field[3], NULL, 10),
				     .total_ns = strtoull(field[4], NULL, 10) };
	return true;
}

/* Reads the lines of @answer; returns how many, -1 after printing that one is malformed. */
static int source_read_locks(const struct source_arguments *a, char *answer,
			     struct source_lock ret[LOCK_ROWS_MAX])
{
	char *save = NULL;
	int n = 0;

	for (char *line = strtok_r(answer, "\n", &save); line && n < (int)a->rows;
	     line = strtok_r(NULL, "\n", &save))
		if (!source_read_lock(line, &ret[n++])) {
			fprintf(stderr,
				"kindling: %s: the answer does not have the expected columns\n",
				a->server.url);
			return -1;
		}
	return n;
}

static int source_print_locks(const struct source_lock *locks, int n)
{
	static const struct column columns[] = { { "LOCK", false, 20 },
						 { "KIND", false, 0 },
						 { "JVMS", true, 0 },
						 { "WAITS", true, 0 },
						 { "TOTAL", true, 0 } };
	struct table t = { .columns = columns, .n_columns = ARRAY_SIZE(columns) };
	char(*cells)[CELL_MAX];
	char name[1024];

	for (int i = 0; i < n && (cells = table_row(&t)); i++) {
		(void)text_clean(locks[i].class_name, SIZE_MAX, name, sizeof(name));
		snprintf(cells[0], CELL_MAX, "%s", name);
		snprintf(cells[1], CELL_MAX, "%.16s", locks[i].kind);
		snprintf(cells[2], CELL_MAX, "%" PRIu64, locks[i].jvms);
		snprintf(cells[3], CELL_MAX, "%" PRIu64, locks[i].waits);
		snprintf(cells[4], CELL_MAX, "%.3fs", (double)locks[i].total_ns / 1e9);
	}
	if (t.n_rows)
		table_print(stdout, &t, terminal_width());
	else
		puts("no waits in this time");
	table_free(&t);
	return CLI_OK;
}

int source_locks(int argc, char **argv)
{
	struct source_arguments a = { .command = "locks" };
	static struct source_lock locks[LOCK_ROWS_MAX];
	struct text_out sql = { 0 };
	struct reply reply;
	int r = source_parse(argc, argv, &a), n;

	if (r < 0 && a.by && strcmp(a.by, "class") != 0)
		r = cli_wrong("locks",
			      "with --source --by takes class: identities of locks stay on "
			      "each node");
	if (r >= 0)
		return r;
	a.question.events = 1u << WIRE_EVENT_LOCK;
	clickhouse_put_locks_question(&sql, &a.question, a.idle, a.rows);
	r = sql.failed ? CLI_FAILED : source_ask(&a.server, sql.p, &reply);
	free(sql.p);
	if (r != CLI_OK)
		return r;
	n = source_read_locks(&a, reply.body ? reply.body : (char[]){ "" }, locks);
	if (n < 0)
		r = CLI_FAILED;
	else if (a.json)
		r = source_json_locks(locks, (unsigned)n, a.idle, source_seconds(&a));
	else
		r = source_print_locks(locks, n);
	reply_free(&reply);
	return r;
}

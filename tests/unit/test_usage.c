#include "tests/unit/unit.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/options.h"
#include "injector/command_line.h"

struct words {
	const char *text, *level;
	bool flag;
};

static const struct usage_row rows[] = {
	COMMAND_WORD("go", "FILE", "a word"),
	OPTION_FLAG('f', "flag", struct words, flag, "a flag"),
	OPTION_TEXT('t', "text", "TEXT", struct words, text,
		    "some words that are longer than a line may be and therefore go on"),
	OPTION_CHOICE(0, "level", "LEVEL", "info debug", struct words, level, "info or debug"),
	OPTION_FIXED('v', "verbose", "debug", struct words, level, "as --level debug"),
	OPTION_ELSEWHERE("elsewhere", NULL, "read by somebody else"),
	OPTION_VERSION,
	OPTION_HELP,
	USAGE_ROWS_END,
};
static const struct usage usage = { "test", "a test", "test go FILE", "What it does.",
				    rows,   "More.",  "test go x" };

static enum usage_result parse(struct words *w, const char *const *argv)
{
	int argc = 0;

	memset(w, 0, sizeof(*w));
	while (argv[argc])
		argc++;
	opterr = 0;
	return usage_parse(&usage, argc, (char **)(uintptr_t)argv, false, w);
}
#define PARSE(w, ...) parse(w, (const char *const[]){ "test", __VA_ARGS__, NULL })

static void options_are_read_in_all_forms(void **state)
{
	struct words w;

	(void)state;
	assert_int_equal(PARSE(&w, "-ft", "a", "word"), USAGE_GO_ON);
	assert_true(w.flag);
	assert_string_equal(w.text, "a");
	assert_int_equal(optind, 3);
	assert_int_equal(PARSE(&w, "word", "--text=b", "--text", "c", "--flag"), USAGE_GO_ON);
	assert_string_equal(w.text, "c"); /* the last one counts */
	assert_int_equal(optind, 5); /* words stand behind options */
	assert_int_equal(PARSE(&w, "--level", "info", "-v"), USAGE_GO_ON);
	assert_string_equal(w.level, "debug");
	assert_int_equal(PARSE(&w, "--", "--flag"), USAGE_GO_ON);
	assert_false(w.flag);
}

static void errors_and_requests_for_help_differ(void **state)
{
	struct words w;

	(void)state;
	assert_int_equal(PARSE(&w, "--nothing"), USAGE_WRONG);
	assert_int_equal(PARSE(&w, "-x"), USAGE_WRONG);
	assert_int_equal(PARSE(&w, "--text"), USAGE_WRONG);
	assert_int_equal(PARSE(&w, "--flag=1"), USAGE_WRONG);
	assert_int_equal(PARSE(&w, "--elsewhere"), USAGE_WRONG);
	assert_int_equal(PARSE(&w, "--go"), USAGE_WRONG);
	assert_int_equal(PARSE(&w, "-h", "--nothing"), USAGE_SHOW_HELP);
	assert_int_equal(PARSE(&w, "--version"), USAGE_SHOW_VERSION);
}

static void help_has_every_row_and_keeps_to_the_width(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	usage_print(f, &usage, 60);
	fclose(f);
	assert_string_equal(text, "Usage: test go FILE\n"
				  "\n"
				  "What it does.\n"
				  "\n"
				  "  go FILE            a word\n"
				  "  -f, --flag         a flag\n"
				  "  -t, --text TEXT    some words that are longer than a line\n"
				  "                     may be and therefore go on\n"
				  "      --level LEVEL  info or debug\n"
				  "  -v, --verbose      as --level debug\n"
				  "      --elsewhere    read by somebody else\n"
				  "      --version      print the version\n"
				  "  -h, --help         show this text\n"
				  "\n"
				  "More.\n"
				  "\n"
				  "Example: test go x\n");
	free(text);
}

/* ---- the tables of our programs -------------------------------------------------------------- */

static bool is_parsed(const struct usage_row *row)
{
	return row->kind == USAGE_FLAG || row->kind == USAGE_TEXT || row->kind == USAGE_FIXED ||
	       row->kind == USAGE_HIDDEN;
}

static void check_accepted(const struct usage *u, const struct usage_row *row)
{
	static char into[65536]; /* more than the struct of any command */
	char name[64], letter[3] = { '-', row->letter, '\0' }, argument[] = "1", command[] = "x";
	char *words[] = { command, name, row->argument ? argument : NULL, NULL };
	int n = row->argument ? 3 : 2;

	snprintf(name, sizeof(name), "--%s", row->name);
	assert_true(row->offset < sizeof(into) - sizeof(char *));
	assert_int_equal(usage_parse(u, n, words, false, into), USAGE_GO_ON);
	words[1] = letter;
	if (row->letter)
		assert_int_equal(usage_parse(u, n, words, false, into), USAGE_GO_ON);
}

static void check_text(const struct usage_row *row)
{
	char choices[256], *word, *rest = choices;

	assert_non_null(row->help);
	assert_null(strpbrk(row->help, "\t\n"));
	snprintf(choices, sizeof(choices), "%s", row->choices ? row->choices : "");
	while ((word = strtok_r(rest, " ", &rest)))
		if (!strstr(row->help, "...")) /* "html, ..., otlp" names some of them */
			assert_non_null(strstr(row->help, word));
}

static void check(const struct usage *u)
{
	unsigned n = 0;

	assert_non_null(u->brief);
	assert_non_null(strstr(u->synopsis, u->name));
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++, n++) {
		for (const struct usage_row *other = u->rows; other < row; other++) {
			assert_string_not_equal(row->name, other->name);
			assert_false(row->letter && row->letter == other->letter);
		}
		if (is_parsed(row))
			check_accepted(u, row);
		if (row->kind != USAGE_HIDDEN)
			check_text(row);
	}
	assert_in_range(n, 1, USAGE_ROWS_MAX - 1);
}

static void every_option_of_every_table_is_accepted_once_and_explained(void **state)
{
	(void)state;
	check(&usage_kindling);
	check(&usage_kindlingd);
	check(&usage_inject);
	for (const struct cli_command *c = cli_commands; c->usage; c++) {
		check(c->usage);
		if (c->with_source)
			check(c->with_source);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_read_in_all_forms),
		cmocka_unit_test(errors_and_requests_for_help_differ),
		cmocka_unit_test(help_has_every_row_and_keeps_to_the_width),
		cmocka_unit_test(every_option_of_every_table_is_accepted_once_and_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

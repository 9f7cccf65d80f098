/*
 * The options of a command as a table, from which the parser (usage.c), --help (usage_print.c), the
 * manual pages and the completions of shells (daemon/cli/manual.c, completion.c) are all made, so
 * that they cannot disagree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum usage_kind {
	USAGE_END, /* closes a table */
	USAGE_FLAG, /* sets a bool */
	USAGE_TEXT, /* stores its argument in a const char * */
	USAGE_FIXED, /* stores @fixed, like a USAGE_TEXT option with that argument */
	USAGE_HELP, /* --help */
	USAGE_VERSION, /* --version */
	USAGE_ELSEWHERE, /* only shown; the caller reads it before usage_parse() */
	USAGE_HIDDEN, /* as USAGE_TEXT, but shown nowhere: an earlier name */
	USAGE_WORD, /* not an option: an argument of the command, such as `check FILE` */
};

struct usage_row {
	enum usage_kind kind;
	char letter; /* -l; 0 = none */
	const char *name; /* --last */
	const char *argument; /* its name in --help; NULL = it takes none. Shells complete FILE and
				 DIR as such */
	const char *choices; /* possible arguments, separated by spaces; NULL = anything */
	const char *fixed; /* the argument of USAGE_FIXED */
	size_t offset; /* in the struct that usage_parse() fills in */
	const char *help; /* literal text that users type is between backticks */
};

#define USAGE_ROWS_MAX 40

struct usage {
	const char *name; /* "report", or the program's */
	const char *brief; /* a line for the list of commands */
	const char *synopsis; /* "kindling report TARGET ...", lines */
	const char *about; /* paragraphs, each a line */
	const struct usage_row *rows;
	const char *more; /* paragraphs below the options; NULL = none */
	const char *examples; /* lines; NULL = none */
};

/* The offset of @member; if it is not of @kind, the compiler warns that two pointer types
 * differ. */
#define USAGE_MEMBER(type, member, kind) \
	(offsetof(type, member) + 0 * sizeof(&((type *)NULL)->member == (kind *)NULL))
#define OPTION_FLAG(letter, name, type, member, help)                                              \
	{                                                                                          \
		USAGE_FLAG, letter, name, NULL, NULL, NULL, USAGE_MEMBER(type, member, bool), help \
	}
#define OPTION_TEXT(letter, name, argument, type, member, help)        \
	{                                                              \
		USAGE_TEXT, letter, name, argument, NULL, NULL,        \
			USAGE_MEMBER(type, member, const char *), help \
	}
#define OPTION_CHOICE(letter, name, argument, choices, type, member, help) \
	{                                                                  \
		USAGE_TEXT, letter, name, argument, choices, NULL,         \
			USAGE_MEMBER(type, member, const char *), help     \
	}
#define OPTION_FIXED(letter, name, value, type, member, help)          \
	{                                                              \
		USAGE_FIXED, letter, name, NULL, NULL, value,          \
			USAGE_MEMBER(type, member, const char *), help \
	}
#define OPTION_HIDDEN(name, type, member)                                                         \
	{                                                                                         \
		USAGE_HIDDEN, 0, name, "N", NULL, NULL, USAGE_MEMBER(type, member, const char *), \
			NULL                                                                      \
	}
#define OPTION_ELSEWHERE(name, argument, help)                          \
	{                                                               \
		USAGE_ELSEWHERE, 0, name, argument, NULL, NULL, 0, help \
	}
#define OPTION_VERSION                                                                \
	{                                                                             \
		USAGE_VERSION, 0, "version", NULL, NULL, NULL, 0, "print the version" \
	}
#define OPTION_HELP                                                            \
	{                                                                      \
		USAGE_HELP, 'h', "help", NULL, NULL, NULL, 0, "show this text" \
	}
#define COMMAND_WORD(name, argument, help)                         \
	{                                                          \
		USAGE_WORD, 0, name, argument, NULL, NULL, 0, help \
	}
#define USAGE_ROWS_END                                        \
	{                                                     \
		USAGE_END, 0, NULL, NULL, NULL, NULL, 0, NULL \
	}

enum usage_result { USAGE_GO_ON, USAGE_SHOW_HELP, USAGE_SHOW_VERSION, USAGE_WRONG };

/*
 * Reads options with getopt_long(3) and reports errors on stderr. Afterwards optind is the index of
 * the first word that is not an option. If an option is given twice the last one counts.
 *
 * @into:     the struct that the rows' offsets refer to
 * @in_order: options end at the first word that is not an option
 */
enum usage_result usage_parse(const struct usage *u, int argc, char **argv, bool in_order,
			      void *into);

/* Prints the text of --help, on lines of at most @width columns (at least 60). */
void usage_print(FILE *to, const struct usage *u, size_t width);
/* Prints only the options and what is below them. */
void usage_print_end(FILE *to, const struct usage *u, size_t width);
/* Prints "Usage: " and the first line of the synopsis. */
void usage_print_brief(FILE *to, const struct usage *u);
/* Writes "-l, --last DURATION"; for a USAGE_WORD "check FILE". */
void usage_row_text(const struct usage_row *row, char *buf, size_t size);
/* Prints @s and a newline, wrapped at @width columns. The cursor is at column @indent, where
 * further lines begin. */
void usage_wrap(FILE *to, const char *s, size_t indent, size_t width);

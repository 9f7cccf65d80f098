/*
 * Manual pages and completions for shells, made during the build from the tables of options
 * (usage.h) and of settings (config_fields.h). manual_main.c writes the installed files.
 */
#pragma once

#include <stdio.h>
#include "daemon/cli/cli.h"

struct manual_program {
	const struct usage *usage;
	unsigned section; /* of the manual: 1, 5 or 8 */
	const struct cli_command *commands; /* NULL = the program has none */
	bool has_words; /* the table has the words that follow a PID */
	const char *environment; /* lines "NAME<tab>sentence"; NULL = none */
	const char *files; /* likewise */
	const char *see_also;
};

/* manual.c: a page in roff, with the macros of man(7). */
void manual_page(FILE *to, const struct manual_program *p);
/* manual_settings.c: kindlingd.yaml(5). @example: a file with every setting. */
void manual_settings(FILE *to, const char *example);
/* Writes @s in roff: `words` between backticks become bold, special characters are escaped. */
void manual_text(FILE *to, const char *s);
void manual_head(FILE *to, const char *name, unsigned section, const char *brief);

/* completion.c, completion_zsh.c */
void completion_bash(FILE *to, const struct manual_program *p);
void completion_fish(FILE *to, const struct manual_program *p);
void completion_zsh(FILE *to, const struct manual_program *p);
bool completion_is_shown(const struct usage_row *row);
/* Does the command take a TARGET? */
bool completion_of_targets(const struct usage *u);
/* The first words of an option's help, without characters that are special to shells; @buf. */
const char *completion_help(const char *help, char *buf, size_t size);

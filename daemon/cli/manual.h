/*
 * Manual pages and completions of shells, generated from the tables of options (usage.h) and of
 * settings (config_fields.h) during the build: manual_main.c writes the files that are installed.
 */
#pragma once

#include <stdio.h>
#include "daemon/cli/cli.h"

struct manual_program {
	const struct usage *usage;
	unsigned section; /* of the manual */
	const struct cli_command *commands; /* NULL = it has none */
	bool has_words; /* its table has commands after a PID */
	const char *environment; /* lines "NAME<tab>sentence"; NULL = none */
	const char *files; /* the same */
	const char *see_also;
};

/* manual.c, roff with the macros of man(7). */
void manual_page(FILE *to, const struct manual_program *p);
/* manual_settings.c: kindlingd.yaml(5); @example is the text of the file with every setting. */
void manual_settings(FILE *to, const char *example);
/* @s for roff: `words` between backticks become bold, and characters that are special to roff are
 * escaped. */
void manual_text(FILE *to, const char *s);
void manual_head(FILE *to, const char *name, unsigned section, const char *brief);

/* completion.c, completion_zsh.c */
void completion_bash(FILE *to, const struct manual_program *p);
void completion_fish(FILE *to, const struct manual_program *p);
void completion_zsh(FILE *to, const struct manual_program *p);
bool completion_is_shown(const struct usage_row *row);
/* Does the command take a TARGET? */
bool completion_of_targets(const struct usage *u);
/* The first words of its help, without characters that are special to shells. */
const char *completion_help(const char *help, char *buf, size_t size);

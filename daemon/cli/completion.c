/* See manual.h: completions for bash and fish. */
#include <string.h>
#include "daemon/cli/manual.h"

#define HELP_COLUMNS 70

bool completion_is_shown(const struct usage_row *row)
{
	return row->kind != USAGE_HIDDEN && row->kind != USAGE_WORD;
}

bool completion_of_targets(const struct usage *u)
{
	return strstr(u->synopsis, "TARGET") != NULL;
}

/* Writes the help's first words, without quotes, brackets and backslashes, which are special in
 * some shell. */
const char *completion_help(const char *help, char *buf, size_t size)
{
	size_t n = 0, space = 0;

	for (; *help && n + 1 < size && n < HELP_COLUMNS; help++) {
		if (*help == ';' || (*help == '.' && help[1] == ' ')) {
			space = n; /* shells display no more */
			break;
		}
		if (strchr("'\"`[]\\$", *help))
			continue;
		if (*help == ' ')
			space = n;
		buf[n++] = *help == ':' ? ',' : *help;
	}
	buf[*help && space ? space : n] = '\0';
	return buf;
}

static bool completion_argument_is(const struct usage_row *row, const char *what)
{
	return row->argument && strcmp(row->argument, what) == 0;
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* Writes the pattern "report:--format|report:-f". */
static void bash_pattern(FILE *to, const char *command, const struct usage_row *row)
{
	fprintf(to, "\t%s:--%s", command, row->name);
	if (row->letter)
		fprintf(to, "|%s:-%c", command, row->letter);
	fputs(")\n", to);
}

/* Writes what follows each option that takes an argument. */
static void bash_arguments(FILE *to, const char *command, const struct usage *u)
{
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++) {
		if (!completion_is_shown(row) || !row->argument)
			continue;
		bash_pattern(to, command, row);
		if (row->choices)
			fprintf(to, "\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n",
				row->choices);
		else if (completion_argument_is(row, "DIR"))
			fputs("\t\tcompopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))\n",
			      to);
		else if (completion_argument_is(row, "FILE") || completion_argument_is(row, "PATH"))
			fputs("\t\tcompopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))\n",
			      to);
		fputs("\t\treturn ;;\n", to);
	}
}

static void bash_words(FILE *to, const struct usage *u)
{
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++)
		if (row->kind == USAGE_WORD)
			fprintf(to, "%s ", row->name);
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++) {
		if (!completion_is_shown(row))
			continue;
		fprintf(to, "--%s ", row->name);
		if (row->letter)
			fprintf(to, "-%c ", row->letter);
	}
}

static const char bash_begin[] =
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i\n"
	"\tCOMPREPLY=()\n"
	"\t# --format=html is three words\n"
	"\t[[ $cur == = ]] && cur=\n"
	"\t[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n";

static const char bash_command[] =
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--socket) ((i++)) ;;\n"
	"\t\t-*) ;;\n"
	"\t\t*) command=${COMP_WORDS[i]}; break ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tcase $prev in\n"
	"\t--socket) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
	"\tesac\n";

static void bash_commands(FILE *to, const struct manual_program *p)
{
	const struct cli_command *c;

	fputs("\t'') words='", to);
	for (c = p->commands; c->usage; c++)
		fprintf(to, "%s ", c->usage->name);
	fputs("version help ", to);
	bash_words(to, p->usage);
	fputs("' ;;\n\thelp) words='", to);
	for (c = p->commands; c->usage; c++)
		fprintf(to, "%s ", c->usage->name);
	fputs("' ;;\n", to);
	for (c = p->commands; c->usage; c++) {
		fprintf(to, "\t%s) words='", c->usage->name);
		bash_words(to, c->usage);
		fprintf(to, "'%s ;;\n",
			completion_of_targets(c->usage)
				? "; [[ $cur == -* ]] || words=$(kindling help --targets 2>/dev/null | tr '\\t' '\\n')"
				: "");
	}
}

/* Arguments that are files: of kindling convert IN OUT and config check FILE. */
static const char bash_end[] = "\tesac\n"
			       "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
			       "\tif [[ ${#COMPREPLY[@]} == 0 ]]; then\n"
			       "\t\tcompopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))\n"
			       "\tfi\n"
			       "}\n";

void completion_bash(FILE *to, const struct manual_program *p)
{
	const char *name = p->usage->name;

	fprintf(to, "# bash completion for %s; made from its table of options\n_%s() {\n", name,
		name);
	fputs(bash_begin, to);
	if (p->commands)
		fputs(bash_command, to);
	fputs("\tcase $command:$prev in\n", to);
	if (p->commands)
		for (const struct cli_command *c = p->commands; c->usage; c++)
			bash_arguments(to, c->usage->name, c->usage);
	else
		bash_arguments(to, "", p->usage);
	fputs("\tesac\n\tcase $command in\n", to);
	if (p->commands) {
		bash_commands(to, p);
	} else {
		fputs("\t'') words='", to);
		bash_words(to, p->usage);
		fputs("' ;;\n", to);
	}
	fputs(bash_end, to);
	fprintf(to, "complete -F _%s %s\n", name, name);
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_rows(FILE *to, const char *program, const char *condition, const struct usage *u)
{
	char help[HELP_COLUMNS + 1];

	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++) {
		if (row->kind == USAGE_HIDDEN)
			continue;
		fprintf(to, "complete -c %s%s", program, condition);
		if (row->kind == USAGE_WORD)
			fprintf(to, " -a %s", row->name);
		else
			fprintf(to, " -l %s", row->name);
		if (row->letter)
			fprintf(to, " -s %c", row->letter);
		if (completion_argument_is(row, "FILE") || completion_argument_is(row, "PATH") ||
		    completion_argument_is(row, "DIR"))
			fputs(row->kind == USAGE_WORD ? "" : " -r -F", to);
		else if (row->argument && row->kind != USAGE_WORD)
			fputs(" -x", to);
		if (row->choices)
			fprintf(to, " -a '%s'", row->choices);
		fprintf(to, " -d '%s'\n", completion_help(row->help, help, sizeof(help)));
	}
}

void completion_fish(FILE *to, const struct manual_program *p)
{
	const char *name = p->usage->name, *none = " -n __fish_use_subcommand";
	char condition[96], help[HELP_COLUMNS + 1];

	fprintf(to, "# fish completion for %s; made from its table of options\n", name);
	if (!p->commands) {
		fish_rows(to, name, "", p->usage);
		return;
	}
	fish_rows(to, name, "", p->usage);
	for (const struct cli_command *c = p->commands; c->usage; c++) {
		const char *command = c->usage->name;

		fprintf(to, "complete -c %s -f%s -a %s -d '%s'\n", name, none, command,
			completion_help(c->usage->brief, help, sizeof(help)));
		snprintf(condition, sizeof(condition), " -n '__fish_seen_subcommand_from %s'",
			 command);
		fish_rows(to, name, condition, c->usage);
		if (completion_of_targets(c->usage))
			fprintf(to,
				"complete -c %s -f%s -a '(kindling help --targets 2>/dev/null)'\n",
				name, condition);
	}
	fprintf(to, "complete -c %s -f%s -a version -d 'print the version'\n", name, none);
	fprintf(to, "complete -c %s -f%s -a help -d 'the help of a command'\n", name, none);
}

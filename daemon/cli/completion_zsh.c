/* See manual.h: completions for zsh, as _arguments takes them; zshcompsys(1). */
#include <string.h>
#include "daemon/cli/manual.h"

/* Writes what completes an option's argument: "(html txt)", _files, or just a message. */
static void zsh_argument(FILE *to, const struct usage_row *row)
{
	if (!row->argument)
		return;
	fputc(':', to);
	for (const char *p = row->argument; *p; p++)
		if (!strchr("'[]:|", *p))
			fputc(*p, to);
	if (row->choices)
		fprintf(to, ":(%s)", row->choices);
	else if (strcmp(row->argument, "DIR") == 0)
		fputs(":_files -/", to);
	else if (strcmp(row->argument, "FILE") == 0 || strcmp(row->argument, "PATH") == 0)
		fputs(":_files", to);
	else
		fputs(": ", to);
}

static void zsh_row(FILE *to, const struct usage_row *row)
{
	char help[80];

	completion_help(row->help, help, sizeof(help));
	if (row->letter)
		fprintf(to, " \\\n\t\t'(-%c --%s)'{-%c,--%s%s}'[%s]", row->letter, row->name,
			row->letter, row->name, row->argument ? "=" : "", help);
	else
		fprintf(to, " \\\n\t\t'--%s%s[%s]", row->name, row->argument ? "=" : "", help);
	zsh_argument(to, row);
	fputc('\'', to);
}

static void zsh_words(FILE *to, const struct usage *u)
{
	bool first = true;

	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++) {
		if (row->kind != USAGE_WORD)
			continue;
		fprintf(to, "%s%s", first ? " \\\n\t\t'1:word:(" : " ", row->name);
		first = false;
	}
	if (!first)
		fputs(")'", to);
}

static void zsh_arguments(FILE *to, const struct usage *u)
{
	fputs("\t\t_arguments -s -S", to);
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++)
		if (completion_is_shown(row))
			zsh_row(to, row);
	zsh_words(to, u);
	fprintf(to, " \\\n\t\t'*:%s'\n",
		completion_of_targets(u) ? "TARGET:_kindling_targets" : "file:_files");
}

static void zsh_commands(FILE *to, const struct manual_program *p)
{
	char help[80];

	fputs("_kindling_commands() {\n\tlocal -a commands=(\n", to);
	for (const struct cli_command *c = p->commands; c->usage; c++)
		fprintf(to, "\t\t'%s:%s'\n", c->usage->name,
			completion_help(c->usage->brief, help, sizeof(help)));
	fputs("\t\t'version:print the version'\n\t\t'help:the help of a command'\n\t)\n"
	      "\t_describe command commands\n}\n\n"
	      "_kindling_targets() {\n"
	      "\tlocal -a targets=(${(f)\"$(kindling help --targets 2>/dev/null)\"})\n"
	      "\ttargets=(${targets//$'\\t'/:})\n"
	      "\t_describe TARGET targets\n}\n\n",
	      to);
}

static const char zsh_begin[] =
	"\tlocal curcontext=$curcontext state line\n"
	"\t_arguments -C '--socket=[where kindlingd is asked]:PATH:_files' '--version[print the version]' \\\n"
	"\t\t'(-h --help)'{-h,--help}'[show help]' '1: :_kindling_commands' '*:: :->rest'\n"
	"\t[[ $state == rest ]] || return\n"
	"\tcase $words[1] in\n"
	"\thelp)\n"
	"\t\t_kindling_commands ;;\n";

void completion_zsh(FILE *to, const struct manual_program *p)
{
	const char *name = p->usage->name;

	fprintf(to, "#compdef %s\n# made from its table of options\n\n", name);
	if (p->commands)
		zsh_commands(to, p);
	fprintf(to, "_%s() {\n", name);
	if (!p->commands) {
		zsh_arguments(to, p->usage);
	} else {
		fputs(zsh_begin, to);
		for (const struct cli_command *c = p->commands; c->usage; c++) {
			fprintf(to, "\t%s)\n", c->usage->name);
			zsh_arguments(to, c->usage);
			fputs("\t\t;;\n", to);
		}
		fputs("\tesac\n", to);
	}
	fprintf(to, "}\n\n_%s \"$@\"\n", name);
}

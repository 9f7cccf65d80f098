/* See manual.h: the manual pages of programs. */
#include "daemon/cli/manual.h"

#include <ctype.h>
#include <string.h>

static void manual_char(FILE *to, char c)
{
	if (c == '\\')
		fputs("\\e", to);
	else if (c == '-')
		fputs("\\-", to);
	else if (c == '\'')
		fputs("\\(aq", to);
	else if (c == '^')
		fputs("\\(ha", to);
	else if (c == '~')
		fputs("\\(ti", to);
	else
		fputc(c, to);
}

void manual_text(FILE *to, const char *s)
{
	bool bold = false, begin = true;

	for (; *s; s++) {
		if (begin && *s == '.')
			fputs("\\&", to);
		begin = *s == '\n';
		if (*s == '`') {
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", to);
			continue;
		}
		manual_char(to, *s);
	}
	fputc('\n', to);
}

/* Writes each line of @s as a paragraph. @begins: directly after a heading, which needs no
 * break. */
static void manual_paragraphs(FILE *to, const char *s, bool begins)
{
	char line[2048];

	for (size_t len; s && *s; s += len + (s[len] == '\n')) {
		len = strcspn(s, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, s);
		fputs(begins ? "" : ".PP\n", to);
		begins = false;
		manual_text(to, line);
	}
}

/* Writes lines as they are. */
static void manual_lines(FILE *to, const char *s)
{
	fputs(".nf\n.RS 4\n", to);
	manual_text(to, s);
	fputs(".RE\n.fi\n", to);
}

/* Writes an option: "\fB\-l\fR, \fB\-\-last\fR \fIDURATION\fR". */
static void manual_row(FILE *to, const struct usage_row *row)
{
	char text[160];

	if (row->kind == USAGE_HIDDEN)
		return;
	fputs(".TP\n", to);
	if (row->kind == USAGE_WORD)
		snprintf(text, sizeof(text), "`%s`", row->name);
	else if (row->letter)
		snprintf(text, sizeof(text), "`-%c`, `--%s`", row->letter, row->name);
	else
		snprintf(text, sizeof(text), "`--%s`", row->name);
	if (row->argument) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, " %s", row->argument);
	}
	manual_text(to, text);
	manual_text(to, row->help);
}

static void manual_rows(FILE *to, const struct usage *u)
{
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++)
		manual_row(to, row);
}

static void manual_command(FILE *to, const struct usage *u, const char *behind)
{
	fprintf(to, ".SS \"kindling %s%s\"\n", u->name, behind);
	manual_lines(to, u->synopsis);
	manual_paragraphs(to, u->about, false);
	manual_rows(to, u);
	manual_paragraphs(to, u->more, false);
	if (u->examples) {
		fputs(".PP\nExamples:\n", to);
		manual_lines(to, u->examples);
	}
}

static void manual_list(FILE *to, const char *heading, const char *lines)
{
	char line[512];

	if (!lines)
		return;
	fprintf(to, ".SH %s\n", heading);
	for (size_t len; *lines; lines += len + (lines[len] == '\n')) {
		char *tab;

		len = strcspn(lines, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, lines);
		tab = strchr(line, '\t');
		if (tab)
			*tab = '\0';
		fputs(".TP\n\\fB", to);
		for (const char *p = line; *p; p++)
			manual_char(to, *p);
		fputs("\\fR\n", to);
		manual_text(to, tab ? tab + 1 : "");
	}
}

void manual_head(FILE *to, const char *name, unsigned section, const char *brief)
{
	fputs(".TH ", to);
	for (const char *p = name; *p; p++)
		fputc(toupper((unsigned char)*p), to);
	fprintf(to, " %u \"\" \"kindling " KINDLING_VERSION "\" \"kindling\"\n", section);
	/* no hyphenation, because people copy commands from here */
	fprintf(to, ".nh\n.ad l\n.SH NAME\n%s \\- ", name);
	manual_text(to, brief);
}

static void manual_commands(FILE *to, const struct cli_command *c)
{
	fputs(".SH COMMANDS\n", to);
	for (; c->usage; c++) {
		manual_command(to, c->usage, "");
		if (c->with_source)
			manual_command(to, c->with_source, " \\-\\-source");
	}
	fputs(".SS \"kindling version\"\nPrints the version.\n"
	      ".SS \"kindling help [COMMAND]\"\nShows the help of all, or of one command.\n",
	      to);
}

void manual_page(FILE *to, const struct manual_program *p)
{
	static const char exit_status[] = "Exit status: ";
	const struct usage *u = p->usage;

	manual_head(to, u->name, p->section, u->brief);
	fputs(".SH SYNOPSIS\n", to);
	manual_lines(to, u->synopsis);
	fputs(".SH DESCRIPTION\n", to);
	manual_paragraphs(to, u->about, true);
	fprintf(to, ".SH %s\n", p->has_words ? "COMMANDS AND OPTIONS" : "OPTIONS");
	manual_rows(to, u);
	if (p->commands)
		manual_commands(to, p->commands);
	if (u->more && strncmp(u->more, exit_status, strlen(exit_status)) == 0) {
		fputs(".SH EXIT STATUS\n", to);
		manual_text(to, u->more + strlen(exit_status));
	}
	manual_list(to, "ENVIRONMENT", p->environment);
	manual_list(to, "FILES", p->files);
	if (u->examples) {
		fputs(".SH EXAMPLES\n", to);
		manual_lines(to, u->examples);
	}
	fputs(".SH SEE ALSO\n", to);
	manual_text(to, p->see_also);
}

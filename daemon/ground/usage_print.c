/* See usage.h: --help. */
#include "daemon/ground/usage.h"

#include <string.h>

#define INDENT_MAX 28 /* the help of a longer option begins on the next line */
#define WIDTH_MIN  60

void usage_row_text(const struct usage_row *row, char *buf, size_t size)
{
	const char *space = row->argument ? " " : "";
	const char *argument = row->argument ? row->argument : "";

	if (row->kind == USAGE_WORD)
		snprintf(buf, size, "%s%s%s", row->name, space, argument);
	else if (row->letter)
		snprintf(buf, size, "-%c, --%s%s%s", row->letter, row->name, space, argument);
	else
		snprintf(buf, size, "    --%s%s%s", row->name, space, argument);
}

void usage_wrap(FILE *to, const char *s, size_t indent, size_t width)
{
	size_t column = indent;

	while (*s) {
		size_t space = strspn(s, " "), word = strcspn(s + space, " ");

		if (column > indent && column + space + word > width) {
			fprintf(to, "\n%*s", (int)indent, "");
			column = indent;
			space = 0;
			s += strspn(s, " ");
		}
		fwrite(s, 1, space + word, to);
		column += space + word;
		s += space + word;
	}
	fputc('\n', to);
}

/* Prints each line of @s as a paragraph. */
static void usage_paragraphs(FILE *to, const char *s, size_t width)
{
	char line[2048];

	for (size_t len; s && *s; s += len + (s[len] == '\n')) {
		len = strcspn(s, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, s);
		usage_wrap(to, line, 0, width);
	}
}

static void usage_lines(FILE *to, const char *head, const char *s)
{
	int indent = (int)strlen(head);

	for (size_t len; *s; s += len + (s[len] == '\n'), head = "") {
		len = strcspn(s, "\n");
		fprintf(to, "%*s%.*s\n", indent, head, (int)len, s);
	}
}

static size_t usage_indent(const struct usage *u)
{
	char text[128];
	size_t widest = 0;

	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++) {
		if (row->kind == USAGE_HIDDEN)
			continue;
		usage_row_text(row, text, sizeof(text));
		if (strlen(text) > widest && strlen(text) + 4 <= INDENT_MAX)
			widest = strlen(text);
	}
	return widest + 4;
}

static void usage_rows(FILE *to, const struct usage *u, size_t width)
{
	size_t indent = usage_indent(u);
	char text[128];

	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++) {
		if (row->kind == USAGE_HIDDEN)
			continue;
		usage_row_text(row, text, sizeof(text));
		fprintf(to, "  %-*s", (int)indent - 2, text);
		if (strlen(text) + 4 > indent)
			fprintf(to, "\n%*s", (int)indent, "");
		usage_wrap(to, row->help, indent, width);
	}
}

void usage_print_brief(FILE *to, const struct usage *u)
{
	fprintf(to, "Usage: %.*s\n", (int)strcspn(u->synopsis, "\n"), u->synopsis);
}

void usage_print_end(FILE *to, const struct usage *u, size_t width)
{
	if (width < WIDTH_MIN)
		width = WIDTH_MIN;
	usage_rows(to, u, width);
	if (u->more) {
		fputc('\n', to);
		usage_paragraphs(to, u->more, width);
	}
	if (u->examples) {
		fputc('\n', to);
		usage_lines(to,
			    strchr(u->examples, '\n') ? "Examples: " : "Example: ", u->examples);
	}
}

void usage_print(FILE *to, const struct usage *u, size_t width)
{
	usage_lines(to, "Usage: ", u->synopsis);
	fputc('\n', to);
	usage_paragraphs(to, u->about, width < WIDTH_MIN ? WIDTH_MIN : width);
	fputc('\n', to);
	usage_print_end(to, u, width);
}

/*
 * Columns that are as wide as their content. If the table is too wide, those columns that may be
 * cut are cut, the widest first, which leaves short texts readable; if that is not enough, columns
 * are left out.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "daemon/cli/cli.h"

#define WIDTH_ODD 120 /* of a terminal whose width is unknown */
#define WIDTH_MIN 40

#define NOTE_INDENT 8

size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return WIDTH_ANY;
	if (size.ws_col == 0)
		return WIDTH_ODD;
	return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

char (*table_row(struct table *t))[CELL_MAX]
{
	char(*cells)[CELL_MAX] = realloc(t->cells, (t->n_rows + 1) * t->n_columns * CELL_MAX);
	char **below;

	if (!cells)
		return NULL;
	t->cells = cells;
	below = realloc(t->below, (t->n_rows + 1) * sizeof(*below));
	if (!below)
		return NULL;
	t->below = below;
	below[t->n_rows] = NULL;
	cells += t->n_rows++ * t->n_columns;
	memset(cells, 0, t->n_columns * CELL_MAX);
	return cells;
}

void table_below(struct table *t, const char *fmt, ...)
{
	char **place = t->n_rows ? &t->below[t->n_rows - 1] : NULL;
	char *line = NULL, *both = NULL;
	va_list ap;

	if (!place)
		return;
	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		line = NULL;
	va_end(ap);
	if (line && *place && asprintf(&both, "%s\n%s", *place, line) >= 0) {
		free(*place);
		free(line);
		line = both;
	}
	if (line)
		*place = line;
}

void table_note(struct table *t, const char *text, size_t width)
{
	char *lines = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&lines, &len);

	if (!f)
		return;
	print_wrapped(f, text, NOTE_INDENT, width);
	if (fclose(f) == 0)
		table_below(t, "%.*s", (int)len - 1, lines);
	free(lines);
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n_rows; i++)
		free(t->below[i]);
	free(t->below);
	free(t->cells);
	t->below = NULL;
	t->cells = NULL;
	t->n_rows = 0;
}

static size_t columns_of(const char *s)
{
	char buf[4 * CELL_MAX];

	return text_clean(s, SIZE_MAX, buf, sizeof(buf));
}

#define LEFT_OUT SIZE_MAX

static size_t natural_width(const struct table *t, size_t c)
{
	size_t width = columns_of(t->columns[c].head);

	for (size_t r = 0; r < t->n_rows; r++) {
		size_t w = columns_of(t->cells[r * t->n_columns + c]);

		width = w > width ? w : width;
	}
	return width;
}

/* Leaves out columns until the others, cut as far as allowed, fit. */
static void cli_table_leave_out(const struct table *t, size_t width, size_t widths[])
{
	for (;;) {
		size_t least = 0, last = t->n_columns;

		for (size_t c = 0; c < t->n_columns; c++) {
			size_t to = t->columns[c].shrink_to;

			if (widths[c] == LEFT_OUT)
				continue;
			least += 1 + (to && widths[c] > to ? to : widths[c]);
			if (t->leave_out && t->leave_out[c] &&
			    (last == t->n_columns || t->leave_out[c] > t->leave_out[last]))
				last = c;
		}
		if (least <= width + 1 || last == t->n_columns)
			return;
		widths[last] = LEFT_OUT;
	}
}

static void cli_table_fit(const struct table *t, size_t width, size_t widths[])
{
	size_t all = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = natural_width(t, c);
	cli_table_leave_out(t, width, widths);
	for (size_t c = 0; c < t->n_columns; c++)
		all += widths[c] == LEFT_OUT ? 0 : 1 + widths[c];
	for (; all > width + 1; all--) {
		size_t widest = t->n_columns;

		for (size_t c = 0; c < t->n_columns; c++)
			if (widths[c] != LEFT_OUT && t->columns[c].shrink_to &&
			    widths[c] > t->columns[c].shrink_to &&
			    (widest == t->n_columns || widths[c] > widths[widest]))
				widest = c;
		if (widest == t->n_columns)
			return; /* nothing more can be cut */
		widths[widest]--;
	}
}

/* NO_COLOR switches colours off, https://no-color.org. */
bool terminal_has_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

static void print_cell(FILE *to, const struct column *column, const char *s, size_t width,
		       bool last, const char *colour)
{
	char buf[4 * CELL_MAX + 16], clean[4 * CELL_MAX];
	size_t used = text_clean(s, width, clean, sizeof(clean));
	int pad = (int)(width - used);

	snprintf(buf, sizeof(buf), "%s%s%s", colour, clean, *colour ? TABLE_PLAIN : "");

	if (column->right)
		fprintf(to, "%*s%s", pad, "", buf);
	else
		fprintf(to, "%s%*s", buf, last ? 0 : pad, "");
	fputc(last ? '\n' : ' ', to);
}

static const char *cli_table_head_of(const struct table *t, size_t row, size_t column)
{
	(void)row;
	return t->columns[column].head;
}

static void cli_table_print_row(FILE *to, const struct table *t, const size_t widths[],
				const char *(*cell_of)(const struct table *, size_t row,
						       size_t column),
				size_t row)
{
	size_t last = t->n_columns - 1;

	while (last && widths[last] == LEFT_OUT)
		last--;
	for (size_t c = 0; c <= last; c++)
		if (widths[c] != LEFT_OUT)
			print_cell(to, &t->columns[c], cell_of(t, row, c), widths[c], c == last,
				   t->colour_of && cell_of != cli_table_head_of
					   ? t->colour_of(c, cell_of(t, row, c))
					   : "");
}

static const char *cell_of(const struct table *t, size_t row, size_t column)
{
	return t->cells[row * t->n_columns + column];
}

void table_print(FILE *to, const struct table *t, size_t width)
{
	size_t widths[COLUMNS_MAX];

	cli_table_fit(t, width, widths);
	cli_table_print_row(to, t, widths, cli_table_head_of, 0);
	for (size_t r = 0; r < t->n_rows; r++) {
		cli_table_print_row(to, t, widths, cell_of, r);
		if (t->below[r])
			fprintf(to, "%s\n", t->below[r]);
	}
}

/*
 * Columns as wide as what is in them. Where that is too wide, the columns that may be cut are, the
 * widest first, so that what is short stays readable.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "daemon/cli/cli.h"

#define WIDTH_NONE 4096 /* a file or a program reads it: nothing is cut */
#define WIDTH_ODD  120 /* a terminal that does not know */
#define WIDTH_MIN  80

size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return WIDTH_NONE;
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

static void fit(const struct table *t, size_t width, size_t widths[])
{
	size_t all = t->n_columns ? t->n_columns - 1 : 0;

	for (size_t c = 0; c < t->n_columns; c++) {
		widths[c] = columns_of(t->columns[c].head);
		for (size_t r = 0; r < t->n_rows; r++) {
			size_t w = columns_of(t->cells[r * t->n_columns + c]);

			if (w > widths[c])
				widths[c] = w;
		}
		all += widths[c];
	}
	for (; all > width; all--) {
		size_t widest = t->n_columns;

		for (size_t c = 0; c < t->n_columns; c++)
			if (t->columns[c].shrink_to && widths[c] > t->columns[c].shrink_to &&
			    (widest == t->n_columns || widths[c] > widths[widest]))
				widest = c;
		if (widest == t->n_columns)
			return; /* no more can be taken away */
		widths[widest]--;
	}
}

static void print_cell(FILE *to, const struct column *column, const char *s, size_t width,
		       bool last)
{
	char buf[4 * CELL_MAX];
	size_t used = text_clean(s, width, buf, sizeof(buf));
	int pad = (int)(width - used);

	if (column->right)
		fprintf(to, "%*s%s", pad, "", buf);
	else
		fprintf(to, "%s%*s", buf, last ? 0 : pad, "");
	fputc(last ? '\n' : ' ', to);
}

void table_print(FILE *to, const struct table *t, size_t width)
{
	size_t widths[COLUMNS_MAX];

	fit(t, width, widths);
	for (size_t c = 0; c < t->n_columns; c++)
		print_cell(to, &t->columns[c], t->columns[c].head, widths[c],
			   c + 1 == t->n_columns);
	for (size_t r = 0; r < t->n_rows; r++) {
		for (size_t c = 0; c < t->n_columns; c++)
			print_cell(to, &t->columns[c], t->cells[r * t->n_columns + c], widths[c],
				   c + 1 == t->n_columns);
		if (t->below[r])
			fprintf(to, "%s\n", t->below[r]);
	}
}

/*
 * Draws who blocks whom as SVG: one file, without scripts, which loads nothing. JVMs choose names,
 * so all text goes through put_escaped().
 */
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/lock_text.h"
#include "daemon/ground/utf8.h"

#define ROW_HEIGHT  30
#define BOX_HEIGHT  22
#define INDENT	    28
#define LEFT	    44 /* space for the arcs of cycles */
#define TEXT_MAX    150 /* columns of text in a box; a tooltip has all of it */
#define COLUMN_WIDE 7.3 /* approximate width of a character at 12px */

static const char style[] =
	"text{font:12px ui-monospace,monospace;fill:#1d1c1a}"
	".box{fill:#fff;stroke:#b9b4a8}.blocker{fill:#fff1d6;stroke:#c98a12}"
	".dead{fill:#ffe1e1;stroke:#c62828}.head{font-weight:bold}"
	".line{fill:none;stroke:#b9b4a8}.arc{fill:none;stroke:#c62828;stroke-width:1.6}"
	"svg{background:#fbfaf8}";

/* Writes text for XML and its attributes: markup is escaped, and characters that XML forbids
 * become question marks. */
void put_escaped(FILE *to, const char *s)
{
	uint32_t code;
	size_t n;

	for (; *s; s += n) {
		n = utf8_character(s, strnlen(s, 4), &code);
		if (!n || utf8_is_control(code) || code == 0xfffe || code == 0xffff) {
			n = n ? n : 1;
			fputc('?', to);
		} else if (code == '<') {
			fputs("&lt;", to);
		} else if (code == '>') {
			fputs("&gt;", to);
		} else if (code == '&') {
			fputs("&amp;", to);
		} else if (code == '"') {
			fputs("&quot;", to);
		} else if (code == '\'') {
			fputs("&#39;", to);
		} else {
			fwrite(s, 1, n, to);
		}
	}
}

static bool is_heading(const struct graph_row *row)
{
	return row->kind == GRAPH_DEADLOCK || row->kind == GRAPH_CIRCLE ||
	       row->kind == GRAPH_NOBODY || row->kind == GRAPH_MORE;
}

static int middle_of(int y, int row)
{
	return y + row * ROW_HEIGHT + ROW_HEIGHT / 2;
}

/* Draws a line from each waiting thread's blocker, downwards and to the right; within a cycle an
 * arc on the left. */
static void put_lines(FILE *to, const struct graph_rows *g, int y)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct graph_row *row = &g->rows[i];
		int x = LEFT + (int)row->depth * INDENT, at = middle_of(y, (int)i);

		if (row->next >= 0) {
			int other = middle_of(y, row->next);
			int bend = row->next > (int)i ? 14 : 34;

			fprintf(to,
				"<path class=\"arc\" marker-end=\"url(#tip)\" d=\"M%d %d C%d %d %d %d %d %d\"/>\n",
				x, at, x - bend, at, x - bend, other, x - 2, other);
		} else if (row->parent >= 0 && !is_heading(&g->rows[row->parent])) {
			int from = middle_of(y, row->parent) + BOX_HEIGHT / 2;

			fprintf(to, "<path class=\"line\" d=\"M%d %d V%d H%d\"/>\n", x - INDENT / 2,
				from, at, x);
		}
	}
}

static void put_box(FILE *to, const struct graph_row *row, int y, size_t *widest)
{
	char text[2048], cut[4 * TEXT_MAX + 8];
	int x = LEFT + (int)row->depth * INDENT;
	size_t columns;

	graph_row_text(row, text, sizeof(text));
	columns = text_clean(text, TEXT_MAX, cut, sizeof(cut));
	if (columns * (size_t)(COLUMN_WIDE * 10) / 10 + (size_t)x + 30 > *widest)
		*widest = (size_t)((double)columns * COLUMN_WIDE) + (size_t)x + 30;
	fputs("<g><title>", to);
	put_escaped(to, text);
	fputs("</title>", to);
	if (!is_heading(row))
		fprintf(to,
			"<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%d\" rx=\"4\"/>",
			row->deadlock		     ? "dead"
			: row->kind == GRAPH_BLOCKER ? "blocker"
						     : "box",
			x, y - BOX_HEIGHT / 2, (double)columns * COLUMN_WIDE + 14, BOX_HEIGHT);
	fprintf(to, "<text%s x=\"%d\" y=\"%d\">", is_heading(row) ? " class=\"head\"" : "", x + 7,
		y + 4);
	put_escaped(to, cut);
	fputs("</text></g>\n", to);
}

static void target_title(const cJSON *t, char *buf, size_t size)
{
	const cJSON *graph = json_get(t, "graph");
	double deadlocks = json_number_of(graph, "deadlocks");

	snprintf(buf, size, "%.0f %s: %.0f waiting, %.0f deadlock%s", json_number_of(t, "pid"),
		 json_text_of(t, "name"), json_number_of(graph, "n_waits"), deadlocks,
		 deadlocks == 1 ? "" : "s");
}

/* Draws one JVM, beginning at @y; returns where the next one begins. */
static int lock_draw_put_target(FILE *to, const cJSON *t, int y, size_t *widest)
{
	struct graph_rows rows;
	char title[1024], cut[4 * TEXT_MAX + 8];

	target_title(t, title, sizeof(title));
	text_clean(title, TEXT_MAX, cut, sizeof(cut));
	fprintf(to, "<text class=\"head\" x=\"12\" y=\"%d\">", y + 20);
	put_escaped(to, cut);
	fputs("</text>\n", to);
	y += 34;
	if (!graph_rows_new(json_get(t, "graph"), &rows))
		return y;
	put_lines(to, &rows, y);
	for (size_t i = 0; i < rows.n; i++)
		put_box(to, &rows.rows[i], middle_of(y, (int)i), widest);
	y += (int)rows.n * ROW_HEIGHT + 14;
	graph_rows_free(&rows);
	return y;
}

/* Writes the body first, because the size is known only afterwards. */
bool put_svg(FILE *to, const cJSON *locks)
{
	const cJSON *t;
	size_t len = 0, widest = 480;
	char *body = NULL;
	FILE *f = open_memstream(&body, &len);
	int y = 6;
	bool ok;

	if (!f)
		return false;
	cJSON_ArrayForEach(t, json_get(locks, "targets")) y =
		lock_draw_put_target(f, t, y, &widest);
	if (y == 6) {
		fputs("<text x=\"12\" y=\"26\">no JVM streams</text>\n", f);
		y = 40;
	}
	ok = fclose(f) == 0;
	if (ok)
		fprintf(to,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%d\" "
			"viewBox=\"0 0 %zu %d\" role=\"img\"><title>who blocks whom</title>\n"
			"<style>%s</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" "
			"refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
			"<path d=\"M0 0L8 4L0 8z\" fill=\"#c62828\"/></marker></defs>\n%s</svg>\n",
			widest, y, widest, y, style, body);
	free(body);
	return ok;
}

char *lock_svg(const cJSON *locks, size_t *ret_len)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, ret_len);
	bool ok = to && put_svg(to, locks);

	if (to && (fclose(to) != 0 || !ok)) {
		free(text);
		return NULL;
	}
	return text;
}

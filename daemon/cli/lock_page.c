/*
 * The report about locks, a page: the table of locks, where waiters and owners were, who blocked
 * whom, and who blocks whom now. One file, without scripts, which loads nothing. JVMs choose names,
 * so all text goes through put_escaped().
 */
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/lock_text.h"

#define OWNERS_MAX 50

static const char style[] =
	"body{font:13px/1.5 system-ui,sans-serif;margin:14px 18px;background:#fbfaf8;color:#1d1c1a}"
	"h1{font-size:17px}h2{font-size:15px;overflow-wrap:anywhere;margin:26px 0 4px}"
	"h3{font-size:13px;margin:18px 0 4px}p{margin:4px 0}.scroll{overflow-x:auto}"
	"table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:3px 10px 3px 0;"
	"border-bottom:1px solid #e4e0d8}th{font-weight:600;white-space:nowrap}"
	"td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
	"td.c{font-family:ui-monospace,monospace;font-size:12px;overflow-wrap:anywhere;min-width:120px}"
	".bar{background:#e9b44c;height:4px;border-radius:2px;margin-top:2px}"
	"summary{cursor:pointer;overflow-wrap:anywhere}.bad{color:#c62828}.quiet{color:#77736a}"
	"pre{margin:2px 0 8px 20px;font-size:12px}details details{margin-left:18px}";

static void put_duration(FILE *to, double ns)
{
	char text[32];

	duration_text(ns, text, sizeof(text));
	fputs(text, to);
}

static void put_number_cell(FILE *to, double n)
{
	fprintf(to, "<td class=\"n\">%.0f</td>", n);
}

static void put_stack(FILE *to, const cJSON *stack)
{
	fputs("<pre>", to);
	for (int i = cJSON_GetArraySize(stack); i-- > 0;) {
		const cJSON *frame = cJSON_GetArrayItem(stack, i);

		put_escaped(to, cJSON_IsString(frame) ? frame->valuestring : "?");
		fputc('\n', to);
	}
	fputs("</pre>", to);
}

/* ---- the table of locks ---- */

static void lock_page_put_thread(FILE *to, const cJSON *thread)
{
	char text[600];

	thread_text(thread, "thread", text, sizeof(text));
	put_escaped(to, text);
}

static void lock_page_put_threads(FILE *to, const cJSON *list, bool more)
{
	const cJSON *t;
	bool first = true;

	fputs("<td>", to);
	cJSON_ArrayForEach(t, list)
	{
		fputs(first ? "" : "<br>", to);
		first = false;
		lock_page_put_thread(to, t);
		fputs(" <span class=\"quiet\">", to);
		put_duration(to, json_number_of(t, "ns"));
		fputs("</span>", to);
	}
	fputs(more ? "<br>…</td>" : "</td>", to);
}

static void lock_page_put_places(FILE *to, const cJSON *list)
{
	const cJSON *p;
	bool first = true;

	fputs("<td class=\"c\">", to);
	cJSON_ArrayForEach(p, list)
	{
		fputs(first ? "" : "<br>", to);
		first = false;
		put_escaped(to, json_text_of(p, "frame"));
	}
	fputs("</td>", to);
}

static void lock_page_put_lock(FILE *to, const cJSON *row)
{
	const cJSON *lock = json_get(row, "lock");
	char text[1024];

	/* a row of a class has no member lock, but the number of its locks */
	lock_text(lock ? lock : row, text, sizeof(text));
	put_escaped(to, text);
	if (!lock)
		fprintf(to, " (%.0f%s locks)", json_number_of(row, "locks"),
			cJSON_IsTrue(json_get(row, "more_locks")) ? "+" : "");
}

static void lock_page_put_row(FILE *to, const cJSON *r, double most_ns)
{
	double ns = json_number_of(r, "total_ns");

	fputs("<tr><td class=\"c\">", to);
	lock_page_put_lock(to, r);
	fputs("</td><td>", to);
	put_escaped(to, json_text_of(r, "kind"));
	fputs(cJSON_IsTrue(json_get(r, "idle")) ? " (idle)</td>" : "</td>", to);
	put_number_cell(to, json_number_of(r, "waits"));
	put_number_cell(to, json_number_of(r, "open"));
	fputs("<td class=\"n\">", to);
	put_duration(to, ns);
	fprintf(to, "<div class=\"bar\" style=\"width:%.0f%%\"></div></td><td class=\"n\">",
		most_ns > 0 ? 100 * ns / most_ns : 0);
	put_duration(to, json_number_of(r, "longest_ns"));
	fputs("</td>", to);
	lock_page_put_places(to, json_get(r, "waiters_at"));
	lock_page_put_places(to, json_get(r, "owners_at"));
	lock_page_put_threads(to, json_get(r, "waiters"),
			      cJSON_IsTrue(json_get(r, "more_waiters")));
	lock_page_put_threads(to, json_get(r, "owners"), cJSON_IsTrue(json_get(r, "more_owners")));
	fputs("</tr>\n", to);
}

static void lock_page_put_table(FILE *to, const cJSON *rows)
{
	const cJSON *r;

	fputs("<div class=\"scroll\"><table><tr><th>Lock</th><th>Kind</th><th class=\"n\">Waits</th>"
	      "<th class=\"n\">Now</th><th class=\"n\">Total</th><th class=\"n\">Longest</th>"
	      "<th>Waiters at</th><th>Owners at</th><th>Waiters</th><th>Owners</th></tr>\n",
	      to);
	cJSON_ArrayForEach(r, rows)
		lock_page_put_row(to, r, json_number_of(cJSON_GetArrayItem(rows, 0), "total_ns"));
	fputs("</table></div>\n", to);
}

/* ---- stacks ---- */

static void put_places_with_stacks(FILE *to, const char *what, const cJSON *places)
{
	const cJSON *p;

	cJSON_ArrayForEach(p, places)
	{
		const cJSON *stack = json_get(p, "stack");

		fprintf(to, "<details><summary>%s at ", what);
		put_escaped(to, json_text_of(p, "frame"));
		fputs(" <span class=\"quiet\">", to);
		put_duration(to, json_number_of(p, "ns"));
		fputs("</span></summary>", to);
		if (cJSON_GetArraySize(stack))
			put_stack(to, stack);
		else
			fputs("<p class=\"quiet\">The stack is no longer kept.</p>", to);
		fputs("</details>\n", to);
	}
}

static void lock_page_put_stacks(FILE *to, const cJSON *rows)
{
	const cJSON *r;

	fputs("<h3>Stacks</h3><p class=\"quiet\">For each place in the code, the stack of the "
	      "longest wait.</p>\n",
	      to);
	cJSON_ArrayForEach(r, rows)
	{
		fputs("<details><summary>", to);
		lock_page_put_lock(to, r);
		fputs("</summary>\n", to);
		put_places_with_stacks(to, "waited", json_get(r, "waiters_at"));
		put_places_with_stacks(to, "held", json_get(r, "owners_at"));
		fputs("</details>\n", to);
	}
}

/* ---- owners and their waiters ---- */

struct held {
	const cJSON *row, *owner;
};

static int lock_page_longest_first(const void *a, const void *b)
{
	double x = json_number_of(((const struct held *)a)->owner, "ns");
	double y = json_number_of(((const struct held *)b)->owner, "ns");

	return x < y ? 1 : x > y ? -1 : 0;
}

static size_t collect_held(const cJSON *rows, struct held *ret, size_t max)
{
	const cJSON *r, *o;
	size_t n = 0;

	cJSON_ArrayForEach(r, rows) cJSON_ArrayForEach(o, json_get(r, "owners")) if (n < max)
		ret[n++] = (struct held){ r, o };
	qsort(ret, n, sizeof(*ret), lock_page_longest_first);
	return n;
}

static void put_owners(FILE *to, const cJSON *rows)
{
	static struct held held[4096];
	size_t n = collect_held(rows, held, sizeof(held) / sizeof(held[0]));

	fputs("<h3>Owners: who kept whom waiting</h3>\n", to);
	if (!n) {
		fputs("<p class=\"quiet\">No owner is known.</p>\n", to);
		return;
	}
	fputs("<div class=\"scroll\"><table><tr><th>Owner</th><th class=\"n\">Others waited</th>"
	      "<th>Lock</th><th>Owners of it at</th><th>Waiters for it</th></tr>\n",
	      to);
	for (size_t i = 0; i < n && i < OWNERS_MAX; i++) {
		fputs("<tr><td>", to);
		lock_page_put_thread(to, held[i].owner);
		fputs("</td><td class=\"n\">", to);
		put_duration(to, json_number_of(held[i].owner, "ns"));
		fputs("</td><td class=\"c\">", to);
		lock_page_put_lock(to, held[i].row);
		fputs("</td>", to);
		lock_page_put_places(to, json_get(held[i].row, "owners_at"));
		lock_page_put_threads(to, json_get(held[i].row, "waiters"),
				      cJSON_IsTrue(json_get(held[i].row, "more_waiters")));
		fputs("</tr>\n", to);
	}
	fputs("</table></div>\n", to);
}

/* ---- who blocks whom now ---- */

static void put_wait(FILE *to, const cJSON *w)
{
	const struct graph_row row = { .kind = GRAPH_WAIT, .parent = -1, .next = -1, .wait = w };
	char text[2048];

	graph_row_text(&row, text, sizeof(text));
	fprintf(to, "<details><summary%s>",
		cJSON_IsTrue(json_get(w, "deadlock")) ? " class=\"bad\"" : "");
	put_escaped(to, text);
	fputs("</summary>", to);
	put_stack(to, json_get(w, "stack"));
	fputs("</details>\n", to);
}

static bool lock_page_has_waiter(const cJSON *locks)
{
	const cJSON *t;

	cJSON_ArrayForEach(
		t, json_get(locks, "targets")) if (json_number_of(json_get(t, "graph"), "n_waits") >
						   0) return true;
	return false;
}

static void put_graph(FILE *to, const cJSON *locks)
{
	const cJSON *t, *w;

	fputs("<h2>Who blocks whom now</h2>\n", to);
	if (!lock_page_has_waiter(locks)) {
		fputs("<p>Nobody waits for long right now.</p>\n", to);
		return;
	}
	fputs("<div class=\"scroll\">\n", to);
	(void)put_svg(to, locks);
	fputs("</div>\n", to);
	cJSON_ArrayForEach(t, json_get(locks, "targets"))
		cJSON_ArrayForEach(w, json_get(json_get(t, "graph"), "waits")) put_wait(to, w);
}

/* ---- the page ---- */

static void lock_page_put_summary(FILE *to, const cJSON *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	locks_summary(f, t);
	if (fclose(f) == 0)
		put_escaped(to, text);
	free(text);
}

static void lock_page_put_target(FILE *to, const cJSON *t)
{
	const cJSON *classes = json_get(t, "classes");
	const cJSON *rows = classes ? classes : json_get(t, "locks");

	fprintf(to, "<h2>%.0f ", json_number_of(t, "pid"));
	put_escaped(to, json_text_of(t, "name"));
	fputs("</h2>\n<p>", to);
	lock_page_put_summary(to, t);
	fputs("</p>\n", to);
	if (!cJSON_GetArraySize(rows))
		return;
	lock_page_put_table(to, rows);
	put_owners(to, rows);
	lock_page_put_stacks(to, rows);
}

static void put_page(FILE *to, const cJSON *locks)
{
	const cJSON *targets = json_get(locks, "targets"), *t;

	fprintf(to,
		"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'\">\n<title>locks</title>\n<style>%s</style></head>\n"
		"<body><h1>Locks</h1>\n",
		style);
	if (!cJSON_GetArraySize(targets))
		fputs("<p>No JVM streams; <code>kindling status</code> says why.</p>\n", to);
	cJSON_ArrayForEach(t, targets) lock_page_put_target(to, t);
	put_graph(to, locks);
	fputs("</body></html>\n", to);
}

char *lock_html(const cJSON *locks, size_t *ret_len)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, ret_len);

	if (!to)
		return NULL;
	put_page(to, locks);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

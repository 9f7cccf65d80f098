/*
 * Prints the table of locks. On a wide terminal each row is one line; on a narrow one names are
 * without packages, and the identity and the waiters are on a second line.
 */
#include <string.h>
#include "daemon/cli/lock_text.h"

#define WIDE	    160 /* columns of a terminal */
#define NARROW	    80
#define PLACE_WIDTH 18 /* columns of a method, at least */
/* columns of the waiters' names, at least, beside a long name of the owner */
#define WAITERS_WIDTH_MIN 24

enum {
	LOCK,
	ID,
	KIND,
	WAITS,
	NOW,
	TOTAL,
	LONGEST,
	WAITERS_AT,
	OWNERS_AT,
	WAITERS,
	OWNERS,
	COLUMN_COUNT
};
static const struct column columns[COLUMN_COUNT] = {
	[LOCK] = { "LOCK", false, 12 },
	[ID] = { "ID", false, 0 },
	[KIND] = { "KIND", false, 0 },
	[WAITS] = { "WAITS", true, 0 },
	[NOW] = { "NOW", true, 0 },
	[TOTAL] = { "TOTAL", true, 0 },
	[LONGEST] = { "LONGEST", true, 0 },
	[WAITERS_AT] = { "WAITERS AT", false, 0 },
	[OWNERS_AT] = { "OWNERS AT", false, 0 },
	[WAITERS] = { "WAITERS", false, 10 },
	[OWNERS] = { "OWNERS", false, 10 },
};
/* On a narrow terminal the table has all columns up to the owners' methods, except the identity. */
#define NARROW_COUNT (WAITERS - 1)
#define AT_NARROW(c) ((c) > ID ? (c)-1 : (c))

/* ---- cells ---- */

/* Writes names of threads, those with the most time first: worker-1, worker-2, ... */
static void lock_print_put_threads(const cJSON *list, bool more, char *cell)
{
	const cJSON *t;
	size_t len = 0;

	snprintf(cell, CELL_MAX, "-");
	cJSON_ArrayForEach(t, list)
	{
		const char *name = json_text_of(t, "thread");
		char tid[48];

		if (len >= CELL_MAX - 80)
			break;
		tid_text(t, tid, sizeof(tid));
		len += (size_t)snprintf(cell + len, CELL_MAX - len, "%s%.60s", len ? ", " : "",
					*name ? name : tid);
	}
	if (more && len < CELL_MAX - 10)
		snprintf(cell + len, CELL_MAX - len, ", ...");
}

/* Writes methods, those with the most time first. */
static void lock_print_put_places(const cJSON *list, char *cell)
{
	const cJSON *p;
	size_t len = 0;

	snprintf(cell, CELL_MAX, "-");
	cJSON_ArrayForEach(p, list)
	{
		if (len >= CELL_MAX - 160)
			break;
		len += (size_t)snprintf(cell + len, CELL_MAX - len, "%s%.150s", len ? ", " : "",
					json_text_of(p, "frame"));
	}
}

/* Writes the first method; if it is too long, only its end, which tells more than its beginning. */
static void put_place_brief(const cJSON *list, size_t width, char *cell)
{
	const char *frame = json_text_of(cJSON_GetArrayItem(list, 0), "frame"), *end;
	char brief[CELL_MAX];

	frame_text_brief(frame, brief, sizeof(brief));
	if (strlen(brief) <= width) {
		snprintf(cell, CELL_MAX, "%s", *brief ? brief : "-");
		return;
	}
	end = brief + strlen(brief) - (width - 1);
	while (((unsigned char)*end & 0xc0) == 0x80)
		end++;
	snprintf(cell, CELL_MAX, "\u2026%s", end);
}

/* "Stock" for "org.shop.Main$Stock". */
static const char *last_name(const char *class_name)
{
	const char *name = class_name;

	for (const char *c = class_name; *c; c++)
		if ((*c == '.' || *c == '$') && c[1] && !(c[1] >= '0' && c[1] <= '9'))
			name = c + 1;
	return name;
}

/* Writes what a row is about: one lock, or the locks of a class. */
static void put_subject(const cJSON *r, bool brief, char *name, char *id)
{
	const cJSON *lock = json_get(r, "lock");
	const char *class_name = json_text_of(lock ? lock : r, "class");

	snprintf(name, CELL_MAX, "%s",
		 !*class_name ? "(unnamed)"
		 : brief      ? last_name(class_name)
			      : class_name);
	if (!lock) {
		snprintf(id, CELL_MAX, "%.0f%s", json_number_of(r, "locks"),
			 cJSON_IsTrue(json_get(r, "more_locks")) ? "+" : "");
		return;
	}
	snprintf(id, CELL_MAX, "%s", *json_text_of(lock, "id") ? json_text_of(lock, "id") : "-");
}

/* @cells: from the column WAITS on. */
static void put_numbers(const cJSON *r, char (*cells)[CELL_MAX])
{
	snprintf(cells[0], CELL_MAX, "%.0f", json_number_of(r, "waits"));
	snprintf(cells[NOW - WAITS], CELL_MAX, "%.0f", json_number_of(r, "open"));
	duration_text(json_number_of(r, "total_ns"), cells[TOTAL - WAITS], CELL_MAX);
	duration_text(json_number_of(r, "longest_ns"), cells[LONGEST - WAITS], CELL_MAX);
}

static void put_wide(struct table *table, const cJSON *r, const char *waiters, const char *owners)
{
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	put_subject(r, false, row[LOCK], row[ID]);
	snprintf(row[KIND], CELL_MAX, "%s%s", json_text_of(r, "kind"),
		 cJSON_IsTrue(json_get(r, "idle")) ? " (idle)" : "");
	put_numbers(r, &row[WAITS]);
	lock_print_put_places(json_get(r, "waiters_at"), row[WAITERS_AT]);
	lock_print_put_places(json_get(r, "owners_at"), row[OWNERS_AT]);
	snprintf(row[WAITERS], CELL_MAX, "%s", waiters);
	snprintf(row[OWNERS], CELL_MAX, "%s", owners);
}

/*
 * Prints "  3f59682d: WAITERS; held by OWNERS" in @width columns. If that is too long the waiters
 * are cut first, because readers look for the owner.
 */
static void put_below(struct table *table, const char *head, const char *waiters,
		      const char *owners, size_t width)
{
	char held[CELL_MAX + 16] = "", brief[2 * CELL_MAX], line[4 * CELL_MAX], clean[4096];
	size_t others, room;

	if (strcmp(owners, "-") != 0)
		snprintf(held, sizeof(held), "; held by %s", owners);
	others = strlen(head) + strlen(held);
	room = width > others + WAITERS_WIDTH_MIN ? width - others : WAITERS_WIDTH_MIN;
	text_clean(waiters, room, brief, sizeof(brief));
	snprintf(line, sizeof(line), "%s%s%s", head, brief, held);
	text_clean(line, width, clean, sizeof(clean));
	table_below(table, "%s", clean);
}

static void put_narrow(struct table *table, const cJSON *r, const char *waiters, const char *owners,
		       size_t width)
{
	size_t place_width = PLACE_WIDTH + (width > NARROW ? (width - NARROW) / 3 : 0);
	char(*row)[CELL_MAX] = table_row(table);
	char id[CELL_MAX], head[CELL_MAX + 32];

	if (!row)
		return;
	put_subject(r, true, row[LOCK], id);
	snprintf(row[AT_NARROW(KIND)], CELL_MAX, "%s", json_text_of(r, "kind"));
	put_numbers(r, &row[AT_NARROW(WAITS)]);
	put_place_brief(json_get(r, "waiters_at"), place_width, row[AT_NARROW(WAITERS_AT)]);
	put_place_brief(json_get(r, "owners_at"), place_width, row[AT_NARROW(OWNERS_AT)]);
	snprintf(head, sizeof(head), "  %s%s%s: ", id, json_get(r, "lock") ? "" : " locks",
		 cJSON_IsTrue(json_get(r, "idle")) ? ", idle" : "");
	put_below(table, head, waiters, owners, width);
}

static void lock_print_put_row(struct table *table, const cJSON *r, size_t width)
{
	char waiters[CELL_MAX], owners[CELL_MAX];

	lock_print_put_threads(json_get(r, "waiters"), cJSON_IsTrue(json_get(r, "more_waiters")),
			       waiters);
	lock_print_put_threads(json_get(r, "owners"), cJSON_IsTrue(json_get(r, "more_owners")),
			       owners);
	if (table->n_columns == COLUMN_COUNT)
		put_wide(table, r, waiters, owners);
	else
		put_narrow(table, r, waiters, owners, width);
}

/* ---- the line above the table ---- */

static void print_number(FILE *to, double n)
{
	char digits[32];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%.0f", n);

	for (size_t i = 0; i < len && i < sizeof(digits); i++)
		fprintf(to, "%s%c", i && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* Prints "1.2 s". */
static void print_duration(FILE *to, double ns)
{
	char text[32];
	size_t digits;

	duration_text(ns, text, sizeof(text));
	digits = strspn(text, "0123456789.");
	/* a duration such as "2m03s" gets no space */
	fprintf(to, "%.*s%s%s", (int)digits, text, strpbrk(text + digits, "0123456789") ? "" : " ",
		text + digits);
}

static void print_count(FILE *to, double n, const char *what, double ns)
{
	print_number(to, n);
	fprintf(to, " %s (", what);
	print_duration(to, ns);
	fputc(')', to);
}

void locks_summary(FILE *to, const cJSON *t)
{
	double waits = json_number_of(t, "waits"), open = json_number_of(t, "open");
	double shorter = json_number_of(t, "short_waits"), idle = json_number_of(t, "idle_waits");
	double lost = json_number_of(t, "lost"), min_ns = json_number_of(t, "min_wait_ns");

	fprintf(to, "last %.0f s: ", json_number_of(t, "seconds"));
	print_number(to, waits);
	fprintf(to, " wait%s", waits == 1 ? "" : "s");
	if (min_ns > 0) {
		fputs(" of ", to);
		print_duration(to, min_ns);
		fputs(" and more", to);
	}
	if (open > 0) {
		fputs(" and ", to);
		print_number(to, open);
		fprintf(to, " that go%s on", open == 1 ? "es" : "");
	}
	fputs(" (", to);
	print_duration(to, json_number_of(t, "total_ns"));
	fputc(')', to);
	if (shorter > 0) {
		fputs("; ", to);
		print_count(to, shorter, "shorter", json_number_of(t, "short_waits_ns"));
	}
	if (idle > 0) {
		fputs("; ", to);
		print_number(to, idle);
		fputs(cJSON_IsTrue(json_get(t, "idle_shown")) ? " idle" : " idle, not shown", to);
	}
	if (lost > 0) {
		fputs("; ", to);
		print_count(to, lost, "lost on the way", json_number_of(t, "lost_ns"));
	}
}

/* ---- one JVM ---- */

/* Prints "4711 org.shop.Main: ". */
static void print_name(FILE *to, const cJSON *t)
{
	fprintf(to, "%.0f ", json_number_of(t, "pid"));
	print_text(to, json_text_of(t, "name"));
	fputs(": ", to);
}

bool print_name_of_collected(FILE *to, const cJSON *t)
{
	print_name(to, t);
	if (strcmp(json_text_of(t, "state"), "streaming") != 0) {
		fputs("it is ", to);
		print_text(to, json_text_of(t, "state"));
		fputs("; `kindling status` says why\n", to);
		return false;
	}
	if (!cJSON_IsTrue(json_get(t, "collected"))) {
		fputs("waits are not collected in this JVM; `kindling status` shows what is "
		      "collected, and events: in kindlingd.yaml sets it\n",
		      to);
		return false;
	}
	return true;
}

static void lock_print_table(FILE *to, const cJSON *t, const cJSON *all, int rows, size_t width)
{
	struct table table = { .n_columns = width < WIDE ? NARROW_COUNT : COLUMN_COUNT };
	bool classes = json_get(t, "classes") != NULL;
	struct column head[COLUMN_COUNT];
	const cJSON *r;

	memcpy(head, columns, sizeof(head));
	table.columns = head;
	if (classes) {
		head[LOCK].head = "CLASS";
		head[ID] = (struct column){ "LOCKS", true, 0 };
	}
	if (width < WIDE)
		memmove(&head[ID], &head[KIND], (COLUMN_COUNT - KIND) * sizeof(head[0]));
	cJSON_ArrayForEach(r, all) if (rows-- > 0) lock_print_put_row(&table, r, width);
	table_print(to, &table, width);
	if (rows < 0)
		fprintf(to, "and %.0f more %s; -n shows more\n",
			json_number_of(t, classes ? "n_classes" : "n_locks") - (double)table.n_rows,
			classes ? "classes" : "locks");
	table_free(&table);
}

static void lock_print_target(FILE *to, const cJSON *t, int rows, size_t width)
{
	const cJSON *classes = json_get(t, "classes");
	const cJSON *all = classes ? classes : json_get(t, "locks");

	/* an ended JVM may still have waits to show */
	if (!cJSON_GetArraySize(all) && !print_name_of_collected(to, t))
		return;
	if (cJSON_GetArraySize(all))
		print_name(to, t);
	locks_summary(to, t);
	fputc('\n', to);
	if (cJSON_GetArraySize(all))
		lock_print_table(to, t, all, rows, width);
}

void locks_print(FILE *to, const cJSON *locks, int rows, size_t width)
{
	const cJSON *targets = targets_of(to, locks), *t;
	bool first = true;

	cJSON_ArrayForEach(t, targets)
	{
		if (!first)
			fputc('\n', to);
		first = false;
		lock_print_target(to, t, rows, width);
	}
}

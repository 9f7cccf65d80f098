/*
 * Rows of ClickHouse's tables from a history: clickhouse_rows SEGMENTS NODE FROM_S TO_S STEP_S
 * DIRECTORY writes DIRECTORY/samples, stacks and processes in RowBinary, of each STEP_S seconds,
 * and prints how many samples and how many ns of CPU time are in them, and what the rows took.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "daemon/clickhouse/rows.h"
#include "daemon/ground/clock.h"
#include "daemon/store/store.h"

struct totals {
	uint64_t samples, rows, cpu_ns;
};

static int append(const char *directory, enum clickhouse_table table, const struct text_out *t)
{
	char path[512];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", directory, clickhouse_table_names[table]);
	f = fopen(path, "ae");
	ok = f && fwrite(t->p ? t->p : "", 1, t->len, f) == t->len;
	if (!f || fclose(f) != 0 || !ok) {
		perror(path);
		return -1;
	}
	return 0;
}

static int step(struct store *store, uint64_t from_ns, uint64_t to_ns, const char *node,
		const char *directory, struct totals *totals)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct clickhouse_rows rows;
	uint64_t begin;
	int r;

	if (profile_new(&p) < 0 || store_query(store, from_ns, to_ns, NULL, p) < 0)
		return -1;
	if (!p->n_rows)
		return 0;
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	r = clickhouse_rows_make(p, node, NULL, &rows);
	totals->cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
	totals->samples += rows.samples;
	for (unsigned i = 0; i < CLICKHOUSE_TABLES && r == 0; i++) {
		totals->rows += rows.rows[i];
		r = append(directory, (enum clickhouse_table)i, &rows.tables[i]);
	}
	clickhouse_rows_deinit(&rows);
	return r;
}

int main(int argc, char **argv)
{
	CLEANUP(store_freep) struct store *store = NULL;
	struct totals totals = { 0 };
	uint64_t from, to, length;

	if (argc != 7) {
		fputs("Usage: clickhouse_rows SEGMENTS NODE FROM_S TO_S STEP_S DIRECTORY\n",
		      stderr);
		return 2;
	}
	from = strtoull(argv[3], NULL, 10);
	to = strtoull(argv[4], NULL, 10);
	length = strtoull(argv[5], NULL, 10);
	if (!length || store_new(argv[1], UINT64_MAX / 2, UINT64_MAX / 2, &store) < 0)
		return 1;
	for (; from < to; from += length)
		if (step(store, from * NS_PER_S, (from + length) * NS_PER_S, argv[2], argv[6],
			 &totals) < 0)
			return 1;
	printf("{\"samples\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n",
	       totals.samples, totals.rows, totals.cpu_ns);
	return 0;
}

/* See usage.h: the parser. */
#include "daemon/ground/usage.h"

#include <getopt.h>
#include <string.h>
#include "daemon/ground/mem.h"

#define USAGE_LONG 256 /* getopt_long() returns this plus the row's index */

static bool usage_is_option(const struct usage_row *row)
{
	return row->kind != USAGE_WORD && row->kind != USAGE_ELSEWHERE;
}

static void usage_tables(const struct usage *u, bool in_order, char *shorts,
			 struct option longs[USAGE_ROWS_MAX + 1])
{
	struct option *l = longs;

	if (in_order)
		*shorts++ = '+';
	for (int i = 0; i < USAGE_ROWS_MAX && u->rows[i].kind != USAGE_END; i++) {
		const struct usage_row *row = &u->rows[i];

		if (!usage_is_option(row))
			continue;
		if (row->letter) {
			*shorts++ = row->letter;
			if (row->argument)
				*shorts++ = ':';
		}
		*l++ = (struct option){ row->name, row->argument ? required_argument : no_argument,
					NULL, USAGE_LONG + i };
	}
	*shorts = '\0';
	*l = (struct option){ NULL, 0, NULL, 0 };
}

static const struct usage_row *usage_row_of(const struct usage *u, int c)
{
	if (c >= USAGE_LONG)
		return &u->rows[c - USAGE_LONG];
	for (const struct usage_row *row = u->rows; row->kind != USAGE_END; row++)
		if (usage_is_option(row) && row->letter && row->letter == c)
			return row;
	return NULL;
}

static void usage_store(const struct usage_row *row, void *into)
{
	void *member = (char *)into + row->offset;

	if (row->kind == USAGE_FLAG)
		*(bool *)member = true;
	else
		*(const char **)member = row->kind == USAGE_FIXED ? row->fixed : optarg;
}

enum usage_result usage_parse(const struct usage *u, int argc, char **argv, bool in_order,
			      void *into)
{
	struct option longs[USAGE_ROWS_MAX + 1];
	char shorts[2 * USAGE_ROWS_MAX + 2];
	int c;

	usage_tables(u, in_order, shorts, longs);
	optind = 0; /* makes getopt_long() start anew after an earlier call */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct usage_row *row = usage_row_of(u, c);

		if (!row)
			return USAGE_WRONG;
		if (row->kind == USAGE_HELP)
			return USAGE_SHOW_HELP;
		if (row->kind == USAGE_VERSION)
			return USAGE_SHOW_VERSION;
		usage_store(row, into);
	}
	return USAGE_GO_ON;
}

/* kindling clickhouse: prints or creates the tables that keep a cluster's profiles. */
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/clickhouse/schema.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

#define DAY_NS (86400 * NS_PER_S)

struct arguments {
	struct clickhouse_schema schema;
	const char *ttl;
};

static const struct usage_row options[] = {
	COMMAND_WORD("schema", NULL, "print the SQL"),
	OPTION_TEXT(0, "database", "NAME", struct arguments, schema.database,
		    "the database of the tables (default kindling)"),
	OPTION_TEXT(0, "cluster", "NAME", struct arguments, schema.cluster,
		    "for a cluster NAME (remote_servers in the settings of ClickHouse): a table "
		    "NAME_shard on each server, and over these a Distributed table for inserts and "
		    "queries. Run the SQL on each server, or add --replicated"),
	OPTION_FLAG(
		0, "replicated", struct arguments, schema.replicated,
		"ReplicatedReplacingMergeTree, with the macros {shard} and {replica}; with --cluster "
		"one server creates the tables ON CLUSTER"),
	OPTION_TEXT(0, "ttl", "DAYS", struct arguments, ttl,
		    "delete rows that are older than this: 30d. Needs ClickHouse 19.6 or later; "
		    "with older ones drop partitions, one for each day (docs/clickhouse.md)"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_clickhouse = {
	"clickhouse",
	"the tables of the profiles of a whole cluster in ClickHouse",
	"kindling clickhouse schema [OPTION...]",
	"Prints the SQL that creates the tables which sinks of the type clickhouse insert into, for "
	"clickhouse-client -n. A sink with `create: true` creates them by itself, for one server.",
	options,
	NULL,
	"kindling clickhouse schema --ttl 30d | clickhouse-client -n\n"
	"kindling clickhouse schema --cluster profiles --replicated",
};

/* Checks the options. -1 = go on, else the exit status. */
static int clickhouse_check(const struct clickhouse_schema *s, const char *ttl, unsigned *ret_days)
{
	uint64_t ns;

	if (!clickhouse_name_is_fine(s->database))
		return cli_wrong("clickhouse", "--database takes letters, digits and _");
	if (s->cluster && !clickhouse_name_is_fine(s->cluster))
		return cli_wrong("clickhouse", "--cluster takes letters, digits and _");
	if (!ttl)
		return -1;
	if (!parse_length(ttl, &ns) || ns % DAY_NS || ns / DAY_NS > 36500)
		return cli_wrong("clickhouse", "--ttl takes whole days, such as 30d");
	*ret_days = (unsigned)(ns / DAY_NS);
	return -1;
}

static int clickhouse_print(const struct clickhouse_schema *s)
{
	CLEANUP(freep) char *text = NULL;
	struct text_out t = { 0 };
	size_t len;

	for (unsigned i = 0; clickhouse_put_statement(&t, s, i); i++)
		text_put(&t, ";\n\n");
	if (text_take(&t, &text, &len) < 0)
		return CLI_FAILED;
	return write_file("-", text, len);
}

int command_clickhouse(int argc, char **argv)
{
	struct arguments a = { .schema = { .database = "kindling" } };
	int r = cli_parse(&usage_clickhouse, argc, argv, &a);

	if (r >= 0)
		return r;
	if (optind + 1 != argc || strcmp(argv[optind], "schema") != 0)
		return cli_wrong("clickhouse", "the only subcommand is schema");
	r = clickhouse_check(&a.schema, a.ttl, &a.schema.ttl_days);
	return r >= 0 ? r : clickhouse_print(&a.schema);
}

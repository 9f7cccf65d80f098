/* kindling clickhouse: the tables in which a cluster's profiles are kept. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/clickhouse/schema.h"
#include "daemon/core/clock.h"
#include "daemon/core/mem.h"

#define DAY_NS (86400 * NS_PER_S)

static const char usage[] =
	"Usage: kindling clickhouse schema [OPTION...]\n"
	"\n"
	"Prints the SQL that creates the tables which sinks of the type clickhouse insert into, for\n"
	"clickhouse-client -n. A sink with `create: true` creates them by itself, for one server.\n"
	"\n"
	"      --database NAME   where the tables are (default kindling)\n"
	"      --cluster NAME    tables NAME_shard on each server of a cluster (remote_servers in its\n"
	"                        settings), and over them Distributed ones, which are what is inserted\n"
	"                        into and asked. Run it on each server, or add --replicated\n"
	"      --replicated      ReplicatedReplacingMergeTree, with the macros {shard} and {replica}; with\n"
	"                        --cluster one server creates the tables ON CLUSTER\n"
	"      --ttl DAYS        rows older than that go: 30d. ClickHouse 19.6 or newer; on older ones\n"
	"                        drop partitions, which are days (docs/clickhouse.md)\n"
	"  -h, --help            show this text\n"
	"\n"
	"Examples: kindling clickhouse schema --ttl 30d | clickhouse-client -n\n"
	"          kindling clickhouse schema --cluster profiles --replicated\n";

/* -1 = go on, else the exit status. */
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
	static const struct option options[] = {
		{ "database", required_argument, NULL, 'd' },
		{ "cluster", required_argument, NULL, 'c' },
		{ "replicated", no_argument, NULL, 'r' },
		{ "ttl", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct clickhouse_schema s = { .database = "kindling" };
	const char *ttl = NULL;
	int c, r;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'd')
			s.database = optarg;
		else if (c == 'c')
			s.cluster = optarg;
		else if (c == 'r')
			s.replicated = true;
		else if (c == 't')
			ttl = optarg;
		else
			return cli_usage(usage, c);
	}
	if (optind + 1 != argc || strcmp(argv[optind], "schema") != 0)
		return cli_wrong("clickhouse", "the word is schema");
	r = clickhouse_check(&s, ttl, &s.ttl_days);
	return r >= 0 ? r : clickhouse_print(&s);
}

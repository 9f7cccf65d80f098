/* See schema.h. */
#include "daemon/clickhouse/schema.h"

#include <string.h>
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/ground/mem.h"

struct column {
	const char *name, *type;
};

static const struct column stacks[] = {
	{ "day", "Date" },
	{ "stack", "UInt64" },
	{ "namespace", "String" },
	{ "service", "String" },
	{ "frames", "Array(String)" },
	{ "kinds", "Array(UInt8)" },
	{ "lines", "Array(Int32)" },
	{ "class_bytes", "Array(UInt16)" },
	{ "signatures", "Array(String)" },
	{ "files", "Array(String)" },
	{ "modules", "Array(String)" },
	{ "offsets", "Array(UInt64)" },
};

/* The first columns of both samples and processes. */
#define OWNER_COLUMNS                                                                             \
	{ "time", "DateTime('UTC')" }, { "until", "DateTime('UTC')" }, { "namespace", "String" }, \
		{ "service", "String" }, { "version", "String" }, { "image", "String" },          \
		{ "pod", "String" }, { "container", "String" }, { "node", "String" },             \
		{ "pid", "UInt32" },                                                              \
	{                                                                                         \
		"start_time", "UInt64"                                                            \
	}

static const struct column samples[] = {
	OWNER_COLUMNS,		{ "tid", "UInt32" },  { "thread", "String" },
	{ "event", "String" },	{ "wait", "String" }, { "idle", "UInt8" },
	{ "stack", "UInt64" },	{ "leaf", "String" }, { "samples", "UInt64" },
	{ "weight", "UInt64" },
};

static const struct column processes[] = {
	OWNER_COLUMNS,
	{ "begin_ns", "UInt64" },
	{ "end_ns", "UInt64" },
	{ "name", "String" },
	{ "ns_pid", "UInt32" },
	{ "pod_path", "String" },
	{ "container_name", "String" },
	{ "container_id", "String" },
	{ "jdk", "String" },
	{ "note", "String" },
	{ "label_names", "Array(String)" },
	{ "label_values", "Array(String)" },
	{ "cpu_ns", "UInt64" },
	{ "cpu_unknown", "UInt8" },
	{ "no_budget", "UInt8" },
	{ "events", "Array(String)" },
	{ "intervals", "Array(UInt64)" },
	{ "taken", "Array(UInt64)" },
	{ "taken_weight", "Array(UInt64)" },
	{ "delivered", "Array(UInt64)" },
	{ "delivered_weight", "Array(UInt64)" },
	{ "dropped", "Array(UInt64)" },
	{ "dropped_weight", "Array(UInt64)" },
	{ "short_waits", "UInt64" },
	{ "short_waits_ns", "UInt64" },
};

/* Rows with the same sorting key count as equal (docs/decisions/0019). The sharding key puts equal
 * rows on the same shard, wherever they are inserted. */
static const struct {
	const struct column *columns;
	size_t n;
	const char *partition, *order, *shard, *moment;
} tables[CLICKHOUSE_TABLES] = {
	[CLICKHOUSE_STACKS] = { stacks, ARRAY_SIZE(stacks), "day", "namespace, service, stack",
				"stack", "day" },
	[CLICKHOUSE_SAMPLES] = { samples, ARRAY_SIZE(samples), "toYYYYMMDD(time)",
				 "namespace, service, event, time, node, pid, start_time, tid, "
				 "thread, wait, idle, stack",
				 "cityHash64(node, pid)", "time" },
	[CLICKHOUSE_PROCESSES] = { processes, ARRAY_SIZE(processes), "toYYYYMMDD(time)",
				   "namespace, service, time, node, pid, start_time",
				   "cityHash64(node, pid)", "time" },
};

const char *const clickhouse_table_names[CLICKHOUSE_TABLES] = {
	[CLICKHOUSE_STACKS] = "stacks",
	[CLICKHOUSE_SAMPLES] = "samples",
	[CLICKHOUSE_PROCESSES] = "processes",
};

bool clickhouse_name_is_fine(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return *name && strspn(name, letters) > 0 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
		       strlen(name) &&
	       strlen(name) < 64;
}

void clickhouse_put_columns(struct text_out *t, enum clickhouse_table table)
{
	for (size_t i = 0; i < tables[table].n; i++)
		text_printf(t, "%s%s", i ? ", " : "", tables[table].columns[i].name);
}

static void schema_put_on_cluster(struct text_out *t, const struct clickhouse_schema *s)
{
	/* ON CLUSTER needs ZooKeeper or Keeper, which is there if tables are replicated */
	if (s->cluster && s->replicated)
		text_printf(t, " ON CLUSTER %s", s->cluster);
}

static void schema_put_database(struct text_out *t, const struct clickhouse_schema *s)
{
	text_printf(t, "CREATE DATABASE IF NOT EXISTS %s", s->database);
	schema_put_on_cluster(t, s);
}

static void schema_put_table(struct text_out *t, const struct clickhouse_schema *s,
			     enum clickhouse_table table)
{
	const char *name = clickhouse_table_names[table], *shard = s->cluster ? "_shard" : "";

	text_printf(t, "CREATE TABLE IF NOT EXISTS %s.%s%s", s->database, name, shard);
	schema_put_on_cluster(t, s);
	text_put(t, "\n(\n");
	for (size_t i = 0; i < tables[table].n; i++)
		text_printf(t, "    %s %s%s\n", tables[table].columns[i].name,
			    tables[table].columns[i].type, i + 1 < tables[table].n ? "," : "");
	text_put(t, ")\nENGINE = ");
	if (s->replicated)
		text_printf(t,
			    "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/%s/%s%s', "
			    "'{replica}')",
			    s->database, name, shard);
	else
		text_put(t, "ReplacingMergeTree()");
	text_printf(t, "\nPARTITION BY %s\nORDER BY (%s)", tables[table].partition,
		    tables[table].order);
	if (s->ttl_days)
		text_printf(t, "\nTTL %s + toIntervalDay(%u)\nSETTINGS ttl_only_drop_parts = 1",
			    tables[table].moment, s->ttl_days);
}

static void schema_put_distributed(struct text_out *t, const struct clickhouse_schema *s,
				   enum clickhouse_table table)
{
	const char *name = clickhouse_table_names[table];

	text_printf(t, "CREATE TABLE IF NOT EXISTS %s.%s", s->database, name);
	schema_put_on_cluster(t, s);
	text_printf(t, " AS %s.%s_shard\nENGINE = Distributed(%s, %s, %s_shard, %s)", s->database,
		    name, s->cluster, s->database, name, tables[table].shard);
}

bool clickhouse_put_statement(struct text_out *t, const struct clickhouse_schema *s, unsigned i)
{
	if (i == 0)
		schema_put_database(t, s);
	else if (i <= CLICKHOUSE_TABLES)
		schema_put_table(t, s, (enum clickhouse_table)(i - 1));
	else if (i <= 2 * CLICKHOUSE_TABLES && s->cluster)
		schema_put_distributed(t, s, (enum clickhouse_table)(i - 1 - CLICKHOUSE_TABLES));
	else
		return false;
	return true;
}

void clickhouse_put_insert(struct text_out *t, const char *database, enum clickhouse_table table)
{
	text_printf(t, "INSERT INTO %s.%s (", database, clickhouse_table_names[table]);
	clickhouse_put_columns(t, table);
	text_put(t, ") FORMAT RowBinary");
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The size of a number of @type in bytes; 0 = it is a string. */
static size_t schema_bytes_of(const char *type)
{
	static const struct {
		const char *type;
		size_t bytes;
	} numbers[] = { { "UInt8", 1 }, { "UInt16", 2 },   { "Date", 2 },  { "UInt32", 4 },
			{ "Int32", 4 }, { "DateTime", 4 }, { "UInt64", 8 } };
	size_t len = strcspn(type, "()");

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strlen(numbers[i].type) == len && memcmp(numbers[i].type, type, len) == 0)
			return numbers[i].bytes;
	return 0;
}

/* Skips one value of @type. Returns it if it is a number, else 0. */
static uint64_t schema_skip(struct rowbinary *in, const char *type)
{
	static const char array[] = "Array(";
	bool is_array = strncmp(type, array, sizeof(array) - 1) == 0;
	size_t bytes = schema_bytes_of(is_array ? type + sizeof(array) - 1 : type), n;

	if (!is_array && bytes)
		return rowbinary_number(in, bytes);
	n = is_array ? rowbinary_length(in, bytes ? bytes : 1) : 1;
	if (bytes)
		in->p += in->bad ? 0 : n * bytes;
	for (size_t i = 0; !bytes && i < n; i++)
		(void)rowbinary_string(in);
	return 0;
}

uint64_t clickhouse_skip_row(struct rowbinary *in, enum clickhouse_table table)
{
	uint64_t samples_of = 0;

	for (size_t i = 0; i < tables[table].n && !in->bad; i++) {
		const struct column *c = &tables[table].columns[i];
		uint64_t n = schema_skip(in, c->type);

		if (table == CLICKHOUSE_SAMPLES && strcmp(c->name, "samples") == 0)
			samples_of = n;
	}
	return samples_of;
}

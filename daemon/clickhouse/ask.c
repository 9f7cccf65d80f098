/* See ask.h. FINAL leaves out duplicates of rows that were delivered twice
 * (docs/decisions/0019). */
#include "daemon/clickhouse/ask.h"

#include "daemon/ground/clock.h"
#include "proto/wire.h"

#define DAY_S 86400u /* no interval of a row is longer */

const char *const clickhouse_selector_names[CLICKHOUSE_SELECTORS + 1] = {
	[CLICKHOUSE_NAMESPACE] = "namespace",
	[CLICKHOUSE_SERVICE] = "service",
	[CLICKHOUSE_VERSION] = "version",
	[CLICKHOUSE_IMAGE] = "image",
	[CLICKHOUSE_POD] = "pod",
	[CLICKHOUSE_CONTAINER] = "container",
	[CLICKHOUSE_NODE] = "node",
};

void clickhouse_put_quoted(struct text_out *t, const char *s)
{
	text_put(t, "'");
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			text_put(t, "\\");
		text_bytes(t, s, 1);
	}
	text_put(t, "'");
}

static unsigned long long ask_seconds_of(uint64_t ns)
{
	return ns / NS_PER_S;
}

/* Selects intervals that overlap the range. The second condition only lets ClickHouse use the
 * index. */
static void ask_put_range(struct text_out *t, const struct clickhouse_question *q)
{
	unsigned long long from = ask_seconds_of(q->from_ns);

	text_printf(t,
		    "time < toDateTime(%llu) AND time >= toDateTime(%llu) AND "
		    "until > toDateTime(%llu)",
		    ask_seconds_of(q->to_ns + NS_PER_S - 1), from > DAY_S ? from - DAY_S : 0, from);
}

static void ask_put_selectors(struct text_out *t, const struct clickhouse_question *q)
{
	for (unsigned i = 0; i < CLICKHOUSE_SELECTORS; i++) {
		if (!q->selectors[i])
			continue;
		text_printf(t, " AND %s = ", clickhouse_selector_names[i]);
		clickhouse_put_quoted(t, q->selectors[i]);
	}
}

static void clickhouse_ask_put_events(struct text_out *t, const struct clickhouse_question *q)
{
	const char *comma = "";

	text_put(t, " AND event IN (");
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (!(q->events & 1u << e))
			continue;
		text_printf(t, "%s'%s'", comma, wire_event_names[e]);
		comma = ", ";
	}
	text_put(t, ")");
}

static void ask_put_which_samples(struct text_out *t, const struct clickhouse_question *q)
{
	text_printf(t, " FROM %s.samples FINAL WHERE ", q->database);
	ask_put_range(t, q);
	ask_put_selectors(t, q);
	clickhouse_ask_put_events(t, q);
}

static void ask_put_samples(struct text_out *t, const struct clickhouse_question *q)
{
	static const char of[] = "node, pid, start_time, tid, thread, event, wait, idle, stack";

	text_printf(t,
		    "SELECT toUInt32(0), toUInt32(0), '', '', '', '', '', '', %s, '', "
		    "sum(samples), sum(weight)",
		    of);
	ask_put_which_samples(t, q);
	text_printf(t, " GROUP BY %s", of);
}

static void ask_put_stacks(struct text_out *t, const struct clickhouse_question *q)
{
	unsigned long long from = ask_seconds_of(q->from_ns);

	text_printf(
		t,
		"SELECT toDate(0), stack, '', '', frames, kinds, lines, class_bytes, signatures, "
		"files, modules, offsets FROM %s.stacks WHERE "
		"day >= toDate(toDateTime(%llu)) AND day <= toDate(toDateTime(%llu))",
		q->database, from > 2 * DAY_S ? from - 2 * DAY_S : 0,
		ask_seconds_of(q->to_ns) + DAY_S);
	for (unsigned i = CLICKHOUSE_NAMESPACE; i <= CLICKHOUSE_SERVICE; i++) {
		if (!q->selectors[i])
			continue;
		text_printf(t, " AND %s = ", clickhouse_selector_names[i]);
		clickhouse_put_quoted(t, q->selectors[i]);
	}
	text_put(t, " AND stack GLOBAL IN (SELECT stack");
	ask_put_which_samples(t, q);
	text_put(t, ") LIMIT 1 BY stack");
}

static void ask_put_processes(struct text_out *t, const struct clickhouse_question *q)
{
	text_put(t, "SELECT ");
	clickhouse_put_columns(t, CLICKHOUSE_PROCESSES);
	text_printf(t, " FROM %s.processes FINAL WHERE ", q->database);
	ask_put_range(t, q);
	ask_put_selectors(t, q);
}

void clickhouse_put_question(struct text_out *t, const struct clickhouse_question *q,
			     enum clickhouse_table table)
{
	if (table == CLICKHOUSE_STACKS)
		ask_put_stacks(t, q);
	else if (table == CLICKHOUSE_SAMPLES)
		ask_put_samples(t, q);
	else
		ask_put_processes(t, q);
	text_put(t, " FORMAT RowBinary");
}

void clickhouse_put_locks_question(struct text_out *t, const struct clickhouse_question *q,
				   bool idle, unsigned rows)
{
	text_put(t, "SELECT leaf, wait, uniqExact(node, pid, start_time), sum(samples), "
		    "sum(weight) AS ns");
	ask_put_which_samples(t, q);
	text_printf(t, "%s GROUP BY leaf, wait ORDER BY ns DESC LIMIT %u FORMAT TabSeparated",
		    idle ? "" : " AND idle = 0", rows);
}

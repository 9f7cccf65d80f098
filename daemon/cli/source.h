/*
 * --source clickhouse://HOST[:PORT]/DATABASE: profiles of a whole cluster for `report`, `top` and
 * `locks`. source.c makes queries of options, source_http.c sends them; the output is as for one
 * host.
 */
#pragma once

#include "daemon/cli/cli.h"
#include "daemon/clickhouse/ask.h"
#include "daemon/profile/profile.h"
#include "daemon/report/methods.h"

#define OPTIONS_OF_SOURCE(type)                                                                  \
	OPTION_TEXT(                                                                             \
		0, "source", "URL", type, source,                                                \
		"clickhouse://HOST[:8123]/DATABASE, or clickhouses:// for TLS: what the sinks "  \
		"of all nodes delivered there. User and password are those of $CLICKHOUSE_USER " \
		"and $CLICKHOUSE_PASSWORD or the file $CLICKHOUSE_PASSWORD_FILE; an own CA is "  \
		"$CURL_CA_BUNDLE"),                                                              \
		OPTION_TEXT(0, "service", "NAME", type, selectors[CLICKHOUSE_SERVICE],           \
			    "only what has this label; likewise:"),                              \
		OPTION_TEXT(0, "namespace", "NAME", type, selectors[CLICKHOUSE_NAMESPACE],       \
			    "a namespace"),                                                      \
		OPTION_TEXT(0, "version", "NAME", type, selectors[CLICKHOUSE_VERSION],           \
			    "a version"),                                                        \
		OPTION_TEXT(0, "image", "NAME", type, selectors[CLICKHOUSE_IMAGE], "an image"),  \
		OPTION_TEXT(0, "pod", "NAME", type, selectors[CLICKHOUSE_POD], "a pod"),         \
		OPTION_TEXT(0, "container", "NAME", type, selectors[CLICKHOUSE_CONTAINER],       \
			    "a container"),                                                      \
		OPTION_TEXT(0, "node", "NAME", type, selectors[CLICKHOUSE_NODE], "a node")

/* Do the arguments before a "--" include --source? Then source_report() and the like run the
 * command. */
bool source_is_asked(int argc, char **argv);
int source_report(int argc, char **argv);
int source_top(int argc, char **argv);
int source_locks(int argc, char **argv);

/* ---- source_json.c -------------------------------------------------------------------------- */

/* A class of locks, as ClickHouse answers; strings are borrowed. */
struct source_lock {
	const char *class_name, *kind;
	uint64_t jvms, waits, total_ns;
};

/* Print one JSON object about the last @seconds: of @m @rows methods, or of @n classes of locks.
 * Both return the exit status. */
int source_json_top(const struct profile *p, const struct report_methods *m, enum wire_event event,
		    const char *sort, unsigned rows, double seconds);
int source_json_locks(const struct source_lock *locks, unsigned n, bool idle, double seconds);

/* ---- source_http.c -------------------------------------------------------------------------- */

struct source_server {
	char url[300]; /* http://HOST:PORT/ */
	char database[64];
};

/* Parses the url. false: @why has a sentence. */
bool source_parse_url(const char *url, struct source_server *ret, char *why, size_t why_size);
/* Sends a query; free the answer with reply_free(). CLI_OK, or CLI_FAILED after printing the
 * error. */
int source_ask(const struct source_server *s, const char *sql, struct reply *ret);

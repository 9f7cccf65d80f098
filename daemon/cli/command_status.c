/* kindling status: one row per JVM. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "daemon/cli/cli.h"

static const char usage[] =
	"Usage: kindling status [--json]\n"
	"\n"
	"One row per JVM of the host: who it is, whether it streams and why not, and its books:\n"
	"taken = delivered + dropped, always.\n"
	"\n"
	"  --json   everything the daemon knows, for machines\n";

static double dropped_of(const cJSON *samples)
{
	const cJSON *cause;
	double sum = 0;

	cJSON_ArrayForEach(cause, cJSON_GetObjectItemCaseSensitive(samples, "dropped"))
		sum += cause->valuedouble;
	return sum;
}

/* "shop/cart", "cart", the id's beginning, or "host" */
static const char *place_of(const cJSON *t, char *buf, size_t size)
{
	if (*json_text(t, "pod"))
		snprintf(buf, size, "%s", json_text(t, "pod"));
	else if (*json_text(t, "container"))
		snprintf(buf, size, "%s", json_text(t, "container"));
	else if (*json_text(t, "container_id"))
		snprintf(buf, size, "%.12s", json_text(t, "container_id"));
	else
		snprintf(buf, size, "host");
	return buf;
}

static void print_target(const cJSON *t)
{
	const cJSON *samples = cJSON_GetObjectItemCaseSensitive(t, "samples");
	const cJSON *agent = cJSON_GetObjectItemCaseSensitive(t, "agent");
	char buf[256];

	printf("%-8.0f%-7.0f", json_number(t, "pid"), json_number(t, "ns_pid"));
	print_cell(place_of(t, buf, sizeof(buf)), 17, true);
	putchar(' ');
	print_cell(json_text(t, "jdk"), 22, true);
	putchar(' ');
	print_cell(json_text(t, "name"), 22, true);
	printf(" %-10s", json_text(t, "state"));
	printf("%4.0fms %9.0f %9.0f %7.0f %5.2f%% %5.1fM\n", json_number(t, "interval_ns") / 1e6,
	       json_number(samples, "taken"), json_number(samples, "delivered"), dropped_of(samples),
	       100 * json_number(agent, "cpu_share"), json_number(agent, "bytes") / 1048576);
	if (*json_text(t, "reason")) {
		fputs("        reason: ", stdout);
		print_cell(json_text(t, "reason"), 200, false);
		putchar('\n');
	}
	if (*json_text(t, "note")) {
		fputs("        note: ", stdout);
		print_cell(json_text(t, "note"), 200, false);
		putchar('\n');
	}
}

static void print_status(const cJSON *json)
{
	const cJSON *targets = cJSON_GetObjectItemCaseSensitive(json, "targets"), *t;
	const cJSON *discovery = cJSON_GetObjectItemCaseSensitive(json, "discovery");
	int streaming = 0, n = 0;

	printf("%-8s%-7s%-18s%-23s%-23s%-10s%6s %9s %9s %7s %6s %6s\n", "PID", "NSPID", "CONTAINER", "JDK",
	       "NAME", "STATE", "EVERY", "TAKEN", "DELIVERED", "DROPPED", "AGENT", "MEM");
	cJSON_ArrayForEach(t, targets)
	{
		print_target(t);
		n++;
		streaming += strcmp(json_text(t, "state"), "streaming") == 0;
	}
	printf("%d of %d JVMs streaming; kindlingd %s up %.0f s, discovery by %s%s%s\n", streaming, n,
	       json_text(json, "version"), json_number(json, "uptime_s"), json_text(discovery, "source"),
	       *json_text(discovery, "why") ? ": " : "", json_text(discovery, "why"));
}

int command_status(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	struct reply reply;
	bool raw = false;
	cJSON *json;
	int c, r;

	while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		if (c == 'j')
			raw = true;
		else {
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? CLI_OK : CLI_USAGE;
		}
	}
	r = client_request("GET", "/v1/status", &reply);
	if (r != CLI_OK)
		return r;
	if (raw) {
		puts(reply.body);
	} else {
		json = cJSON_Parse(reply.body);
		print_status(json);
		cJSON_Delete(json);
	}
	reply_free(&reply);
	return CLI_OK;
}

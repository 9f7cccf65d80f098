/*
 * kindling metrics: passes kindlingd's metrics to Prometheus, which cannot read Unix sockets: as a
 * file for node_exporter, or over TCP, where it serves nothing else.
 */
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/mem.h"

#define METRICS_CONNECTIONS 16u
#define METRICS_IDLE_S	    10u
#define METRICS_OPEN	    "application/openmetrics-text; version=1.0.0"

struct arguments {
	const char *output, *listen;
	bool openmetrics;
};

static const struct usage_row options[] = {
	OPTION_TEXT('o', "output", "FILE", struct arguments, output,
		    "write them to FILE, whole or not at all, for the textfile collector of "
		    "node_exporter; \"-\" is stdout, the default"),
	OPTION_FLAG(0, "openmetrics", struct arguments, openmetrics,
		    "in the format OpenMetrics 1.0"),
	OPTION_TEXT(
		'l', "listen", "ADDRESS", struct arguments, listen,
		"answer GET /metrics and /healthz on HOST:PORT, such as 127.0.0.1:9464, until "
		"SIGTERM; anyone who can connect sees names and pids of JVMs, and can do nothing "
		"else"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_metrics = {
	"metrics",
	"counters of kindlingd, for Prometheus",
	"kindling metrics [-o FILE | --listen ADDRESS]",
	"Prints the counters of kindlingd: JVMs by state, samples taken, delivered and dropped by "
	"cause, what "
	"agents and the daemon cost, the history, the sinks. Alerts and a dashboard for them are in "
	"deploy/monitoring.",
	options,
	NULL,
	"kindling metrics\n"
	"kindling metrics -o /var/lib/prometheus/node-exporter/kindling.prom\n"
	"kindling metrics --listen 127.0.0.1:9464",
};

/* ---- over TCP -------------------------------------------------------------------------------- */

static enum MHD_Result metrics_send(struct MHD_Connection *connection, unsigned status,
				    const char *type, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", type);
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result metrics_on_request(void *userdata, struct MHD_Connection *connection,
					  const char *url, const char *method, const char *version,
					  const char *body, size_t *body_len, void **state)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	enum MHD_Result r;
	struct reply reply;

	(void)userdata;
	(void)version;
	(void)body;
	if (!*state) { /* the first call has the headers only */
		*state = connection;
		return MHD_YES;
	}
	if (*body_len || strcmp(method, "GET") != 0)
		return metrics_send(connection, 405, "text/plain", "GET alone\n");
	if (strcmp(url, "/metrics") != 0 && strcmp(url, "/healthz") != 0)
		return metrics_send(connection, 404, "text/plain", "/metrics or /healthz\n");
	/* the header goes to the daemon, so it must not contain a line break */
	if (client_accepting(accept ? accept : "*/*", url, &reply) != CLI_OK)
		return metrics_send(connection, 503, "text/plain", "kindlingd does not answer\n");
	r = metrics_send(connection, 200,
			 strstr(reply.body, "\n# EOF\n")
				 ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				 : "text/plain; version=0.0.4; charset=utf-8",
			 reply.body);
	reply_free(&reply);
	return r;
}

/* Parses "127.0.0.1:9464", "[::1]:9464" or ":9464". */
static int metrics_address(const char *word, struct addrinfo **ret)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(word, ':');
	char host[256];
	size_t len = colon ? (size_t)(colon - word) : 0;

	if (!colon || !colon[1] || len >= sizeof(host))
		return EAI_NONAME;
	if (len > 1 && word[0] == '[' && word[len - 1] == ']') {
		word++;
		len -= 2;
	}
	snprintf(host, sizeof(host), "%.*s", (int)len, word);
	return getaddrinfo(*host ? host : NULL, colon + 1, &hints, ret);
}

static int metrics_listen(const char *word)
{
	struct addrinfo *address = NULL;
	struct MHD_Daemon *http;
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;
	sigset_t ends;
	int signo;

	if (metrics_address(word, &address) != 0)
		return cli_wrong("metrics", "--listen takes HOST:PORT, such as 127.0.0.1:9464");
	if (address->ai_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	/* signals must be blocked before threads exist, which inherit the mask */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	http = MHD_start_daemon(flags, 0, NULL, NULL, metrics_on_request, NULL,
				MHD_OPTION_SOCK_ADDR, address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
				METRICS_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, METRICS_IDLE_S,
				MHD_OPTION_END);
	freeaddrinfo(address);
	if (!http) {
		fprintf(stderr, "kindling metrics: cannot listen on ");
		print_text(stderr, word);
		fprintf(stderr, ": %s\n", strerror(errno));
		return CLI_FAILED;
	}
	(void)sigwait(&ends, &signo);
	MHD_stop_daemon(http);
	return CLI_OK;
}

int command_metrics(int argc, char **argv)
{
	struct arguments a = { .output = "-" };
	struct reply reply;
	int r = cli_parse(&usage_metrics, argc, argv, &a);

	if (r >= 0)
		return r;
	if (optind < argc)
		return cli_wrong("metrics", "it takes no TARGET");
	if (a.listen)
		return metrics_listen(a.listen);
	r = client_accepting(a.openmetrics ? METRICS_OPEN : "text/plain", "/metrics", &reply);
	if (r != CLI_OK)
		return r;
	r = write_file(a.output, reply.body, reply.len);
	reply_free(&reply);
	return r;
}

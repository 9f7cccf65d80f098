/*
 * Bytes on the daemon's socket, as anybody who may open it can send them, to a whole server without
 * JVMs. If a child that writes an answer crashes, the server's log shows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/report/patterns.h"
#include "daemon/serve/serve.h"
#include "daemon/serve/serve_priv.h"

#define ANSWER_NS (5 * NS_PER_S) /* deadline for a complete request on a busy machine */
#define ROUNDS	  50 /* of the loop, after which a connection that its client closed must be gone */
#define QUIET_NS  (2 * NS_PER_MS) /* how long to wait for an answer to an incomplete request */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config config;
static struct loop *loop;
static struct host *host;
static struct serve *server;
static char dir[] = "/tmp/kindling-fuzz-XXXXXX";

static void end(void)
{
	char command[64];

	serve_free(server);
	host_free(host);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	(void)!system(command);
}

/* Also ends children that were still writing answers. */
static void restart(void)
{
	struct fault f = { 0 };

	server = serve_free(server);
	if (serve_new(host, &server, &f) == 0)
		return;
	fprintf(stderr, "%s\n", f.what);
	abort();
}

static void begin(void)
{
	struct fault f = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	log_set_level(LOG_LEVEL_ERR);
	config_defaults(&config);
	config.host_engine = config.kernel_stacks = false;
	if (!mkdtemp(dir) || loop_new(&loop) < 0)
		abort();
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	snprintf(config.socket, sizeof(config.socket), "%s/socket", dir);
	if (host_new(loop, &config, false, false, &host, &f) < 0) {
		fprintf(stderr, "%s\n", f.what);
		abort();
	}
	restart();
	(void)atexit(end);
}

static void check(const char *text, size_t len)
{
	static const char internal[] = "HTTP/1.1 500";
	/* an answer may repeat words of the request, but no line break like this one */
	static const char died[] = "\r\n\r\n{\"error\":\"the answer could not be written";

	if (memcmp(text, internal, len < strlen(internal) ? len : strlen(internal)) != 0 &&
	    !memmem(text, len, died, strlen(died)))
		return;
	fprintf(stderr, "%.*s\n", (int)len, text);
	abort();
}

/* Reads until the answer is complete or nothing more comes. */
static void read_answer(int fd)
{
	uint64_t until = clock_mono_ns() + ANSWER_NS, quiet = clock_mono_ns() + QUIET_NS;
	static char text[65536];
	ssize_t n;

	while (clock_mono_ns() < until) {
		(void)loop_round(loop, NS_PER_MS);
		n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return;
		if (n < 0 && !server->aparts && clock_mono_ns() > quiet)
			return;
		if (n < 0)
			continue;
		check(text, (size_t)n);
		quiet = clock_mono_ns() + QUIET_NS;
	}
}

static void ask(const uint8_t *data, size_t size)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", config.socket);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		abort();
	if (write(fd, data, size) > 0) {
		(void)shutdown(fd, SHUT_WR);
		read_answer(fd);
	}
	close(fd);
	for (int i = 0; server->n_clients && i < ROUNDS; i++)
		(void)loop_round(loop, NS_PER_MS);
	if (server->n_clients) /* an endless stream of events, which is empty here */
		restart();
}

/* Runs the parsers of a request's parameters. */
static void read_words(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), why[300];
	uint64_t ns;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	(void)parse_duration(text, &ns);
	(void)report_pattern_is_fine(text, why, sizeof(why));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!server)
		begin();
	if (!size || size > 16384)
		return 0;
	read_words(data, size);
	ask(data, size);
	return 0;
}

/*
 * Makes one call of daemon/upload/grpc.h: grpc_client URL METHOD DEADLINE_MS ANSWER_MAX CA_FILE
 * STEP... A step is send:BYTES, message (wait for one), room (wait until all is sent), end, or
 * cancel. Prints each event of the call on a line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "daemon/ground/clock.h"
#include "daemon/upload/grpc.h"

struct client {
	struct loop *loop;
	struct grpc_call *call;
	char **steps; /* what is left */
	bool message, room; /* waited for */
	unsigned messages; /* messages received for which no step has waited yet */
};

static void client_send(struct client *c, size_t len)
{
	char *message = malloc(len + 1);

	memset(message, 'x', len);
	if (grpc_call_send(c->call, message, len) < 0)
		puts("not sent");
	free(message);
}

static void client_go_on(struct client *c)
{
	while (*c->steps && !c->message && !c->room) {
		const char *step = *c->steps++;

		if (strncmp(step, "send:", 5) == 0)
			client_send(c, strtoul(step + 5, NULL, 10));
		else if (strcmp(step, "message") == 0)
			c->message = c->messages == 0 || !c->messages--;
		else if (strcmp(step, "room") == 0)
			c->room = true;
		else if (strcmp(step, "end") == 0)
			grpc_call_end(c->call);
		else if (strcmp(step, "cancel") == 0) {
			c->call = grpc_call_free(c->call);
			loop_stop(c->loop, 0);
			return;
		}
	}
}

static void client_on_message(void *userdata, const void *message, size_t len)
{
	struct client *c = userdata;

	printf("message %zu %.*s\n", len, len < 20 ? (int)len : 20, (const char *)message);
	c->messages += !c->message;
	c->message = false;
	client_go_on(c);
}

static void client_on_room(void *userdata)
{
	struct client *c = userdata;

	c->room = false;
	client_go_on(c);
}

static void client_on_end(void *userdata, const struct grpc_end *end)
{
	struct client *c = userdata;

	printf("end %d sent=%d after=%.3f %s\n", (int)end->status, end->sent,
	       (double)end->retry_after_ns / 1e9, end->text);
	loop_stop(c->loop, 0);
}

static char *client_read_file(const char *path)
{
	static char text[16384];
	FILE *f = *path ? fopen(path, "re") : NULL;
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		(void)fclose(f);
	text[n] = '\0';
	return n ? text : NULL;
}

int main(int argc, char **argv)
{
	static const struct grpc_handler handler = { client_on_message, client_on_room,
						     client_on_end };
	struct client c = { .steps = argv + 6 };
	struct multi *multi = NULL;
	struct rusage usage;
	int r = argc < 6 ? -1 : loop_new(&c.loop);

	if (r == 0)
		r = multi_new(c.loop, &multi);
	if (r == 0) {
		const struct grpc_server server = { .url = argv[1],
						    .headers = { "Authentication: word" },
						    .ca = client_read_file(argv[5]),
						    .deadline_ns =
							    strtoul(argv[3], NULL, 10) * NS_PER_MS,
						    .answer_max = strtoul(argv[4], NULL, 10) };

		r = grpc_call_new(multi, &server, argv[2], &handler, &c, &c.call);
	}
	if (r == 0) {
		client_go_on(&c);
		r = loop_run(c.loop);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("cpu %.3f rss %ld\n",
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
	       usage.ru_maxrss);
	grpc_call_free(c.call);
	multi_free(multi);
	loop_free(c.loop);
	return r < 0;
}

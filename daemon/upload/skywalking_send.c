/*
 * From the spool to the OAP: a task's profile as JFR, made small enough for the OAP, in messages of
 * 1 MiB. An OAP accepts a profile when the client ends its stream, and discards the content of a
 * stream that breaks. So a delivery may be repeated until it ends its stream, and never afterwards.
 * The end is sent a moment after the content, so that a break on the way is noticed before.
 */
#include "daemon/upload/skywalking_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/report/report.h"
#include "daemon/upload/skywalking_thin.h"
#include "daemon/upload/upload.h"

#define COLLECT	      "/skywalking.v10.AsyncProfilerTask/collect"
#define CONTENT_LEAST (16u << 10) /* bytes; no JFR fits an OAP that takes less */
#define LISTEN_NS     (500 * NS_PER_MS) /* pause between the content and the end */
#define FITS_MAX      8 /* attempts to make a JFR small enough */

/* A delivery in progress; sink_file.request points to it. */
struct skywalking_sending {
	struct skywalking *of;
	struct sink_file *file;
	struct skywalking_instance id;
	char task[SKYWALKING_ID_MAX];
	uint64_t key;
	struct profile *profile;
	char *content;
	size_t len, sent;
	uint64_t kept; /* samples in @content */
	struct grpc_call *call;
	struct loop_timer *timer; /* for the end of the stream */
	struct grpc_server server;
	bool answered, ended;
	enum skywalking_verdict verdict;
};

static void send_on_room(void *userdata);

static void send_free(struct skywalking_sending *g)
{
	grpc_call_free(g->call);
	loop_timer_free(g->timer);
	profile_free(g->profile);
	free(g->content);
	free(g);
}

/* ---- the body -------------------------------------------------------------------------------- */

void skywalking_spool_key(const struct skywalking_saved *s, char *buf, size_t size)
{
	snprintf(buf, size, "%016llx\n%.100s\n%.100s\n%s", (unsigned long long)s->key,
		 s->id.service, s->id.name, s->task.id);
}

/* Copies the next line of *@at to @to. false = there is none, or it does not fit. */
static bool send_line(const char **at, char *to, size_t size)
{
	size_t len = strcspn(*at, "\n");

	if (len == 0 || len >= size)
		return false;
	memcpy(to, *at, len);
	to[len] = '\0';
	*at += len + ((*at)[len] != '\0');
	return true;
}

static bool send_names(struct skywalking_sending *g, const char *key)
{
	char number[20];

	if (!send_line(&key, number, sizeof(number)) ||
	    !send_line(&key, g->id.service, sizeof(g->id.service)) ||
	    !send_line(&key, g->id.name, sizeof(g->id.name)) ||
	    !send_line(&key, g->task, sizeof(g->task)))
		return false;
	g->key = strtoull(number, NULL, 16);
	return true;
}

/* ---- the JFR --------------------------------------------------------------------------------- */

static int send_write(struct skywalking_sending *g, const struct profile *p)
{
	struct report_options options = { .threads = g->of->sink->config->threads,
					  .events = profile_events(p) };

	free(g->content);
	g->content = NULL;
	g->kept = profile_samples(p);
	return report_write(p, REPORT_JFR, &options, &g->content, &g->len);
}

/* Makes a JFR of as many samples as the OAP accepts. 0, -ENOMEM, or -EMSGSIZE: not even one
 * stack fits. */
static int send_fit(struct skywalking_sending *g)
{
	size_t most = g->of->content_max;
	int r = send_write(g, g->profile);

	for (int i = 0; r == 0 && g->len > most; i++) {
		CLEANUP(profile_freep) struct profile *thin = NULL;
		uint64_t n = (uint64_t)((double)g->kept * (double)most / (double)g->len * 0.8);

		if (i == FITS_MAX || n == 0)
			return -EMSGSIZE;
		r = skywalking_thin(g->profile, n, &thin);
		if (r == 0)
			r = send_write(g, thin);
	}
	return r;
}

static int send_read(struct skywalking_sending *g)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) uint8_t *body = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct spool_header h;
	int r;

	fd = spool_open(g->of->sink->dfd, g->file->seq, true, &h);
	if (fd < 0)
		return fd;
	body = malloc(h.body_len + 1);
	if (!body)
		return -ENOMEM;
	if (pread(fd, body, h.body_len, (off_t)sizeof(h)) != (ssize_t)h.body_len ||
	    !send_names(g, h.key))
		return -EBADMSG;
	r = profile_decode(body, h.body_len, &p);
	return r < 0 ? r : skywalking_wall(p, &g->profile);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void send_done(struct skywalking_sending *g, enum sink_verdict v, const struct grpc_end *end,
		      const char *otherwise)
{
	struct sink_file *f = g->file;
	uint64_t retry_after = end->retry_after_ns;
	char why[SINK_TEXT_MAX];

	snprintf(why, sizeof(why), "upload of task %s: %s (gRPC status %d)", g->task,
		 end->text[0] ? end->text : otherwise, (int)end->status);
	send_free(g);
	f->request = NULL;
	sink_done(f, v, retry_after, why);
}

/* Tries a smaller JFR: the OAP's limit, which it does not tell, is lower than the usual one. */
static int send_smaller(struct skywalking_sending *g)
{
	g->of->content_max = g->len / 2;
	log_info("sink.oversize", "sink=%s bytes=%zu next=%zu", g->of->sink->config->name, g->len,
		 g->of->content_max);
	return g->of->content_max < CONTENT_LEAST ? -EMSGSIZE : send_fit(g);
}

static int send_call(struct skywalking_sending *g);

static void send_on_oversize(struct skywalking_sending *g, const struct grpc_end *end)
{
	int r = send_smaller(g);
	char why[160];

	if (r == 0)
		r = send_call(g);
	if (r == 0)
		return;
	if (r == -EMSGSIZE) {
		snprintf(why, sizeof(why),
			 "the OAP does not take %zu bytes of JFR, its jfrMaxSize is too small",
			 g->len);
		skywalking_run_failed(g->of, g->key, why);
	}
	send_done(g, r == -EMSGSIZE ? SINK_TOO_LARGE : SINK_RETRY, end, "too large for the OAP");
}

static void send_on_message(void *userdata, const void *message, size_t len)
{
	struct skywalking_sending *g = userdata;

	if (g->answered)
		return;
	g->answered = true;
	if (skywalking_answer(message, len, &g->verdict) < 0)
		g->verdict = SKYWALKING_FAILED;
	if (g->verdict != SKYWALKING_GO)
		grpc_call_end(g->call);
	else
		send_on_room(g);
}

static void send_end(void *userdata)
{
	struct skywalking_sending *g = userdata;

	if (!g->call) /* the connection has broken meanwhile */
		return;
	g->ended = true;
	sink_last_byte(g->file, g->file->samples - g->kept);
	grpc_call_end(g->call);
}

/* Everything has been passed to the network. */
static void send_on_room(void *userdata)
{
	struct skywalking_sending *g = userdata;
	size_t len = g->len - g->sent, bytes = 0;
	uint8_t *m;

	if (!g->answered)
		return; /* the metadata, not the content */
	if (len == 0) { /* wait a moment: a break on the way is noticed now */
		loop_timer_set(g->timer, LISTEN_NS, 0);
		return;
	}
	len = len < SKYWALKING_CHUNK ? len : SKYWALKING_CHUNK;
	m = skywalking_content(g->content + g->sent, len, &bytes);
	if (m && grpc_call_send(g->call, m, bytes) == 0)
		g->sent += len;
	else
		grpc_call_end(g->call); /* the content is shorter than announced: the OAP treats the
					   stream as broken */
	free(m);
}

static bool send_is_final(enum grpc_status status)
{
	return status == GRPC_INVALID_ARGUMENT || status == GRPC_OUT_OF_RANGE;
}

static void send_on_end(void *userdata, const struct grpc_end *end)
{
	struct skywalking_sending *g = userdata;

	g->call = grpc_call_free(g->call);
	loop_timer_set(g->timer, UINT64_MAX, 0);
	if (g->answered && g->verdict == SKYWALKING_OVERSIZE)
		send_on_oversize(g, end);
	else if (g->answered && g->verdict == SKYWALKING_FAILED)
		send_done(g, SINK_REFUSED, end, "refused");
	else if (end->status == GRPC_OK && g->ended)
		send_done(g, SINK_CONFIRMED, end, "");
	else if (send_is_final(end->status))
		send_done(g, SINK_REFUSED, end, "refused");
	else
		send_done(g, g->ended ? SINK_UNKNOWN : SINK_RETRY, end, "not answered");
}

static int send_call(struct skywalking_sending *g)
{
	static const struct grpc_handler handler = { send_on_message, send_on_room, send_on_end };
	CLEANUP(freep) uint8_t *m = NULL;
	size_t len = 0;

	g->answered = g->ended = false;
	g->sent = 0;
	m = skywalking_meta(&g->id, g->task, g->len, NULL, &len);
	if (!m || grpc_call_new(g->of->multi, &g->server, COLLECT, &handler, g, &g->call) < 0)
		return -ENOMEM;
	if (grpc_call_send(g->call, m, len) == 0)
		return 0;
	g->call = grpc_call_free(g->call);
	return -ENOMEM;
}

int skywalking_send(struct sink *s, struct sink_file *f)
{
	struct skywalking_sending *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->of = s->data;
	g->file = f;
	g->server = g->of->server;
	g->server.deadline_ns =
		5 * s->config->timeout_ns; /* the content takes longer than a request */
	r = loop_timer_add(sink_loop(s), UINT64_MAX, 0, send_end, g, &g->timer);
	if (r == 0)
		r = send_read(g);
	if (r == 0)
		r = send_fit(g);
	if (r == 0)
		r = send_call(g);
	if (r == -EMSGSIZE)
		skywalking_run_failed(g->of, g->key, "its JFR is larger than the OAP takes");
	if (r < 0) {
		send_free(g);
		return r;
	}
	f->request = g;
	return 0;
}

void skywalking_cancel(struct sink *s, struct sink_file *f)
{
	(void)s;
	send_free(f->request);
	f->request = NULL;
}

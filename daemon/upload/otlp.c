/*
 * OTLP profiles, v1development of opentelemetry-proto 1.11: over HTTP, or over gRPC as a unary call
 * that libcurl can make. The protocol says which answers may be retried; a request that was
 * accepted in part is not retried.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/upload/http.h"
#include "daemon/upload/otlp_answer.h"
#include "daemon/upload/sink_types.h"

#define OTLP_BODY_MAX  (3u << 20) /* gRPC servers accept 4 MiB by default */
#define OTLP_HTTP_PATH "/v1development/profiles"
#define OTLP_GRPC_PATH \
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define OTLP_FRAME 5 /* gRPC's prefix of a message: a flag, not compressed, and the length */

static bool otlp_is_grpc(const struct sink *s)
{
	return strcmp(s->config->protocol, "grpc") == 0;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static int otlp_put(struct sink *s, const struct sink_interval *in, const char *key,
		    const char *message, size_t len, uint64_t samples)
{
	CLEANUP(freep) char *framed = NULL;

	if (!otlp_is_grpc(s))
		return sink_put(s, in, key, "application/x-protobuf", message, len, samples);
	framed = malloc(len + OTLP_FRAME);
	if (!framed)
		return -ENOMEM;
	framed[0] = 0;
	for (int i = 0; i < 4; i++)
		framed[1 + i] = (char)(len >> (24 - 8 * i));
	memcpy(framed + OTLP_FRAME, message, len);
	return sink_put(s, in, key, "application/grpc+proto", framed, len + OTLP_FRAME, samples);
}

/* sink_part_fn */
static int otlp_part(struct sink *s, const struct sink_interval *in, const struct profile *p,
		     unsigned unused, unsigned part)
{
	const struct report_options options = { .events = profile_events(p) };
	CLEANUP(freep) char *message = NULL;
	char key[480], base[300];
	size_t len;
	int r = report_write(p, REPORT_OTLP, &options, &message, &len);

	(void)unused;
	if (r < 0)
		return r;
	if ((len > OTLP_BODY_MAX && p->n_rows > 1) || sink_is_too_large(s, len, p))
		return -EMSGSIZE;
	sink_key(in, base, sizeof(base));
	snprintf(key, sizeof(key), "%s.otlp.%u", base, part);
	return otlp_put(s, in, key, message, len, report_samples(p, &options));
}

static int otlp_encode(struct sink *s, const struct sink_interval *in)
{
	return sink_encode_parts(s, in, profile_events(in->profile), 0, otlp_part);
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum sink_verdict otlp_judge_taken(const uint8_t *p, size_t len, char *why)
{
	struct otlp_answer a;

	if (otlp_answer_read(p, len, &a) < 0 || a.rejected == 0)
		return SINK_CONFIRMED;
	snprintf(why, SINK_TEXT_MAX, "rejected: %s",
		 a.message[0] ? a.message : "the server does not say why");
	return SINK_REFUSED;
}

static enum sink_verdict otlp_judge_http(const struct http_answer *a, char *why)
{
	switch (a->status) {
	case 200:
		return otlp_judge_taken((const uint8_t *)a->body, a->len, why);
	case 401: /* the settings are wrong and can be mended */
	case 403:
	case 404:
	case 407:
	case 429:
	case 502:
	case 503:
	case 504:
		return SINK_RETRY;
	case 413:
		return SINK_TOO_LARGE;
	default:
		return SINK_REFUSED;
	}
}

/* Texts of gRPC's libraries for Go and C++, for Java, and for Rust. */
static bool otlp_is_too_large(const char *message)
{
	return strstr(message, "larger than max") || strstr(message, "exceeds maximum size") ||
	       strstr(message, "too large");
}

static enum sink_verdict otlp_judge_grpc(const struct http_answer *a, char *why)
{
	if (a->grpc_status < 0)
		return a->status == 200 ? SINK_UNKNOWN : otlp_judge_http(a, why);
	snprintf(why, SINK_TEXT_MAX, "gRPC status %d%s%.300s", a->grpc_status,
		 a->grpc_message[0] ? ": " : "", a->grpc_message);
	switch (a->grpc_status) {
	case 0:
		return a->len > OTLP_FRAME ? otlp_judge_taken((const uint8_t *)a->body + OTLP_FRAME,
							      a->len - OTLP_FRAME, why)
					   : SINK_CONFIRMED;
	case 8: /* RESOURCE_EXHAUSTED, also for a message that is too large */
		return otlp_is_too_large(a->grpc_message) ? SINK_TOO_LARGE : SINK_RETRY;
	case 1: /* CANCELLED */
	case 4: /* DEADLINE_EXCEEDED */
	case 10: /* ABORTED */
		return SINK_RETRY;
	case 11: /* OUT_OF_RANGE */
		return otlp_is_too_large(a->grpc_message) ? SINK_TOO_LARGE : SINK_RETRY;
	case 14: /* UNAVAILABLE */
	case 15: /* DATA_LOSS */
	case 7: /* PERMISSION_DENIED (7), UNIMPLEMENTED, UNAUTHENTICATED: the settings are wrong */
	case 12:
	case 16:
		return SINK_RETRY;
	default:
		return SINK_REFUSED;
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The url, with the protocol's own path if it has none. */
static void otlp_url(const struct sink *s, char *buf, size_t size)
{
	const char *url = s->config->url, *host = strstr(url, "://") + 3;
	size_t len = strlen(url);
	bool bare = !strchr(host, '/') || !strchr(host, '/')[1];

	while (len && url[len - 1] == '/')
		len--;
	snprintf(buf, size, "%.*s%s", (int)len, url,
		 otlp_is_grpc(s) ? OTLP_GRPC_PATH
		 : bare		 ? OTLP_HTTP_PATH
				 : "");
}

static int otlp_send(struct sink *s, struct sink_file *f)
{
	bool grpc = otlp_is_grpc(s);
	struct http_request r = { .method = "POST",
				  .h2c = grpc && strncmp(s->config->url, "http://", 7) == 0,
				  .judge = grpc ? otlp_judge_grpc : otlp_judge_http };
	char url[700], type[100];
	struct spool_header h;
	int fd = spool_open(s->dfd, f->seq, true, &h);

	if (fd < 0)
		return fd;
	otlp_url(s, url, sizeof(url));
	snprintf(type, sizeof(type), "Content-Type: %s", h.content_type);
	r.url = url;
	r.headers[0] = type;
	if (grpc)
		r.headers[1] = "TE: trailers";
	return http_send(s, f, fd, h.body_len, &r);
}

static int otlp_open(struct sink *s, char *why, size_t why_size)
{
	return http_check(s, why, why_size);
}

const struct sink_type sink_otlp = {
	.open = otlp_open,
	.encode = otlp_encode,
	.part = otlp_part,
	.send = otlp_send,
	.cancel = http_cancel,
	.in_flight_max = 4,
};

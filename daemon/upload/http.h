/*
 * HTTP for sinks, over the one struct multi of the program. A request is one file of a spool, sent
 * from the disk piece by piece; its answer is judged here as servers agree on it, or by the type.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "daemon/upload/sink.h"

#define HTTP_BODY_MAX	 4096 /* that is kept of an answer */
#define HTTP_HEADERS_MAX 24

struct http_answer {
	long status;
	char body[HTTP_BODY_MAX]; /* NUL-terminated */
	size_t len;
	int grpc_status; /* -1 = there is none */
	char grpc_message[SINK_TEXT_MAX];
	uint64_t retry_after_ns; /* 0 = it does not say */
};
/* @why: what is to be said of it, SINK_TEXT_MAX; it has the status and the server's words already.
 */
typedef enum sink_verdict http_judge_fn(const struct http_answer *a, char *why);
/* What an answer means for the sink itself; it may say when to come again. */
typedef void http_answer_fn(struct sink *s, struct http_answer *a);

struct http_request {
	const char *method; /* POST, PUT */
	const char *url;
	const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; up to the first NULL */
	bool h2c; /* HTTP/2 at once, without TLS: gRPC */
	bool no_credentials; /* it has its own */
	http_judge_fn *judge; /* NULL = http_judge() */
	http_answer_fn *on_answer; /* before it is judged; may be NULL */
};

/* Sends the body of @f, whose header was read and whose fd stands at it; takes @fd. The sink's own
 * headers, credentials, TLS and timeouts are added. sink_done() is called once. 0 or -errno. */
int http_send(struct sink *s, struct sink_file *f, int fd, uint64_t len,
	      const struct http_request *r);
void http_cancel(struct sink *s, struct sink_file *f);

/* 2xx: taken. 408, 429, 5xx: again. 401, 403, 404, 407: again too, for what is wrong is in the
 * settings. 413: too large. Others: never. */
enum sink_verdict http_judge(const struct http_answer *a, char *why);
/* Retry-After: seconds, or a date. Fuzzed. 0 = neither. */
uint64_t http_retry_after(const char *text, uint64_t now_real_ns);
/* Every sink over HTTP: what its url and TLS files say. 0, or -errno and a sentence. */
int http_check(const struct sink *s, char *why, size_t why_size);

/*
 * HTTP for sinks, over the program's single struct multi. A request is one file of a spool, sent
 * from the disk piece by piece; its answer is judged here by common rules, or by the type of sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "daemon/upload/sink.h"

#define HTTP_BODY_MAX	 4096 /* limit of the answer that is kept */
#define HTTP_HEADERS_MAX 24

struct http_answer {
	long status;
	char body[HTTP_BODY_MAX]; /* NUL-terminated */
	size_t len;
	int grpc_status; /* -1 = there is none */
	char grpc_message[SINK_TEXT_MAX];
	uint64_t retry_after_ns; /* 0 = not given */
};
/* @why: the text for status, SINK_TEXT_MAX; it already has the HTTP status and the server's
 * message. */
typedef enum sink_verdict http_judge_fn(const struct http_answer *a, char *why);
/* What an answer means for the sink; may set the time of the next attempt. */
typedef void http_answer_fn(struct sink *s, struct http_answer *a);

struct http_request {
	const char *method; /* POST, PUT */
	const char *url;
	const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; up to the first NULL */
	bool h2c; /* HTTP/2 without TLS and without an upgrade: gRPC */
	bool no_credentials; /* the type sets its own authorization */
	http_judge_fn *judge; /* NULL = http_judge() */
	http_answer_fn *on_answer; /* called before the answer is judged; may be NULL */
};

/* Sends the body of @f, whose header was read and whose fd is at the body; takes @fd. Adds the
 * sink's own headers, credentials, TLS and timeouts. sink_done() is called once. 0 or -errno. */
int http_send(struct sink *s, struct sink_file *f, int fd, uint64_t len,
	      const struct http_request *r);
void http_cancel(struct sink *s, struct sink_file *f);

/* 2xx: accepted. 408, 429, 5xx: retry. 401, 403, 404, 407: retry too, because the settings are
 * wrong. 413: too large. Others: rejected for good. */
enum sink_verdict http_judge(const struct http_answer *a, char *why);
/* Retry-After: seconds, or a date. Fuzzed. 0 = neither. */
uint64_t http_retry_after(const char *text, uint64_t now_real_ns);
/* Setup for every sink over HTTP: its url and TLS files. 0, or -errno and a sentence. */
int http_check(const struct sink *s, char *why, size_t why_size);

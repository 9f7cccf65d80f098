/*
 * HTTP requests for sinks, over the program's one struct multi. A request sends one file of a
 * spool, piece by piece from the disk. The answer is judged by the common rules here, or by the
 * type of sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "daemon/upload/sink.h"

#define HTTP_BODY_MAX	 4096 /* bytes of an answer that are kept */
#define HTTP_HEADERS_MAX 24

struct http_answer {
	long status;
	char body[HTTP_BODY_MAX]; /* NUL-terminated */
	size_t len;
	int grpc_status; /* -1 = it has none */
	char grpc_message[SINK_TEXT_MAX];
	uint64_t retry_after_ns; /* as the server asked; 0 = it did not */
};
/* Decides what becomes of the body. @why (SINK_TEXT_MAX) is the text for status; it already
 * contains the HTTP status and the server's message. */
typedef enum sink_verdict http_judge_fn(const struct http_answer *a, char *why);
/* Tells the sink about the answer, before it is judged. May set the time of the next attempt. */
typedef void http_answer_fn(struct sink *s, struct http_answer *a);

struct http_request {
	const char *method; /* POST, PUT */
	const char *url;
	const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; NULL after the last */
	bool h2c; /* HTTP/2 without TLS and without an upgrade: gRPC */
	bool no_credentials; /* the type of sink sets its own Authorization */
	http_judge_fn *judge; /* NULL = http_judge() */
	http_answer_fn *on_answer; /* NULL = none */
};

/* Sends the body of @f, @len bytes of @fd, whose offset is at the body; takes @fd. Adds the
 * sink's own headers, credentials, TLS settings and timeouts. sink_done() is called once, unless
 * this fails. 0 or -errno. */
int http_send(struct sink *s, struct sink_file *f, int fd, uint64_t len,
	      const struct http_request *r);
void http_cancel(struct sink *s, struct sink_file *f);

/* 2xx: accepted. 408, 429, 5xx: retry. 401, 403, 404, 407: retry as well, because the settings
 * are wrong and can be mended. 413: too large. Others: rejected for good. */
enum sink_verdict http_judge(const struct http_answer *a, char *why);
/* Parses a Retry-After header, a number of seconds or a date, to ns from now. 0 = neither.
 * Fuzzed. */
uint64_t http_retry_after(const char *text, uint64_t now_real_ns);
/* open() of sinks over HTTP: checks the url and the TLS files. 0, or -errno and a sentence. */
int http_check(const struct sink *s, char *why, size_t why_size);

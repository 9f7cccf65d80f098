/*
 * Calls of gRPC over libcurl's HTTP/2, in the one loop: unary ones and streams in both directions.
 * Messages are bytes here; the caller knows their format. http:// is HTTP/2 without TLS and without
 * an upgrade, https:// is TLS and ALPN.
 *
 * Unary: grpc_call_new(), grpc_call_send(), grpc_call_end(); then on_message() at most once, and
 * on_end(). A stream: the same, with more than one send, each when on_message() or on_room() asks
 * for it.
 */
#pragma once

#include <stdbool.h>
#include "daemon/upload/multi.h"

/* The status codes of gRPC that are handled. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

#define GRPC_TEXT_MAX	 400
#define GRPC_HEADERS_MAX 12

/* Address and options; borrowed while the call is made. */
struct grpc_server {
	const char *url; /* http://127.0.0.1:11800 */
	const char *headers[GRPC_HEADERS_MAX]; /* "Name: value"; up to the first NULL */
	char *ca, *cert, *key; /* PEM; NULL = the system's; none. Must live as long as the call */
	const char *proxy; /* NULL = from the environment */
	uint64_t deadline_ns; /* for the whole call */
	size_t answer_max; /* limit for all messages of the answer to one call */
};

struct grpc_end {
	enum grpc_status status;
	bool sent; /* a message left this host, and may have been accepted */
	uint64_t retry_after_ns; /* requested by the server; 0 = not */
	char text[GRPC_TEXT_MAX]; /* the server's message, or the local error; "" = none */
};

struct grpc_call;
struct grpc_handler {
	/* One message of the answer. May be NULL. */
	void (*on_message)(void *userdata, const void *message, size_t len);
	/* Everything passed to send was sent. Not called after grpc_call_end(). May be NULL. */
	void (*on_room)(void *userdata);
	/* The last callback. */
	void (*on_end)(void *userdata, const struct grpc_end *end);
};

/*
 * Starts a call of @method, "/package.Service/Method". All handlers are called from the loop, never
 * from within grpc_call_*(), and may free the call. 0 or -ENOMEM.
 */
int grpc_call_new(struct multi *m, const struct grpc_server *s, const char *method,
		  const struct grpc_handler *h, void *userdata, struct grpc_call **ret);
/* Copies @message into the queue. 0, -ENOMEM, -EPIPE: the call has ended. */
int grpc_call_send(struct grpc_call *c, const void *message, size_t len);
/* No more messages will be sent. */
void grpc_call_end(struct grpc_call *c);
/* Cancels a call in progress. NULL is allowed; returns NULL. */
struct grpc_call *grpc_call_free(struct grpc_call *c);

/* The status for errors of curl and HTTP without a gRPC status: "HTTP 502" is UNAVAILABLE. Pure. */
enum grpc_status grpc_status_of_http(long http_status);
/* "a%20b": percent-decoded, UTF-8, without control characters, cut to @size. Pure; fuzzed. */
void grpc_decode_text(const char *s, char *buf, size_t size);
/*
 * The pause requested by grpc-status-details-bin: base64 of a google.rpc.Status with a RetryInfo. 0
 * = none. Pure; fuzzed.
 */
uint64_t grpc_retry_after(const char *details);

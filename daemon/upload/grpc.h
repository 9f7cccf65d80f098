/*
 * gRPC calls over libcurl's HTTP/2 in the daemon's loop, unary ones and streams. A message is a
 * string of bytes here; the caller knows its format. http:// means HTTP/2 without TLS and without
 * an upgrade, https:// TLS with ALPN.
 *
 * A unary call: grpc_call_new(), grpc_call_send(), grpc_call_end(); then at most one on_message(),
 * and on_end(). A stream sends more than once, each time when on_message() or on_room() asks for
 * it.
 */
#pragma once

#include <stdbool.h>
#include "daemon/upload/multi.h"

/* Those status codes of gRPC that need different handling. */
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

/* Address and options; must stay valid as long as the call. */
struct grpc_server {
	const char *url; /* http://127.0.0.1:11800 */
	const char *headers[GRPC_HEADERS_MAX]; /* "Name: value"; NULL after the last */
	char *ca, *cert, *key; /* PEM; ca NULL = the system's; cert NULL = none */
	const char *proxy; /* NULL = from the environment */
	uint64_t deadline_ns; /* for the whole call */
	size_t answer_max; /* bytes, of all messages of the answer to one call */
};

struct grpc_end {
	enum grpc_status status;
	bool sent; /* a message left this host: the server may have accepted it */
	uint64_t retry_after_ns; /* as the server asked; 0 = it did not */
	char text[GRPC_TEXT_MAX]; /* what the server said, or our own error; "" = nothing */
};

struct grpc_call;
struct grpc_handler {
	/* A message of the answer. May be NULL. */
	void (*on_message)(void *userdata, const void *message, size_t len);
	/* Everything that was passed to grpc_call_send() has left. Not called after
	 * grpc_call_end(). May be NULL. */
	void (*on_room)(void *userdata);
	/* The call has ended; no other handler is called after this one. */
	void (*on_end)(void *userdata, const struct grpc_end *end);
};

/*
 * Starts a call of @method, "/package.Service/Method". All handlers are called from the loop, never
 * from within grpc_call_*(), and may free the call. 0 or -ENOMEM.
 */
int grpc_call_new(struct multi *m, const struct grpc_server *s, const char *method,
		  const struct grpc_handler *h, void *userdata, struct grpc_call **ret);
/* Queues a copy of @message. 0, -ENOMEM, or -EPIPE: the call has ended. */
int grpc_call_send(struct grpc_call *c, const void *message, size_t len);
/* Declares that no more messages follow. */
void grpc_call_end(struct grpc_call *c);
/* Cancels the call if it is in progress. @c may be NULL; returns NULL. */
struct grpc_call *grpc_call_free(struct grpc_call *c);

/* The gRPC status for an HTTP status, when the answer has none of gRPC: 502 is UNAVAILABLE.
 * Pure. */
enum grpc_status grpc_status_of_http(long http_status);
/* Decodes percent escapes ("a%20b") into UTF-8 without control characters, cut to @size. Pure;
 * fuzzed. */
void grpc_decode_text(const char *s, char *buf, size_t size);
/*
 * The pause that grpc-status-details-bin asks for, in ns: base64 of a google.rpc.Status with a
 * RetryInfo. 0 = none. Pure; fuzzed.
 */
uint64_t grpc_retry_after(const char *details);

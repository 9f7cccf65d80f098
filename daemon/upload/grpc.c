/*
 * See grpc.h. Inside curl's callbacks none of its handles may be freed; so they only set a timer,
 * from which the handlers are called. While no message waits to be sent, curl's reading is paused.
 */
#include "daemon/upload/grpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/trust.h"

#define CONNECT_MS	10000L
#define FRAME_HEAD	5 /* a flag and the length, big endian */
#define GRPC_TIMEOUT_MS 99999999ull /* eight digits are allowed */

struct grpc_bytes {
	char *data;
	size_t at, len, cap; /* bytes from @at to @len are to be sent */
};

struct grpc_call {
	struct multi_transfer transfer; /* first, because curl's pointer is cast to the call */
	struct multi *multi;
	const struct grpc_handler *handler;
	void *userdata;
	struct loop_timer *timer; /* handlers are to be called */
	struct curl_slist *headers;
	size_t answer_max, answered; /* bytes */
	struct grpc_bytes out, in;
	bool ended, paused, sent;
	bool room; /* on_room() is to be called */
	bool last_words; /* the server's status came */
	bool over; /* on_end() was called */
	bool is_checked; /* the answer was found to be gRPC */
	bool *ret_freed; /* set while a handler runs: gets true if the handler frees the call */
	struct grpc_end end; /* why we end the call; status 0 = we do not */
	char error[CURL_ERROR_SIZE];
};

static int bytes_append(struct grpc_bytes *b, const void *data, size_t len)
{
	if (b->at == b->len)
		b->at = b->len = 0;
	if (b->cap - b->len < len) {
		size_t cap = b->len + len;
		char *p;

		cap = cap < 2 * b->cap ? 2 * b->cap : cap;
		p = realloc(b->data, cap);
		if (!p)
			return -ENOMEM;
		b->data = p;
		b->cap = cap;
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

/* ---- callbacks of curl ----------------------------------------------------------------------- */

static void grpc_wake(struct grpc_call *c)
{
	loop_timer_set(c->timer, 1, 0);
}

/* Ends the call from within a callback. Returns 0, which curl takes for an error because it
 * differs from the number of bytes passed. */
__attribute__((format(printf, 3, 4))) static size_t
grpc_refuse(struct grpc_call *c, enum grpc_status status, const char *fmt, ...)
{
	va_list args;

	c->end.status = status;
	va_start(args, fmt);
	vsnprintf(c->end.text, sizeof(c->end.text), fmt, args);
	va_end(args);
	return 0;
}

static size_t grpc_read(char *to, size_t size, size_t n, void *userdata)
{
	struct grpc_call *c = userdata;
	size_t have = c->out.len - c->out.at, want = size * n;

	if (have == 0 && c->ended)
		return 0;
	if (have == 0) {
		c->paused = true;
		return CURL_READFUNC_PAUSE;
	}
	have = have < want ? have : want;
	memcpy(to, c->out.data + c->out.at, have);
	c->out.at += have;
	c->sent = true;
	if (c->out.at == c->out.len && !c->ended) {
		c->room = true;
		grpc_wake(c);
	}
	return have;
}

static const char *grpc_header(struct grpc_call *c, const char *name)
{
	struct curl_header *h;

	return curl_easy_header(c->transfer.easy, name, 0, CURLH_HEADER | CURLH_TRAILER, -1, &h) ==
			       CURLHE_OK
		       ? h->value
		       : "";
}

/* Is the answer gRPC? A proxy's error page must not be parsed as messages. */
static bool grpc_is_grpc(struct grpc_call *c)
{
	const char *type = grpc_header(c, "content-type");
	char said[80];
	long status = 0;

	curl_easy_getinfo(c->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && strncasecmp(type, "application/grpc", 16) == 0)
		return true;
	grpc_decode_text(type, said, sizeof(said));
	grpc_refuse(c, grpc_status_of_http(status), "HTTP %ld with %s is not an answer of gRPC",
		    status, *said ? said : "no type");
	return false;
}

/* The length of the message at the beginning of the received bytes; false = it is not there yet. */
static bool grpc_frame(const struct grpc_call *c, size_t *ret_len)
{
	uint32_t len;

	if (c->in.len - c->in.at < FRAME_HEAD)
		return false;
	memcpy(&len, c->in.data + c->in.at + 1, sizeof(len));
	*ret_len = ntohl(len);
	return true;
}

static size_t grpc_write(char *p, size_t size, size_t n, void *userdata)
{
	struct grpc_call *c = userdata;
	size_t len = size * n, message;

	if (!c->is_checked && !grpc_is_grpc(c))
		return 0;
	c->is_checked = true;
	c->answered += len;
	if (c->answered > c->answer_max)
		return grpc_refuse(c, GRPC_RESOURCE_EXHAUSTED,
				   "the server's answer has more than %zu bytes", c->answer_max);
	if (bytes_append(&c->in, p, len) < 0)
		return grpc_refuse(c, GRPC_RESOURCE_EXHAUSTED, "no memory");
	if (grpc_frame(c, &message) && message > c->answer_max)
		return grpc_refuse(c, GRPC_RESOURCE_EXHAUSTED,
				   "the server announces a message of %zu bytes", message);
	grpc_wake(c);
	return len;
}

/*
 * A server may end the call before we have ended ours; curl would wait for our next message. curl
 * before 8 does not report the status if the server resets the stream in the same packet: then the
 * deadline ends the call.
 */
static size_t grpc_take_header(char *p, size_t size, size_t n, void *userdata)
{
	struct grpc_call *c = userdata;

	if (size * n > 12 && strncasecmp(p, "grpc-status:", 12) == 0) {
		c->last_words = true;
		grpc_wake(c);
	}
	return size * n;
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void grpc_go_on(struct grpc_call *c)
{
	if (c->paused) {
		c->paused = false;
		curl_easy_pause(c->transfer.easy, CURLPAUSE_CONT);
	}
}

/* Passes complete messages to the handler. false: the handler has freed the call. */
static bool grpc_report_messages(struct grpc_call *c)
{
	size_t len;

	while (grpc_frame(c, &len) && c->in.len - c->in.at - FRAME_HEAD >= len) {
		const char *at = c->in.data + c->in.at;
		bool freed = false;

		if (*at) {
			grpc_refuse(c, GRPC_INTERNAL, "the server's message is compressed");
			c->in.at = c->in.len;
			return true;
		}
		c->in.at += FRAME_HEAD + len;
		c->ret_freed = &freed;
		if (c->handler->on_message)
			c->handler->on_message(c->userdata, at + FRAME_HEAD, len);
		if (freed)
			return false;
		c->ret_freed = NULL;
	}
	return true;
}

static void grpc_report_end(struct grpc_call *c)
{
	c->over = true;
	c->end.sent = c->sent;
	c->handler->on_end(c->userdata, &c->end); /* @c may have been freed */
}

static void grpc_on_timer(void *userdata)
{
	struct grpc_call *c = userdata;

	if (c->over || !grpc_report_messages(c))
		return;
	if (c->end.status != GRPC_OK) {
		multi_remove(c->multi, &c->transfer);
		grpc_report_end(c);
		return;
	}
	if (c->last_words && !c->ended) {
		c->out.at = c->out.len;
		grpc_call_end(c);
	}
	if (c->room && !c->ended && c->out.at == c->out.len) {
		c->room = false;
		if (c->handler->on_room)
			c->handler->on_room(c->userdata); /* @c may have been freed */
	}
}

/* Fills in the result once the transfer has ended. */
static void grpc_judge(struct grpc_call *c)
{
	const char *status = grpc_header(c, "grpc-status");

	if (!*status) {
		if (grpc_is_grpc(c))
			grpc_refuse(c, GRPC_UNKNOWN, "the server ended the call without a status");
		return;
	}
	c->end.status = (enum grpc_status)strtoul(status, NULL, 10);
	grpc_decode_text(grpc_header(c, "grpc-message"), c->end.text, sizeof(c->end.text));
	c->end.retry_after_ns = grpc_retry_after(grpc_header(c, "grpc-status-details-bin"));
	if (c->end.status == GRPC_OK && c->in.at != c->in.len)
		grpc_refuse(c, GRPC_INTERNAL, "the server's answer ends inside a message");
}

static void grpc_done(struct multi_transfer *t, CURLcode code)
{
	struct grpc_call *c = (struct grpc_call *)t;

	if (!grpc_report_messages(c))
		return;
	if (c->end.status != GRPC_OK)
		; /* we ended the call, and the reason is set */
	else if (*grpc_header(c, "grpc-status") || code == CURLE_OK)
		grpc_judge(c);
	else
		grpc_refuse(c,
			    code == CURLE_OPERATION_TIMEDOUT ? GRPC_DEADLINE_EXCEEDED
							     : GRPC_UNAVAILABLE,
			    "%s", c->error[0] ? c->error : curl_easy_strerror(code));
	grpc_report_end(c);
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool grpc_add_header(struct grpc_call *c, const char *line)
{
	struct curl_slist *list = curl_slist_append(c->headers, line);

	if (list)
		c->headers = list;
	return list;
}

static bool grpc_add_headers(struct grpc_call *c, const struct grpc_server *s)
{
	unsigned long long ms = s->deadline_ns / NS_PER_MS;
	char line[64];
	bool ok;

	snprintf(line, sizeof(line), "grpc-timeout: %llum",
		 ms < GRPC_TIMEOUT_MS ? ms : GRPC_TIMEOUT_MS);
	ok = grpc_add_header(c, "Content-Type: application/grpc") &&
	     grpc_add_header(c, "TE: trailers") && grpc_add_header(c, "Expect:") &&
	     grpc_add_header(c, line);
	for (unsigned i = 0; i < GRPC_HEADERS_MAX && s->headers[i]; i++)
		ok = ok && grpc_add_header(c, s->headers[i]);
	return ok;
}

static void grpc_set_pem(CURL *easy, CURLoption option, char *pem)
{
	struct curl_blob blob = { pem, pem ? strlen(pem) : 0, CURL_BLOB_NOCOPY };

	if (pem)
		curl_easy_setopt(easy, option, &blob);
}

static void grpc_set_server(CURL *easy, const struct grpc_server *s)
{
	bool tls = strncasecmp(s->url, "https:", 6) == 0;

	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
			 tls ? (long)CURL_HTTP_VERSION_2TLS
			     : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	if (!tls) {
		/* a second request on such a connection fails before curl 8.0, curl issue 10634 */
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	}
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (!s->ca && trust_file())
		curl_easy_setopt(easy, CURLOPT_CAINFO, trust_file());
	grpc_set_pem(easy, CURLOPT_CAINFO_BLOB, s->ca);
	grpc_set_pem(easy, CURLOPT_SSLCERT_BLOB, s->cert);
	grpc_set_pem(easy, CURLOPT_SSLKEY_BLOB, s->key);
	if (s->proxy)
		curl_easy_setopt(easy, CURLOPT_PROXY, s->proxy);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(s->deadline_ns / NS_PER_MS));
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "kindling/" KINDLING_VERSION);
}

static void grpc_set_callbacks(struct grpc_call *c)
{
	CURL *easy = c->transfer.easy;

	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, grpc_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, c);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, grpc_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, grpc_take_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->error);
}

/* Joins "http://host:1/" and "/p.S/M" to one URL. */
static bool grpc_set_url(CURL *easy, const char *url, const char *method)
{
	size_t len = strlen(url);
	char whole[1024];

	while (len && url[len - 1] == '/')
		len--;
	if ((size_t)snprintf(whole, sizeof(whole), "%.*s%s", (int)len, url, method) >=
	    sizeof(whole))
		return false;
	return curl_easy_setopt(easy, CURLOPT_URL, whole) == CURLE_OK;
}

int grpc_call_new(struct multi *m, const struct grpc_server *s, const char *method,
		  const struct grpc_handler *h, void *userdata, struct grpc_call **ret)
{
	struct grpc_call *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->multi = m;
	c->handler = h;
	c->userdata = userdata;
	c->answer_max = s->answer_max;
	c->transfer.done = grpc_done;
	c->transfer.easy = curl_easy_init();
	if (c->transfer.easy && grpc_add_headers(c, s) &&
	    grpc_set_url(c->transfer.easy, s->url, method) &&
	    loop_timer_add(multi_loop(m), UINT64_MAX, 0, grpc_on_timer, c, &c->timer) == 0) {
		grpc_set_server(c->transfer.easy, s);
		grpc_set_callbacks(c);
		if (multi_add(m, &c->transfer) == 0) {
			*ret = c;
			return 0;
		}
	}
	grpc_call_free(c);
	return -ENOMEM;
}

int grpc_call_send(struct grpc_call *c, const void *message, size_t len)
{
	char head[FRAME_HEAD] = { 0 };
	uint32_t n = htonl((uint32_t)len);
	int r;

	if (c->over || c->ended)
		return -EPIPE;
	if (len > UINT32_MAX)
		return -ENOMEM;
	memcpy(head + 1, &n, sizeof(n));
	r = bytes_append(&c->out, head, sizeof(head));
	if (r == 0) {
		r = bytes_append(&c->out, message, len);
		if (r < 0)
			c->out.len -= sizeof(head);
	}
	if (r == 0)
		grpc_go_on(c);
	return r;
}

void grpc_call_end(struct grpc_call *c)
{
	c->ended = true;
	if (!c->over)
		grpc_go_on(c);
}

struct grpc_call *grpc_call_free(struct grpc_call *c)
{
	if (!c)
		return NULL;
	if (c->ret_freed)
		*c->ret_freed = true;
	if (c->transfer.easy) {
		multi_remove(c->multi, &c->transfer);
		curl_easy_cleanup(c->transfer.easy);
	}
	curl_slist_free_all(c->headers);
	loop_timer_free(c->timer);
	free(c->out.data);
	free(c->in.data);
	free(c);
	return NULL;
}

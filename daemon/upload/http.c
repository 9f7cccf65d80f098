/* See http.h. */
#include "daemon/upload/http.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/trust.h"
#include "daemon/ground/utf8.h"
#include "daemon/upload/grpc.h"

#define CONNECT_MS 10000L
/* A body of at least RESET_BYTES that a gRPC server resets RESETS_MAX times is taken for too
 * large. Smaller ones are sent completely before the server can answer. */
#define RESETS_MAX  3
#define RESET_BYTES (32u << 10)

struct http_transfer {
	struct multi_transfer multi; /* the first pause between retries */
	struct sink_file *file;
	struct curl_slist *headers;
	int fd;
	uint64_t offset, at,
		len; /* the position of the body in the file, and what was read of it */
	http_judge_fn *judge;
	http_answer_fn *on_answer;
	struct http_answer answer;
	char error[CURL_ERROR_SIZE];
};

/* ---- the body -------------------------------------------------------------------------------- */

static size_t http_read(char *to, size_t size, size_t n, void *userdata)
{
	struct http_transfer *t = userdata;
	size_t want = size * n;
	ssize_t got;

	if (want > t->len - t->at)
		want = t->len - t->at;
	got = pread(t->fd, to, want, (off_t)(t->offset + t->at));
	if (got < 0 || (size_t)got < want)
		return CURL_READFUNC_ABORT;
	t->at += (uint64_t)got;
	return (size_t)got;
}

static int http_seek(void *userdata, curl_off_t offset, int origin)
{
	struct http_transfer *t = userdata;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->len)
		return CURL_SEEKFUNC_CANTSEEK;
	t->at = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static size_t http_write(char *p, size_t size, size_t n, void *userdata)
{
	struct http_transfer *t = userdata;
	struct http_answer *a = &t->answer;
	size_t len = size * n, room = sizeof(a->body) - 1 - a->len;

	memcpy(a->body + a->len, p, len < room ? len : room);
	a->len += len < room ? len : room;
	return len; /* discards the rest; the timeout ends it */
}

uint64_t http_retry_after(const char *text, uint64_t now_real_ns)
{
	char *end;
	unsigned long long n;
	time_t at;

	if (isdigit((unsigned char)*text)) {
		n = strtoull(text, &end, 10);
		return *end ? 0 : n > 86400 ? 86400 * NS_PER_S : n * NS_PER_S;
	}
	at = curl_getdate(text, NULL);
	return at > 0 && (uint64_t)at > now_real_ns / NS_PER_S
		       ? (uint64_t)at * NS_PER_S - now_real_ns
		       : 0;
}

/* The header @name of the answer, or of its trailer; "" = it has none. */
static const char *http_header(CURL *easy, const char *name)
{
	struct curl_header *h;

	if (curl_easy_header(easy, name, 0, CURLH_HEADER | CURLH_TRAILER, -1, &h) != CURLHE_OK)
		return "";
	/* of a header without a value curl 7.88 keeps an end of line */
	return h->value + strspn(h->value, "\r\n");
}

static void http_take_headers(struct http_transfer *t)
{
	struct http_answer *a = &t->answer;
	const char *status = http_header(t->multi.easy, "grpc-status");

	a->retry_after_ns =
		http_retry_after(http_header(t->multi.easy, "retry-after"), clock_real_ns());
	if (!a->retry_after_ns)
		a->retry_after_ns =
			grpc_retry_after(http_header(t->multi.easy, "grpc-status-details-bin"));
	a->grpc_status = isdigit((unsigned char)*status) ? (int)strtoul(status, NULL, 10) : -1;
	grpc_decode_text(http_header(t->multi.easy, "grpc-message"), a->grpc_message,
			 sizeof(a->grpc_message));
}

/* The server's message as one line. */
static void http_copy_text(const char *text, char *to, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++) {
		bool space = (unsigned char)*text <= ' ' || *text == 0x7f;

		if (!space || (n && to[n - 1] != ' '))
			to[n++] = space ? ' ' : *text;
	}
	to[n] = '\0';
	(void)utf8_mend(to);
}

enum sink_verdict http_judge(const struct http_answer *a, char *why)
{
	(void)why;
	if (a->status >= 200 && a->status <= 299)
		return SINK_CONFIRMED;
	if (a->status == 413)
		return SINK_TOO_LARGE;
	if (a->status == 408 || a->status == 429 || a->status >= 500 || a->status == 401 ||
	    a->status == 403 || a->status == 404 || a->status == 407)
		return SINK_RETRY;
	return SINK_REFUSED;
}

/* There is no answer. Can the request have arrived? */
static enum sink_verdict http_judge_failure(const struct http_transfer *t, CURLcode code)
{
	uint64_t max = t->file->sink->body_max;

	if (code == CURLE_ABORTED_BY_CALLBACK) /* the file is shorter than its header says */
		return SINK_DAMAGED;
	/* a server refuses a message that is too large before it has read all of it; libcurl
	 * before 8.0 then reports only the reset, not the answer */
	if (code == CURLE_HTTP2_STREAM && t->len >= RESET_BYTES &&
	    (++t->file->resets >= RESETS_MAX || (max && t->len > max))) {
		t->file->only_reset = true;
		return SINK_TOO_LARGE;
	}
	return t->at ? SINK_UNKNOWN : SINK_RETRY;
}

static void http_transfer_free(struct http_transfer *t)
{
	if (t->multi.easy)
		multi_remove(sink_multi(t->file->sink), &t->multi);
	curl_easy_cleanup(t->multi.easy);
	curl_slist_free_all(t->headers);
	fd_close(t->fd);
	free(t);
}

static void http_over(struct multi_transfer *multi, CURLcode code)
{
	struct http_transfer *t = (struct http_transfer *)multi;
	char why[SINK_TEXT_MAX] = "", words[300];
	uint64_t retry_after_ns = 0;
	struct sink_file *f = t->file;
	enum sink_verdict v;

	if (code == CURLE_OK) {
		curl_easy_getinfo(t->multi.easy, CURLINFO_RESPONSE_CODE, &t->answer.status);
		t->answer.body[t->answer.len] = '\0';
		f->only_reset = false;
		http_take_headers(t);
		http_copy_text(t->answer.body, words, sizeof(words));
		snprintf(why, sizeof(why), "HTTP %ld%s%s", t->answer.status, *words ? ": " : "",
			 words);
		if (t->on_answer)
			t->on_answer(f->sink, &t->answer);
		v = (t->judge ? t->judge : http_judge)(&t->answer, why);
		retry_after_ns = t->answer.retry_after_ns;
	} else {
		snprintf(why, sizeof(why), "%s", t->error[0] ? t->error : curl_easy_strerror(code));
		v = http_judge_failure(t, code);
	}
	http_transfer_free(t);
	sink_done(f, v, retry_after_ns, why);
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool http_add_header(struct http_transfer *t, const char *line)
{
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (list)
		t->headers = list;
	return list;
}

static bool http_add_headers(struct http_transfer *t, const struct sink *s,
			     const struct http_request *r)
{
	char line[5000];
	bool ok = http_add_header(t, "Expect:");

	for (unsigned i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++)
		ok = ok && http_add_header(t, r->headers[i]);
	for (unsigned i = 0; i < s->config->n_headers; i++) {
		snprintf(line, sizeof(line), "%s: %s", s->config->headers[i].name,
			 s->config->headers[i].value);
		ok = ok && http_add_header(t, line);
	}
	if (!r->no_credentials && s->secrets.bearer[0]) {
		snprintf(line, sizeof(line), "Authorization: Bearer %s", s->secrets.bearer);
		ok = ok && http_add_header(t, line);
		explicit_bzero(line, sizeof(line));
	}
	return ok;
}

static void http_set_blob(CURL *easy, CURLoption option, char *pem)
{
	struct curl_blob blob = { pem, pem ? strlen(pem) : 0, CURL_BLOB_NOCOPY };

	if (pem)
		curl_easy_setopt(easy, option, &blob);
}

static void http_set_security(CURL *easy, const struct sink *s, const struct http_request *r)
{
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (!s->secrets.ca && trust_file())
		curl_easy_setopt(easy, CURLOPT_CAINFO, trust_file());
	http_set_blob(easy, CURLOPT_CAINFO_BLOB, s->secrets.ca);
	http_set_blob(easy, CURLOPT_SSLCERT_BLOB, s->secrets.cert);
	http_set_blob(easy, CURLOPT_SSLKEY_BLOB, s->secrets.key);
	if (s->config->proxy[0])
		curl_easy_setopt(easy, CURLOPT_PROXY, s->config->proxy);
	if (!r->no_credentials && s->config->user[0]) {
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(easy, CURLOPT_USERNAME, s->config->user);
		curl_easy_setopt(easy, CURLOPT_PASSWORD, s->secrets.password);
	}
}

static void http_set_request(struct http_transfer *t, const struct sink *s,
			     const struct http_request *r)
{
	bool put = strcmp(r->method, "PUT") == 0;
	CURL *easy = t->multi.easy;

	curl_easy_setopt(easy, CURLOPT_URL, r->url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "kindling/" KINDLING_VERSION);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(s->config->timeout_ns / NS_PER_MS));
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(easy, put ? CURLOPT_UPLOAD : CURLOPT_POST, 1L);
	curl_easy_setopt(easy, put ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE,
			 (curl_off_t)t->len);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, http_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, t);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, http_seek);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, t);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	if (r->h2c) {
		curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
				 (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
		/* a second request on such a connection fails before curl 8.0, curl issue 10634 */
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	}
}

int http_send(struct sink *s, struct sink_file *f, int fd, uint64_t len,
	      const struct http_request *r)
{
	struct http_transfer *t = calloc(1, sizeof(*t));
	off_t offset = lseek(fd, 0, SEEK_CUR);

	if (!t || offset < 0) {
		free(t);
		fd_close(fd);
		return -ENOMEM;
	}
	*t = (struct http_transfer){ .multi.done = http_over,
				     .file = f,
				     .fd = fd,
				     .offset = (uint64_t)offset,
				     .len = len,
				     .judge = r->judge,
				     .on_answer = r->on_answer };
	t->multi.easy = curl_easy_init();
	if (t->multi.easy && http_add_headers(t, s, r)) {
		http_set_request(t, s, r);
		http_set_security(t->multi.easy, s, r);
		if (multi_add(sink_multi(s), &t->multi) == 0) {
			f->request = t;
			return 0;
		}
	}
	http_transfer_free(t);
	return -ENOMEM;
}

void http_cancel(struct sink *s, struct sink_file *f)
{
	(void)s;
	if (f->request)
		http_transfer_free(f->request);
	f->request = NULL;
}

int http_check(const struct sink *s, char *why, size_t why_size)
{
	CURLU *u = curl_url();
	CURLUcode code =
		u ? curl_url_set(u, CURLUPART_URL, s->config->url, 0) : CURLUE_OUT_OF_MEMORY;

	curl_url_cleanup(u);
	if (code == CURLUE_OK)
		return 0;
	snprintf(why, why_size, "url: %s: %s", s->config->url, curl_url_strerror(code));
	return -EINVAL;
}

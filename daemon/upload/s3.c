/*
 * Objects of S3 and what speaks like it, by PUT: URL/BUCKET/PREFIX/NODE/KEY. One key is one object,
 * however often it is sent.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "daemon/core/clock.h"
#include "daemon/core/config.h"
#include "daemon/upload/http.h"
#include "daemon/upload/sigv4.h"
#include "daemon/upload/sink_types.h"
#include "daemon/upload/upload.h"

#define S3_PATH_MAX 2048

struct s3_sink {
	char base[520]; /* url without what stands behind the host */
	char host[300]; /* as the Host header has it */
};

/* "<Code>SignatureDoesNotMatch</Code><Message>..." in two words instead of a page of XML. */
static void s3_words(const char *xml, const char *tag, char *buf, size_t size)
{
	const char *at = strstr(xml, tag);
	size_t len;

	buf[0] = '\0';
	if (!at)
		return;
	at += strlen(tag);
	len = strcspn(at, "<");
	snprintf(buf, size, "%.*s", (int)(len < size ? len : size - 1), at);
}

static enum sink_verdict s3_judge(const struct http_answer *a, char *why)
{
	char code[80], message[240];

	s3_words(a->body, "<Code>", code, sizeof(code));
	s3_words(a->body, "<Message>", message, sizeof(message));
	for (char *p = message; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	if (code[0])
		snprintf(why, SINK_TEXT_MAX, "HTTP %ld: %s: %s", a->status, code, message);
	return http_judge(a, why);
}

static int s3_hash(int fd, uint64_t len, char ret[2 * SHA256_SIZE + 1])
{
	uint8_t hash[SHA256_SIZE];
	int r = sha256_of_file(fd, len, hash);

	if (r == 0)
		sha256_hex(hash, ret);
	return r;
}

static bool s3_path(const struct sink *s, const char *key, char *buf, size_t size)
{
	const struct config_sink *c = s->config;
	char path[S3_PATH_MAX];
	size_t len = strlen(c->prefix);

	while (len && c->prefix[len - 1] == '/')
		len--;
	snprintf(path, sizeof(path), "/%s/%.*s%s%s/%s", c->bucket, (int)len, c->prefix,
		 len ? "/" : "", s->upload->config->node, key);
	return sigv4_escape(path, buf, size);
}

static int s3_send(struct sink *s, struct sink_file *f)
{
	const struct s3_sink *d = s->data;
	char path[S3_PATH_MAX], url[S3_PATH_MAX + 600], hash[2 * SHA256_SIZE + 1];
	char date[32], authorization[800], lines[5][2200];
	struct http_request r = {
		.method = "PUT", .url = url, .no_credentials = true, .judge = s3_judge
	};
	time_t now = (time_t)(clock_real_ns() / NS_PER_S);
	struct spool_header h;
	struct tm tm;
	int fd = spool_open(s->dfd, f->seq, true, &h), e = fd < 0 ? fd : 0;

	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	if (e == 0)
		e = s3_hash(fd, h.body_len, hash);
	if (e == 0 && !s3_path(s, h.key, path, sizeof(path)))
		e = -ENAMETOOLONG;
	if (e == 0)
		e = sigv4_sign(&(struct sigv4){ .method = "PUT",
						.host = d->host,
						.path = path,
						.region = s->config->region[0] ? s->config->region
									       : "us-east-1",
						.service = "s3",
						.access_key = s->secrets.access_key,
						.secret_key = s->secrets.secret_key,
						.session_token = s->secrets.session_token,
						.date = date,
						.body_hash = hash,
						.signs_body_header = true },
			       authorization, sizeof(authorization));
	if (e < 0) {
		fd_close(fd);
		return e;
	}
	snprintf(url, sizeof(url), "%s%s", d->base, path);
	snprintf(lines[0], sizeof(lines[0]), "Authorization: %s", authorization);
	snprintf(lines[1], sizeof(lines[1]), "x-amz-date: %s", date);
	snprintf(lines[2], sizeof(lines[2]), "x-amz-content-sha256: %s", hash);
	snprintf(lines[3], sizeof(lines[3]), "Content-Type: %s", h.content_type);
	snprintf(lines[4], sizeof(lines[4]), "x-amz-security-token: %s", s->secrets.session_token);
	for (int i = 0; i < (s->secrets.session_token[0] ? 5 : 4); i++)
		r.headers[i] = lines[i];
	return http_send(s, f, fd, h.body_len, &r);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* "http://127.0.0.1:7070" and what the Host header is for it. */
static int s3_split(struct s3_sink *d, const char *url)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
	CURLU *u = curl_url();
	int r = -EINVAL;

	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK && strcmp(path, "/") == 0) {
		(void)curl_url_get(u, CURLUPART_PORT, &port, 0);
		snprintf(d->host, sizeof(d->host), "%s%s%s", host, port ? ":" : "",
			 port ? port : "");
		snprintf(d->base, sizeof(d->base), "%s://%s", scheme, d->host);
		r = 0;
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	curl_url_cleanup(u);
	return r;
}

static int s3_open(struct sink *s, char *why, size_t why_size)
{
	int r = http_check(s, why, why_size);

	if (r == 0)
		r = sink_choose_format(s, REPORT_PPROF, why, why_size);
	if (r < 0)
		return r;
	s->data = calloc(1, sizeof(struct s3_sink));
	if (!s->data)
		return -ENOMEM;
	r = s3_split(s->data, s->config->url);
	if (r < 0)
		snprintf(why, why_size,
			 "url: %s: is scheme and host alone, as in http://127.0.0.1:7070",
			 s->config->url);
	return r;
}

static void s3_close(struct sink *s)
{
	free(s->data);
}

const struct sink_type sink_s3 = {
	.open = s3_open,
	.encode = sink_encode_report,
	.send = s3_send,
	.cancel = http_cancel,
	.close = s3_close,
	.in_flight_max = 4,
};

/*
 * Objects of S3 and compatible servers, by PUT, at URL/BUCKET/PREFIX/NODE/KEY. A key stands for one
 * object, however often it is sent. The format jfr.zip is that of async-profiler's agent in Rust,
 * for the tools that read it: URL/BUCKET/PREFIX/profile_GROUP_MACHINE_PID_TIME.zip with
 * async_profiler_dump_0.jfr and metadata.json in it.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "daemon/core/config.h"
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/report/event_names.h"
#include "daemon/report/json_out.h"
#include "daemon/upload/aws_keys.h"
#include "daemon/upload/cloud.h"
#include "daemon/upload/http.h"
#include "daemon/upload/sigv4.h"
#include "daemon/upload/sink_types.h"
#include "daemon/upload/upload.h"
#include "daemon/upload/zip.h"

#define S3_PATH_MAX 2048
#define S3_ZIP	    "jfr.zip"

struct s3_sink {
	char base[520]; /* the url up to the host */
	char host[300]; /* the value of the Host header */
	bool zip; /* the format is jfr.zip */
};

/* ---- archives -------------------------------------------------------------------------------- */

/* When the process started, ns since 1970; its start_time is in ticks since boot. */
static uint64_t s3_process_begin_ns(const struct profile_process *q)
{
	uint64_t booted = clock_real_ns() - clock_ns(CLOCK_BOOTTIME);

	return booted + q->start_time * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* "ec2_i-0ab_", or without a cloud "unknown_NODE_", because all machines share the bucket. "_"
 * separates the words and is replaced within them. */
static void s3_machine(const struct sink *s, const struct sink_interval *in, char *buf, size_t size)
{
	char instance[LABEL_VALUE_SIZE], name[96];

	(void)labels_get(cloud_labels(s->upload->cloud), "instance", instance);
	sink_key_word(*instance ? instance : in->node, name, sizeof(name));
	for (char *p = name; *p; p++)
		*p = *p == '_' ? '-' : *p;
	snprintf(buf, size, "%s_%s_", *instance ? "ec2" : "unknown", name);
}

/* The time in the key is that of the interval, or of the process's start if it started later: so
 * two processes that had the same pid have different keys. */
static void s3_zip_key(const struct sink *s, const struct sink_interval *in, uint64_t process_ns,
		       char *buf, size_t size)
{
	uint64_t begin = process_ns > in->begin_real_ns && process_ns < in->end_real_ns
				 ? process_ns
				 : in->begin_real_ns;
	time_t seconds = (time_t)(begin / NS_PER_S);
	char group[96], machine[128], time[40];
	struct tm tm;

	sink_key_service(in, group, sizeof(group));
	for (char *p = group; *p; p++)
		*p = *p == '_' ? '-' : *p;
	s3_machine(s, in, machine, sizeof(machine));
	strftime(time, sizeof(time), "%Y-%m-%dT%H-%M-%SZ", gmtime_r(&seconds, &tm));
	snprintf(buf, size, "profile_%s_%s_%u_%s.zip", group, machine, in->process->pid, time);
}

/* Milliseconds since the process started. */
static uint64_t s3_since(uint64_t at_ns, uint64_t process_ns)
{
	return at_ns > process_ns ? (at_ns - process_ns) / NS_PER_MS : 0;
}

/* Writes metadata.json. */
static int s3_metadata(const struct sink *s, const struct sink_interval *in, uint64_t process_ns,
		       char **ret, size_t *ret_len)
{
	struct text_out json = { 0 };

	json_begin_object(&json, NULL);
	json_add_u64(&json, "start", s3_since(in->begin_real_ns, process_ns));
	json_add_u64(&json, "end", s3_since(in->end_real_ns, process_ns));
	json_add_u64(&json, "reporting_interval", s->config->interval_ns / NS_PER_MS);
	json_end_object(&json);
	return text_take(&json, ret, ret_len);
}

/* One object for each interval: a recording of all events that JFR can hold. */
static int s3_encode_zip(struct sink *s, const struct sink_interval *in)
{
	const struct report_options options = { .events = profile_events(in->profile) &
							  ~(1u << WIRE_EVENT_WALL) };
	uint64_t process_ns = s3_process_begin_ns(in->process);
	CLEANUP(freep) char *jfr = NULL;
	CLEANUP(freep) char *body = NULL;
	CLEANUP(freep) char *metadata = NULL;
	size_t jfr_len, metadata_len, len;
	char key[480];
	int r;

	if (!options.events)
		return 0;
	r = report_write(in->profile, REPORT_JFR, &options, &jfr, &jfr_len);
	if (r < 0)
		return r;
	r = s3_metadata(s, in, process_ns, &metadata, &metadata_len);
	if (r < 0)
		return r;
	r = zip_write((const struct zip_file[]){ { "async_profiler_dump_0.jfr", jfr, jfr_len },
						 { "metadata.json", metadata, metadata_len } },
		      2, in->end_real_ns, &body, &len);
	if (r < 0)
		return r;
	s3_zip_key(s, in, process_ns, key, sizeof(key));
	return sink_put(s, in, key, "application/zip", body, len,
			report_samples(in->profile, &options));
}

static int s3_encode(struct sink *s, const struct sink_interval *in)
{
	const struct s3_sink *d = s->data;

	return d->zip ? s3_encode_zip(s, in) : sink_encode_report(s, in);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The text of one element of a server's error, so that one line can replace a page of XML. */
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
	const struct s3_sink *d = s->data;
	char path[S3_PATH_MAX];
	size_t len = strlen(c->prefix);

	while (len && c->prefix[len - 1] == '/')
		len--;
	snprintf(path, sizeof(path), "/%s/%.*s%s%s%s%s", c->bucket, (int)len, c->prefix,
		 len ? "/" : "", d->zip ? "" : s->upload->config->node, d->zip ? "" : "/", key);
	return sigv4_escape(path, buf, size);
}

/* The keys of the settings, or those that aws_keys found. */
static int s3_keys(struct sink *s, const char *ret[3])
{
	const struct aws_keys *k = NULL;
	const char *why = "";

	if (s->secrets.access_key[0]) {
		ret[0] = s->secrets.access_key;
		ret[1] = s->secrets.secret_key;
		ret[2] = s->secrets.session_token;
		return 0;
	}
	if (s->upload->aws)
		k = aws_asker_keys(s->upload->aws, &why);
	if (!k) {
		snprintf(s->error, sizeof(s->error), "there are no keys: %s", why);
		return -EAGAIN;
	}
	ret[0] = k->access_key;
	ret[1] = k->secret_key;
	ret[2] = k->session_token;
	return 0;
}

/* Makes the signature of one request. */
static int s3_sign(struct sink *s, const char *path, const char *date, const char *hash,
		   const char *const keys[3], char *buf, size_t size)
{
	const struct s3_sink *d = s->data;

	return sigv4_sign(
		&(struct sigv4){ .method = "PUT",
				 .host = d->host,
				 .path = path,
				 .region = s->config->region[0] ? s->config->region : "us-east-1",
				 .service = "s3",
				 .access_key = keys[0],
				 .secret_key = keys[1],
				 .session_token = keys[2],
				 .date = date,
				 .body_hash = hash,
				 .signs_body_header = true },
		buf, size);
}

/* http_answer_fn: after a refusal new keys are requested, unless the settings have them. */
static void s3_on_answer(struct sink *s, struct http_answer *a)
{
	if (a->status == 403 && !s->secrets.access_key[0] && s->upload->aws)
		aws_asker_doubt(s->upload->aws);
}

static int s3_send(struct sink *s, struct sink_file *f)
{
	const struct s3_sink *d = s->data;
	char path[S3_PATH_MAX], url[S3_PATH_MAX + 600], hash[2 * SHA256_SIZE + 1];
	char date[32], authorization[800], lines[5][AWS_TOKEN_SIZE + 40];
	struct http_request r = { .method = "PUT",
				  .url = url,
				  .no_credentials = true,
				  .judge = s3_judge,
				  .on_answer = s3_on_answer };
	time_t now = (time_t)(clock_real_ns() / NS_PER_S);
	const char *keys[3];
	struct spool_header h;
	struct tm tm;
	int fd, e = s3_keys(s, keys);

	if (e < 0)
		return e;
	fd = spool_open(s->dfd, f->seq, true, &h);
	e = fd < 0 ? fd : 0;
	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	if (e == 0)
		e = s3_hash(fd, h.body_len, hash);
	if (e == 0 && !s3_path(s, h.key, path, sizeof(path)))
		e = -ENAMETOOLONG;
	if (e == 0)
		e = s3_sign(s, path, date, hash, keys, authorization, sizeof(authorization));
	if (e < 0) {
		fd_close(fd);
		return e;
	}
	snprintf(url, sizeof(url), "%s%s", d->base, path);
	snprintf(lines[0], sizeof(lines[0]), "Authorization: %s", authorization);
	snprintf(lines[1], sizeof(lines[1]), "x-amz-date: %s", date);
	snprintf(lines[2], sizeof(lines[2]), "x-amz-content-sha256: %s", hash);
	snprintf(lines[3], sizeof(lines[3]), "Content-Type: %s", h.content_type);
	snprintf(lines[4], sizeof(lines[4]), "x-amz-security-token: %s", keys[2]);
	for (int i = 0; i < (keys[2][0] ? 5 : 4); i++)
		r.headers[i] = lines[i];
	e = http_send(s, f, fd, h.body_len, &r);
	explicit_bzero(lines[4], sizeof(lines[4]));
	return e;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Splits the url: "http://127.0.0.1:7070" goes to base, and host gets the Host header's value. */
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
	bool zip = strcmp(s->config->format, S3_ZIP) == 0;
	struct s3_sink *d;
	int r = http_check(s, why, why_size);

	if (r == 0 && !zip)
		r = sink_choose_format(s, REPORT_PPROF, why, why_size);
	if (r < 0)
		return r;
	s->data = d = calloc(1, sizeof(struct s3_sink));
	if (!s->data)
		return -ENOMEM;
	d->zip = zip;
	r = s3_split(d, s->config->url);
	if (r < 0)
		snprintf(why, why_size,
			 "url: %s: must be only a scheme and a host, as in http://127.0.0.1:7070",
			 s->config->url);
	return r;
}

static void s3_close(struct sink *s)
{
	free(s->data);
}

const struct sink_type sink_s3 = {
	.open = s3_open,
	.encode = s3_encode,
	.send = s3_send,
	.cancel = http_cancel,
	.close = s3_close,
	.in_flight_max = 4,
};

/* See metadata.h. */
#include "daemon/upload/metadata.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/mem.h"

#define EC2_URL	   "http://169.254.169.254"
#define ANSWER_MAX (64u * 1024)
#define CONNECT_MS 500L /* the service is near, or does not exist */

static size_t metadata_on_bytes(char *p, size_t size, size_t n, void *userdata)
{
	struct metadata_answer *a = userdata;
	size_t len = size * n;
	char *text;

	if (len > ANSWER_MAX - a->len)
		return 0; /* too large: ends the transfer */
	text = realloc(a->text, a->len + len + 1);
	if (!text)
		return 0;
	memcpy(text + a->len, p, len);
	a->text = text;
	a->len += len;
	text[a->len] = '\0';
	return len;
}

int metadata_request(const char *url, const char *method, const char *header,
		     struct metadata_answer *ret, char *why, size_t why_size)
{
	struct curl_slist *headers = header ? curl_slist_append(NULL, header) : NULL;
	CURL *easy = curl_easy_init();
	char error[CURL_ERROR_SIZE] = "";
	CURLcode code;

	if (!easy) {
		curl_slist_free_all(headers);
		return -ENOMEM;
	}
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(easy, CURLOPT_NOPROXY,
			 "*"); /* the services belong to this host: no proxy */
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 1000L * METADATA_SECONDS_MAX);
	curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, metadata_on_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, ret);
	if (method)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	code = curl_easy_perform(easy);
	if (code != CURLE_OK)
		snprintf(why, why_size, "%s: %s", url, *error ? error : curl_easy_strerror(code));
	curl_easy_cleanup(easy);
	curl_slist_free_all(headers);
	return code == CURLE_OK ? 0 : -ENODATA;
}

/* Requests a token; @header becomes "X-aws-ec2-metadata-token: ...". */
static int metadata_ec2_token(const char *base, char *header, size_t size, char *why,
			      size_t why_size)
{
	struct metadata_answer token = { 0 };
	char url[512];
	int r;

	snprintf(url, sizeof(url), "%s/latest/api/token", base);
	r = metadata_request(url, "PUT", "X-aws-ec2-metadata-token-ttl-seconds: 60", &token, why,
			     why_size);
	if (r == 0 && (!token.text || strpbrk(token.text, "\r\n") || token.len > 500)) {
		snprintf(why, why_size, "%s: the answer is not a token", url);
		r = -ENODATA;
	}
	if (r == 0)
		snprintf(header, size, "X-aws-ec2-metadata-token: %s", token.text);
	free(token.text);
	return r;
}

int metadata_ec2(const char *base, const char *const paths[2], struct metadata_answer *ret,
		 char *why, size_t why_size)
{
	struct metadata_answer first = { 0 };
	char url[768], header[600];
	int r = metadata_ec2_token(base, header, sizeof(header), why, why_size);

	snprintf(url, sizeof(url), "%s%s", base, paths[0]);
	if (r == 0)
		r = metadata_request(url, NULL, header, paths[1] ? &first : ret, why, why_size);
	if (r == 0 && paths[1]) {
		snprintf(url, sizeof(url), "%s%s%.*s", base, paths[1],
			 first.text ? (int)strcspn(first.text, "\r\n") : 0,
			 first.text ? first.text : "");
		r = metadata_request(url, NULL, header, ret, why, why_size);
	}
	free(first.text);
	return r;
}

void metadata_ec2_base(char *buf, size_t size)
{
	const char *base = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");

	snprintf(buf, size, "%s", base && *base ? base : EC2_URL);
	if (buf[strlen(buf) - 1] == '/')
		buf[strlen(buf) - 1] = '\0';
}

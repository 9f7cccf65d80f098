/* See sigv4.h. */
#include "daemon/upload/sigv4.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool sigv4_escape(const char *path, char *buf, size_t size)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	size_t n = 0;

	for (; *path; path++) {
		if (n + 4 > size)
			return false;
		if (strchr(plain, *path))
			buf[n++] = *path;
		else
			n += (size_t)snprintf(buf + n, size - n, "%%%02X", (unsigned char)*path);
	}
	buf[n] = '\0';
	return true;
}

static int sigv4_hash(const char *text, char ret[2 * SHA256_SIZE + 1])
{
	uint8_t hash[SHA256_SIZE];
	int r = sha256_of(text, strlen(text), hash);

	if (r == 0)
		sha256_hex(hash, ret);
	return r;
}

/* The signing key of one day, region and service: four HMACs, each the key of the next. */
static int sigv4_key(const struct sigv4 *s, uint8_t ret[SHA256_SIZE])
{
	char first[4 + 128 + 1], day[9];
	const char *const words[] = { s->region, s->service, "aws4_request" };
	int r;

	snprintf(first, sizeof(first), "AWS4%s", s->secret_key);
	snprintf(day, sizeof(day), "%s", s->date);
	r = sha256_hmac(first, strlen(first), day, strlen(day), ret);
	for (size_t i = 0; i < 3 && r == 0; i++)
		r = sha256_hmac(ret, SHA256_SIZE, words[i], strlen(words[i]), ret);
	explicit_bzero(first, sizeof(first));
	return r;
}

int sigv4_sign(const struct sigv4 *r, char *buf, size_t size)
{
	char request[9000], scope[160], to_sign[512], hash[2 * SHA256_SIZE + 1], names[160];
	uint8_t key[SHA256_SIZE], signature[SHA256_SIZE];
	bool token = r->session_token[0];
	int n, e;

	/* the headers' names must be in alphabetical order */
	snprintf(names, sizeof(names), "host%s;x-amz-date%s",
		 r->signs_body_header ? ";x-amz-content-sha256" : "",
		 token ? ";x-amz-security-token" : "");
	n = snprintf(request, sizeof(request),
		     "%s\n%s\n\nhost:%s\n%s%s%sx-amz-date:%s\n%s%s%s\n%s\n%s", r->method, r->path,
		     r->host, r->signs_body_header ? "x-amz-content-sha256:" : "",
		     r->signs_body_header ? r->body_hash : "", r->signs_body_header ? "\n" : "",
		     r->date, token ? "x-amz-security-token:" : "", r->session_token,
		     token ? "\n" : "", names, r->body_hash);
	if (n < 0 || (size_t)n >= sizeof(request))
		return -E2BIG;
	e = sigv4_hash(request, hash);
	if (e < 0)
		return e;
	snprintf(scope, sizeof(scope), "%.8s/%s/%s/aws4_request", r->date, r->region, r->service);
	snprintf(to_sign, sizeof(to_sign), "AWS4-HMAC-SHA256\n%s\n%s\n%s", r->date, scope, hash);
	e = sigv4_key(r, key);
	if (e == 0)
		e = sha256_hmac(key, sizeof(key), to_sign, strlen(to_sign), signature);
	if (e < 0)
		return e;
	sha256_hex(signature, hash);
	n = snprintf(buf, size, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		     r->access_key, scope, names, hash);
	return n < 0 || (size_t)n >= size ? -E2BIG : 0;
}

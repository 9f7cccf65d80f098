/*
 * AWS Signature Version 4 for one request without a query. Computed here because releases of
 * libcurl differ in what they sign. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "daemon/upload/sha256.h"

struct sigv4 {
	const char *method, *host; /* host: the value of the Host header, port included */
	const char *path; /* as it is sent, see sigv4_escape() */
	const char *region, *service;
	const char *access_key, *secret_key;
	const char *session_token; /* "" = none */
	const char *date; /* "20150830T123600Z" */
	const char *body_hash; /* hexadecimal, or UNSIGNED-PAYLOAD */
	bool signs_body_header; /* x-amz-content-sha256 is sent, as S3 requires */
};
/* Writes the value of the Authorization header. 0, -E2BIG or -ENOMEM. */
int sigv4_sign(const struct sigv4 *r, char *buf, size_t size);
/* Writes everything except letters, digits, -._~ and / as %XX. false: it does not fit. */
bool sigv4_escape(const char *path, char *buf, size_t size);

/*
 * Asks the services that a cloud offers each host at link-local addresses: for the host's identity
 * (cloud.h) and for keys (aws_keys.h). Another host of the network might answer instead, so answers
 * are bounded in size and time, and no proxy is used. The functions block; a worker calls them.
 */
#pragma once

#include <stddef.h>

#define METADATA_SECONDS_MAX 1 /* for one request */

struct metadata_answer {
	char *text; /* NUL-terminated; the caller frees it, also after an error; NULL = none */
	size_t len;
};

/* One request. @method: NULL = GET; @header: "Name: value", or NULL. 0; -ENODATA with a
 * sentence: no answer, not 2xx, or too large; -ENOMEM. */
int metadata_request(const char *url, const char *method, const char *header,
		     struct metadata_answer *ret, char *why, size_t why_size);

/*
 * Reads a document of EC2's service, only by its version 2: with a token.
 *
 * @base: "http://169.254.169.254", see metadata_ec2_base()
 * @paths: requested in turn with the same token; the first line of the first answer is appended to
 * the second path, which may be NULL
 */
int metadata_ec2(const char *base, const char *const paths[2], struct metadata_answer *ret,
		 char *why, size_t why_size);
/* The service's address, found as SDKs do: AWS_EC2_METADATA_SERVICE_ENDPOINT, or the well-known
 * one. */
void metadata_ec2_base(char *buf, size_t size);

/*
 * Services of the host's cloud, over HTTP at link-local addresses: its identity (cloud.h), and its
 * keys (aws_keys.h). Another host on this network may answer instead, so an answer is bounded in
 * size and time, and no proxy is used. Blocks, so it is called in a worker.
 */
#pragma once

#include <stddef.h>

#define METADATA_SECONDS_MAX 1 /* a request may take */

struct metadata_answer {
	char *text; /* NUL-terminated; the caller frees it, also after an error; NULL = nothing */
	size_t len;
};

/* @method: NULL = GET; @header: "Name: value", may be NULL. 0, or -ENODATA and a sentence: no
 * answer, not 2xx, or too large; -ENOMEM. */
int metadata_request(const char *url, const char *method, const char *header,
		     struct metadata_answer *ret, char *why, size_t why_size);

/*
 * A document of EC2's service, version 2 alone: first a token, then @path with it.
 *
 * @base: "http://169.254.169.254"; metadata_ec2_base()
 * @paths: asked one after the other with one token; behind the second stands the first line of the
 *         answer to the first. The last may be NULL.
 */
int metadata_ec2(const char *base, const char *const paths[2], struct metadata_answer *ret,
		 char *why, size_t why_size);
/* As SDKs find it: AWS_EC2_METADATA_SERVICE_ENDPOINT, or the well-known address. */
void metadata_ec2_base(char *buf, size_t size);

/*
 * Keys of AWS for S3 sinks without keys in the settings, found as SDKs find them, the first of: the
 * environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN); the service of ECS and
 * EKS (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, the latter with
 * AWS_CONTAINER_AUTHORIZATION_TOKEN or _FILE); the role of the EC2 instance (IMDSv2, unless
 * AWS_EC2_METADATA_DISABLED is true). A thread requests them, again five minutes before they expire
 * and after a failure; deliveries do not wait for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/core/loop.h"

#define AWS_TOKEN_SIZE 4096

struct aws_keys {
	char access_key[128], secret_key[128];
	char session_token[AWS_TOKEN_SIZE]; /* "" = none */
	uint64_t end_real_ns; /* 0 = they do not expire */
};

struct aws_asker;
/* Reads what only root may read, before rights are given up. Sends no request yet. 0 or -ENOMEM. */
int aws_asker_new(struct aws_asker **ret);
/* Requests keys at once. 0 or -errno. */
int aws_asker_begin(struct aws_asker *a, struct loop *loop);
struct aws_asker *aws_asker_free(struct aws_asker *a); /* may wait for an answer, 3 s at most */
/* NULL = there are none now, and *ret_why has the reason. */
const struct aws_keys *aws_asker_keys(const struct aws_asker *a, const char **ret_why);
/* A server refused the keys: requests new ones, at most once a minute. */
void aws_asker_doubt(struct aws_asker *a);

/* Parses "AccessKeyId", "SecretAccessKey", "Token" and "Expiration" of the services' JSON. False:
 * not such JSON. Pure; fuzzed by tests/fuzz/fuzz_cloud.c. */
bool aws_keys_parse(const char *text, size_t len, struct aws_keys *ret);
/* May a secret be sent to this URL without TLS? Only to this host, and the addresses of ECS and
 * EKS. Pure. */
bool aws_keys_url_is_near(const char *url);

/*
 * Keys of AWS for S3 sinks without keys in the settings, searched where SDKs search them; the first
 * of these is used: the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN);
 * the service of ECS and EKS (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, the latter with
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
/* Reads the environment, which only root may read, before rights are given up; sends no request.
 * 0 or -ENOMEM. */
int aws_asker_new(struct aws_asker **ret);
/* Requests keys at once. 0 or -errno. */
int aws_asker_begin(struct aws_asker *a, struct loop *loop);
struct aws_asker *
aws_asker_free(struct aws_asker *a); /* waits for an outstanding answer, at most 3 s */
/* The keys; NULL = there are none at present, and *ret_why says why. */
const struct aws_keys *aws_asker_keys(const struct aws_asker *a, const char **ret_why);
/* Reports that a server refused the keys: new ones are requested, at most once a minute. */
void aws_asker_doubt(struct aws_asker *a);

/* Parses "AccessKeyId", "SecretAccessKey", "Token" and "Expiration" in a service's JSON. false:
 * they are not there. Pure; fuzzed by tests/fuzz/fuzz_cloud.c. */
bool aws_keys_parse(const char *text, size_t len, struct aws_keys *ret);
/* May a secret be sent to this URL without TLS? Only to this host and to the addresses of ECS
 * and EKS. Pure. */
bool aws_keys_url_is_near(const char *url);

/*
 * Labels that describe this host in its cloud, from the metadata services of EC2 (IMDSv2) and ECS;
 * requested only if labels.cloud is set. Another host of the network might answer instead: so
 * answers are bounded in size and time, and their texts are cleaned like those of any label. A
 * thread sends the requests and repeats them after a failure; deliveries do not wait for it.
 */
#pragma once

#include <stddef.h>
#include "daemon/core/labels.h"
#include "daemon/core/loop.h"

struct cloud;
/* Starts the first request. 0 or -errno. */
int cloud_new(struct loop *loop, struct cloud **ret);
struct cloud *cloud_free(struct cloud *c); /* waits for an outstanding answer, at most 3 s */
/* The labels cloud, region, zone, account, instance, instance_type, ecs_cluster and ecs_family,
 * as far as they are known; "" = none yet. @c may be NULL. */
const char *cloud_labels(const struct cloud *c);
/* Has the first request ended, successfully or not? It takes a few seconds at most. @c may be
 * NULL. */
bool cloud_is_known(const struct cloud *c);

/*
 * Asks once; takes at most 3 s.
 *
 * @ecs: the value of ECS_CONTAINER_METADATA_URI_V4; NULL = this is no task of ECS
 * @ec2: "http://169.254.169.254"
 *
 * 0, or -ENODATA with a sentence in @why: no answer, or no valid one.
 */
int cloud_ask(const char *ecs, const char *ec2, struct labels *ret, char *why, size_t why_size);
/* Parses EC2's instance identity document and ECS's task metadata, version 4. false: not such a
 * document. *ret_fargate: on Fargate there is no EC2 service to ask. Pure; fuzzed by
 * tests/fuzz/fuzz_cloud.c. */
bool cloud_parse_ec2(const char *text, size_t len, struct labels *ret);
bool cloud_parse_ecs(const char *text, size_t len, struct labels *ret, bool *ret_fargate);

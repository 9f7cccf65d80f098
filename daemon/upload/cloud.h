/*
 * Labels of this host in its cloud: from the metadata services of EC2 (IMDSv2) and ECS, only if
 * labels.cloud is set. Another host on this network may answer instead: the answer is bounded in
 * size and time, and its texts are cleaned as those of any label. A thread sends the requests, and
 * repeats them after a failure; deliveries do not wait for it.
 */
#pragma once

#include <stddef.h>
#include "daemon/core/labels.h"
#include "daemon/core/loop.h"

struct cloud;
/* Sends a request at once. 0 or -errno. */
int cloud_new(struct loop *loop, struct cloud **ret);
struct cloud *cloud_free(struct cloud *c); /* may wait for an answer, 3 s at most */
/* cloud, region, zone, account, instance, instance_type, ecs_cluster, ecs_family; "" = nothing is
 * known yet. NULL is allowed. */
const char *cloud_labels(const struct cloud *c);
/* Has the first request ended, with or without success? At most a few seconds after the start. NULL
 * is allowed. */
bool cloud_is_known(const struct cloud *c);

/*
 * One request, which takes 3 s at most.
 *
 * @ecs: the value of ECS_CONTAINER_METADATA_URI_V4, NULL = not a task of ECS
 * @ec2: "http://169.254.169.254"
 *
 * 0, or -ENODATA and a sentence: no answer, or not a valid one.
 */
int cloud_ask(const char *ecs, const char *ec2, struct labels *ret, char *why, size_t why_size);
/* Labels from EC2's instance identity document, and from ECS's task metadata (version 4). False:
 * not such a document. *ret_fargate: there is no EC2 service. Pure; fuzzed by
 * tests/fuzz/fuzz_cloud.c. */
bool cloud_parse_ec2(const char *text, size_t len, struct labels *ret);
bool cloud_parse_ecs(const char *text, size_t len, struct labels *ret, bool *ret_fargate);

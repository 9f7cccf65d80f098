/*
 * What this host is in its cloud, as labels: asked of the metadata service of EC2 (IMDSv2) and ECS,
 * only where labels.cloud says so. Whoever has the address on this network answers: the answer is
 * bounded in size and time, and its texts are cleaned as those of any label. A thread asks, and
 * again later where nobody answered; deliveries do not wait for it.
 */
#pragma once

#include <stddef.h>
#include "daemon/core/labels.h"
#include "daemon/core/loop.h"

struct cloud;
/* Asks at once. 0 or -errno. */
int cloud_new(struct loop *loop, struct cloud **ret);
struct cloud *cloud_free(struct cloud *c); /* may wait for an answer, 3 s at most */
/* cloud, region, zone, account, instance, instance_type, ecs_cluster, ecs_family; "" = nothing is
 * known yet. NULL is fine. */
const char *cloud_labels(const struct cloud *c);
/* Was it asked, whatever came of it? A few seconds after the start at most. NULL is fine. */
bool cloud_is_known(const struct cloud *c);

/*
 * One question, which takes 3 s at most.
 *
 * @ecs: what ECS_CONTAINER_METADATA_URI_V4 says, NULL = this is no task of ECS
 * @ec2: "http://169.254.169.254"
 *
 * 0, or -ENODATA and a sentence: nobody has answered, or nothing that was understood.
 */
int cloud_ask(const char *ecs, const char *ec2, struct labels *ret, char *why, size_t why_size);
/* Labels of EC2's instance identity document, and of ECS's task metadata (version 4). False: it is
 * none. *ret_fargate: there is no EC2 to be asked. Pure; fuzzed by tests/fuzz/fuzz_cloud.c. */
bool cloud_parse_ec2(const char *text, size_t len, struct labels *ret);
bool cloud_parse_ecs(const char *text, size_t len, struct labels *ret, bool *ret_fargate);

/* See cloud.h. */
#include "daemon/upload/cloud.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/worker.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"
#include "daemon/upload/metadata.h"

#define AGAIN_NS  (10 * NS_PER_S) /* doubled each time, up to */
#define AGAIN_MAX (3600 * NS_PER_S)

struct cloud {
	struct worker *worker;
	struct loop_timer *timer;
	uint64_t again_ns;
	bool asked_once; /* the first request has ended */
	char ecs[512], ec2[256]; /* "" = not available */
	/* in use by the worker until it has ended */
	struct labels asked;
	char why[300];
	int result;
	struct labels known;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void cloud_json_freep(cJSON **json)
{
	cJSON_Delete(*json);
}

static bool cloud_put(struct labels *ret, const char *label, const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	return text && *text && labels_set(ret, label, text) == 0;
}

bool cloud_parse_ec2(const char *text, size_t len, struct labels *ret)
{
	CLEANUP(cloud_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);

	if (!cloud_put(ret, "instance", json, "instanceId"))
		return false;
	(void)labels_set(ret, "cloud", "aws");
	(void)cloud_put(ret, "region", json, "region");
	(void)cloud_put(ret, "zone", json, "availabilityZone");
	(void)cloud_put(ret, "account", json, "accountId");
	(void)cloud_put(ret, "instance_type", json, "instanceType");
	return true;
}

/* An ARN such as
 * "arn:aws:ecs:eu-west-1:111122223333:task/shop/158d1c8083dd49d6b527399fd6414f5c". */
static bool cloud_parse_arn(const char *arn, struct labels *ret)
{
	char region[64], account[64];

	if (sscanf(arn, "arn:%*[^:]:ecs:%63[^:]:%63[^:]:", region, account) != 2)
		return false;
	return labels_set(ret, "region", region) == 0 && labels_set(ret, "account", account) == 0;
}

bool cloud_parse_ecs(const char *text, size_t len, struct labels *ret, bool *ret_fargate)
{
	CLEANUP(cloud_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *arn = cJSON_GetObjectItemCaseSensitive(json, "TaskARN");
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(json, "Cluster");
	const cJSON *launch = cJSON_GetObjectItemCaseSensitive(json, "LaunchType");
	const char *name = cJSON_GetStringValue(cluster);

	if (!cJSON_IsString(arn) || !cloud_parse_arn(arn->valuestring, ret))
		return false;
	name = name && strrchr(name, '/') ? strrchr(name, '/') + 1
					  : name; /* the last part of an ARN */
	(void)labels_set(ret, "cloud", "aws");
	(void)labels_set(ret, "ecs_cluster", name);
	(void)cloud_put(ret, "ecs_family", json, "Family");
	(void)cloud_put(ret, "zone", json, "AvailabilityZone");
	*ret_fargate = cJSON_IsString(launch) && strcmp(launch->valuestring, "FARGATE") == 0;
	return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int cloud_ask_ec2(const char *base, struct labels *ret, char *why, size_t why_size)
{
	static const char path[] = "/latest/dynamic/instance-identity/document";
	struct metadata_answer document = { 0 };
	int r = metadata_ec2(base, (const char *const[2]){ path }, &document, why, why_size);

	if (r == 0 && (!document.text || !cloud_parse_ec2(document.text, document.len, ret))) {
		snprintf(why, why_size, "%s%s: the answer is not an identity document", base, path);
		r = -ENODATA;
	}
	free(document.text);
	return r;
}

static int cloud_ask_ecs(const char *base, struct labels *ret, bool *ret_fargate, char *why,
			 size_t why_size)
{
	struct metadata_answer task = { 0 };
	char url[600];
	int r;

	snprintf(url, sizeof(url), "%s/task", base);
	r = metadata_request(url, NULL, NULL, &task, why, why_size);
	if (r == 0 && (!task.text || !cloud_parse_ecs(task.text, task.len, ret, ret_fargate))) {
		snprintf(why, why_size, "%s: the answer does not describe a task of ECS", url);
		r = -ENODATA;
	}
	free(task.text);
	return r;
}

int cloud_ask(const char *ecs, const char *ec2, struct labels *ret, char *why, size_t why_size)
{
	bool fargate = false;
	int of_ecs = -ENODATA, of_ec2 = -ENODATA;

	if (ecs)
		of_ecs = cloud_ask_ecs(ecs, ret, &fargate, why, why_size);
	if (!fargate)
		of_ec2 = cloud_ask_ec2(ec2, ret, why, why_size);
	return of_ecs == 0 ? 0 : of_ec2;
}

/* ---- again after a failure ------------------------------------------------------------------- */

static void cloud_run(void *userdata)
{
	struct cloud *c = userdata;

	c->asked = (struct labels){ 0 };
	c->result = cloud_ask(c->ecs[0] ? c->ecs : NULL, c->ec2, &c->asked, c->why, sizeof(c->why));
}

static void cloud_on_done(void *userdata)
{
	struct cloud *c = userdata;

	c->asked_once = true;
	if (c->result == 0) {
		c->known = c->asked;
		return;
	}
	if (c->again_ns == AGAIN_NS) /* log only the first failure */
		log_warn("upload.cloud", "error=%s", log_str(c->why));
	if (c->timer)
		loop_timer_set(c->timer, c->again_ns, 0);
	c->again_ns = 2 * c->again_ns < AGAIN_MAX ? 2 * c->again_ns : AGAIN_MAX;
}

static void cloud_on_timer(void *userdata)
{
	struct cloud *c = userdata;

	(void)worker_submit(c->worker, cloud_run, cloud_on_done, c);
}

int cloud_new(struct loop *loop, struct cloud **ret)
{
	const char *ecs = getenv("ECS_CONTAINER_METADATA_URI_V4");
	struct cloud *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->again_ns = AGAIN_NS;
	snprintf(c->ecs, sizeof(c->ecs), "%s", ecs ? ecs : "");
	metadata_ec2_base(c->ec2, sizeof(c->ec2));
	r = worker_new(loop, &c->worker);
	if (r == 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, cloud_on_timer, c, &c->timer);
	if (r == 0)
		r = worker_submit(c->worker, cloud_run, cloud_on_done, c);
	if (r < 0) {
		cloud_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct cloud *cloud_free(struct cloud *c)
{
	if (!c)
		return NULL;
	c->timer = loop_timer_free(c->timer);
	worker_free(c->worker);
	free(c);
	return NULL;
}

const char *cloud_labels(const struct cloud *c)
{
	return c ? c->known.text : "";
}

bool cloud_is_known(const struct cloud *c)
{
	return !c || c->asked_once;
}

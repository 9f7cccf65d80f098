/* The answers of a cloud's metadata service, which may come from anybody who has its address. */
#include <assert.h>
#include <string.h>
#include "daemon/upload/aws_keys.h"
#include "daemon/upload/cloud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct labels *l)
{
	assert(strlen(l->text) == l->len);
	for (const char *p = l->text; *p; p++)
		assert((unsigned char)*p >= 0x20 || *p == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct labels ec2 = { 0 }, ecs = { 0 };
	struct aws_keys keys;
	bool fargate;

	(void)cloud_parse_ec2((const char *)data, size, &ec2);
	(void)cloud_parse_ecs((const char *)data, size, &ecs, &fargate);
	check(&ec2);
	check(&ecs);
	if (aws_keys_parse((const char *)data, size, &keys))
		assert(*keys.access_key && !strpbrk(keys.session_token, "\r\n"));
	return 0;
}

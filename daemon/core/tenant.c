/* See tenant.h. */
#include "daemon/core/tenant.h"

#include <stdio.h>
#include <string.h>
#include "daemon/core/subuids.h"
#include "daemon/ground/hash.h"

/* Replaces characters that cannot be part of a file's name. */
static char tenant_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c : '-';
}

const char *tenant_name(char buf[TENANT_SIZE], const char *container_id, uint32_t uid)
{
	size_t n = 0;

	if (!container_id || !*container_id) {
		snprintf(buf, TENANT_SIZE, "uid-%u", subuids_owner(uid));
		return buf;
	}
	for (; container_id[n] && n + 1 < TENANT_SIZE; n++)
		buf[n] = tenant_plain(container_id[n]);
	buf[n] = '\0';
	return buf;
}

uint64_t tenant_number(const char *name)
{
	uint64_t h = hash_text(HASH_BEGIN, name);

	return h ? h : 1;
}

/*
 * Who targets belong to (core/tenant.h), and what each of them has of what all share.
 */
#pragma once

#include "daemon/core/log_limit.h"
#include "daemon/core/tenant.h"
#include "daemon/discovery/jvm.h"
#include "daemon/target/decoding.h"

#define TENANT_LINES_BURST 2000 /* of the log, about its targets: some hundred JVMs at once */
#define TENANT_LINES_PER_S 20

struct tenant {
	struct tenant *next;
	char name[TENANT_SIZE];
	char log_name[TENANT_SIZE + 8]; /* "tenant=NAME" */
	unsigned refs; /* targets, also those that ended and are remembered */
	unsigned targets; /* of refs, those with all that is known of them */
	unsigned injectors; /* of its attempts that run */
	uint64_t turn; /* number of the last attempt of all that was its own */
	struct log_limit log;
	struct tenant_decoding decoding;
};

/* The tenant of @jvm in *@list, created if it is missing; NULL without memory. */
struct tenant *tenant_ref(struct tenant **list, const struct jvm *jvm);
void tenant_unref(struct tenant **list, struct tenant *t); /* the last frees it */

/*
 * The tenants that targets belong to (core/tenant.h), and each tenant's share of what all targets
 * have in common.
 */
#pragma once

#include "daemon/core/log_limit.h"
#include "daemon/core/tenant.h"
#include "daemon/discovery/jvm.h"
#include "daemon/target/decoding.h"

#define TENANT_LINES_BURST 2000 /* lines of the log about its targets at once */
#define TENANT_LINES_PER_S 20

struct tenant {
	struct tenant *next;
	char name[TENANT_SIZE];
	char log_name[TENANT_SIZE + 8]; /* "tenant=NAME" */
	unsigned refs; /* targets, including ended ones that are remembered */
	unsigned targets; /* targets without those that are only remembered */
	unsigned injectors; /* attempts that run */
	uint64_t turn; /* number of its last attempt, counted over all tenants */
	/* CPU time that its attempts may still use, less than 0 if they used more; when it was
	 * counted last, 0 = never (turns.c) */
	int64_t attempts_cpu_ns;
	uint64_t attempts_mono_ns;
	struct log_limit log;
	struct tenant_decoding decoding;
};

/* The tenant of @jvm in *@list, added if it is missing; NULL without memory. */
struct tenant *tenant_ref(struct tenant **list, const struct jvm *jvm);
/* Adds to the CPU time of its attempts what has been earned until @now_mono_ns. */
void tenant_earn_attempts(struct tenant *t, uint64_t now_mono_ns);
void tenant_unref(struct tenant **list, struct tenant *t); /* the last reference frees it */

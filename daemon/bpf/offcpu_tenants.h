/*
 * The shares of tenants in what all targets of the off-CPU engine have in common: half of the table
 * of threads, of the ring and of the signals is for whoever comes first, the rest is divided
 * equally, so that a tenant with many targets, threads or waits leaves others theirs.
 */
#pragma once

#include <stdint.h>
#include "daemon/bpf/offcpu_priv.h"

struct offcpu_tenants {
	/* by index, as the programs have them */
	struct {
		uint64_t id;
		unsigned targets; /* 0 = free */
	} of[OFFCPU_TENANTS_MAX];
	unsigned n;
};

/* Adds a target to tenant @id. Returns the tenant's index. */
uint32_t offcpu_tenants_join(struct offcpu_tenants *all, struct offcpu_programs *p, uint64_t id);
void offcpu_tenants_leave(struct offcpu_tenants *all, uint32_t tenant);
/* Tells the programs each tenant's share of @threads slots and of the ring. */
void offcpu_tenants_share(const struct offcpu_tenants *all, struct offcpu_programs *p,
			  uint64_t threads);
/* The part of @all_own that each target of @tenant has for itself. */
uint64_t offcpu_tenants_part(const struct offcpu_tenants *all, uint32_t tenant, uint64_t all_own);

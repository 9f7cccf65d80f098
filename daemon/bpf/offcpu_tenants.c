/* See offcpu_tenants.h. */
#include "daemon/bpf/offcpu_tenants.h"

#include "offcpu.skel.h"

uint32_t offcpu_tenants_join(struct offcpu_tenants *all, struct offcpu_programs *p, uint64_t id)
{
	uint32_t at = OFFCPU_TENANTS_MAX;

	for (uint32_t i = OFFCPU_TENANTS_MAX; i-- > 0;)
		if (!all->of[i].targets)
			at = i;
	for (uint32_t i = 0; i < OFFCPU_TENANTS_MAX; i++)
		if (all->of[i].targets && all->of[i].id == id)
			at = i;
	/* there are as many places as targets, so one is free */
	if (!all->of[at].targets) {
		all->of[at].id = id;
		all->n++;
		p->tenants[at] = (struct offcpu_tenant){ 0 };
	}
	all->of[at].targets++;
	return at;
}

void offcpu_tenants_leave(struct offcpu_tenants *all, uint32_t tenant)
{
	all->n -= --all->of[tenant].targets == 0;
}

void offcpu_tenants_share(const struct offcpu_tenants *all, struct offcpu_programs *p,
			  uint64_t threads)
{
	unsigned n = all->n ? all->n : 1;

	/* who is alone leaves a quarter for the next one */
	p->bpf->bss->threads_shared = (__s64)(n == 1 ? threads * 3 / 4 : threads / 2);
	/* some slots stay free: a thread looks for one in a few places only */
	p->bpf->bss->threads_own_max = (__s64)(threads * 3 / 8 / n);
	p->bpf->bss->ring_own_max = OFFCPU_RING_BYTES / 2 / n;
}

uint64_t offcpu_tenants_part(const struct offcpu_tenants *all, uint32_t tenant, uint64_t all_own)
{
	return all_own / all->n / all->of[tenant].targets;
}

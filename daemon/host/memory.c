/*
 * See memory.h. Each room counts the bytes of its names, threads and waits for each target. They
 * are added up ten times a second, while there is plenty a fourth as often, and a session that
 * takes too much is ended, with a reason.
 */
#include "daemon/host/memory.h"

#include <errno.h>
#include "daemon/core/tenant.h"
#include "daemon/ground/clock.h"
#include "daemon/host/host_priv.h"

#define ENDED_AT_ONCE 16
/* Looks that are left out after one at which less than three quarters of the limit were used: one
 * loop does not decode so much in 0.3 s that it takes the rest. */
#define LOOKS_SPARED 3

static size_t bytes_of_tenant(const struct memory_use *uses, unsigned n, uint64_t tenant)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		if (uses[i].tenant == tenant)
			bytes += uses[i].bytes;
	return bytes;
}

/* The largest use of one tenant, or of all (@tenant NULL). */
static int memory_largest(const struct memory_use *uses, unsigned n, const uint64_t *tenant)
{
	int most = -1;

	for (unsigned i = 0; i < n; i++)
		if ((!tenant || uses[i].tenant == *tenant) &&
		    (most < 0 || uses[i].bytes > uses[most].bytes))
			most = (int)i;
	return most;
}

static size_t memory_sum(const struct memory_use *uses, unsigned n)
{
	size_t own = 0;

	for (unsigned i = 0; i < n; i++)
		own += uses[i].bytes;
	return own;
}

/* The usual case: so little is taken that memory_over() finds no target, whosever they are. */
static bool memory_is_ample(const struct memory_use *uses, unsigned n, size_t shared, size_t limit)
{
	size_t sum = shared < limit / 2 ? shared : limit / 2;
	int one = memory_largest(uses, n, NULL);

	return one < 0 || (uses[one].bytes <= limit / 4 && sum + memory_sum(uses, n) <= limit / 2);
}

int memory_over(const struct memory_use *uses, unsigned n, size_t shared, size_t limit)
{
	size_t own = memory_sum(uses, n), most = 0;
	size_t sum = (shared < limit / 2 ? shared : limit / 2) + own;
	uint64_t tenant = 0;
	int one = memory_largest(uses, n, NULL);

	if (memory_is_ample(uses, n, shared, limit))
		return -1;
	if (uses[one].bytes > limit / 4)
		return one;
	for (unsigned i = 0; i < n; i++) {
		size_t bytes = bytes_of_tenant(uses, n, uses[i].tenant);

		if (bytes > most) {
			most = bytes;
			tenant = uses[i].tenant;
		}
	}
	if (sum > limit || (most > limit / 2 && most < own))
		return memory_largest(uses, n, &tenant);
	return -1;
}

static size_t memory_bytes_of(const struct target *t)
{
	const struct host_entry *e = t->userdata;
	size_t bytes = t->stream ? stream_bytes(t->stream) : 0;

	if (e)
		bytes += live_source_bytes(e->source) + (e->locks ? locks_bytes(e->locks) : 0) +
			 (e->ledger ? time_ledger_bytes(e->ledger) : 0) +
			 (e->offcpu ? offcpu_join_bytes(e->offcpu) : 0);
	return bytes;
}

static void memory_give_up(struct host *h, struct target *t, size_t bytes)
{
	struct host_entry *e = t->userdata;
	struct fault f = { 0 };

	fault_set(
		&f, EDQUOT, FAULT_STREAM,
		"the daemon would need %zu MiB for its names, threads and waits, which limits.memory does not allow: ",
		bytes >> 20);
	h->memory_ended++;
	target_give_up(t, &f);
	if (!e)
		return;
	live_source_end(e->source);
	e->ledger = time_ledger_free(e->ledger);
	locks_free(e->locks);
	e->locks = NULL;
	(void)locks_new(clock_mono_ns(), &e->locks);
}

void host_check_memory(struct host *h)
{
	static struct memory_use uses[TARGETS_MAX + NAMED_MAX];
	static struct target *of[TARGETS_MAX + NAMED_MAX];
	size_t shared;
	unsigned n = 0;
	int over;

	if (h->memory_spared) {
		h->memory_spared--;
		return;
	}
	shared = live_bytes(h->live) + timelines_bytes(h->timelines);
	for (struct target *t = targets_next(h->targets, NULL); t && n < ARRAY_SIZE(uses);
	     t = targets_next(h->targets, t)) {
		size_t bytes = memory_bytes_of(t);

		if (!bytes)
			continue;
		uses[n].bytes = bytes;
		of[n++] = t;
	}
	if (shared + memory_sum(uses, n) < h->config->memory_bytes / 4 * 3)
		h->memory_spared = LOOKS_SPARED;
	if (memory_is_ample(uses, n, shared, h->config->memory_bytes))
		return;
	for (unsigned i = 0; i < n; i++) {
		const struct jvm *jvm = &of[i]->jvm;
		char tenant[TENANT_SIZE];

		uses[i].tenant = tenant_number(tenant_name(tenant, jvm->container_id, jvm->uid));
	}
	for (int i = 0; i < ENDED_AT_ONCE; i++) {
		over = memory_over(uses, n, live_bytes(h->live) + timelines_bytes(h->timelines),
				   h->config->memory_bytes);
		if (over < 0)
			return;
		h->memory_spared = 0;
		memory_give_up(h, of[over], uses[over].bytes);
		uses[over].bytes = 0;
	}
}

uint64_t host_memory_ended(const struct host *h)
{
	return h->memory_ended;
}

uint64_t host_memory_used(const struct host *h)
{
	uint64_t bytes = live_bytes(h->live) + timelines_bytes(h->timelines);

	for (struct target *t = targets_next(h->targets, NULL); t; t = targets_next(h->targets, t))
		bytes += memory_bytes_of(t);
	return bytes;
}

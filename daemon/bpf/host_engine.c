/* See host_engine.h. */
#include "daemon/bpf/host_engine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/bpf/bpf_priv.h"
#include "daemon/bpf/clock_events.h"
#include "daemon/bpf/sampler.h"
#include "daemon/ground/clock.h"
#include "sampler.skel.h"

#define INTERVAL_NS_MIN	    (NS_PER_MS / 20) /* below that a CPU would do little else */
#define INTERVAL_NS_MAX	    (60 * NS_PER_S)
#define HANDLER_ADDRESS_MIN 4096 /* lower values are SIG_DFL, SIG_IGN, or no code addresses */

struct entry {
	pid_t pid;
	struct host_engine_target target;
};

struct host_engine {
	struct sampler_bpf *bpf;
	struct bpf_program *on_tick;
	bool linux7; /* bpf is the object for Linux 7 */
	struct clock_events *clocks;
	struct entry entries[SAMPLER_TARGETS_MAX];
	unsigned n_entries;
	struct ring_buffer *ring; /* kernel stacks; NULL = nobody wants them */
	host_engine_stack_fn *on_stack;
	void *userdata;
};

/* ---- clocks -------------------------------------------------------------------------------- */

static uint64_t host_engine_shortest(const struct host_engine *e)
{
	uint64_t ns = UINT64_MAX;

	for (unsigned i = 0; i < e->n_entries; i++)
		if (e->entries[i].target.interval_ns < ns)
			ns = e->entries[i].target.interval_ns;
	return ns;
}

/* Sets the clocks to the shortest interval of the targets. */
static int host_engine_update_clocks(struct host_engine *e)
{
	uint64_t period_ns = e->n_entries ? host_engine_shortest(e) : 0;

	/* ticks in between use the old or the new interval */
	e->bpf->bss->period_ns = period_ns;
	return clock_events_set(e->clocks, period_ns);
}

uint64_t host_engine_interval_min(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned long long rate = 0;

	if (f && fscanf(f, "%llu", &rate) != 1)
		rate = 0;
	if (f)
		fclose(f);
	return rate ? (NS_PER_S + rate - 1) / rate : NS_PER_MS / 100;
}

/* ---- targets ------------------------------------------------------------------------------- */

static struct entry *host_engine_find(struct host_engine *e, pid_t pid)
{
	for (unsigned i = 0; i < e->n_entries; i++)
		if (e->entries[i].pid == pid)
			return &e->entries[i];
	return NULL;
}

static bool host_engine_same(const struct host_engine_target *a, const struct host_engine_target *b)
{
	return a->handler == b->handler && a->interval_ns == b->interval_ns &&
	       a->signo == b->signo && a->off_signo == b->off_signo;
}

static bool host_engine_is_agents_signal(int signo)
{
	return signo == SIGPROF || signo == SIGVTALRM || signo == SIGSTKFLT || signo == SIGPWR;
}

/* Checks input from a possibly hostile process: it can ask only for signals to itself, and only for
 * those that an agent uses. */
static bool host_engine_is_valid_target(const struct host_engine_target *t)
{
	return t->handler >= HANDLER_ADDRESS_MIN && t->interval_ns >= INTERVAL_NS_MIN &&
	       t->interval_ns <= INTERVAL_NS_MAX && host_engine_is_agents_signal(t->signo) &&
	       (!t->off_signo || host_engine_is_agents_signal(t->off_signo));
}

int host_engine_set(struct host_engine *e, pid_t pid, const struct host_engine_target *t)
{
	struct sampler_target value = {
		.handler = t->handler,
		.interval_ns = t->interval_ns,
		.signo = (__u32)t->signo,
		.off_signo = (__u32)t->off_signo,
	};
	struct entry *entry = host_engine_find(e, pid);
	__u32 key = (__u32)pid;
	bool known = entry;
	int r;

	if (!host_engine_is_valid_target(t))
		return -EINVAL;
	if (known && host_engine_same(&entry->target, t))
		return 0;
	if (!known && e->n_entries >= SAMPLER_TARGETS_MAX)
		return -ENOSPC;
	if (!known)
		entry = &e->entries[e->n_entries++];
	*entry = (struct entry){ pid, *t };
	/* sets the clocks first, so that the first tick finds the shortest interval */
	r = host_engine_update_clocks(e);
	if (r == 0 && bpf_map_update_elem(bpf_map__fd(e->bpf->maps.targets), &key, &value,
					  known ? BPF_EXIST : BPF_ANY) < 0)
		/* an exec has removed the entry from the map: a changed interval must not restore
		 * it */
		r = known && errno == ENOENT ? 0 : -errno;
	if (r < 0)
		host_engine_remove(e, pid);
	return r;
}

void host_engine_remove(struct host_engine *e, pid_t pid)
{
	struct entry *entry = host_engine_find(e, pid);
	__u32 key = (__u32)pid;

	if (!entry)
		return;
	(void)bpf_map_delete_elem(bpf_map__fd(e->bpf->maps.targets), &key);
	*entry = e->entries[--e->n_entries];
	(void)host_engine_update_clocks(e);
}

unsigned host_engine_targets(const struct host_engine *e)
{
	return e->n_entries;
}

uint64_t host_engine_interval(const struct host_engine *e)
{
	return e->bpf->bss->period_ns;
}

bool host_engine_puts_off(const struct host_engine *e)
{
	return e->on_tick == e->bpf->progs.on_tick_put_off;
}

/* The counters of each CPU, which the caller frees; NULL = they could not be read. */
static struct sampler_counts *host_engine_counts_of_cpus(const struct host_engine *e, int *ret_n)
{
	int n = libbpf_num_possible_cpus();
	struct sampler_counts *c = n > 0 ? calloc((size_t)n, sizeof(*c)) : NULL;
	__u32 zero = 0;

	*ret_n = n;
	if (c && bpf_map_lookup_elem(bpf_map__fd(e->bpf->maps.counts), &zero, c) == 0)
		return c;
	free(c);
	return NULL;
}

void host_engine_tick(struct host_engine *e)
{
	int n;
	struct sampler_counts *c = host_engine_counts_of_cpus(e, &n);
	uint64_t *ticks = c ? calloc((size_t)n, sizeof(*ticks)) : NULL;

	for (int i = 0; ticks && i < n; i++)
		ticks[i] = c[i].ticks;
	clock_events_tick(e->clocks, ticks, ticks ? n : 0);
	free(ticks);
	free(c);
}

uint64_t host_engine_price(const struct host_engine *e)
{
	return clock_events_price(bpf_program__fd(e->on_tick));
}

void host_engine_counts(const struct host_engine *e, struct host_engine_counts *ret)
{
	int n;
	struct sampler_counts *c = host_engine_counts_of_cpus(e, &n);

	*ret = (struct host_engine_counts){ 0 };
	for (int i = 0; c && i < n; i++) {
		ret->ticks += c[i].ticks;
		ret->sent += c[i].sent;
		ret->foreign += c[i].foreign;
		ret->held += c[i].held;
		ret->failed += c[i].failed;
		ret->stacks += c[i].stacks;
		ret->stacks_lost += c[i].stacks_lost;
		ret->off_sent += c[i].off_sent;
		ret->off_dropped += c[i].off_dropped;
	}
	free(c);
}

void host_engine_maps(const struct host_engine *e, struct host_engine_maps *ret)
{
	*ret = (struct host_engine_maps){
		.targets = bpf_map__fd(e->bpf->maps.targets),
		.counts = bpf_map__fd(e->bpf->maps.counts),
		.slots = host_engine_puts_off(e) ? bpf_map__fd(e->bpf->maps.slots) : -1,
		.stays = host_engine_puts_off(e) ? -1 : bpf_map__fd(e->bpf->maps.stays),
		.linux7 = e->linux7,
	};
}

/* ---- kernel stacks -------------------------------------------------------------------------- */

static int host_engine_on_stack(void *userdata, void *data, size_t size)
{
	struct host_engine *e = userdata;
	const struct sampler_stack *s = data;
	size_t head = offsetof(struct sampler_stack, ips);

	if (size > head && size <= sizeof(*s))
		e->on_stack(e->userdata, (pid_t)s->pid, s->tid, s->mono_ns,
			    (const uint64_t *)s->ips, (unsigned)((size - head) / sizeof(*s->ips)));
	return 0;
}

int host_engine_take_stacks(struct host_engine *e, host_engine_stack_fn *fn, void *userdata)
{
	e->on_stack = fn;
	e->userdata = userdata;
	if (!e->ring)
		e->ring = ring_buffer__new(bpf_map__fd(e->bpf->maps.stacks), host_engine_on_stack,
					   e, NULL);
	if (!e->ring)
		return -errno;
	e->bpf->bss->wants_stacks = 1;
	return 0;
}

void host_engine_drain(struct host_engine *e)
{
	if (e->ring)
		(void)ring_buffer__consume(e->ring);
}

/* ---- life cycle ----------------------------------------------------------------------------- */

static int host_engine_refuse(int error, const char *step, char *why)
{
	return bpf_refuse(error, step, why, HOST_ENGINE_WHY_MAX);
}

/* Loads one of the two programs for ticks; the kernel then does not verify the other. @linux7: from
 * the other object. */
static int host_engine_load_one(struct host_engine *e, bool put_off, bool linux7)
{
	int r;

	e->linux7 = linux7;
	e->bpf = linux7 ? sampler_linux7_open() : sampler_bpf__open();
	if (!e->bpf)
		return -errno;
	e->on_tick = put_off ? e->bpf->progs.on_tick_put_off : e->bpf->progs.on_tick;
	bpf_program__set_autoload(e->bpf->progs.on_tick_put_off, put_off);
	bpf_program__set_autoload(e->bpf->progs.on_tick, !put_off);
	bpf_map__set_autocreate(e->bpf->maps.slots, put_off);
	bpf_map__set_autocreate(e->bpf->maps.stays, !put_off);
	sampler_calls_fill((unsigned char *)e->bpf->rodata->wait_of_call,
			   sizeof(e->bpf->rodata->wait_of_call));
	r = sampler_bpf__load(e->bpf);
	if (r < 0) {
		sampler_bpf__destroy(e->bpf);
		e->bpf = NULL;
	}
	return r;
}

static int host_engine_load(struct host_engine *e, bool direct, char *why)
{
	int r = -EOPNOTSUPP;

	/* the best one first. What a kernel does not know is refused with EINVAL or, by 5.16
	 * to 6.17, with EACCES; EPERM means rights, which all need */
	for (int i = direct ? 2 : 0; i < 4 && r < 0 && r != -EPERM; i++)
		r = host_engine_load_one(e, i < 2, i & 1);
	if (r == -EINVAL || r == -EACCES) {
		snprintf(why, HOST_ENGINE_WHY_MAX,
			 "load BPF program: this kernel%s refuses it; Linux 5.15 is needed",
			 r == -EACCES ? " or a security module" : "");
		return r;
	}
	if (r < 0)
		return host_engine_refuse(-r, "load BPF program", why);
	r = sampler_bpf__attach(e->bpf);
	if (r < 0)
		return host_engine_refuse(-r, "attach BPF program", why);
	r = clock_events_new(bpf_program__fd(e->on_tick), &e->clocks);
	return r < 0 ? host_engine_refuse(-r, "open a clock event", why) : 0;
}

int host_engine_new(bool direct, struct host_engine **ret, char *why)
{
	CLEANUP(host_engine_freep) struct host_engine *e = NULL;
	int r;

	if (!bpf_pids_are_ours()) {
		snprintf(why, HOST_ENGINE_WHY_MAX, "not in the host's pid namespace");
		return -EXDEV;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return host_engine_refuse(ENOMEM, "open BPF program", why);
	bpf_log_quietly();
	r = host_engine_load(e, direct, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

struct host_engine *host_engine_free(struct host_engine *e)
{
	if (!e)
		return NULL;
	clock_events_free(e->clocks);
	ring_buffer__free(e->ring);
	sampler_bpf__destroy(e->bpf);
	free(e);
	return NULL;
}

/* See sampling.h. */
#include "daemon/host/sampling.h"

#include <errno.h>
#include <string.h>
#include "daemon/core/tenant.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

/* the default interval, as a multiple of the cost of a tick: ticks then take 0.2 % of a CPU */
#define PRICE_TIMES 500
/* rests are over when there was none for so long */
#define RESTS_END_NS (600 * NS_PER_S)

struct host_sampling {
	const struct config *config;
	kernel_frames_find_fn *stacks_of;
	void *userdata;
	struct host_engine *engine; /* NULL = not wanted, or refused */
	struct offcpu_engine *offcpu; /* NULL = refused, or no engine */
	struct kernel_frames *frames; /* NULL = not wanted, or no engine */
	bool offcpu_rests, no_wakers; /* as they were logged last */
	uint64_t offcpu_rested_ns; /* the last tick at which all targets rested */
	uint64_t price_ns; /* of one tick of one CPU; 0 = unknown */
	char why[HOST_ENGINE_WHY_MAX];
	char offcpu_why[OFFCPU_ENGINE_WHY_MAX];
};

static void open_frames(struct host_sampling *s)
{
	int r = s->config->kernel_stacks
			? kernel_frames_new(s->engine, s->stacks_of, s->userdata, &s->frames)
			: 0;

	if (r < 0)
		log_warn("kernel_frames.refused", "error=%s", log_str(strerror(-r)));
}

/* Many kernels cannot do it. That is a warning only where the settings ask for it. */
static void open_offcpu(struct host_sampling *s)
{
	if (offcpu_engine_new(s->engine, offcpu_engine_affordable(s->price_ns),
			      s->config->offcpu_syscall_exits, &s->offcpu, s->offcpu_why) == 0)
		offcpu_engine_follow_price(s->offcpu);
	else
		log_line(config_asks_for_offcpu(s->config) ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
			 "offcpu.refused", "why=%s", log_str(s->offcpu_why));
}

static void open_engine(struct host_sampling *s)
{
	if (!s->config->host_engine)
		return;
	if (host_engine_new(false, &s->engine, s->why) < 0) {
		log_warn("host_engine.refused", "why=%s", log_str(s->why));
		return;
	}
	s->price_ns = host_engine_price(s->engine);
	log_info("host_engine", "tick_ns=%llu puts_off=%d", (unsigned long long)s->price_ns,
		 host_engine_puts_off(s->engine));
	open_frames(s);
	open_offcpu(s);
}

int host_sampling_new(const struct config *config, kernel_frames_find_fn *stacks_of, void *userdata,
		      struct host_sampling **ret)
{
	struct host_sampling *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->config = config;
	s->stacks_of = stacks_of;
	s->userdata = userdata;
	open_engine(s); /* at once: later this process has no rights to do it */
	*ret = s;
	return 0;
}

struct host_sampling *host_sampling_free(struct host_sampling *s)
{
	if (!s)
		return NULL;
	kernel_frames_free(s->frames);
	offcpu_engine_free(s->offcpu);
	host_engine_free(s->engine);
	free(s);
	return NULL;
}

/* Lengthens an interval that nobody chose, so that on machines with expensive ticks these cost
 * hardly anything. */
static uint64_t sampling_affordable(const struct host_sampling *s, uint64_t interval_ns)
{
	uint64_t least = s->price_ns * PRICE_TIMES;

	if (s->config->cpu_interval_given || interval_ns != s->config->cpu_interval_ns ||
	    interval_ns >= least)
		return interval_ns;
	return (least + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
}

uint64_t host_sampling_wanted(struct host_sampling *s, const struct host_sampling_target *e,
			      uint64_t interval_ns)
{
	uint64_t shortest_ns;

	if ((e && e->timers_only) || !s->engine)
		return 0;
	shortest_ns = host_engine_interval_min();
	interval_ns = sampling_affordable(s, interval_ns);
	return interval_ns > shortest_ns ? interval_ns : shortest_ns;
}

/* The host engine's parameters for @t, from the agent's LEDGER. The agent may choose a longer
 * interval than its START asked for, but no shorter one: the shortest of all targets determines how
 * often every CPU ticks. */
static struct host_engine_target host_sampling_parameters(const struct target *t)
{
	struct host_engine_target want;
	struct stream_counts c;

	stream_counts(t->stream, &c);
	want.signo = (int)(c.ledger.counter[WIRE_COUNTER_HOST_SIGNAL] & 127);
	want.off_signo = (int)(c.ledger.counter[WIRE_COUNTER_HOST_SIGNAL] >> 8 & 127);
	want.handler = c.ledger.counter[WIRE_COUNTER_HOST_HANDLER];
	want.interval_ns = c.ledger.counter[WIRE_COUNTER_INTERVAL_NS];
	if (want.interval_ns < t->host_interval_ns)
		want.interval_ns = t->host_interval_ns;
	return want;
}

/* Makes the off-CPU engine send signals to the agent of @t, if that collects the event and so
 * understands them. */
static void host_sampling_follow_offcpu(struct host_sampling *s, struct target *t)
{
	struct offcpu_counts counts;
	char tenant[TENANT_SIZE];
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	int r;

	t->offcpu_min_ns = t->offcpu_spared_ns = 0;
	t->offcpu_loses = false;
	if (!s->offcpu)
		return;
	if (!(target_events(t) & 1u << WIRE_EVENT_OFFCPU)) {
		offcpu_engine_remove(s->offcpu, t->jvm.pid);
		return;
	}
	tenant_name(tenant, t->jvm.container_id, t->jvm.uid);
	r = offcpu_engine_set(s->offcpu, t->jvm.pid, tenant_number(tenant),
			      s->config->offcpu_min_ns);
	if (offcpu_engine_target(s->offcpu, t->jvm.pid, &counts, minimums)) {
		t->offcpu_signals = counts.signalled;
		t->offcpu_min_ns = minimums[OFFCPU_WAITS].record_ns;
		t->offcpu_spared_ns = offcpu_engine_spared_ns(s->offcpu, t->jvm.pid);
		t->offcpu_loses = counts.lost != t->offcpu_lost;
		t->offcpu_lost = counts.lost;
		t->offcpu_lost_ns = counts.lost_ns;
	}
	if (r < 0)
		log_debug("offcpu.target", "pid=%d error=%s", t->jvm.pid, log_str(strerror(-r)));
}

void host_sampling_follow(struct host_sampling *s, struct target *t, struct host_sampling_target *e)
{
	struct host_engine_target want = host_sampling_parameters(t);
	int r = -EOPNOTSUPP;

	if (t->state != TARGET_STREAMING || !t->host_interval_ns || !want.signo) {
		host_sampling_stop(s, t);
		return;
	}
	if (s->frames && !e->stacks)
		(void)kernel_frames_stacks_new(s->frames, &e->stacks);
	if (s->engine)
		r = host_engine_set(s->engine, t->jvm.pid, &want);
	if (r == 0)
		host_sampling_follow_offcpu(s, t);
	if (r == 0 || e->timers_only)
		return;
	log_warn("host_engine.target", "pid=%d error=%s", t->jvm.pid, log_str(strerror(-r)));
	e->timers_only = true;
	(void)target_start(t, t->interval_ns, t->no_budget);
}

void host_sampling_stop(struct host_sampling *s, const struct target *t)
{
	if (s->offcpu)
		offcpu_engine_remove(s->offcpu, t->jvm.pid);
	if (s->engine)
		host_engine_remove(s->engine, t->jvm.pid);
}

void host_sampling_expire(struct host_sampling_target *e)
{
	if (e->stacks)
		kernel_stacks_expire(e->stacks, clock_mono_ns());
}

void host_sampling_target_deinit(struct host_sampling_target *e)
{
	e->stacks = kernel_stacks_free(e->stacks);
}

struct kernel_stack *host_sampling_take(struct host_sampling *s, struct host_sampling_target *e,
					const struct target *t, const struct stream_sample *sample,
					struct live_kernel *ret)
{
	if (!e->stacks)
		return NULL;
	return kernel_frames_take(s->frames, e->stacks, t->stream, sample, ret);
}

static void host_sampling_tick_offcpu(struct host_sampling *s)
{
	struct offcpu_state state;
	bool rests;

	offcpu_engine_tick(s->offcpu);
	offcpu_engine_state(s->offcpu, &state);
	if (state.wakers == s->no_wakers) {
		s->no_wakers = !state.wakers;
		log_info(state.wakers ? "offcpu.wakers" : "offcpu.without_wakers",
			 "switches_per_s=%llu again_s=%llu",
			 (unsigned long long)state.switches_per_s,
			 (unsigned long long)state.wakers_again_s);
	}
	if (state.resting)
		s->offcpu_rested_ns = clock_mono_ns();
	/* a busy host rests several times a minute, for hours: that is one line */
	rests = s->offcpu_rested_ns && clock_mono_ns() - s->offcpu_rested_ns < RESTS_END_NS;
	if (rests == s->offcpu_rests)
		return;
	s->offcpu_rests = rests;
	log_info(rests ? "offcpu.rests" : "offcpu.resumes", "switches_per_s=%llu rests=%llu",
		 (unsigned long long)state.switches_per_s, (unsigned long long)state.rests);
}

void host_sampling_tick(struct host_sampling *s)
{
	if (s->frames)
		kernel_frames_drain(s->frames);
	if (s->engine)
		host_engine_tick(s->engine);
	if (s->offcpu)
		host_sampling_tick_offcpu(s);
}

const struct host_engine *host_sampling_engine(const struct host_sampling *s, const char **ret_why)
{
	*ret_why =
		s->config->host_engine ? s->why : "events.cpu.host_engine is false in the settings";
	return s->engine;
}

struct offcpu_engine *host_sampling_offcpu(const struct host_sampling *s, const char **ret_why)
{
	*ret_why = s->engine ? s->offcpu_why : "off-CPU time needs the host engine";
	return s->offcpu;
}

uint64_t host_sampling_price_ns(const struct host_sampling *s)
{
	return s->price_ns;
}

struct kernel_frames *host_sampling_names(struct host_sampling *s)
{
	return s->frames;
}

const struct kernel_frames *host_sampling_frames(const struct host_sampling *s)
{
	return s->frames;
}

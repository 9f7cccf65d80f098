/*
 * The on-CPU half of the host engine: sends signals to the agents, triggered by software clock
 * events on every CPU (clock_events.h) and one BPF program. CPU timers expire only on the kernel's
 * tick, so they allow no shorter interval and miss shorter runs. sampler.bpf.c documents when a
 * signal is sent and when not.
 *
 * Needs Linux 5.15 with BTF, CAP_BPF and CAP_PERFMON. The events and the program live as long as
 * their descriptors: however the daemon ends, the signals end with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/mem.h"

#define HOST_ENGINE_WHY_MAX 200

struct host_engine;

/* What the agent of one process reported: the address of its handler, its signal, its interval. */
struct host_engine_target {
	uint64_t handler;
	uint64_t interval_ns;
	int signo;
	int off_signo; /* for times off the CPU, if that is another signal; 0 = it is not */
};

/* For all CPUs since the start; sampler.h explains each. */
struct host_engine_counts {
	uint64_t ticks, sent, foreign, held, failed, stacks, stacks_lost, off_sent, off_dropped;
};

/* A kernel stack at a tick of the thread @tid (its number in its own pid namespace) of the process
 * @pid. @ips: innermost first. */
typedef void host_engine_stack_fn(void *userdata, pid_t pid, uint32_t tid, uint64_t mono_ns,
				  const uint64_t *ips, unsigned n);

/*
 * Loads the program and tries a clock event; none runs before there is a target. On kernels that
 * support it (6.18) signals are delayed until the thread returns to user mode, so that no system
 * call is interrupted; @direct: send them at once, for tests. 0, or -errno with a sentence in @why
 * (HOST_ENGINE_WHY_MAX bytes).
 */
int host_engine_new(bool direct, struct host_engine **ret, char *why);
struct host_engine *host_engine_free(struct host_engine *e);
DEFINE_FREEP(struct host_engine, host_engine_free);

/* The shortest interval that the kernel allows now, kernel.perf_event_max_sample_rate. */
uint64_t host_engine_interval_min(void);
/*
 * Adds @pid, or changes its values. Setting the same values again does nothing: if the kernel
 * removed the entry because the process started another program, it stays removed. 0, -EINVAL for
 * an address, a signal or an interval that no agent uses, -ENOSPC at the maximum, or the kernel's
 * error.
 */
int host_engine_set(struct host_engine *e, pid_t pid, const struct host_engine_target *t);
void host_engine_remove(struct host_engine *e, pid_t pid);
unsigned host_engine_targets(const struct host_engine *e);
/* Average time between two ticks of a CPU; 0 = no ticks. */
uint64_t host_engine_interval(const struct host_engine *e);
bool host_engine_puts_off(const struct host_engine *e);
/* To be called once a second. */
void host_engine_tick(struct host_engine *e);
/* The cost of one tick of a CPU in ns, measured by this call, which takes 5 to 40 ms. 0 =
 * unknown. */
uint64_t host_engine_price(const struct host_engine *e);
void host_engine_counts(const struct host_engine *e, struct host_engine_counts *ret);
/*
 * From now on ticks that interrupt the kernel record its stack; host_engine_drain() passes them to
 * @fn. A tick's stack is available before the agent's handler runs. 0, or -errno and nothing is
 * recorded.
 */
int host_engine_take_stacks(struct host_engine *e, host_engine_stack_fn *fn, void *userdata);
void host_engine_drain(struct host_engine *e);

/*
 * The host engine for the targets of a host: loads it for the first of them, passes on each agent's
 * report about its handler, and asks for kernel frames under its ticks. A refusal becomes a
 * sentence for status, never an error: CPU timers remain.
 */
#pragma once

#include <stdbool.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/core/config.h"
#include "daemon/host/kernel_frames.h"
#include "daemon/target/target.h"

struct host_sampling;

/* The state for one target; in the host's entry, by value. */
struct host_sampling_target {
	struct kernel_stacks *stacks; /* stacks that wait for their samples; NULL = none so far */
	bool timers_only; /* the host engine refused the target */
};

/* @config is borrowed; @stacks_of (with @userdata) finds a process' stacks. 0 or -ENOMEM. */
int host_sampling_new(const struct config *config, kernel_frames_find_fn *stacks_of, void *userdata,
		      struct host_sampling **ret);
struct host_sampling *host_sampling_free(struct host_sampling *s);
/* The interval that a target can have from the host engine; 0 = it has to use CPU timers. */
uint64_t host_sampling_wanted(struct host_sampling *s, const struct host_sampling_target *e,
			      uint64_t interval_ns);
/* To be called after a report of the agent of @t, once a second and when it changes. */
void host_sampling_follow(struct host_sampling *s, struct target *t,
			  struct host_sampling_target *e);
/* @t no longer gets signals. */
void host_sampling_stop(struct host_sampling *s, const struct target *t);
/* Once a second, also after the JVM has ended: drops stacks for which no sample came. */
void host_sampling_expire(struct host_sampling_target *e);
void host_sampling_target_deinit(struct host_sampling_target *e);
/* The kernel frames of @sample; the caller frees what is returned by kernel_stack_free_all(). */
struct kernel_stack *host_sampling_take(struct host_sampling *s, struct host_sampling_target *e,
					const struct target *t, const struct stream_sample *sample,
					struct live_kernel *ret);
/* Once a second: takes what ticks left behind. */
void host_sampling_tick(struct host_sampling *s);
/* See host_sampler() and host_kernel_frames(). */
const struct host_engine *host_sampling_engine(const struct host_sampling *s, const char **ret_why);
/* The engine of off-CPU time; NULL = *@ret_why says why there is none. Its targets are the host
 * engine's whose agents collect the event; its tick is host_sampling_tick(). */
struct offcpu_engine *host_sampling_offcpu(const struct host_sampling *s, const char **ret_why);
/* The measured cost of one tick of a CPU, ns; 0 = unknown. */
uint64_t host_sampling_price_ns(const struct host_sampling *s);
/* What names addresses of the kernel; NULL = nothing does. */
struct kernel_frames *host_sampling_names(struct host_sampling *s);
const struct kernel_frames *host_sampling_frames(const struct host_sampling *s);

/*
 * The host engine for all targets of this host: loads it for the first of them, passes it the
 * signal handler of each agent, and takes the kernel frames of its ticks. If the kernel refuses it
 * that is no error: status has the reason, and CPU timers take the samples.
 */
#pragma once

#include <stdbool.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/core/config.h"
#include "daemon/host/kernel_frames.h"
#include "daemon/target/target.h"

struct host_sampling;

/* The state of each target, as a part of struct host_entry. */
struct host_sampling_target {
	struct kernel_stacks *stacks; /* NULL = none have come yet */
	bool timers_only; /* the host engine refused this target */
};

/* @config is borrowed; @stacks_of (with @userdata) finds a process's stacks. 0 or -ENOMEM. */
int host_sampling_new(const struct config *config, kernel_frames_find_fn *stacks_of, void *userdata,
		      struct host_sampling **ret);
struct host_sampling *host_sampling_free(struct host_sampling *s);
/* The interval that the host engine can give a target; 0 = the target has to use CPU timers. */
uint64_t host_sampling_wanted(struct host_sampling *s, const struct host_sampling_target *e,
			      uint64_t interval_ns);
/* Called after a report of the agent of @t: once a second, and when something changes. */
void host_sampling_follow(struct host_sampling *s, struct target *t,
			  struct host_sampling_target *e);
/* Sends @t no more signals. */
void host_sampling_stop(struct host_sampling *s, const struct target *t);
/* Once a second, also after the JVM's end: drops stacks whose sample has not come. */
void host_sampling_expire(struct host_sampling_target *e);
void host_sampling_target_deinit(struct host_sampling_target *e);
/* The kernel stacks of @sample; the caller frees them with kernel_stack_free_all(). */
struct kernel_stack *host_sampling_take(struct host_sampling *s, struct host_sampling_target *e,
					const struct target *t, const struct stream_sample *sample,
					struct live_kernel *ret);
/* Once a second: takes what the ticks have left. */
void host_sampling_tick(struct host_sampling *s);
/* See host_sampler() and host_kernel_frames(). */
const struct host_engine *host_sampling_engine(const struct host_sampling *s, const char **ret_why);
/* The off-CPU engine; NULL = there is none, for the reason *ret_why. Its targets are those of the
 * host engine whose agents collect the event; host_sampling_tick() drives it as well. */
struct offcpu_engine *host_sampling_offcpu(const struct host_sampling *s, const char **ret_why);
/* What one tick of one CPU costs, in ns; 0 = unknown. */
uint64_t host_sampling_price_ns(const struct host_sampling *s);
/* Names addresses of the kernel; NULL = nothing does. */
struct kernel_frames *host_sampling_names(struct host_sampling *s);
const struct kernel_frames *host_sampling_frames(const struct host_sampling *s);

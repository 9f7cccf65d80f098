/*
 * The host engine for the targets of a host: loaded for the first of them, told what each agent
 * says of its handler, and asked for the kernel's frames under its ticks. Refusals are a sentence
 * for status, never an error: CPU timers stay.
 */
#pragma once

#include <stdbool.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/core/config.h"
#include "daemon/host/kernel_frames.h"
#include "daemon/target/target.h"

struct host_sampling;

/* What is kept of one target; in the host's entry, by value. */
struct host_sampling_target {
	struct kernel_stacks *stacks; /* that wait for their samples; NULL = none came yet */
	bool timers_only; /* the host engine would not have it */
};

/* @config is borrowed; @stacks_of (with @userdata) finds a process' stacks. 0 or -ENOMEM. */
int host_sampling_new(const struct config *config, kernel_frames_find_fn *stacks_of, void *userdata,
		      struct host_sampling **ret);
struct host_sampling *host_sampling_free(struct host_sampling *s);
/* The interval that a target can have from the host engine; 0 = CPU timers are to do it. */
uint64_t host_sampling_wanted(struct host_sampling *s, const struct host_sampling_target *e,
			      uint64_t interval_ns);
/* After what the agent of @t said of itself, once a second and when it changes. */
void host_sampling_follow(struct host_sampling *s, struct target *t,
			  struct host_sampling_target *e);
/* @t gets no signals any more. */
void host_sampling_stop(struct host_sampling *s, const struct target *t);
/* Once a second, also when the JVM is gone: stacks that no sample came for are given up. */
void host_sampling_expire(struct host_sampling_target *e);
void host_sampling_target_deinit(struct host_sampling_target *e);
/* The kernel's frames of @sample; the caller frees what is returned by kernel_stack_free_all(). */
struct kernel_stack *host_sampling_take(struct host_sampling *s, struct host_sampling_target *e,
					const struct target *t, const struct stream_sample *sample,
					struct live_kernel *ret);
/* Once a second: what ticks left behind. */
void host_sampling_tick(struct host_sampling *s);
/* See host_sampler() and host_kernel_frames(). */
const struct host_engine *host_sampling_engine(const struct host_sampling *s, const char **ret_why);
/* What one tick of a CPU was measured to cost, ns; 0 = not known. */
uint64_t host_sampling_price_ns(const struct host_sampling *s);
const struct kernel_frames *host_sampling_frames(const struct host_sampling *s);

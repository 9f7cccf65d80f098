/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * CLOCK_MONOTONIC without a call. At a switch the scheduler has just read a clock of its own, that
 * of the CPU's run queue. By how much CLOCK_MONOTONIC is ahead of it is found anew every
 * millisecond, for each CPU apart; in between the two drift by less than a microsecond.
 */
#pragma once

#define CLOCK_CHECK_NS	   1000000
#define CLOCK_SLACK_NS	   2000
#define CLOCK_SLACK_SHIFT  11 /* the two drift by at most 1/2048: what NTP may slew */
#define CLOCK_REFUSALS_MAX 64

struct queue_clock {
	__u64 checked; /* the run queue's clock when `ahead_ns` was found; 0 = never */
	__u64 ahead_ns; /* modulo 2^64, because it may be behind */
	__u64 refused; /* comparisons since then that did not fit */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_clock);
} queue_clocks SEC(".maps");

static __always_inline int has_queue_clock(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) &&
	       bpf_core_field_exists(task->sched_info.run_delay) &&
	       bpf_core_field_exists(task->sched_info.last_queued);
}

/*
 * Compares the clocks. The kernel does not always read its clock at a switch: not if it has done so
 * when it woke the thread that gets the CPU now. Then @clock is too old, and the difference is
 * larger than it should be: nothing is learnt from it, unless that goes on.
 */
static void queue_clock_check(struct queue_clock *c, __u64 clock, __u64 now)
{
	__u64 ahead_ns = now - clock;
	__s64 more_ns = (__s64)(ahead_ns - c->ahead_ns);

	if (c->checked && c->refused < CLOCK_REFUSALS_MAX &&
	    more_ns > (__s64)(CLOCK_SLACK_NS + ((clock - c->checked) >> CLOCK_SLACK_SHIFT))) {
		c->refused++;
		return;
	}
	c->checked = clock;
	c->ahead_ns = ahead_ns;
	c->refused = 0;
}

/* The time of the switch away from @prev. An idle CPU's clock is from before it woke up. */
static __always_inline __u64 switch_ns(struct task_struct *prev)
{
	__u32 zero = 0;
	struct queue_clock *c = bpf_map_lookup_elem(&queue_clocks, &zero);
	__u64 clock, now;

	if (!c || prev->pid == 0 || !has_queue_clock(prev))
		return bpf_ktime_get_ns();
	clock = prev->se.cfs_rq->rq->clock;
	if (clock - c->checked < CLOCK_CHECK_NS)
		return clock + c->ahead_ns;
	now = bpf_ktime_get_ns();
	queue_clock_check(c, clock, now);
	return now;
}

/* The time at which @task, which runs on this CPU, wakes another thread, or up to a tick before:
 * when the scheduler last read this CPU's clock. Never before @after_ns. */
static __always_inline __u64 waking_ns(struct task_struct *task, __u64 after_ns)
{
	__u32 zero = 0;
	struct queue_clock *c = bpf_map_lookup_elem(&queue_clocks, &zero);
	__u64 ns = 0;

	if (c && task->pid && has_queue_clock(task))
		ns = task->se.cfs_rq->rq->clock + c->ahead_ns;
	return c && c->checked && ns >= after_ns ? ns : bpf_ktime_get_ns();
}

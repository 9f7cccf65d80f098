/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * Waits for the next CPU quota of a thread's cgroup. From Linux 6.18 on the kernel takes such a
 * thread out of the run queue on its way to user mode, and says so in the thread. Before, it takes
 * the group's whole run queue away from its CPU (throttle_cfs_rq() in kernel/sched/fair.c): the
 * threads in it are runnable for the kernel, and so are those that wake up meanwhile. How long it
 * was away is in the group's run queue.
 */
#pragma once

#define MAX_RT_PRIO	 100 /* include/linux/sched/prio.h */
#define THROTTLED_NS_MIN 500000 /* shorter times in run queues are not looked at */

/* Is the kernel one before Linux 6.18, and @task in a run queue of a group? A real-time thread is
 * in another one, which has no quota of this kind. */
static __always_inline int throttles_groups(struct task_struct *task)
{
	return !bpf_core_field_exists(task->throttled) && bpf_core_field_exists(task->se.cfs_rq) &&
	       bpf_core_field_exists(task->se.cfs_rq->throttle_count) && task->prio >= MAX_RT_PRIO;
}

/* Does @task, which is runnable and leaves the CPU, wait for its quota? */
static int is_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	return throttles_groups(task) && task->se.cfs_rq->throttle_count > 0;
}

/* For how long the group's run queue in which @task is was away from its CPU until now, in the
 * units of struct offcpu_thread, modulo 2^32. */
static __always_inline __u32 group_throttled(struct task_struct *task)
{
	__u64 ns = 0;

	if (bpf_core_field_exists(task->se.cfs_rq->throttled_clock_self_time))
		ns = task->se.cfs_rq->throttled_clock_self_time;
	else if (bpf_core_field_exists(task->se.cfs_rq->throttled_clock_pelt_time))
		ns = task->se.cfs_rq->throttled_clock_pelt_time;
	else if (bpf_core_field_exists(task->se.cfs_rq->throttled_clock_task_time))
		ns = task->se.cfs_rq->throttled_clock_task_time;
	return (__u32)(ns >> OFFCPU_THROTTLED_SHIFT);
}

/* Notes the group's run queue and its time when @task becomes runnable without the CPU. */
static __always_inline void throttled_begin(struct offcpu_thread *t, struct task_struct *task)
{
	if (!throttles_groups(task))
		return;
	t->group_queue = (__u32)(__u64)task->se.cfs_rq;
	t->group_throttled = group_throttled(task);
}

/* Is it known for how long @task was without quota since throttled_begin()? Not if it was taken to
 * the run queue of another CPU meanwhile. */
static __always_inline int throttled_is_known(const struct offcpu_thread *t,
					      struct task_struct *task)
{
	return throttles_groups(task) && t->group_queue == (__u32)(__u64)task->se.cfs_rq;
}

/* For how much of the @queue_ns since throttled_begin() @task was without quota, if that is known.
 * Only the times when that had ended count: it has the CPU now. */
static __always_inline __u64 throttled_since(const struct offcpu_thread *t,
					     struct task_struct *task, __u64 queue_ns)
{
	__u32 passed = group_throttled(task) - t->group_throttled;
	__u64 ns = (__u64)passed << OFFCPU_THROTTLED_SHIFT;

	return ns < queue_ns ? ns : queue_ns;
}

/*
 * Returns for how much of @queue_ns, at the end of a time off the CPU of @off_ns, @task was without
 * quota. A thread that was put off the CPU is in one class for all that time, by what is most of
 * it: then this sets the class and @queue_ns, and returns 0.
 */
static __always_inline __u64 throttled_end(struct offcpu_thread *t, struct task_struct *task,
					   __u64 off_ns, __u64 *queue_ns)
{
	int put_off = t->state == 'R';
	__u64 runnable_ns = put_off ? off_ns : *queue_ns, ns;

	if (runnable_ns < THROTTLED_NS_MIN || !(put_off || t->woken_ns) ||
	    !throttled_is_known(t, task))
		return 0;
	ns = throttled_since(t, task, runnable_ns);
	if (!put_off)
		return ns;
	t->class = ns > off_ns / 2 ? OFFCPU_THROTTLED : OFFCPU_RUNQUEUE;
	*queue_ns = ns > off_ns / 2 ? off_ns - ns : off_ns;
	return 0;
}

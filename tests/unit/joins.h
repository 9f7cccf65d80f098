/* A join for each test, and records for it. */
#pragma once

#include <stdio.h>
#include <string.h>
#include "daemon/host/offcpu_join.h"
#include "proto/host_cookie.h"
#include "tests/unit/unit.h"

#define MS	1000000ull
#define S	1000000000ull
#define CARRIER 9u
#define VIRTUAL (WIRE_VIRTUAL_TID | 77u)

static struct offcpu_join *join;
static struct offcpu_event last;
static char last_class[40], last_trace[40];
static bool safepoint_is_known = true;
static bool parks_to_sleep; /* as the stack of a virtual thread shows it */
static unsigned events;
static enum offcpu_usual usual; /* what the last offcpu_join_lock() returned */
static uint64_t total_ns, spared_ns; /* spared_ns: for offcpu_join_lock() */

/* The reason from the status alone; test_offcpu_event.c tests stacks. */
static inline void explain(void *userdata, struct offcpu_event *e)
{
	static const enum offcpu_reason reasons[WIRE_OFFCPU_STATUS_COUNT] = {
		[WIRE_OFFCPU_NONE] = OFFCPU_REASON_OTHER,
		[WIRE_OFFCPU_RUNNABLE] = OFFCPU_REASON_OTHER,
		[WIRE_OFFCPU_SLEEP] = OFFCPU_REASON_SLEEP,
		[WIRE_OFFCPU_WAIT] = OFFCPU_REASON_WAIT,
		[WIRE_OFFCPU_PARK] = OFFCPU_REASON_PARK,
		[WIRE_OFFCPU_LOCK] = OFFCPU_REASON_LOCK,
		[WIRE_OFFCPU_BLOCKED_IN_VM] = OFFCPU_REASON_SAFEPOINT,
		[WIRE_OFFCPU_GC] = OFFCPU_REASON_GC,
		[WIRE_OFFCPU_UNMOUNTED] = OFFCPU_REASON_PARK,
	};

	(void)userdata;
	e->reason = reasons[e->status];
	e->unsettled = e->reason == OFFCPU_REASON_SAFEPOINT && !safepoint_is_known;
	if (e->unsettled)
		e->reason = OFFCPU_REASON_OTHER;
	if (parks_to_sleep && (e->status == WIRE_OFFCPU_PARK || e->status == WIRE_OFFCPU_UNMOUNTED))
		e->reason = OFFCPU_REASON_SLEEP;
}

static inline void on_event(void *userdata, const struct offcpu_event *e)
{
	(void)userdata;
	events++;
	total_ns += e->duration_ns;
	last = *e;
	snprintf(last_class, sizeof(last_class), "%s", e->lock ? e->lock->class_name : "");
	snprintf(last_trace, sizeof(last_trace), "%s", e->trace ? e->trace->trace_id : "");
}

static inline int setup(void **state)
{
	(void)state;
	events = 0;
	total_ns = spared_ns = 0;
	usual = OFFCPU_USUAL_NONE;
	return offcpu_join_new(explain, on_event, NULL, &join);
}

static inline int teardown(void **state)
{
	(void)state;
	join = offcpu_join_free(join);
	return 0;
}

static inline void kernel(uint32_t tid, uint64_t end_ns, uint64_t duration_ns, uint64_t stay_ns,
			  bool signalled, unsigned kernel_class)
{
	const uint64_t ips[] = { 0xffffffff81000000, 0xffffffff81000001 };
	const struct offcpu_kernel k = {
		.end_ns = end_ns,
		.duration_ns = duration_ns,
		.runqueue_ns = 5,
		.stay_ns = stay_ns,
		.tid = tid,
		.syscall_nr = 202,
		.kernel_class = kernel_class,
		.signalled = signalled,
	};

	offcpu_join_kernel(join, &k, ips, 2, end_ns);
}

static inline void agent(uint32_t tid, uint64_t at_ns, uint64_t duration_ns, uint8_t status)
{
	char trace[] = "4bf92f", span[] = "00f067";
	const struct stream_context context = { trace, span };
	const struct stream_offcpu o = {
		.mono_ns = at_ns,
		.duration_ns = duration_ns,
		.tid = tid,
		.virtual_tid = tid == CARRIER ? VIRTUAL : 0,
		.node = 3,
		.status = status,
		.trace = &context,
	};

	offcpu_join_agent(join, &o, at_ns);
	memset(trace, 'x', sizeof(trace) - 1); /* the stream gives the same id another meaning */
}

static inline struct stream_lock made_wait(uint32_t tid, uint64_t end_ns, uint64_t duration_ns)
{
	return (struct stream_lock){
		.begin_ns = end_ns - duration_ns,
		.duration_ns = duration_ns,
		.tid = tid,
		.owner_tid = 8,
		.wait = WIRE_WAIT_PARK,
		.class_name = "org.shop.Cache",
		.node = 4,
		.thread = "",
		.owner = "",
	};
}

static inline void lock_wait_for(uint32_t tid, uint64_t end_ns, uint64_t duration_ns, uint8_t flags,
				 bool idle)
{
	struct stream_lock w = made_wait(tid, end_ns, duration_ns);

	w.flags = flags;
	w.waits = flags & WIRE_LOCK_SUM ? 3 : 1;
	usual = offcpu_join_lock(join, &w, idle, spared_ns, false);
}

static inline void lock_wait_of(uint8_t kind, uint32_t tid, uint64_t end_ns, uint64_t duration_ns,
				uint8_t flags)
{
	struct stream_lock w = made_wait(tid, end_ns, duration_ns);

	w.wait = kind;
	w.flags = flags;
	(void)offcpu_join_lock(join, &w, false, 0, false);
}

/* A thread that enters a monitor wakes up by itself. */
static inline void step(uint32_t tid, uint64_t end_ns, uint64_t duration_ns)
{
	kernel(tid, end_ns, duration_ns, 0, true, OFFCPU_FUTEX);
	agent(tid, end_ns, duration_ns, WIRE_OFFCPU_LOCK);
}

static inline void lock_wait(uint32_t tid, uint64_t end_ns, uint64_t duration_ns, uint8_t flags)
{
	lock_wait_for(tid, end_ns, duration_ns, flags, false);
}

static inline struct offcpu_join_counts counts(void)
{
	struct offcpu_join_counts c;

	offcpu_join_counts(join, &c);
	return c;
}

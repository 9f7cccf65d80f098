/*
 * The event loop, the only place where a process waits: epoll, level-triggered. A callback does
 * bounded work and returns. It may free any source or timer, its own included; a freed one is never
 * called again. Sources borrow their fd: free the source first, then close the fd, because epoll
 * watches the open file description, not the number (epoll(7)).
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

struct loop;
struct loop_source;
struct loop_timer;

/* @events: EPOLLIN | EPOLLOUT | EPOLLHUP ..., as returned by epoll_wait(2) */
typedef void loop_io_fn(void *userdata, uint32_t events);
typedef void loop_timer_fn(void *userdata);
typedef void loop_signal_fn(void *userdata, int signo);

int loop_new(struct loop **ret); /* 0 or -errno */
struct loop *loop_free(struct loop *loop); /* after all sources and timers; returns NULL */
DEFINE_FREEP(struct loop, loop_free);

/* Calls @fn when @fd, borrowed, has one of @events. 0 or -errno; the caller frees *ret. */
int loop_add(struct loop *loop, int fd, uint32_t events, loop_io_fn *fn, void *userdata,
	     struct loop_source **ret);
struct loop_source *loop_source_free(struct loop_source *s); /* NULL is fine; returns NULL */

/* Calls @fn after @delay_ns, and then every @period_ns; a period of 0 = once. UINT64_MAX as delay:
 * not until loop_timer_set(). 0 or -errno; the caller frees *ret, also after a single call. */
int loop_timer_add(struct loop *loop, uint64_t delay_ns, uint64_t period_ns, loop_timer_fn *fn,
		   void *userdata, struct loop_timer **ret);
void loop_timer_set(struct loop_timer *t, uint64_t delay_ns, uint64_t period_ns);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* Blocks @signo, and calls @fn from the loop instead (signalfd(2)). One function per signal; a
 * later call replaces it. 0 or -errno. */
int loop_signal(struct loop *loop, int signo, loop_signal_fn *fn, void *userdata);

/* Runs until loop_stop(); returns its @result, or -errno if the loop itself has failed. */
int loop_run(struct loop *loop);
/* Runs one round, which waits at most @timeout_ns (tests, progress of `record`). 0 or -errno. */
int loop_round(struct loop *loop, uint64_t timeout_ns);
void loop_stop(struct loop *loop, int result);

/* The time, CLOCK_MONOTONIC and CLOCK_REALTIME, read once in each round, when it is first asked
 * for: it is as old as the round. For events of which there are many in a round. */
struct loop_now {
	uint64_t mono_ns, real_ns;
};
const struct loop_now *loop_now(struct loop *loop);

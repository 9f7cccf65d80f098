/*
 * The one place that waits: epoll, level-triggered. A callback does bounded work and returns; it
 * may free any source or timer, its own included, and none that was freed is called afterwards.
 * Sources borrow their fd: free the source, then close the fd (epoll follows the open file, not the
 * number, epoll(7)).
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

struct loop;
struct loop_source;
struct loop_timer;

/* @events: EPOLLIN | EPOLLOUT | EPOLLHUP ... as epoll gave them */
typedef void loop_io_fn(void *userdata, uint32_t events);
typedef void loop_timer_fn(void *userdata);
typedef void loop_signal_fn(void *userdata, int signo);

int loop_new(struct loop **ret); /* 0 or -errno */
struct loop *loop_free(struct loop *loop); /* after all sources and timers; returns NULL */
DEFINE_FREEP(struct loop, loop_free);

int loop_add(struct loop *loop, int fd, uint32_t events, loop_io_fn *fn, void *userdata,
	     struct loop_source **ret);
struct loop_source *loop_source_free(struct loop_source *s); /* NULL is fine; returns NULL */

/* First call after @delay_ns, then every @period_ns; a period of 0 = once (still to be freed). */
int loop_timer_add(struct loop *loop, uint64_t delay_ns, uint64_t period_ns, loop_timer_fn *fn,
		   void *userdata, struct loop_timer **ret);
void loop_timer_set(struct loop_timer *t, uint64_t delay_ns, uint64_t period_ns);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* Block @signo and deliver it as a call from the loop (signalfd). One handler per signal. */
int loop_signal(struct loop *loop, int signo, loop_signal_fn *fn, void *userdata);

/* Run until loop_stop(); returns its @result, or -errno when the loop itself broke. */
int loop_run(struct loop *loop);
/* One round that waits at most @timeout_ns (tests, record's progress). */
int loop_round(struct loop *loop, uint64_t timeout_ns);
void loop_stop(struct loop *loop, int result);

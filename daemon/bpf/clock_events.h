/*
 * The clocks of the host engine: on every CPU a few software clock events, each with a fixed period
 * drawn at random; one BPF program runs at their ticks. Together they tick once per wanted
 * interval. A single period would alias with a program that has the same rhythm or a multiple of
 * it. A period drawn anew at every tick would restart the clock each time and lose what it had
 * counted. So several fixed periods beat against each other, and now and then those of one CPU are
 * drawn anew.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

#define CLOCK_EVENTS_PER_CPU 3

struct clock_events;

/* 0, or -errno: the kernel refuses even one. Nothing ticks before clock_events_set(). */
int clock_events_new(int prog_fd, struct clock_events **ret);
struct clock_events *clock_events_free(struct clock_events *c);
DEFINE_FREEP(struct clock_events, clock_events_free);
/* From now on each online CPU ticks once per @interval_ns on average; 0 = no ticks. After an error
 * there are no ticks either. */
int clock_events_set(struct clock_events *c, uint64_t interval_ns);
/* To be called once a second: draws periods anew, and starts clocks on CPUs that came online. */
void clock_events_tick(struct clock_events *c);
/* Periods whose ticks together come once per @interval_ns; ret[CLOCK_EVENTS_PER_CPU]. */
void clock_events_draw(uint64_t interval_ns, uint64_t *ret);
/*
 * The cost of one tick, program included: the median of the gaps that about a hundred ticks leave
 * in the caller's own time; takes 10 to 40 ms. 0 = it could not be measured.
 */
uint64_t clock_events_price(int prog_fd);

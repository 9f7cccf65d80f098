/*
 * The clocks of the host engine: on every CPU a few software clock events, each with a fixed period
 * drawn at random, at whose ticks one BPF program runs. Together they tick once in the wanted
 * interval. A single period would alias with a program that has the same rhythm, or a multiple; one
 * that is drawn anew at every tick costs a restart of the clock each time, and what it had counted.
 * So several beat against each other, and now and then those of one CPU are drawn anew.
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
/* From now on a tick in @interval_ns on every CPU that is online, on average; 0 = none. After an
 * error there are none either. */
int clock_events_set(struct clock_events *c, uint64_t interval_ns);
/* Once a second: periods are drawn anew, CPUs that came online get theirs. */
void clock_events_tick(struct clock_events *c);
/* Periods whose ticks come once in @interval_ns together; ret[CLOCK_EVENTS_PER_CPU]. */
void clock_events_draw(uint64_t interval_ns, uint64_t *ret);
/*
 * What one tick costs here, program included: the median of the gaps that a hundred of them tear
 * into the caller's own time, which takes 10 to 40 ms. 0 = it could not be measured.
 */
uint64_t clock_events_price(int prog_fd);

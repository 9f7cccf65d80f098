/*
 * The clocks of the host engine: on every CPU a few software clock events, each with a fixed period
 * drawn at random. One BPF program runs at their ticks, and together they tick once per interval. A
 * single period would alias with a program that has the same rhythm or a multiple of it. A new
 * period at every tick would restart the clock each time and lose the time that it had counted. So
 * there are several fixed periods, and now and then those of one CPU are drawn anew.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

#define CLOCK_EVENTS_PER_CPU 3

struct clock_events;

/* 0, or -errno if the kernel refuses clock events. Nothing ticks before clock_events_set().
 * @prog_fd is borrowed. */
int clock_events_new(int prog_fd, struct clock_events **ret);
struct clock_events *clock_events_free(struct clock_events *c);
DEFINE_FREEP(struct clock_events, clock_events_free);
/* From now on each online CPU ticks once per @interval_ns on average; 0 = no ticks. 0 or -errno;
 * after an error there are no ticks. */
int clock_events_set(struct clock_events *c, uint64_t interval_ns);
/*
 * To be called once a second: draws periods anew, and starts clocks on CPUs that came online.
 * @ticks: of each of the @n CPUs, counted by the program. The kernel ends the events of a CPU that
 * goes offline and tells nobody: a CPU that does not tick any more gets new ones.
 */
void clock_events_tick(struct clock_events *c, const uint64_t *ticks, int n);
/* Draws periods, in ns, whose ticks together come once per @interval_ns;
 * ret[CLOCK_EVENTS_PER_CPU]. */
void clock_events_draw(uint64_t interval_ns, uint64_t *ret);
/*
 * The cost of one tick in ns, including the program: of the gaps that ticks leave in the caller's
 * own time, a hundred at most, the one in the middle of the time of all. The call takes 5 to 40 ms.
 * 0 = could not be measured.
 */
uint64_t clock_events_price(int prog_fd);

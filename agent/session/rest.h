/*
 * When the agent's thread wakes. Each wake-up finds the caches cold and costs some ten
 * microseconds, more than what it is for. So:
 *   - a sample after a while without any wakes it at once;
 *   - while they come steadily it looks ten times a second, and is woken only by what cannot wait:
 *     the first sample of a thread, whose name may soon be gone, and a ring that fills up;
 *   - its looks at threads, libraries and signals follow samples, once a second at most, and
 * without any more and more rarely. No clock is read here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sampling begins. */
void rest_begin(uint64_t now_ns);
/* The ring was emptied; @some: there was something in it. */
void rest_batch(uint64_t now_ns, bool some);
/* Is it worth while to let more samples come before the ring is emptied? */
bool rest_gathers(uint64_t now_ns);
/* Until when samples need not wake the thread; 0 = the next one does. */
uint64_t rest_until_ns(void);

/* The look at threads, libraries and signals: when it is due, and that it was done. @quiet: nothing
 * was found, nothing was sampled since the one before, nothing is left to do. */
uint64_t rest_look_ns(void);
void rest_looked(uint64_t now_ns, bool quiet);

/*
 * When the agent's thread wakes. A wake-up with cold caches costs some ten microseconds, more than
 * the work it does. So:
 *   - the first sample after a pause wakes the thread at once;
 *   - while samples come steadily the thread reads the ring ten times a second, and only what is
 * urgent wakes it earlier: the first sample of a thread, whose name may soon be gone, and a ring
 * that fills up;
 *   - it looks at threads, libraries and signals after samples, once a second at most, and ever
 * more rarely while there are none. The caller passes the time in; no clock is read here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sampling begins. */
void rest_begin(uint64_t now_ns);
/* The ring was emptied; @some: there was something in it. */
void rest_batch(uint64_t now_ns, bool some);
/* Do samples come so steadily that the ring should gather more of them before it is read? */
bool rest_gathers(uint64_t now_ns);
/* Until when samples need not wake the thread; 0 = the next one does. */
uint64_t rest_until_ns(void);

/* The look at threads, libraries and signals: when it is due, and that it was done. @quiet: nothing
 * was found, nothing was sampled since the one before, nothing is left to do. */
uint64_t rest_look_ns(void);
void rest_looked(uint64_t now_ns, bool quiet);

/*
 * When the agent's thread wakes up. A wake-up with cold caches costs some ten microseconds, more
 * than the work it does. So:
 *
 * - The first sample, or wait, after a pause wakes the thread at once.
 *
 * - While they come steadily, the thread reads the ring ten times a second. Only three urgent
 * cases wake it earlier: the first sample of a thread, whose name may soon be gone; a wait after
 * which there is a safepoint to record, before the next one; and a ring that fills up.
 *
 * - After samples it also checks threads, libraries and signals, at most once a second, and ever
 * more rarely while there are none.
 *
 * Callers pass the time; no clock is read here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sampling begins. */
void rest_begin(uint64_t now_ns);
/* The ring has been emptied; @some: it held something. */
void rest_batch(uint64_t now_ns, bool some);
/* Do samples come so steadily that the ring should gather more of them before the next read? */
bool rest_gathers(uint64_t now_ns);
/* Samples need not wake the thread before this time; 0 = the next one does. */
uint64_t rest_until_ns(void);

/* rest_check_ns() returns when the periodic check of threads, libraries and signals is due,
 * CLOCK_MONOTONIC. rest_checked() is called after it. @quiet: the check found nothing, no sample
 * came since the previous one, and nothing is left to do. */
uint64_t rest_check_ns(void);
void rest_checked(uint64_t now_ns, bool quiet);

/*
 * 43 system calls that block, or that copy for long, each of which can tell whether a signal cut it
 * short: for test_undisturbed in a child of its own, and for undisturbed_jni.c in a JVM. What they
 * wait for is done a moment later by a thread that has all signals blocked.
 */
#pragma once

#include <stdint.h>

#define UNDISTURBED_CALLS 43
#define UNDISTURBED_RUNS  10 /* of each */

enum undisturbed_result {
	UNDISTURBED_FINE,
	UNDISTURBED_CUT, /* EINTR */
	UNDISTURBED_SHORT, /* less than was asked for */
	UNDISTURBED_WRONG, /* anything else */
	UNDISTURBED_RESULTS
};

/* Once in a process, before the others: what the calls are made on. Ends the process, with a number
 * above 9, where that cannot be had. */
void undisturbed_open(void);
/* All calls, from the thread that calls it; adds to @results. */
void undisturbed_run(uint32_t results[UNDISTURBED_CALLS][UNDISTURBED_RESULTS]);
/* Gives back what outlives a process. */
void undisturbed_close(void);
/* The name of a call; @i is below UNDISTURBED_CALLS. */
const char *undisturbed_name(unsigned i);

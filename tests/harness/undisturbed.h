/*
 * Makes 43 system calls that block, or that copy for a long time, and finds out for each whether a
 * signal interrupted it: for test_undisturbed in a child process, and for undisturbed_jni.c in a
 * JVM. A thread that blocks all signals ends the waits after a short time.
 */
#pragma once

#include <stdint.h>

#define UNDISTURBED_CALLS 43
#define UNDISTURBED_RUNS  10 /* of each */

enum undisturbed_result {
	UNDISTURBED_FINE,
	UNDISTURBED_CUT, /* EINTR */
	UNDISTURBED_SHORT, /* transferred less than was asked for */
	UNDISTURBED_WRONG, /* anything else */
	UNDISTURBED_RESULTS
};

/* Call it once in a process, before the others: makes the pipes, sockets and files for the
 * calls. If that fails it ends the process with a status above 9. */
void undisturbed_open(void);
/* Makes all calls in the calling thread; adds to @results. */
void undisturbed_run(uint32_t results[UNDISTURBED_CALLS][UNDISTURBED_RESULTS]);
/* Removes what would outlive the process, such as IPC objects. */
void undisturbed_close(void);
/* The name of a call; @i is below UNDISTURBED_CALLS. */
const char *undisturbed_name(unsigned i);

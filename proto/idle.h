/*
 * Decides which waits are idle, that is, waits for work: a worker of a pool at an empty queue, a
 * timer between two ticks, an event loop with nothing to do. The stack alone decides, read from the
 * leaf towards the root. Frames that only carry out the wait (the plumbing: the JDK's, queues) are
 * skipped.
 * The next frame decides: it is either in the table of methods that wait only for work, or any
 * other method, which waits for a reason of its own. So a task that waits inside its worker is
 * never idle, although the worker's loop is further down.
 *
 * The agent asks when a wait ends, so that idle waits cost next to nothing; the daemon asks for all
 * waits that it receives. Both use this table, so they agree. A user can add methods to the table
 * (the setting `idle`), which the daemon passes on to its agents.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_FRAMES_MAX 48 /* no wait has more frames of plumbing */
#define IDLE_ADDED_MAX	1024 /* bytes of the names that a user adds, with the NUL */

/* The decision after one frame of a stack, read from the leaf. */
enum idle_sight {
	IDLE_UNDECIDED, /* the frame carries out the wait: its caller decides */
	IDLE_NO,
	IDLE_YES,
};
/* @class_name: with dots or slashes. */
enum idle_sight idle_frame(const char *class_name, const char *method);

/*
 * Replaces the names that a user has added: classes with dots, each alone or followed by a dot and
 * a method, separated by commas; @len 0 = none. A text of IDLE_ADDED_MAX bytes or more is cut. One
 * thread at a time; others may call idle_frame() meanwhile, and use the old names or the new ones.
 */
void idle_add(const char *names, size_t len);
/* A number that changes with these names: whoever keeps answers of idle_frame() asks again then. */
uint16_t idle_version(void);

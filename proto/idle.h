/*
 * Which waits are for want of work: a worker of a pool at an empty queue, a timer between two
 * ticks, an event loop with nothing to do. Told by the stack alone, from the leaf towards the root:
 * frames of the JDK that wait (the plumbing) are passed by, until one that is in the table, which
 * waits for work only, or one of anybody else, who waits for a reason of his own. So a task that
 * waits inside of its worker is never idle, though the worker's loop is further down.
 *
 * The agent asks when a wait ends, so that idle ones cost next to nothing; the daemon asks for all
 * that it is told. One table, so that the two cannot differ. Pure.
 */
#pragma once

#include <stdbool.h>

#define IDLE_FRAMES_MAX 48 /* the plumbing of no wait is deeper */

/* One frame of a stack, from its leaf on: what it says of the whole. */
enum idle_sight {
	IDLE_UNDECIDED, /* part of the waiting itself: look at its caller */
	IDLE_NO,
	IDLE_YES,
};
/* @class_name: with dots or slashes. */
enum idle_sight idle_frame(const char *class_name, const char *method);

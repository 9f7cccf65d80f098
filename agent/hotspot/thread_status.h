/*
 * What the JVM says of a thread that has just come back to the CPU, read by the thread itself in
 * the handler: Thread.threadStatus, from which Thread.getState() is made, and the state of its
 * JavaThread. The JVM sets both before it blocks and after it goes on, so between them they are
 * those of the wait. Sources: javaThreadStatus.hpp, globalDefinitions.hpp (JavaThreadState).
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

struct thread_status_layout {
	int32_t eetop, status; /* of a Thread; -1 = unknown: every answer is "none" */
	int32_t holder; /* JDK 19 and later: Thread.holder, in which status lies; -1 = in Thread */
	bool slot_is_object; /* a JavaThread has the Thread itself, not a handle of it */
};
extern struct thread_status_layout thread_status_layout_sig;

/* Agent's thread, when the walker begins. What cannot be found out leaves "none". */
void thread_status_init(JNIEnv *env);
/*
 * Handler, after a walk or guard_begin_sig(): enum wire_offcpu_status of the calling thread, which
 * was off the CPU from @begin_ns to @now_ns (CLOCK_MONOTONIC).
 */
uint8_t thread_status_sig(uint64_t begin_ns, uint64_t now_ns);

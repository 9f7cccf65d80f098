/*
 * Reads, in the handler of a thread that has just returned to the CPU, what the JVM knows about the
 * wait: Thread.threadStatus, from which Thread.getState() is derived, and the state of the
 * JavaThread. The JVM sets both before it blocks and resets them after it has resumed, so in the
 * handler they still describe the wait. While a collector moves the Thread its status cannot be
 * read; the JavaThread, which no collector moves, still has the monitor that it enters.
 * Sources: javaThreadStatus.hpp, globalDefinitions.hpp (JavaThreadState), objectMonitor.cpp.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

struct thread_status_layout {
	int32_t eetop, status; /* offsets in a Thread; -1 = unknown, then every answer is "none" */
	/* JDK 19 and later: Thread.holder, which contains status; -1 = status is in Thread */
	int32_t holder;
	/* a JavaThread refers to the Thread directly rather than by a handle */
	bool slot_is_object;
	int32_t pending; /* in a JavaThread: the monitor that it enters; -1 = unknown */
};
extern struct thread_status_layout thread_status_layout_sig;

/* Agent's thread, when the walker starts. If a field is not found, every answer is "none". */
void thread_status_init(JNIEnv *env);
/*
 * Handler, after a walk or guard_begin_sig(): enum wire_offcpu_status of the calling thread, which
 * was off the CPU from @begin_ns to @now_ns (CLOCK_MONOTONIC).
 */
uint8_t thread_status_sig(uint64_t begin_ns, uint64_t now_ns);
/* Likewise what Thread.threadStatus, in JVMTI's bits, says alone: a wait, or RUNNABLE. */
uint8_t thread_status_of_sig(uint32_t status);

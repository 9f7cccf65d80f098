/*
 * The agent's own walker: reads HotSpot's frames in the signal handler, from the interrupted
 * registers to the thread's first Java frame, with the offsets of layout.h. Each kind of frame has
 * a file: interpreted, compiled, stubs, continuations of virtual threads. Code that depends on the
 * processor's instructions is in files with the processor in their names.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include "agent/base/walk.h"

/* Agent's thread. 0, or -errno with the reason, a static text, in *why: then the caller uses
 * AsyncGetCallTrace. */
int hotspot_init(JNIEnv *env, const char **why);
void hotspot_deinit(bool quiescent);
/* Agent's thread, periodically: learns what code the JVM has generated since the last call. */
void hotspot_refresh(void);
uint64_t hotspot_bytes(void);

/* Handler, between guard_enter_sig() and guard_leave_sig(). */
void hotspot_walk_sig(struct walk *w, void *ucontext);
/* Application threads and the agent's thread: the stack from the last Java frame of the calling
 * thread (@thread = 0), which is in native state, or of a blocked thread. @enough: see
 * walk_anchor_until_sig(). */
void hotspot_walk_anchor_sig(struct walk *w, uint64_t thread, walk_enough_fn *enough);

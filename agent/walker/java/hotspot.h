/*
 * Our own walk through HotSpot's frames, in the signal handler, from the interrupted registers to
 * the thread's first Java frame, over the layout in layout.h. Every case met is a file: interpreted
 * frames, compiled ones, stubs, continuations of virtual threads. What depends on the processor's
 * instructions is in files that end in its name.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include "agent/base/walk.h"

/* Agent's thread. 0, or -errno with a sentence in *why: AsyncGetCallTrace is to be used then. */
int hotspot_init(JNIEnv *env, const char **why);
void hotspot_deinit(bool quiescent);
/* Agent's thread, now and then: what the JVM has made since. */
void hotspot_refresh(void);
uint64_t hotspot_bytes(void);

/* Handler, between guard_enter_sig() and guard_leave_sig(). */
void hotspot_walk_sig(struct walk *w, void *ucontext);
/* The same from where a thread left Java: its own (in native state), or that of one that is
 * blocked.
 * @enough: see walk_anchor_until_sig(); NULL = the whole stack. */
void hotspot_walk_anchor_sig(struct walk *w, uint64_t thread, walk_enough_fn *enough);

/*
 * The fallback walker: AsyncGetCallTrace of the JVM for Java frames, and native frames from
 * unwind.h. It needs a JVMTI environment and a jmethodID of every method, and gets no stack for
 * many samples in stubs, prologues and epilogues. walker.c uses it if java/ does not know the JVM.
 */
#pragma once

#include <jni.h>
#include "agent/base/walk.h"

/* Agent's thread, attached to the JVM. 0, or -errno with the reason, a static text, in *why. */
int asgct_init(JavaVM *vm, JNIEnv *env, const char **why);
void asgct_deinit(void);
uint64_t asgct_bytes(void);
bool asgct_resolve_method(uint64_t where, struct walk_method *ret);
int32_t asgct_resolve_line(uint64_t where, int32_t bci);

void asgct_walk_sig(struct walk *w, void *ucontext);

/*
 * Trace ids: what a tracer (OpenTelemetry, SkyWalking, Brave, or a logging framework's MDC) had
 * under way in a thread when it was sampled, read out of the thread's ThreadLocalMap. Nothing of
 * the application changes: no bytecode, no class is loaded, nothing is written to its heap.
 *
 * The agent's thread finds tracers by looking (JNI): it compares the names of the classes of what
 * threads keep in their ThreadLocals. A hit gives the ThreadLocal's hash, which no two of them
 * share and no collector moves, and where the classes keep the ids. From then on handlers read them
 * with loads that may fail, comparing the class of each object on the way: what cannot be followed
 * now is no id, never another's.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"
#include "proto/wire.h"

/*
 * Handlers, and application threads in native state: what is traced on @java_thread (0 = the
 * calling thread) into @head, which points to @text (RING_CONTEXT_BYTES) until it is pushed.
 * Nothing if there is none or it is not to be had now. Guarded loads may be made. One load where no
 * tracer is known.
 */
void trace_into_sig(uint64_t java_thread, struct ring_sample *head, char *text);

/* ---- the agent's thread ---- */

/* Calls @look for each virtual thread until it returns false. */
typedef void trace_virtual_fn(bool (*look)(JNIEnv *env, jobject thread, void *context),
			      void *context);

/* What START wants read. May be called again. */
void trace_begin(const struct wire_start *start);
/* Looks for tracers when it is time to; the CPU time that took. */
uint64_t trace_tick(uint64_t now_ns, trace_virtual_fn *virtual_threads);
/* No handler reads any more; everything learnt is forgotten. */
void trace_end(void);

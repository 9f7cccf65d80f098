/*
 * Trace ids: reads the trace id and the span id that were active in a thread when it was sampled,
 * from the thread's ThreadLocalMap, where OpenTelemetry, SkyWalking, Brave and the MDCs of logging
 * frameworks keep them. The application is not changed: no bytecode, no class is loaded, nothing is
 * written to its heap.
 *
 * The agent's thread finds tracers by searching (JNI): it compares the class names of the values in
 * the threads' ThreadLocals. A match gives the hash of the ThreadLocal, which is unique and which
 * no collector changes, and the offsets of the ids in the tracer's classes. From then on handlers
 * read the ids by loads that may fail, and check the class of each object on the way: if a
 * reference cannot be followed, the sample gets no id, never a wrong one.
 *
 * Vert.x, and Quarkus on it, keep their contexts with a request, not with a thread: there the way
 * leads from the thread to its current Context, and through the local data of that.
 *
 * Where that gives no ids, those count that a thread publishes itself, in thread-local storage
 * (trace_tls.h).
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"
#include "proto/wire.h"

/*
 * Called in handlers, and in application threads in native state. Puts the active context of
 * @java_thread (0 = the calling thread) into @head, which then points to @text (RING_CONTEXT_BYTES)
 * until it is pushed. Does nothing if there is none or it cannot be read now. The caller must be
 * allowed to make guarded loads. While no tracer is known this costs one load.
 */
void trace_into_sig(uint64_t java_thread, struct ring_sample *head, char *text);

/* ---- the agent's thread ---- */

/* Calls @on_thread for each virtual thread until it returns false. */
typedef void trace_virtual_fn(bool (*on_thread)(JNIEnv *env, jobject thread, void *context),
			      void *context);

/* Selects the tracers that START asks for. May be called again. */
void trace_begin(const struct wire_start *start);
/* Searches for tracers if it is time. Returns the CPU time that it took, in ns. */
uint64_t trace_tick(uint64_t now_ns, trace_virtual_fn *virtual_threads);
/* Ends reading. Everything that was learnt about tracers is forgotten. */
void trace_end(void);

/*
 * The one interface between the agent and whoever walks stacks. Three parts run in three places:
 * walker_init() and walker_resolve_x() in the agent's own thread, walk_sig() in the signal handler.
 * Two implementations: our own reading of HotSpot (hotspot/), and AsyncGetCallTrace (asgct/) where
 * that does not know the JVM.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <jvmti.h>
#include "agent/base/walk.h"
#include "proto/idle.h"

/* Agent's thread, attached to the JVM. Returns 0, or -errno with a static sentence in *why. */
int walker_init(JavaVM *vm, JNIEnv *env, const char **why);
/* Undo what can be undone (events off); handlers may still be running. */
void walker_deinit(void);
const char *walker_name(void); /* "hotspot" or "asgct" */
const char *walker_note(void); /* "" or what it costs on this JVM */
uint32_t walker_left_out(void); /* native libraries whose code stacks cannot pass through */
/* Agent's thread, now and then: look for new or gone mappings, refresh unwind rows. */
void walker_refresh(void);
/* The same at once for what a walk has met and not known: the code of the first virtual threads. */
void walker_catch_up(void);
/* Bytes of memory the walker holds. */
uint64_t walker_bytes(void);
/* The same by part, of WIRE_PART_COUNT; what lies in static memory is taken away from STATIC. */
void walker_parts(uint64_t *part);

/* Names no longer fit until walker_forget_names(), which makes every method handle handed out so
 * far void: only when no sample with one is on its way any more. */
bool walker_names_full(void);
void walker_forget_names(void);

/* Signal handler: fills @w from the interrupted thread's ucontext. No lock, no allocation. */
void walk_sig(struct walk *w, void *ucontext);

/* Agent's thread: names. Buffers are owned by the walker and valid until the next call; false if
 * the method is gone. */
bool walker_resolve_method(uint64_t where, struct walk_method *ret);
int32_t walker_resolve_line(uint64_t where, int32_t bci); /* -1 unknown */

/*
 * Application threads, in native state: the stack from the thread's last Java frame (its
 * JavaFrameAnchor), as in a call from Java to native code or in a JVMTI event. No lock, no
 * allocation.
 * @java_thread: 0 = the calling thread; another thread's, from the agent's own, is worth something
 * only if that one was blocked all the while.
 */
void walk_anchor_sig(struct walk *w, uint64_t java_thread);
/* The same no further than needed. */
void walk_anchor_until_sig(struct walk *w, uint64_t java_thread, walk_enough_fn *enough);

/*
 * Where a thread left Java, to know that place again without a walk: its stack pointer, and the
 * return addresses of the frames that matter. Compiled frames have one size for each return
 * address, so equal ones are the same frames.
 */
#define WALK_MARK_SLOTS 8
struct walk_mark {
	uint64_t sp, hash;
	uint16_t slots[WALK_MARK_SLOTS]; /* words above sp, upwards; 0 = no more */
};
/* The calling thread, in native state. */
uint64_t walk_anchor_sp_sig(uint64_t java_thread); /* 0 = it did not come from Java */
uint64_t walk_mark_hash_sig(const struct walk_mark *mark, uint64_t java_thread);
/* What the frame of a method says of a wait: see proto/idle.h. Not in a signal handler. */
enum idle_sight walker_method_idle(uint64_t where);

/* Application threads: a handle of the class that the object or class behind a JNI reference has
 * (is), its name copied while it is loaded; 0 = unknown or no room. */
uint64_t walker_class_of_sig(void *jobject_ref);
uint64_t walker_class_sig(void *jclass_ref);
/* Threads of both. */
bool walker_class_is(uint64_t class_handle, const char *name); /* "java/lang/String" */
/* Agent's thread: "java/lang/String", "[B"; of an object that is a class "java/lang/Class for
 * pkg/Main", as thread dumps say it. Valid until the next call. NULL = unknown. */
const char *walker_resolve_class(uint64_t class_handle);

/* Agent's thread: which mapping a pc lies in. */
bool walker_resolve_pc(uint64_t pc, struct walk_mapping *ret);

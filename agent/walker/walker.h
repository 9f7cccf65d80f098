/*
 * The only interface of the stack walkers. Its functions run in three places: walker_init() and
 * walker_resolve_x() in the agent's own thread, walk_sig() in the signal handler, walk_anchor_x()
 * in application threads. There are two implementations: java/ reads HotSpot's data structures
 * itself; asgct/ calls AsyncGetCallTrace where java/ does not know the JVM.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <jvmti.h>
#include "agent/base/walk.h"
#include "proto/idle.h"

/* Agent's thread, attached to the JVM. Returns 0, or -errno with a static sentence in *why. */
int walker_init(JavaVM *vm, JNIEnv *env, const char **why);
/* Frees memory and switches events off, as far as possible while handlers may still be running. */
void walker_deinit(void);
const char *walker_name(void); /* "hotspot" or "asgct" */
/* why AsyncGetCallTrace walks, and what that costs in this JVM; "" = the agent's own walker walks.
 * Valid until the next walker_init() */
const char *walker_note(void);
/* number of native mappings that had to be left out for lack of room: stacks end in them */
uint32_t walker_left_out(void);
/* Agent's thread, periodically: finds new and removed mappings, and updates the unwind rows. */
void walker_refresh(void);
/* Agent's thread: if a walk has met the code of virtual threads before it was known, finds that
 * code at once instead of at the next refresh. */
void walker_catch_up(void);
/* Bytes of memory that the walker holds. */
uint64_t walker_bytes(void);
/* The same by part: fills in the walker's elements of part[WIRE_PART_COUNT]. Parts in static memory
 * are subtracted from part[WIRE_PART_STATIC]. */
void walker_parts(uint64_t *part);

/* Is the store of names almost full? walker_forget_names() makes room, and invalidates every method
 * handle handed out so far: call it only when no sample that holds one is in the ring any more. */
bool walker_names_full(void);
void walker_forget_names(void);

/* Signal handler: fills @w from the interrupted thread's ucontext. No lock, no allocation. */
void walk_sig(struct walk *w, void *ucontext);

/* Agent's thread: the names of the method that a frame's `where` stands for. The walker owns the
 * strings, which are valid until the next call. false = the method is gone. */
bool walker_resolve_method(uint64_t where, struct walk_method *ret);
int32_t walker_resolve_line(uint64_t where, int32_t bci); /* source line of a bytecode; -1 =
							   * unknown */

/*
 * Application threads, in native state: the stack from the thread's last Java frame (its
 * JavaFrameAnchor), as in a call from Java to native code or in a JVMTI event. No lock, no
 * allocation. @java_thread: 0 = the calling thread. The agent's own thread may pass another thread;
 * the result is valid only if that thread has stayed blocked during the walk.
 */
void walk_anchor_sig(struct walk *w, uint64_t java_thread);
/* The same, but the walk ends as soon as @enough returns true. NULL = the whole stack. */
void walk_anchor_until_sig(struct walk *w, uint64_t java_thread, walk_enough_fn *enough);

/*
 * Identifies a place at which a thread has left Java, so that the same place is recognised without
 * a walk: by its stack pointer and the return addresses of the relevant frames. A return address in
 * compiled code determines the frame's size, so equal return addresses mean the same frames.
 */
#define WALK_MARK_SLOTS 8
struct walk_mark {
	uint64_t sp, hash;
	uint16_t slots[WALK_MARK_SLOTS]; /* the return addresses, in words above sp, ascending; 0 =
					  * no more */
};
/* Functions for the calling thread, which is in native state. */
uint64_t walk_anchor_sp_sig(uint64_t java_thread); /* sp of the last Java frame; 0 = the thread did
						    * not come from Java */
uint64_t walk_mark_hash_sig(const struct walk_mark *mark, uint64_t java_thread);
/* What the method of a frame implies about a wait: see proto/idle.h. Not for signal handlers. */
enum idle_sight walker_method_idle(uint64_t where);

/* Application threads: a handle for the class of the object that a JNI reference refers to
 * (walker_class_of_sig), or for the class that a jclass refers to (walker_class_sig). They copy the
 * class's name. 0 = unknown, or no room. */
uint64_t walker_class_of_sig(void *jobject_ref);
uint64_t walker_class_sig(void *jclass_ref);
/* Application threads and the agent's thread. */
bool walker_class_is(uint64_t class_handle, const char *name); /* "java/lang/String" */
/* Agent's thread: "java/lang/String", "[B"; for an object that is itself a class "java/lang/Class
 * for pkg/Main", as in thread dumps. Valid until the next call. NULL = unknown. */
const char *walker_resolve_class(uint64_t class_handle);

/* Agent's thread: the mapping that contains a pc; false = none does. */
bool walker_resolve_pc(uint64_t pc, struct walk_mapping *ret);

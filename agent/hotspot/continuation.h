/* Stacks of virtual threads (21+): the part that lies on the carrier's stack ends in a barrier, the
 * rest is frozen in chunks on the Java heap. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"
#include "agent/hotspot/oop.h"

/* Where objects keep what a walk across the barrier reads; -1 = unknown, frozen frames are not
 * read. */
struct continuation_layout {
	int32_t tail; /* Continuation.tail: the first chunk */
	int32_t chunk_parent, chunk_size, chunk_sp, chunk_bottom, chunk_argsize; /* StackChunk */
	int32_t chunk_stack; /* where the words begin: the size of the object before them */
	int32_t thread_id, thread_name; /* java.lang.Thread */
	int32_t string_value, string_coder; /* java.lang.String; the second -1 in JDK 8 */
	int32_t array_length, array_data; /* of a byte[] or char[] */
	int32_t entry_in_thread; /* JavaThread::_cont_entry, learnt where it is not exported (21 to
				    24) */
	bool narrow; /* compressed oops: value << shift + base */
	uint64_t narrow_base;
	uint32_t narrow_shift;
	const uint64_t *z_shift, *z_bad_mask; /* generational ZGC: coloured pointers, else NULL */
};
#define ENTRY_CONT 16 /* ContinuationEntry::_cont, behind two pointers */
extern struct continuation_layout continuation_sig;

/* A java.lang.String, where its fields are known, as UTF-8 cut to the buffer; what is read may be
 * anything if the collector moves it meanwhile. */
void java_string_sig(uint64_t string, char *ret, uint32_t size);

/* Handler: if a virtual thread is mounted on a JavaThread (0 = none), its id and name in @w. */
void virtual_identity_sig(uint64_t java_thread, struct walk *w);
/* The id of the platform thread itself; 0 = not to be had now. */
uint64_t virtual_platform_id_sig(uint64_t java_thread);
/* Is a virtual thread mounted on a JavaThread? */
bool virtual_is_mounted_sig(uint64_t java_thread);
/* The id of the virtual thread that is mounted on a JavaThread, if one is. */
uint64_t virtual_id_sig(uint64_t java_thread);
/* Does the pc lie in the stubs that the lowest thawed frame returns to? */
bool continuation_is_barrier_sig(uint64_t pc);
/* The Continuation whose frames lie on a JavaThread's stack; 0 = none, or not known where. */
uint64_t continuation_on_sig(uint64_t java_thread);

/* Where in an object an instance's field lies. */
int32_t field_id_offset(jfieldID id);

/* Agent's thread. What cannot be found out leaves frozen frames unread. */
void continuation_init(JNIEnv *env);
/* The same, once the stubs are known: where a JavaThread says what its virtual thread's root is. */
void continuation_find_entry(void);

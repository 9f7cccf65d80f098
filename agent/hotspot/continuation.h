/* Stacks of virtual threads (JDK 21 and later): the part on the carrier's stack ends at the return
 * barrier, the rest is frozen in chunks on the Java heap. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"
#include "agent/hotspot/oop.h"

/* Offsets in objects that a walk across the barrier reads; -1 = unknown, then frozen frames are not
 * read. */
struct continuation_layout {
	int32_t tail; /* Continuation.tail: the first chunk */
	int32_t chunk_parent, chunk_size, chunk_sp, chunk_bottom, chunk_argsize; /* StackChunk */
	int32_t chunk_stack; /* offset of the frames' words: the size of the fields before them */
	int32_t thread_id, thread_name; /* java.lang.Thread */
	int32_t string_value, string_coder; /* java.lang.String; the second is -1 in JDK 8 */
	int32_t array_length, array_data; /* of a byte[] or char[] */
	int32_t entry_in_thread; /* JavaThread::_cont_entry, learnt from a walk where it is not
				  * exported (21 to 24) */
	bool narrow; /* compressed oops: value << shift + base */
	uint64_t narrow_base;
	uint32_t narrow_shift;
	const uint64_t *z_shift, *z_bad_mask; /* generational ZGC: coloured pointers, else NULL */
};
#define ENTRY_CONT 16 /* ContinuationEntry::_cont, behind two pointers */
extern struct continuation_layout continuation_sig;

/* Copies a java.lang.String whose fields are known, as UTF-8, cut to the buffer. If the collector
 * moves the string meanwhile, the bytes may be anything. */
void java_string_sig(uint64_t string, char *ret, uint32_t size);

/* Handler: writes the id and the name of the virtual thread mounted on a JavaThread to @w.
 * @java_thread: 0 = none. */
void virtual_identity_sig(uint64_t java_thread, struct walk *w);
/* The id of the platform thread itself; 0 = it cannot be read now. */
uint64_t virtual_platform_id_sig(uint64_t java_thread);
/* Is a virtual thread mounted on a JavaThread? */
bool virtual_is_mounted_sig(uint64_t java_thread);
/* The id of the virtual thread that is mounted on a JavaThread; 0 = none. */
uint64_t virtual_id_sig(uint64_t java_thread);
/* Is the pc in the stubs that the lowest thawed frame returns to? */
bool continuation_is_barrier_sig(uint64_t pc);
/* The Continuation whose frames are on the stack of a JavaThread; 0 = none or unknown. */
uint64_t continuation_on_sig(uint64_t java_thread);

/* The offset of an instance field in an object. */
int32_t field_id_offset(jfieldID id);

/* Agent's thread. If an offset is not found, frozen frames are not read. */
void continuation_init(JNIEnv *env);
/* The same once the stubs are known: finds where a JavaThread stores the root of its virtual
 * thread. */
void continuation_find_entry(void);

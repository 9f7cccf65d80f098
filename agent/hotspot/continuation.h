/* Stacks of virtual threads (JDK 21 and later). The part on the carrier's stack ends at the return
 * barrier; the rest is frozen, which means stored in StackChunk objects on the Java heap. "Thaw" is
 * the way back. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"
#include "agent/hotspot/oop.h"

/* Offsets of the fields that a walk beyond the barrier reads; -1 = unknown, and then frozen frames
 * are not read. */
struct continuation_layout {
	int32_t tail; /* Continuation.tail: the first chunk */
	int32_t chunk_parent, chunk_size, chunk_sp, chunk_bottom, chunk_argsize; /* StackChunk */
	int32_t chunk_stack; /* offset of the first word of the frames */
	int32_t thread_id, thread_name; /* java.lang.Thread */
	int32_t string_value, string_coder; /* java.lang.String; the second is -1 in JDK 8 */
	int32_t array_length, array_data; /* of a byte[] or char[] */
	uint32_t array_references, reference_bytes; /* an Object[]: its first element; each */
	int32_t entry_in_thread; /* JavaThread::_cont_entry; JDK 21 to 24 do not export it, and it
				  * is found in the code or by a walk */
	bool narrow; /* compressed oops: value << shift + base */
	uint64_t narrow_base;
	uint32_t narrow_shift;
	const uint64_t *z_shift, *z_bad_mask; /* generational ZGC, whose references are coloured;
					       * NULL = another collector */
};
#define ENTRY_CONT 16 /* offset of ContinuationEntry::_cont, which follows two pointers */
extern struct continuation_layout continuation_sig;

/* Copies a java.lang.String as UTF-8, cut to @size. The offsets of its fields must be known. If the
 * collector moves the string meanwhile, the result is arbitrary. */
void java_string_sig(uint64_t string, char *ret, uint32_t size);

/* Handler: writes the id and the name of the virtual thread mounted on a JavaThread to @w.
 * @java_thread: 0 = none. */
void virtual_identity_sig(uint64_t java_thread, struct walk *w);
/* The id of the JavaThread's platform thread, even if a virtual one is mounted; 0 = it cannot be
 * read now. */
uint64_t virtual_platform_id_sig(uint64_t java_thread);
/* Is a virtual thread mounted on a JavaThread? */
bool virtual_is_mounted_sig(uint64_t java_thread);
/* The id of the virtual thread that is mounted on a JavaThread; 0 = none. */
uint64_t virtual_id_sig(uint64_t java_thread);
/* Is the pc in the continuation stubs, to which the lowest thawed frame returns? */
bool continuation_is_barrier_sig(uint64_t pc);
/* The Continuation whose frames are on the stack of a JavaThread; 0 = none or unknown. */
uint64_t continuation_on_sig(uint64_t java_thread);

/* The offset of an instance field in an object. */
int32_t field_id_offset(jfieldID id);

/* Agent's thread. If an offset is not found, frozen frames are not read. */
void continuation_init(JNIEnv *env);
/* Agent's thread, once the continuation stubs are known: finds the field in which a JavaThread
 * stores the address of its ContinuationEntry. */
void continuation_find_entry(void);

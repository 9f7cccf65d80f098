/* See continuation.h. Offsets of Java fields are taken from their field ids
 * (jfieldIDWorkaround.hpp). */
#include "agent/hotspot/continuation.h"

#include <stddef.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/machine.h"

#define ID_SHIFT    2 /* the low bits of a field id are tags */
#define ID_SHIFT_28 3
/* smallest and largest plausible size of a StackChunk's header and fields, in bytes */
#define STACK_MIN      32
#define STACK_MAX      128
#define UNPADDED_SINCE 23 /* the first JDK whose arrays have no padding before small elements */
#define THREAD_MAX     8192 /* bytes of a JavaThread */

int32_t field_id_offset(jfieldID id)
{
	return (int32_t)((uintptr_t)id >> (vm_sig.version >= 28 ? ID_SHIFT_28 : ID_SHIFT));
}

static int32_t field_offset(JNIEnv *env, jclass klass, const char *name, const char *signature)
{
	jfieldID id = klass ? (*env)->GetFieldID(env, klass, name, signature) : NULL;

	if (!id) {
		(*env)->ExceptionClear(env);
		return -1;
	}
	return field_id_offset(id);
}

static jclass find_class(JNIEnv *env, const char *name)
{
	jclass klass = (*env)->FindClass(env, name);

	(*env)->ExceptionClear(env);
	return klass;
}

static uint64_t static_u64(const char *type, const char *field, const char *field2)
{
	const void *address = libjvm_static(type, field);
	uint64_t value = 0;

	if (!address)
		address = libjvm_static(type, field2);
	if (!address)
		address = libjvm_static("Universe", field2); /* up to 12 */
	if (address)
		memcpy(&value, address, sizeof(value));
	return value;
}

static void read_oops(void)
{
	struct continuation_layout *c = &continuation_sig;
	const char *globals;
	long shift_at, mask_at;

	c->narrow = layout_flag("UseCompressedOops", false);
	c->narrow_base = static_u64("CompressedOops", "_base", "_narrow_oop._base");
	c->narrow_shift =
		(uint32_t)static_u64("CompressedOops", "_shift", "_narrow_oop._shift") & 7;
	c->z_shift = c->z_bad_mask = NULL;
	shift_at = libjvm_offset("ZGlobalsForVMStructs", "_ZPointerLoadShift");
	mask_at = libjvm_offset("ZGlobalsForVMStructs", "_ZPointerLoadBadMask");
	/* up to JDK 23 there is also a ZGC without generations, whose references need no conversion
	 * here */
	if (!layout_flag("UseZGC", false) || !layout_flag("ZGenerational", true) || shift_at < 0 ||
	    mask_at < 0)
		return;
	globals = (const char *)(uintptr_t)static_u64("ZGlobalsForVMStructs", "_instance_p", "");
	if (!globals)
		return;
	memcpy(&c->z_shift, globals + shift_at, sizeof(c->z_shift));
	memcpy(&c->z_bad_mask, globals + mask_at, sizeof(c->z_bad_mask));
}

/* The offset of the frames' words in a StackChunk, from its Klass::_layout_helper. The collector
 * may move the mirror meanwhile, so implausible values are read again. */
static int32_t chunk_stack_offset(jclass chunk)
{
	const int32_t *klass_at = libjvm_static("java_lang_Class", "_klass_offset");
	long helper_at = libjvm_offset("Klass", "_layout_helper");

	for (int i = 0; chunk && klass_at && helper_at >= 0 && i < 10; i++) {
		uint64_t mirror = oop_of_handle_sig((uint64_t)(uintptr_t)chunk), klass;
		uint32_t helper;

		klass = load64_sig(mirror + (uint32_t)*klass_at);
		helper = load32_sig(klass + (uint64_t)helper_at) & ~7u;
		if (helper >= STACK_MIN && helper <= STACK_MAX)
			return (int32_t)helper;
	}
	return -1;
}

/* The header of an array is mark word, class, length; compact headers combine the first two.
 * Classes are not compressed with -XX:-UseCompressedClassPointers, and up to JDK 14 where
 * references are not: with heaps above 32 GB. Up to JDK 22 elements begin at a multiple of 8
 * (JDK-8139457). */
static void read_arrays(void)
{
	struct continuation_layout *c = &continuation_sig;
	uint32_t end;

	c->array_length = 16;
	if (layout_flag("UseCompactObjectHeaders", false))
		c->array_length = 8;
	else if (layout_flag("UseCompressedClassPointers", vm_sig.version >= 25))
		c->array_length = 12;
	end = (uint32_t)c->array_length + 4;
	if (vm_sig.version < UNPADDED_SINCE)
		end = (end + 7) & ~7u;
	c->array_data = (int32_t)end;
	c->reference_bytes = c->narrow ? 4 : 8;
	c->array_references = (end + c->reference_bytes - 1) & ~(c->reference_bytes - 1);
}

static void read_thread(JNIEnv *env)
{
	struct continuation_layout *c = &continuation_sig;
	jclass thread = find_class(env, "java/lang/Thread");
	jclass string = find_class(env, "java/lang/String");

	c->thread_id = field_offset(env, thread, "tid", "J");
	c->thread_name = field_offset(env, thread, "name", "Ljava/lang/String;");
	c->string_value = field_offset(env, string, "value", "[B");
	c->string_coder = field_offset(env, string, "coder", "B");
	if (c->string_coder < 0)
		c->string_value = field_offset(env, string, "value", "[C");
	if (thread)
		(*env)->DeleteLocalRef(env, thread);
	if (string)
		(*env)->DeleteLocalRef(env, string);
	read_arrays();
}

/* Finds the offset of JavaThread::_cont_entry in the code of the return barrier, which loads its sp
 * from that field: JDK 21 to 24 do not export the offset. If that fails, a walk that meets the
 * entry's frame finds it (continuation_learn_sig()). */
void continuation_find_entry(void)
{
	int32_t found = -1, at;

	if (continuation_sig.entry_in_thread >= 0)
		return;
	for (uint64_t pc = code_places_sig.cont_low; pc < code_places_sig.cont_high; pc++) {
		if (!machine_takes_sp_from_thread(pc, &at))
			continue;
		if (at <= 0 || at > THREAD_MAX || at % 8 || (found >= 0 && at != found))
			return;
		found = at;
	}
	continuation_sig.entry_in_thread = found;
}

void continuation_init(JNIEnv *env)
{
	struct continuation_layout *c = &continuation_sig;
	jclass continuation = NULL, chunk = NULL;

	memset(c, 0xff, sizeof(*c));
	c->z_shift = c->z_bad_mask = NULL;
	c->entry_in_thread = vm_sig.thread_cont_entry;
	read_oops();
	oop_init();
	read_thread(env);
	if (vm_sig.version < 21)
		return;
	continuation = find_class(env, "jdk/internal/vm/Continuation");
	chunk = find_class(env, "jdk/internal/vm/StackChunk");
	c->tail = field_offset(env, continuation, "tail", "Ljdk/internal/vm/StackChunk;");
	c->chunk_parent = field_offset(env, chunk, "parent", "Ljdk/internal/vm/StackChunk;");
	c->chunk_size = field_offset(env, chunk, "size", "I");
	c->chunk_sp = field_offset(env, chunk, "sp", "I");
	c->chunk_bottom = field_offset(env, chunk, "bottom", "I");
	c->chunk_argsize = field_offset(env, chunk, "argsize", "I"); /* 21: instead of bottom */
	c->chunk_stack = chunk_stack_offset(chunk);
	if (continuation)
		(*env)->DeleteLocalRef(env, continuation);
	if (chunk)
		(*env)->DeleteLocalRef(env, chunk);
}

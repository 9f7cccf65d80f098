/*
 * See frozen_locks.h. The lock stack of an unmounted virtual thread is at the low end of its last
 * StackChunk; the number of its entries is a field of the chunk that is hidden from Java
 * (stackChunkOop.hpp). A variable that libjvm does not export holds the offset of that field; its
 * address comes from the symbol table in libjvm's file. It is trusted if four variables of the same
 * class hold the offsets that JNI reports for Java's own fields.
 */
#include "agent/hotspot/frozen_locks.h"

#include <string.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/owner.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/virtual_name.h"
#include "agent/hotspot/virtual_sets.h"

#define FIRST_JDK 24 /* the first JDK whose chunks have these flags */
#define LAST_JDK  28
#define HEAD_MAX  128 /* bytes before a chunk's words */

/* stackChunkOopDesc's flags */
/* a collector has processed the chunk: its references have the form of those in other objects */
#define GC_MODE	   (1u << 3)
#define HAS_BITMAP (1u << 4) /* and they are compressed if the heap's references are */

enum { SP, SIZE, BOTTOM, PARENT, LOCKS, FLAGS, CONT, SAFEPOINT, HIDDEN_COUNT };
static const char *const hidden[HIDDEN_COUNT] = {
	[SP] = "_ZN26jdk_internal_vm_StackChunk10_sp_offsetE",
	[SIZE] = "_ZN26jdk_internal_vm_StackChunk12_size_offsetE",
	[BOTTOM] = "_ZN26jdk_internal_vm_StackChunk14_bottom_offsetE",
	[PARENT] = "_ZN26jdk_internal_vm_StackChunk14_parent_offsetE",
	[LOCKS] = "_ZN26jdk_internal_vm_StackChunk21_lockStackSize_offsetE",
	[FLAGS] = "_ZN26jdk_internal_vm_StackChunk13_flags_offsetE",
	[CONT] = "_ZN26jdk_internal_vm_StackChunk12_cont_offsetE",
	[SAFEPOINT] = "_ZN20SafepointSynchronize6_stateE",
};

static struct {
	bool tried, usable;
	int32_t locks, flags, cont; /* offsets in a chunk */
	const int32_t *safepoint; /* NULL = the JVM has none */
	jfieldID continuation, tail;
	int32_t continuation_at; /* in a VirtualThread */
} vm;

/* ---- finding the fields ---- */

static jfieldID frozen_locks_field(JNIEnv *env, const char *class_name, const char *name,
				   const char *type)
{
	jclass c = (*env)->FindClass(env, class_name);
	jfieldID id = c ? (*env)->GetFieldID(env, c, name, type) : NULL;

	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	if (c)
		(*env)->DeleteLocalRef(env, c);
	return id;
}

static bool is_in_head(int32_t at)
{
	return at >= 8 && at < HEAD_MAX && at < continuation_sig.chunk_stack;
}

static bool find_hidden(void)
{
	const struct continuation_layout *c = &continuation_sig;
	const void *at[HIDDEN_COUNT];
	int32_t value[HIDDEN_COUNT];

	if (!libjvm_hidden(hidden, HIDDEN_COUNT, at))
		return false;
	for (int i = 0; i < HIDDEN_COUNT; i++)
		memcpy(&value[i], at[i], sizeof(value[i]));
	vm.locks = value[LOCKS];
	vm.flags = value[FLAGS];
	vm.cont = value[CONT];
	vm.safepoint = at[SAFEPOINT];
	return value[SP] == c->chunk_sp && value[SIZE] == c->chunk_size &&
	       value[BOTTOM] == c->chunk_bottom && value[PARENT] == c->chunk_parent &&
	       is_in_head(vm.locks) && is_in_head(vm.flags) && is_in_head(vm.cont) &&
	       value[SAFEPOINT] >= 0 && value[SAFEPOINT] <= 2;
}

bool frozen_locks_init(JNIEnv *env)
{
	if (vm.tried)
		return vm.usable;
	vm.tried = true;
	if (!env || vm_sig.version < FIRST_JDK || vm_sig.version > LAST_JDK || !find_hidden())
		return false;
	vm.continuation = frozen_locks_field(env, "java/lang/VirtualThread", "cont",
					     "Ljdk/internal/vm/Continuation;");
	vm.tail = frozen_locks_field(env, "jdk/internal/vm/Continuation", "tail",
				     "Ljdk/internal/vm/StackChunk;");
	vm.usable = vm.continuation && vm.tail && continuation_sig.tail >= 0;
	if (vm.usable)
		vm.continuation_at = field_id_offset(vm.continuation);
	return vm.usable;
}

/* ---- one thread ---- */

/* Unless the collector is concurrent, objects have not moved if this is false both before and after
 * a read. */
static bool at_safepoint(void)
{
	return __atomic_load_n(vm.safepoint, __ATOMIC_ACQUIRE) != 0;
}

/*
 * The object in a word of the lock stack; 0 = not certain. Until a collector has processed the
 * chunk, its words are plain addresses. With generational ZGC they are addresses from the moment at
 * which the chunk was written; they are still valid if the chunk's reference to its continuation
 * has the current colour (zBarrierSetStackChunk.cpp).
 */
static uint64_t object_in(uint64_t chunk, uint64_t at, uint32_t flags)
{
	const struct continuation_layout *c = &continuation_sig;

	if (flags & GC_MODE && (c->z_shift || (flags & HAS_BITMAP && c->narrow)))
		return oop_load_sig(at);
	if (!oop_is_good_sig(chunk + (uint32_t)vm.cont))
		return 0;
	return load64_sig(at);
}

/* The result is valid if the chunk is still the thread's last one afterwards and no safepoint is in
 * progress. */
static uint32_t read_locks(uint64_t chunk, uint64_t ret[FROZEN_LOCKS_MAX])
{
	uint32_t n = load8_sig(chunk + (uint32_t)vm.locks);
	uint32_t flags = load8_sig(chunk + (uint32_t)vm.flags);

	if (!n || n > FROZEN_LOCKS_MAX || at_safepoint())
		return 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		ret[i] = object_in(chunk, chunk + (uint32_t)continuation_sig.chunk_stack + 8ull * i,
				   flags);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (load8_sig(chunk + (uint32_t)vm.locks) != n ||
	    load8_sig(chunk + (uint32_t)vm.flags) != flags)
		return 0;
	return n;
}

uint32_t frozen_locks(JNIEnv *env, jobject thread, uint64_t ret[FROZEN_LOCKS_MAX])
{
	static const sigset_t nothing_blocked;
	jobject continuation = (*env)->GetObjectField(env, thread, vm.continuation);
	jobject tail = continuation ? (*env)->GetObjectField(env, continuation, vm.tail) : NULL;
	uint64_t handle = (uint64_t)(uintptr_t)tail, chunk;
	uint32_t n = 0;

	if (tail) {
		(void)guard_begin_sig(&nothing_blocked);
		chunk = oop_of_handle_sig(handle);
		n = read_locks(chunk, ret);
		if (oop_of_handle_sig(handle) != chunk || at_safepoint())
			n = 0;
		(*env)->DeleteLocalRef(env, tail);
	}
	if (continuation)
		(*env)->DeleteLocalRef(env, continuation);
	return n;
}

uint32_t frozen_number(JNIEnv *env, jobject thread)
{
	static struct ring_sample head;
	uint32_t number;

	virtual_identity_of(env, thread, &head);
	if (!head.virtual_id)
		return 0;
	number = walk_virtual_number(head.virtual_id);
	thread_name_of(env, thread, number);
	return number;
}

/* ---- one thread, by its address ---- */

/* The last chunk of the thread's frozen stack; 0 = it has none, or it cannot be read now. */
static uint64_t chunk_of(uint64_t thread)
{
	uint64_t continuation = oop_load_sig(thread + (uint32_t)vm.continuation_at);

	return continuation ? oop_load_sig(continuation + (uint32_t)continuation_sig.tail) : 0;
}

uint32_t frozen_locks_at(uint64_t thread, uint64_t ret[FROZEN_LOCKS_MAX])
{
	uint64_t chunk = chunk_of(thread);
	uint32_t n = chunk ? read_locks(chunk, ret) : 0;

	return n && chunk_of(thread) == chunk && !at_safepoint() ? n : 0;
}

uint32_t frozen_number_at(uint64_t thread)
{
	uint64_t epoch = oop_epoch_sig(), id = virtual_sets_id(thread);
	uint32_t number = id ? walk_virtual_number(id) : 0;

	if (!number)
		return 0;
	thread_name_on(0, thread, number);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!epoch || oop_epoch_sig() != epoch || virtual_sets_id(thread) != id)
		return 0;
	thread_name_seek(id, number); /* unless it has been reported */
	return number;
}

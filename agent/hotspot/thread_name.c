/* See thread_name.h. */
#include "agent/hotspot/thread_name.h"

#include <string.h>
#include "agent/base/guard.h"
#include "agent/base/producer.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"

#define SENT_MAX  8192u /* threads that are remembered; power of two */
#define CHARS_MAX (THREAD_NAME_BYTES / 3 - 1) /* a char is 3 bytes of UTF-8 at most */

typedef jobject JNICALL current_thread_fn(JNIEnv *env, jclass unused);

static struct {
	bool usable; /* names can be asked of the JVM */
	current_thread_fn *current;
	jfieldID name, id;
	bool readable; /* names can be read from memory */
	bool slot_is_object; /* a JavaThread refers to the Thread directly rather than by a
			      * handle */
	int32_t eetop, object; /* offsets in a Thread; in a JavaThread */
	uint64_t string; /* Klass */
} vm;

static uint64_t sent[SENT_MAX];

static struct {
	uint64_t ids[THREAD_NAME_SOUGHT];
	uint32_t numbers[THREAD_NAME_SOUGHT];
	uint32_t due;
} sought;

/* A name in the ring; it takes the space of a sample's frames. */
union text {
	char name[THREAD_NAME_BYTES];
	struct walk_frame frames[THREAD_NAME_BYTES / sizeof(struct walk_frame)];
};
_Static_assert(sizeof(union text) == THREAD_NAME_BYTES, "whole frames");

/* ---- names that were reported ---- */

static uint64_t *thread_name_slot_of(uint32_t number)
{
	return &sent[number % SENT_MAX];
}

static uint64_t mark_of(uint32_t number, uint64_t id)
{
	return (id * 0x9e3779b97f4a7c15ull ^ number) | 1;
}

bool thread_name_is_sent(uint32_t number, uint64_t id)
{
	return __atomic_load_n(thread_name_slot_of(number), __ATOMIC_RELAXED) ==
	       mark_of(number, id);
}

void thread_name_mark_sent(uint32_t number, uint64_t id)
{
	__atomic_store_n(thread_name_slot_of(number), mark_of(number, id), __ATOMIC_RELAXED);
}

void thread_name_forget(uint32_t number)
{
	__atomic_store_n(thread_name_slot_of(number), 0, __ATOMIC_RELAXED);
}

void thread_name_forget_all(void)
{
	for (uint32_t i = 0; i < SENT_MAX; i++)
		if (sent[i])
			__atomic_store_n(&sent[i], 0, __ATOMIC_RELAXED);
}

/* Writes the name to the ring. It is marked as sent before that, so that a thread_name_forget() by
 * the writer, which reads the ring, comes after the mark. */
static void thread_name_send(uint32_t number, uint64_t id, const union text *text)
{
	uint32_t bytes = (uint32_t)strlen(text->name) + 1, each = sizeof(struct walk_frame);
	struct ring_sample head = {
		.tid = number,
		.virtual_id = id,
		.event = RING_NAME,
		.n_frames = (bytes + each - 1) / each,
	};

	thread_name_mark_sent(number, id);
	if (text->name[0] && !producer_push_name(&head, text->frames))
		thread_name_forget(number);
}

/* ---- by asking the JVM ---- */

static bool thread_name_read_name(JNIEnv *env, jobject thread, union text *ret)
{
	jstring name = (*env)->GetObjectField(env, thread, vm.name);
	jsize chars;

	if (!name)
		return false;
	chars = (*env)->GetStringLength(env, name);
	memset(ret, 0, sizeof(*ret));
	(*env)->GetStringUTFRegion(env, name, 0, chars < CHARS_MAX ? chars : CHARS_MAX, ret->name);
	(*env)->DeleteLocalRef(env, name);
	return true;
}

void thread_name_of(JNIEnv *env, jobject thread, uint32_t number)
{
	union text text;
	uint64_t id;

	if (!__atomic_load_n(&vm.usable, __ATOMIC_ACQUIRE) || !number)
		return;
	id = (uint64_t)(*env)->GetLongField(env, thread, vm.id);
	if (!thread_name_is_sent(number, id) && thread_name_read_name(env, thread, &text))
		thread_name_send(number, id, &text);
}

void thread_name_self(uint64_t java_thread, uint32_t number)
{
	JNIEnv *env = java_thread_env_sig();
	int32_t id_at = vm_sig.thread_monitor_owner;
	jobject thread;

	if (!__atomic_load_n(&vm.usable, __ATOMIC_ACQUIRE) || !env || (*env)->ExceptionCheck(env))
		return;
	if (id_at >= 0 && java_thread &&
	    thread_name_is_sent(number, load64_sig(java_thread + (uint32_t)id_at)))
		return;
	thread = vm.current(env, NULL);
	if (!thread)
		return;
	thread_name_of(env, thread, number);
	(*env)->DeleteLocalRef(env, thread);
}

/* ---- by reading memory ---- */

/* Has no stop-the-world collection run since @before was read? A collection moves the objects that
 * are read here. */
static bool thread_name_is_unmoved(uint64_t before)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return before && oop_epoch_sig() == before;
}

static uint64_t object_on(uint64_t java_thread, bool is_virtual)
{
	uint64_t slot = java_thread + (uint32_t)(is_virtual ? vm_sig.thread_vthread : vm.object);

	if (vm.slot_is_object)
		return load64_sig(slot);
	/* an OopHandle is read like a global JNI reference */
	return oop_of_handle_sig(load64_sig(slot) | 2);
}

bool thread_name_lives(uint64_t java_thread)
{
	uint64_t object = vm.readable ? object_on(java_thread, false) : 0;

	return object && load64_sig(object + (uint32_t)vm.eetop) == java_thread;
}

/* Is @object the Thread of that thread? The Thread of a platform thread refers to its JavaThread;
 * that of a virtual one has the id from which @number is derived. */
static bool thread_name_is_it(uint64_t object, uint64_t java_thread, uint32_t number, uint64_t id)
{
	if (number & WIRE_VIRTUAL_TID)
		return number == walk_virtual_number(id);
	return load64_sig(object + (uint32_t)vm.eetop) == java_thread;
}

void thread_name_on(uint64_t java_thread, uint64_t object, uint32_t number)
{
	uint64_t before = oop_epoch_sig(), id, name;
	union text text;

	if (!__atomic_load_n(&vm.readable, __ATOMIC_ACQUIRE) || !number)
		return;
	if (!object)
		object = object_on(java_thread, number & WIRE_VIRTUAL_TID);
	id = object ? load64_sig(object + (uint32_t)continuation_sig.thread_id) : 0;
	if (!id || thread_name_is_sent(number, id) ||
	    !thread_name_is_it(object, java_thread, number, id))
		return;
	name = oop_load_sig(object + (uint32_t)continuation_sig.thread_name);
	if (!name || object_klass(name) != vm.string)
		return;
	java_string_sig(name, text.name, sizeof(text.name));
	/* if the checks fail, the agent's next pass over all threads reports the name */
	if (thread_name_is_it(object, java_thread, number, id) && thread_name_is_unmoved(before) &&
	    oop_load_sig(object + (uint32_t)continuation_sig.thread_name) == name)
		thread_name_send(number, id, &text);
}

/* ---- virtual threads without a carrier ---- */

void thread_name_seek(uint64_t id, uint32_t number)
{
	uint32_t at = number % THREAD_NAME_SOUGHT;

	if (thread_name_is_sent(number, id) || !vm.usable)
		return;
	__atomic_store_n(&sought.numbers[at], number, __ATOMIC_RELAXED);
	__atomic_store_n(&sought.ids[at], id, __ATOMIC_RELEASE);
	if (!__atomic_exchange_n(&sought.due, 1, __ATOMIC_SEQ_CST))
		agent_wake();
}

bool thread_name_has_sought(void)
{
	return __atomic_load_n(&sought.due, __ATOMIC_SEQ_CST);
}

uint32_t thread_name_take_sought(struct thread_name_sought *ret)
{
	uint32_t n = 0;

	__atomic_store_n(&sought.due, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < THREAD_NAME_SOUGHT; i++) {
		ret->ids[i] = __atomic_exchange_n(&sought.ids[i], 0, __ATOMIC_ACQUIRE);
		/* marked even if it has no name, so that it is not sought again */
		if (ret->ids[i])
			thread_name_mark_sent(sought.numbers[i], ret->ids[i]);
		n += ret->ids[i] != 0;
	}
	return n;
}

void thread_name_forget_sought(void)
{
	memset(sought.ids, 0, sizeof(sought.ids));
}

bool thread_name_found(JNIEnv *env, jobject thread, struct thread_name_sought *left,
		       void (*on_name)(uint32_t number, uint64_t id, const char *name))
{
	uint64_t id = (uint64_t)(*env)->GetLongField(env, thread, vm.id);
	uint32_t number = walk_virtual_number(id);
	union text text;

	if (left->ids[number % THREAD_NAME_SOUGHT] != id)
		return false;
	left->ids[number % THREAD_NAME_SOUGHT] = 0;
	if (thread_name_read_name(env, thread, &text))
		on_name(number, id, text.name);
	return true;
}

/* ---- the agent's thread ---- */

static jfieldID thread_name_field(JNIEnv *env, jclass of, const char *name, const char *type)
{
	jfieldID id = of ? (*env)->GetFieldID(env, of, name, type) : NULL;

	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	return id;
}

static bool can_read(void)
{
	const struct continuation_layout *c = &continuation_sig;
	struct libjvm_field thread_object;

	if (!libjvm_field("JavaThread", "_threadObj", &thread_object))
		return false;
	vm.object = (int32_t)thread_object.offset;
	vm.slot_is_object = strcmp(thread_object.type, "OopHandle") != 0;
	object_header_init();
	return c->thread_id >= 0 && c->thread_name >= 0 && c->string_value >= 0 && vm.eetop >= 0 &&
	       vm.string &&
	       /* needed by oop_epoch_sig(): without it the name may be another thread's, read
		* while the collector moved both */
	       oop_sig.active && oop_sig.count;
}

void thread_name_init(JNIEnv *env)
{
	jclass thread, string;
	jfieldID eetop;

	if (vm.usable)
		return;
	thread = (*env)->FindClass(env, "java/lang/Thread");
	string = (*env)->FindClass(env, "java/lang/String");
	vm.name = thread_name_field(env, thread, "name", "Ljava/lang/String;");
	vm.id = thread_name_field(env, thread, "tid", "J");
	eetop = thread_name_field(env, thread, "eetop", "J");
	vm.eetop = eetop ? field_id_offset(eetop) : -1;
	vm.string = klass_of_class(env, string);
	vm.current = (current_thread_fn *)libjvm_symbol("JVM_CurrentThread");
	if (thread)
		(*env)->DeleteLocalRef(env, thread);
	if (string)
		(*env)->DeleteLocalRef(env, string);
	__atomic_store_n(&vm.readable, can_read(), __ATOMIC_RELEASE);
	__atomic_store_n(&vm.usable, vm.name && vm.id && vm.current, __ATOMIC_RELEASE);
}

bool thread_name_is_usable(void)
{
	return vm.usable;
}

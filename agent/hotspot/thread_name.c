/* See thread_name.h. */
#include <string.h>
#include "agent/base/guard.h"
#include "agent/base/producer.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/thread_name_priv.h"

#define CHARS_MAX (THREAD_NAME_BYTES / 3 - 1) /* a char is 3 bytes of UTF-8 at most */

typedef jobject JNICALL current_thread_fn(JNIEnv *env, jclass unused);

static struct {
	bool usable; /* names can be asked of the JVM */
	current_thread_fn *current;
	jfieldID name, id;
} vm;

static struct {
	uint64_t ids[THREAD_NAME_SOUGHT];
	uint32_t numbers[THREAD_NAME_SOUGHT];
	uint32_t due;
} sought;

/* ---- names that were reported ---- */

bool thread_name_is_sent(uint32_t number, uint64_t id)
{
	return thread_name_was_sent_sig(number, id);
}

void thread_name_mark_sent(uint32_t number, uint64_t id)
{
	thread_name_set_sent_sig(number, id);
}

void thread_name_forget(uint32_t number)
{
	thread_name_unset_sent_sig(number);
}

void thread_name_forget_all(void)
{
	for (uint32_t i = 0; i < THREAD_NAME_SENT_MAX; i++)
		if (thread_name_sent_sig[i])
			__atomic_store_n(&thread_name_sent_sig[i], 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&thread_name_generation_sig, 1, __ATOMIC_RELEASE);
}

/* Writes the name to the ring. It is marked as sent before that, so that a thread_name_forget() by
 * the writer, which reads the ring, comes after the mark. */
static void thread_name_send(uint32_t number, uint64_t id, const union thread_name_text *text)
{
	struct ring_sample head = thread_name_head_sig(number, id, text);

	thread_name_set_sent_sig(number, id);
	if (text->name[0] && !producer_push_name(&head, text->frames))
		thread_name_forget(number);
}

/* ---- by asking the JVM ---- */

static bool thread_name_read_name(JNIEnv *env, jobject thread, union thread_name_text *ret)
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
	union thread_name_text text;
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

bool thread_name_lives(uint64_t java_thread)
{
	const struct thread_name_layout *l = &thread_name_layout_sig;
	uint64_t object = l->readable ? thread_name_object_sig(java_thread, false) : 0;

	return object && load64_sig(object + (uint32_t)l->eetop) == java_thread;
}

void thread_name_on(uint64_t java_thread, uint64_t object, uint32_t number)
{
	union thread_name_text text;
	uint64_t id;

	if (thread_name_read_sig(java_thread, object, number, &id, &text))
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
	union thread_name_text text;

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
	struct thread_name_layout *l = &thread_name_layout_sig;
	struct libjvm_field thread_object;

	if (!libjvm_field("JavaThread", "_threadObj", &thread_object))
		return false;
	l->object = (int32_t)thread_object.offset;
	l->slot_is_object = strcmp(thread_object.type, "OopHandle") != 0;
	object_header_init();
	return c->thread_id >= 0 && c->thread_name >= 0 && c->string_value >= 0 && l->eetop >= 0 &&
	       l->string &&
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
	thread_name_layout_sig.eetop = eetop ? field_id_offset(eetop) : -1;
	thread_name_layout_sig.string = klass_of_class(env, string);
	vm.current = (current_thread_fn *)libjvm_symbol("JVM_CurrentThread");
	if (thread)
		(*env)->DeleteLocalRef(env, thread);
	if (string)
		(*env)->DeleteLocalRef(env, string);
	__atomic_store_n(&thread_name_layout_sig.readable, can_read(), __ATOMIC_RELEASE);
	__atomic_store_n(&vm.usable, vm.name && vm.id && vm.current, __ATOMIC_RELEASE);
}

bool thread_name_is_usable(void)
{
	return vm.usable;
}

/* See virtual_name.h. */
#include "agent/hotspot/virtual_name.h"

#include <string.h>
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"

#define CHUNKS_MAX 16 /* as many as a stack walk reads */
#define UTF8_MAX   3 /* bytes of a char in JNI's UTF-8 */

typedef jobject JNICALL current_thread_fn(JNIEnv *env, jclass unused);

static struct {
	current_thread_fn *current; /* NULL = there are no virtual threads */
	jfieldID id, name;
	/* found by the class of the first virtual thread: an earlier lookup would initialise that
	 * class */
	jfieldID continuation, tail, parent;
} known;

void virtual_name_init(JNIEnv *env)
{
	jclass c;

	if (known.current || vm_sig.version < 21)
		return;
	c = (*env)->FindClass(env, "java/lang/Thread");
	if (c) {
		known.id = (*env)->GetFieldID(env, c, "tid", "J");
		if (known.id)
			known.name = (*env)->GetFieldID(env, c, "name", "Ljava/lang/String;");
		(*env)->DeleteLocalRef(env, c);
	}
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	if (known.id && known.name)
		__atomic_store_n(&known.current,
				 (current_thread_fn *)libjvm_symbol("JVM_CurrentThread"),
				 __ATOMIC_RELEASE);
}

/* Copies as many whole characters as fit. */
static void virtual_name_read_name(JNIEnv *env, jstring string, char *ret, size_t size)
{
	char text[UTF8_MAX * WALK_NAME_BYTES + 1] = "";
	jsize n = (*env)->GetStringLength(env, string);
	size_t len;

	if (n > WALK_NAME_BYTES - 1)
		n = WALK_NAME_BYTES - 1;
	(*env)->GetStringUTFRegion(env, string, 0, n, text);
	len = strlen(text);
	if (len >= size)
		for (len = size - 1; len && ((uint8_t)text[len] & 0xc0) == 0x80; len--)
			;
	for (size_t i = 0; i < len; i++)
		ret[i] = (uint8_t)text[i] < ' ' ? '?' : text[i];
	ret[len] = '\0';
}

static bool is_virtual(uint64_t java_thread)
{
	return __atomic_load_n(&known.current, __ATOMIC_ACQUIRE) && java_thread &&
	       virtual_is_mounted_sig(java_thread);
}

/* The value of a field; its id is looked up in the object's class once. */
static jobject get_field(JNIEnv *env, jobject object, jfieldID *field, const char *name,
			 const char *type)
{
	jfieldID id = __atomic_load_n(field, __ATOMIC_ACQUIRE);
	jclass c;

	if (!id) {
		c = (*env)->GetObjectClass(env, object);
		id = (*env)->GetFieldID(env, c, name, type);
		if ((*env)->ExceptionCheck(env))
			(*env)->ExceptionClear(env);
		(*env)->DeleteLocalRef(env, c);
		__atomic_store_n(field, id, __ATOMIC_RELEASE);
	}
	return id ? (*env)->GetObjectField(env, object, id) : NULL;
}

/* Reads the parent of each chunk from this one on, which makes the JVM heal the references. Takes
 * @chunk. */
static void virtual_heal_chunks(JNIEnv *env, jobject chunk)
{
	for (int i = 0; chunk && i < CHUNKS_MAX; i++) {
		jobject parent = get_field(env, chunk, &known.parent, "parent",
					   "Ljdk/internal/vm/StackChunk;");

		(*env)->DeleteLocalRef(env, chunk);
		chunk = parent;
	}
	if (chunk)
		(*env)->DeleteLocalRef(env, chunk);
}

void virtual_heal(void)
{
	uint64_t java_thread = known.current ? java_thread_address_sig() : 0;
	jobject thread, continuation = NULL, tail = NULL;
	JNIEnv *env;

	if (!continuation_sig.z_shift || !is_virtual(java_thread))
		return;
	env = java_thread_env_sig();
	thread = known.current(env, NULL);
	if (thread)
		continuation = get_field(env, thread, &known.continuation, "cont",
					 "Ljdk/internal/vm/Continuation;");
	if (continuation)
		tail = get_field(env, continuation, &known.tail, "tail",
				 "Ljdk/internal/vm/StackChunk;");
	virtual_heal_chunks(env, tail);
	if (continuation)
		(*env)->DeleteLocalRef(env, continuation);
	if (thread)
		(*env)->DeleteLocalRef(env, thread);
}

uint32_t virtual_number(uint64_t java_thread)
{
	struct ring_sample head;

	if (!is_virtual(java_thread))
		return 0;
	virtual_identity(&head);
	if (!head.virtual_id)
		return 0;
	return walk_virtual_number(head.virtual_id);
}

uint64_t virtual_id_of(JNIEnv *env, jobject thread)
{
	return known.id && thread ? (uint64_t)(*env)->GetLongField(env, thread, known.id) : 0;
}

void virtual_identity_of(JNIEnv *env, jobject thread, struct ring_sample *head)
{
	jstring name;

	head->virtual_id = 0;
	head->name[0] = '\0';
	if (!known.current)
		return;
	head->virtual_id = (uint64_t)(*env)->GetLongField(env, thread, known.id);
	name = (*env)->GetObjectField(env, thread, known.name);
	if (name) {
		virtual_name_read_name(env, name, head->name, sizeof(head->name));
		(*env)->DeleteLocalRef(env, name);
	}
}

void virtual_identity(struct ring_sample *head)
{
	uint64_t java_thread = known.current ? java_thread_address_sig() : 0;
	jobject thread;
	JNIEnv *env;

	head->virtual_id = 0;
	head->name[0] = '\0';
	if (!is_virtual(java_thread))
		return;
	env = java_thread_env_sig();
	thread = known.current(env, NULL);
	if (!thread)
		return;
	virtual_identity_of(env, thread, head);
	(*env)->DeleteLocalRef(env, thread);
}

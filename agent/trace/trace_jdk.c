/*
 * Finds, once and by JNI, the fields and classes in which the JDK keeps a thread's ThreadLocals and
 * their values: offsets for the handlers' loads, field ids for the agent's own searches by JNI.
 */
#include <stddef.h>
#include <string.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/oop.h"
#include "agent/trace/trace_priv.h"

#define HANDLES_SINCE 16 /* the JDK since which JavaThread::_threadObj is a handle */
#define ARRAY_TRIES   100
#define MAP_ENTRY     "java/lang/ThreadLocal$ThreadLocalMap$Entry"
#define TEXT_BYTES    128
#define SLOTS_MAX     256
#define CHAIN_MAX     16

static struct {
	jfieldID locals[TRACE_MAPS], table, value, referent, hash;
	jfieldID list_last, node_item, map_table, node_key, node_next, node_value;
	jfieldID concurrent_table, concurrent_key, concurrent_value, concurrent_next;
} fields;

static void trace_jdk_clear(JNIEnv *env)
{
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

jfieldID trace_jdk_field(JNIEnv *env, jclass of, const char *name, const char *type)
{
	jfieldID id = of ? (*env)->GetFieldID(env, of, name, type) : NULL;

	trace_jdk_clear(env);
	return id;
}

static jclass trace_jdk_class(JNIEnv *env, const char *name)
{
	jclass c = (*env)->FindClass(env, name);

	trace_jdk_clear(env);
	return c;
}

void trace_jdk_class_name(uint64_t klass, char *ret, size_t size)
{
	uint64_t symbol = klass ? load64_sig(klass + (uint32_t)vm_sig.klass_name) : 0;
	uint32_t n = symbol ? load16_sig(symbol + (uint32_t)vm_sig.symbol_length) : 0;

	ret[0] = '\0';
	if (!n || n >= size)
		return;
	guard_copy_sig(ret, symbol + (uint32_t)vm_sig.symbol_body, n);
	ret[n] = '\0';
}

/* A field to find: the variables for its offset and, if searches in the agent's thread need it, for
 * its id. */
struct trace_jdk_field_spec {
	const char *of, *name, *type;
	int32_t *at;
	jfieldID *id; /* NULL = not needed */
};

static bool trace_jdk_find_field(JNIEnv *env, const struct trace_jdk_field_spec *spec)
{
	jclass of = trace_jdk_class(env, spec->of);
	jfieldID id = trace_jdk_field(env, of, spec->name, spec->type);

	if (of)
		(*env)->DeleteLocalRef(env, of);
	if (!id)
		return false;
	*spec->at = field_id_offset(id);
	if (spec->id)
		*spec->id = id;
	return true;
}

static bool trace_jdk_find_fields(JNIEnv *env, const char **missing)
{
	struct trace_layout *t = &trace_sig;
	const struct trace_jdk_field_spec specs[] = {
		{ "java/lang/Thread", "threadLocals", "Ljava/lang/ThreadLocal$ThreadLocalMap;",
		  &t->thread_locals[TRACE_OWN], &fields.locals[TRACE_OWN] },
		{ "java/lang/Thread", "inheritableThreadLocals",
		  "Ljava/lang/ThreadLocal$ThreadLocalMap;", &t->thread_locals[TRACE_INHERITABLE],
		  &fields.locals[TRACE_INHERITABLE] },
		{ "java/lang/ThreadLocal$ThreadLocalMap", "table", "[L" MAP_ENTRY ";", &t->table,
		  &fields.table },
		{ MAP_ENTRY, "value", "Ljava/lang/Object;", &t->value, &fields.value },
		{ "java/lang/ref/Reference", "referent", "Ljava/lang/Object;", &t->referent,
		  &fields.referent },
		{ "java/lang/ThreadLocal", "threadLocalHashCode", "I", &t->local_hash,
		  &fields.hash },
		{ "java/util/LinkedList", "last", "Ljava/util/LinkedList$Node;", &t->list_last,
		  &fields.list_last },
		{ "java/util/LinkedList$Node", "item", "Ljava/lang/Object;", &t->node_item,
		  &fields.node_item },
		{ "java/util/HashMap", "table", "[Ljava/util/HashMap$Node;", &t->map_table,
		  &fields.map_table },
		{ "java/util/HashMap$Node", "hash", "I", &t->node_hash, NULL },
		{ "java/util/HashMap$Node", "key", "Ljava/lang/Object;", &t->node_key,
		  &fields.node_key },
		{ "java/util/HashMap$Node", "value", "Ljava/lang/Object;", &t->node_value,
		  &fields.node_value },
		{ "java/util/HashMap$Node", "next", "Ljava/util/HashMap$Node;", &t->node_next,
		  &fields.node_next },
		{ TRACE_CONCURRENT, "table", "[L" TRACE_CONCURRENT "$Node;", &t->concurrent_table,
		  &fields.concurrent_table },
		{ TRACE_CONCURRENT "$Node", "hash", "I", &t->concurrent_hash, NULL },
		{ TRACE_CONCURRENT "$Node", "key", "Ljava/lang/Object;", &t->concurrent_key,
		  &fields.concurrent_key },
		{ TRACE_CONCURRENT "$Node", "val", "Ljava/lang/Object;", &t->concurrent_value,
		  &fields.concurrent_value },
		{ TRACE_CONCURRENT "$Node", "next", "L" TRACE_CONCURRENT "$Node;",
		  &t->concurrent_next, &fields.concurrent_next },
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (!trace_jdk_find_field(env, &specs[i])) {
			*missing = specs[i].name;
			return false;
		}
	return true;
}

/* The Klass of an array comes from its header: the class mirror of JDK 28 names another one
 * (refined array classes). */
static uint64_t trace_jdk_klass_of_array(JNIEnv *env, jobject array)
{
	uint64_t last = 0;

	for (int i = 0; array && i < ARRAY_TRIES; i++) {
		uint64_t epoch = oop_epoch_sig(), klass;

		/* by this call the collector brings the reference up to date */
		(void)(*env)->GetArrayLength(env, array);
		klass = object_klass_sig(oop_of_handle_sig((uint64_t)(uintptr_t)array));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!epoch || oop_epoch_sig() != epoch)
			continue;
		if (klass && klass == last)
			return klass;
		last = klass;
	}
	return 0;
}

static uint64_t trace_jdk_klass_named(JNIEnv *env, const char *name)
{
	jclass of = trace_jdk_class(env, name);
	uint64_t klass = klass_of_class(env, of);

	if (of)
		(*env)->DeleteLocalRef(env, of);
	return klass;
}

static uint64_t trace_jdk_klass_of_arrays(JNIEnv *env, const char *of_name)
{
	jclass of = trace_jdk_class(env, of_name);
	jobject array = of ? (*env)->NewObjectArray(env, 1, of, NULL) : NULL;

	trace_jdk_clear(env);
	return trace_jdk_klass_of_array(env, array);
}

static bool trace_jdk_find_classes(JNIEnv *env, const char **missing)
{
	struct trace_layout *t = &trace_sig;
	jobject text;

	t->map_klass = trace_jdk_klass_named(env, "java/lang/ThreadLocal$ThreadLocalMap");
	t->entry_klass = trace_jdk_klass_named(env, MAP_ENTRY);
	t->table_klass = trace_jdk_klass_of_arrays(env, MAP_ENTRY);
	t->objects_klass = trace_jdk_klass_of_arrays(env, "java/lang/Object");
	t->string_klass = trace_jdk_klass_named(env, "java/lang/String");
	text = continuation_sig.string_coder < 0 ? (jobject)(*env)->NewCharArray(env, 1)
						 : (jobject)(*env)->NewByteArray(env, 1);
	trace_jdk_clear(env);
	t->bytes_klass = trace_jdk_klass_of_array(env, text);
	t->list_node_klass = trace_jdk_klass_named(env, "java/util/LinkedList$Node");
	t->hash_map_klass = trace_jdk_klass_named(env, "java/util/HashMap");
	t->concurrent_klass = trace_jdk_klass_named(env, TRACE_CONCURRENT);
	t->object_klass = trace_jdk_klass_named(env, "java/lang/Object");
	*missing = "a class of the JDK that it needs";
	return t->map_klass && t->entry_klass && t->table_klass && t->objects_klass &&
	       t->string_klass && t->bytes_klass && t->list_node_klass && t->hash_map_klass &&
	       t->concurrent_klass && t->object_klass;
}

/* Only for JDKs with virtual threads. Without it virtual threads have no ids between two steps of a
 * mount. */
static void trace_jdk_find_task(JNIEnv *env)
{
	struct trace_layout *t = &trace_sig;
	const struct trace_jdk_field_spec specs[] = {
		{ "jdk/internal/vm/Continuation", "target", "Ljava/lang/Runnable;", &t->task,
		  NULL },
		{ "java/lang/VirtualThread$VThreadContinuation$1", "val$vthread",
		  "Ljava/lang/VirtualThread;", &t->task_thread, NULL },
	};

	t->task_klass = 0;
	if (vm_sig.thread_vthread >= 0 && trace_jdk_find_field(env, &specs[0]) &&
	    trace_jdk_find_field(env, &specs[1]))
		t->task_klass = trace_jdk_klass_named(env, specs[1].of);
}

bool trace_jdk_find(JNIEnv *env, const char **missing)
{
	const struct continuation_layout *c = &continuation_sig;
	struct trace_layout *t = &trace_sig;
	bool found;

	object_header_init();
	t->thread_object = (int32_t)libjvm_offset("JavaThread", "_threadObj");
	t->slot_is_object = vm_sig.version < HANDLES_SINCE;
	*missing = "a field of the JVM that it needs";
	if (t->thread_object < 0 || c->string_value < 0 || vm_sig.klass_name < 0 ||
	    vm_sig.symbol_body < 0)
		return false;
	if ((*env)->PushLocalFrame(env, 32) < 0) {
		trace_jdk_clear(env);
		return false;
	}
	found = trace_jdk_find_fields(env, missing) && trace_jdk_find_classes(env, missing);
	if (found)
		trace_jdk_find_task(env);
	(*env)->PopLocalFrame(env, NULL);
	return found;
}

/* ---- for the agent's own searches, by JNI, which works with every collector ---- */

jobjectArray trace_jdk_entries(JNIEnv *env, jobject thread, enum trace_map map)
{
	jobject locals = (*env)->GetObjectField(env, thread, fields.locals[map]), table = NULL;

	if (locals) {
		table = (*env)->GetObjectField(env, locals, fields.table);
		(*env)->DeleteLocalRef(env, locals);
	}
	return table;
}

jobject trace_jdk_value(JNIEnv *env, jobject entry)
{
	return (*env)->GetObjectField(env, entry, fields.value);
}

jobject trace_jdk_local(JNIEnv *env, jobject entry, uint32_t *ret_hash)
{
	jobject local = (*env)->GetObjectField(env, entry, fields.referent);

	*ret_hash = local ? (uint32_t)(*env)->GetIntField(env, local, fields.hash) : 0;
	return local;
}

jobject trace_jdk_list_last(JNIEnv *env, jobject list)
{
	jobject node = (*env)->GetObjectField(env, list, fields.list_last);

	return node ? (*env)->GetObjectField(env, node, fields.node_item) : NULL;
}

uint32_t trace_jdk_hash(const char *text, uint32_t n)
{
	uint32_t h = 0;

	for (uint32_t i = 0; i < n; i++)
		h = 31 * h + (uint8_t)text[i];
	return h ^ h >> 16;
}

/* Copies a String of fewer than @most characters. */
static bool trace_jdk_text(JNIEnv *env, jobject object, jsize most, char ret[TEXT_BYTES * 3])
{
	jclass of = object ? (*env)->GetObjectClass(env, object) : NULL;
	bool is_string = of && klass_of_class(env, of) == trace_sig.string_klass;
	jsize n = is_string ? (*env)->GetStringLength(env, object) : 0;

	if (of)
		(*env)->DeleteLocalRef(env, of);
	if (!n || n >= most)
		return false;
	memset(ret, 0, TEXT_BYTES * 3);
	(*env)->GetStringUTFRegion(env, object, 0, n, ret);
	return true;
}

bool trace_jdk_is_text(JNIEnv *env, jobject object, const char *text)
{
	char got[TEXT_BYTES * 3];

	return trace_jdk_text(env, object, TEXT_BYTES, got) && strcmp(got, text) == 0;
}

bool trace_jdk_is_key(JNIEnv *env, jobject key)
{
	char text[TEXT_BYTES * 3];

	if (!trace_jdk_text(env, key, TRACE_KEY_BYTES, text))
		return false;
	for (uint32_t k = 0; k < trace_sig.n_mdc_keys; k++)
		if (strcmp(text, trace_sig.mdc_keys[k].text) == 0)
			return true;
	return false;
}

static bool trace_jdk_chain_has_key(JNIEnv *env, jobject node, jfieldID key_at, jfieldID next_at)
{
	bool found = false;

	for (int k = 0; node && k < 16 && !found; k++) {
		jobject key = (*env)->GetObjectField(env, node, key_at);
		jobject next = next_at ? (*env)->GetObjectField(env, node, next_at) : NULL;

		found = trace_jdk_is_key(env, key);
		if (key)
			(*env)->DeleteLocalRef(env, key);
		(*env)->DeleteLocalRef(env, node);
		node = next;
	}
	if (node)
		(*env)->DeleteLocalRef(env, node);
	return found;
}

/* The table belongs to another thread and may change meanwhile, so its nodes are followed and its
 * map's code is never called. */
bool trace_jdk_nodes_have_key(JNIEnv *env, jobjectArray table, jfieldID key, jfieldID next)
{
	jsize n = table ? (*env)->GetArrayLength(env, table) : 0;
	bool found = false;

	for (jsize i = 0; i < n && i < 256 && !found; i++)
		found = trace_jdk_chain_has_key(env, (*env)->GetObjectArrayElement(env, table, i),
						key, next);
	trace_jdk_clear(env);
	return found;
}

bool trace_jdk_has_key(JNIEnv *env, jobject map)
{
	jobjectArray table = (*env)->GetObjectField(env, map, fields.map_table);

	return trace_jdk_nodes_have_key(env, table, fields.node_key, fields.node_next);
}

/* Returns the next node, a new local reference. */
static jobject trace_jdk_concurrent_node(JNIEnv *env, jobject node, trace_entry_fn *on_entry,
					 void *context)
{
	jobject key = (*env)->GetObjectField(env, node, fields.concurrent_key);
	jobject value = (*env)->GetObjectField(env, node, fields.concurrent_value);

	if (key && value)
		on_entry(env, key, value, context);
	return (*env)->GetObjectField(env, node, fields.concurrent_next);
}

static void trace_jdk_concurrent_chain(JNIEnv *env, jobject node, trace_entry_fn *on_entry,
				       void *context)
{
	for (int k = 0; node && k < CHAIN_MAX; k++) {
		if ((*env)->PushLocalFrame(env, TRACE_LOCAL_REFS) < 0)
			return;
		node = (*env)->PopLocalFrame(
			env, trace_jdk_concurrent_node(env, node, on_entry, context));
	}
}

void trace_jdk_concurrent_each(JNIEnv *env, jobject map, trace_entry_fn *on_entry, void *context)
{
	jobjectArray table = (*env)->GetObjectField(env, map, fields.concurrent_table);
	jsize n = table ? (*env)->GetArrayLength(env, table) : 0;

	for (jsize i = 0; i < n && i < SLOTS_MAX; i++) {
		if ((*env)->PushLocalFrame(env, TRACE_LOCAL_REFS) < 0)
			break;
		trace_jdk_concurrent_chain(env, (*env)->GetObjectArrayElement(env, table, i),
					   on_entry, context);
		(void)(*env)->PopLocalFrame(env, NULL);
	}
	trace_jdk_clear(env);
}

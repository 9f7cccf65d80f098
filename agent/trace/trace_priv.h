/*
 * Inside the room: trace_sig.c (from the thread to the value of its ThreadLocal), trace_kinds_sig.c
 * (from the value to the ids), trace_jdk.c (where the JDK's classes keep things), trace_learn.c
 * (tracers' classes), trace.c (when is looked, and at whom).
 */
#pragma once

#include "agent/trace/trace.h"

#define TRACE_PLACES	16u /* of each table: class loaders may bring a tracer each */
#define TRACE_MDC_KEYS	4u
#define TRACE_KEY_BYTES 32u

enum trace_kind {
	TRACE_NO_TRACE, /* it says that nothing is traced */
	TRACE_OTEL,
	TRACE_SKYWALKING,
	TRACE_BRAVE,
	TRACE_MDC,
	TRACE_MDC_WRAPPED, /* a map that holds the map */
};

/* Where the fields of a class lie. */
struct trace_class {
	int32_t at[3];
	uint8_t kind; /* enum trace_kind, of values */
};

/* Classes by their Klass, apart from what is known of them: a handler finds all of this cold. A
 * klass is written last, and becomes 0 when the class goes. */
struct trace_classes {
	uint32_t n; /* places that were ever used */
	uint64_t klass[TRACE_PLACES]; /* 0 = free */
	struct trace_class of[TRACE_PLACES];
};

/* Hashes of ThreadLocals. */
struct trace_locals {
	uint32_t n;
	uint32_t hash[TRACE_PLACES];
};

struct trace_layout {
	uint32_t on; /* some ThreadLocal is known: the one load */
	uint32_t wanted; /* by handlers: they met a class that is not known (yet) */
	struct trace_locals tracers, mdc; /* an MDC may say the same, and less */
	struct trace_classes values; /* OTEL: entries; SKYWALKING: segment, span stack; BRAVE: high
					and low trace id, span id; MDC_WRAPPED: the map */
	struct trace_classes spans; /* OTEL: the span context; SKYWALKING: its number */
	struct trace_classes ids; /* OTEL: trace id, span id; SKYWALKING: the trace id's object, its
				     own id */
	struct trace_classes keys; /* OTEL: the key's name; SKYWALKING: the trace id's text */
	struct {
		uint32_t hash; /* as HashMap spreads it */
		uint32_t len;
		char text[TRACE_KEY_BYTES];
	} mdc_keys[TRACE_MDC_KEYS];
	uint32_t n_mdc_keys;

	/* the JDK's: Thread, ThreadLocalMap, its Entry, Reference, ThreadLocal ... */
	int32_t thread_object; /* in a JavaThread */
	bool slot_is_object; /* not a handle of it: before 16 */
	int32_t thread_locals, table, value, referent, local_hash;
	uint64_t map_klass, table_klass, entry_klass;
	uint64_t string_klass, bytes_klass, objects_klass;
	int32_t list_last, node_item, map_table, node_hash, node_key, node_value, node_next;
	uint64_t list_node_klass, hash_map_klass;
	/* a Continuation's task, and the virtual thread in that; klass 0 = there is none */
	int32_t task, task_thread;
	uint64_t task_klass;
	uint32_t elements, element_bytes; /* of an array of references */
};
extern struct trace_layout trace_sig;

/* trace_sig.c. A reference in a field; 0 with *lost: not to be followed now. */
uint64_t trace_ref_sig(uint64_t at, bool *lost);
uint64_t trace_element_sig(uint64_t array, uint32_t i, bool *lost);
const struct trace_class *trace_class_sig(const struct trace_classes *c, uint64_t object);
void trace_unknown_sig(void);

/* trace_kinds_sig.c: the ids in a value of that class; 0 = none, or not to be had now. *lost says
 * which. */
uint32_t trace_ids_sig(const struct trace_class *c, uint64_t value, char *text, bool *lost);

/* trace_jdk.c. false = this JVM keeps them elsewhere; *missing says what. */
bool trace_jdk_find(JNIEnv *env, const char **missing);
/* The value and the ThreadLocal of the entry at @i of the ThreadLocals of @thread. New local
 * references or NULL. */
jobjectArray trace_jdk_entries(JNIEnv *env, jobject thread);
jobject trace_jdk_value(JNIEnv *env, jobject entry);
jobject trace_jdk_local(JNIEnv *env, jobject entry, uint32_t *ret_hash);
uint64_t trace_jdk_klass(JNIEnv *env, jclass of);
/* "java/util/HashMap"; "" = not to be had. */
void trace_jdk_class_name(uint64_t klass, char *ret, size_t size);
jfieldID trace_jdk_field(JNIEnv *env, jclass of, const char *name, const char *type);
/* Does the HashMap hold one of the keys of an MDC? */
bool trace_jdk_has_key(JNIEnv *env, jobject map);
jobject trace_jdk_list_last(JNIEnv *env, jobject list);

/* trace_learn.c. What a thread keeps under a ThreadLocal: true = a context of a tracer, now known.
 */
bool trace_learn_value(JNIEnv *env, jobject value, bool *ret_mdc);
/* Forgets the classes that were unloaded. */
void trace_learn_sweep(JNIEnv *env);
void trace_learn_forget(JNIEnv *env);
/* What is there but cannot be read; "" = nothing. */
const char *trace_learn_trouble(void);
extern struct trace_wanted {
	bool otel, skywalking, brave, mdc;
} trace_wanted;

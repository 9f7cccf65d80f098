/*
 * Shared by the room's files: trace_sig.c (from the thread to the value of its ThreadLocal),
 * trace_kinds_sig.c (from the value to the ids), trace_mdc_sig.c (from an MDC to its id),
 * trace_vertx_sig.c (from a Context of Vert.x to such a value), trace_jdk.c (fields and classes of
 * the JDK), trace_learn.c (classes of tracers), trace_learn_mdc.c (classes of MDCs),
 * trace_learn_vertx.c (classes of Vert.x), trace.c (when to search, and in which threads). What is
 * published in thread-local storage needs none of this: trace_tls.h.
 */
#pragma once

#include "agent/trace/trace.h"

#define TRACE_ON_HEAP 1u /* some ThreadLocal */
#define TRACE_ON_TLS  2u /* some library that publishes contexts: trace_tls.h */

/* entries of each table: several class loaders may each have a tracer of their own */
#define TRACE_SLOTS	16u
#define TRACE_FIELDS	4u
#define TRACE_MDC_KEYS	4u
#define TRACE_KEY_BYTES 32u
#define TRACE_CONCURRENT "java/util/concurrent/ConcurrentHashMap"
#define TRACE_LOCAL_REFS 64 /* of a search, for one value */

/* keys of the local data of Vert.x, of vertx-opentelemetry 4.0 to 4.4 and of Quarkus */
#define TRACE_VERTX_OTEL   "tracing.context"
#define TRACE_QUARKUS_OTEL "io.quarkus.opentelemetry.runtime.QuarkusContextStorage.otelContext"
#define TRACE_QUARKUS_MDC  "io.quarkus.vertx.core.runtime.VertxMDC"

enum trace_kind {
	TRACE_NO_TRACE, /* a context that is not traced */
	TRACE_OTEL,
	TRACE_SKYWALKING,
	TRACE_BRAVE,
	TRACE_MDC, /* a HashMap */
	TRACE_MDC_WRAPPED, /* a map that wraps the HashMap */
	TRACE_MDC_NODES, /* another table of nodes that have a key and a value */
	TRACE_MDC_SORTED, /* an array of keys and one of values */
	TRACE_MDC_PAIRS, /* an array of a number, a key, its value, the next key ... */
	TRACE_VERTX, /* has a Context of Vert.x, or is one */
};

/* The offsets of a class's fields. */
struct trace_class {
	int32_t at[TRACE_FIELDS];
	uint8_t kind; /* enum trace_kind, for classes of values */
};

/* A table of classes, searched by Klass. The keys are apart from the offsets, because a handler
 * finds them in no cache. A key is written last, and becomes 0 when the class is unloaded. */
struct trace_classes {
	uint32_t n; /* entries that have ever been used */
	uint64_t klass[TRACE_SLOTS]; /* 0 = free */
	struct trace_class of[TRACE_SLOTS];
};

/* The maps of a Thread: of its ThreadLocals, and of its InheritableThreadLocals. */
enum trace_map { TRACE_OWN, TRACE_INHERITABLE, TRACE_MAPS };

/* Hashes of ThreadLocals. */
struct trace_locals {
	uint32_t n;
	uint32_t hash[TRACE_SLOTS];
};

struct trace_layout {
	uint32_t on; /* TRACE_ON_x: what is known; handlers check this first */
	uint32_t wanted; /* 1 = a handler met an unknown class, so a search is needed */
	/* MDCs come second: they repeat a tracer's ids, sometimes only a part */
	struct trace_locals tracers[TRACE_MAPS], mdc[TRACE_MAPS];
	/* OTEL: entries; SKYWALKING: segment, span stack; BRAVE: high and low trace id, span id;
	 * MDC_WRAPPED: the map; MDC_NODES: the table, a node's key, value and next node (-1 = it
	 * has none); MDC_SORTED: keys, values, their number; VERTX: the Context */
	struct trace_classes values;
	struct trace_classes spans; /* OTEL: the span context; SKYWALKING: its number */
	struct trace_classes ids; /* OTEL: trace id, span id; SKYWALKING: the trace id's object, its
				     own id */
	struct trace_classes keys; /* OTEL: the key's name; SKYWALKING: the trace id's text */
	struct {
		uint32_t hash; /* as HashMap.hash() computes it */
		uint32_t len;
		char text[TRACE_KEY_BYTES];
	} mdc_keys[TRACE_MDC_KEYS];
	uint32_t n_mdc_keys;

	/* Vert.x: classes of threads, with their Context; classes of Contexts, with their local
	 * data */
	struct trace_classes vertx_threads, vertx_contexts;
	/* hashes of the keys in local data, and whether that has keys which are plain Objects */
	uint32_t vertx_otel_key, quarkus_otel_key, vertx_mdc_key;
	bool vertx_object_keys;

	/* offsets in classes of the JDK: Thread, ThreadLocalMap, its Entry, Reference, ThreadLocal
	 * ... */
	int32_t thread_object; /* in a JavaThread */
	bool slot_is_object; /* the field holds the object itself, not a handle: before JDK 16 */
	int32_t thread_locals[TRACE_MAPS], table, value, referent, local_hash;
	uint64_t map_klass, table_klass, entry_klass;
	uint64_t string_klass, bytes_klass, objects_klass;
	int32_t list_last, node_item, map_table, node_hash, node_key, node_value, node_next;
	uint64_t list_node_klass, hash_map_klass, concurrent_klass, object_klass;
	int32_t concurrent_table, concurrent_hash, concurrent_key, concurrent_value,
		concurrent_next;
	/* a Continuation's task, and its virtual thread; klass 0 = this JDK has none */
	int32_t task, task_thread;
	uint64_t task_klass;
};
extern struct trace_layout trace_sig;

/* trace_sig.c. The reference in a field; 0 and *unreadable = true: it cannot be followed now. */
uint64_t trace_ref_sig(uint64_t at, bool *unreadable);
uint64_t trace_element_sig(uint64_t array, uint32_t i, bool *unreadable);
const struct trace_class *trace_class_sig(const struct trace_classes *c, uint64_t object);
void trace_unknown_sig(void);

/* trace_kinds_sig.c. Reads the ids in a @value of class @c as text; returns its bytes, 0 = there
 * are none, or, with *unreadable, they cannot be read now. */
uint32_t trace_ids_sig(const struct trace_class *c, uint64_t value, char *text, bool *unreadable);
/* Copies a String of visible ASCII, NUL-terminated. Returns its length; 0 = it has other
 * characters, or is longer than @most. */
uint32_t trace_string_sig(uint64_t string, char *to, uint32_t most);
bool trace_same_sig(const char *a, const char *b, uint32_t n);

/* trace_mdc_sig.c. The same for the kinds TRACE_MDC_x. */
uint32_t trace_mdc_sig(const struct trace_class *c, uint64_t value, char *text, bool *unreadable);

/* trace_vertx_sig.c. The same for the OpenTelemetry context, or with @mdc the MDC, in the local
 * data of the thread's Context of Vert.x. A @thread that is none of Vert.x has none. */
uint32_t trace_vertx_thread_sig(uint64_t thread, bool mdc, char *text, bool *unreadable);
/* The same for the Context in a @dispatch, an object of class @c. */
uint32_t trace_vertx_dispatch_sig(const struct trace_class *c, uint64_t dispatch, bool mdc,
				  char *text, bool *unreadable);

/* trace_jdk.c. Finds the fields and classes of the JDK. false = one was not found; *missing names
 * it. */
bool trace_jdk_find(JNIEnv *env, const char **missing);
/* The entries of one of a thread's maps, and the value and the ThreadLocal of one entry. New local
 * references or NULL. */
jobjectArray trace_jdk_entries(JNIEnv *env, jobject thread, enum trace_map map);
jobject trace_jdk_value(JNIEnv *env, jobject entry);
jobject trace_jdk_local(JNIEnv *env, jobject entry, uint32_t *ret_hash);
/* "java/util/HashMap"; "" = the name cannot be read. */
void trace_jdk_class_name(uint64_t klass, char *ret, size_t size);
jfieldID trace_jdk_field(JNIEnv *env, jclass of, const char *name, const char *type);
/* As HashMap.hash() computes it of a String. */
uint32_t trace_jdk_hash(const char *text, uint32_t n);
/* Is @key one of the keys of an MDC? */
bool trace_jdk_is_key(JNIEnv *env, jobject key);
/* Is @object the String @text, of fewer than 128 bytes of ASCII? */
bool trace_jdk_is_text(JNIEnv *env, jobject object, const char *text);
/* Calls @on_entry for the entries of a ConcurrentHashMap, which may change meanwhile. */
typedef void trace_entry_fn(JNIEnv *env, jobject key, jobject value, void *context);
void trace_jdk_concurrent_each(JNIEnv *env, jobject map, trace_entry_fn *on_entry, void *context);
/* Does the HashMap hold one of the keys of an MDC? */
bool trace_jdk_has_key(JNIEnv *env, jobject map);
/* The same for the nodes of any table. @next: NULL = a node has none. */
bool trace_jdk_nodes_have_key(JNIEnv *env, jobjectArray table, jfieldID key, jfieldID next);
jobject trace_jdk_list_last(JNIEnv *env, jobject list);

/* What a search has found. */
struct trace_found {
	bool tracer, mdc;
};

/* trace_learn.c. Checks the value of a ThreadLocal. The classes of what is found are known from now
 * on. */
struct trace_found trace_learn_value(JNIEnv *env, jobject value);
/* Adds a class with up to TRACE_FIELDS fields, NULL = there is none. Does nothing if it is known
 * already or there is no room. */
void trace_learn_class(JNIEnv *env, struct trace_classes *c, jclass of, enum trace_kind kind,
		       const jfieldID fields[TRACE_FIELDS]);
/* The same for the class at @klass, of which @of is the mirror. */
void trace_learn_klass(JNIEnv *env, struct trace_classes *c, jclass of, uint64_t klass,
		       enum trace_kind kind, const jfieldID fields[TRACE_FIELDS]);
void trace_learn_fails(const char *what, const char *name);
bool trace_learn_ends(const char *name, const char *end);
/* trace_learn_mdc.c. The same as trace_learn_value() for an object of class @of, with that @name.
 */
bool trace_learn_mdc(JNIEnv *env, jobject value, jclass of, const char *name);
/* The same for a ConcurrentHashMap. */
bool trace_learn_concurrent(JNIEnv *env, jobject map);
/* trace_learn_vertx.c. Checks the local data of the Context that a thread of Vert.x has, or the
 * value of a ThreadLocal. Others have none. */
struct trace_found trace_learn_vertx_thread(JNIEnv *env, jobject thread);
struct trace_found trace_learn_vertx_dispatch(JNIEnv *env, jobject value, jclass of);
/* Was something found for the first time, so that threads which were checked before count now, too?
 */
bool trace_learn_vertx_is_new(void);
void trace_learn_vertx_forget(void);
/* Forgets the classes that were unloaded. */
void trace_learn_sweep(JNIEnv *env);
void trace_learn_forget(JNIEnv *env);
/* A sentence about a tracer that was found but cannot be read; "" = none. */
const char *trace_learn_problem(void);
extern struct trace_wanted {
	bool otel, skywalking, brave, mdc;
} trace_wanted;

/*
 * See virtual_sets.h. A set is a ConcurrentHashMap: a table of linked lists. Its writers publish
 * only complete nodes, so a concurrent walk either sees a node or does not. Tree bins, and tables
 * that are being resized, are left to the pass by Java code. The hash of a thread is its id, from
 * which ConcurrentHashMap.spread() computes the bin.
 */
#include "agent/hotspot/virtual_sets.h"

#include <stddef.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"

#define SINCE	    24 /* in earlier JDKs a virtual thread that holds a monitor cannot unmount */
#define KINDS_MAX   4 /* different classes of containers */
#define THREADS_MAX 20000u /* in one pass */
#define SLOTS_MAX   65536u /* bins; a table never shrinks */
#define CHAIN_MAX   64
#define NEWEST	    512u /* ids */
#define FIND_SETS   16u /* containers that virtual_sets_find() searches at most */
#define FIND_SLOTS  256u /* largest table of containers that it searches */

static struct {
	bool usable;
	/* global references to maps; the first is NULL if the JVM does not track threads */
	jobject root, containers;
	int32_t map; /* offset in CollectionView, the view of a map as a set */
	int32_t table, hash, key, next; /* offsets in a map, and in a node */
	int32_t referent; /* in a weak reference */
	uint64_t virtual_thread; /* Klass */
	const uint64_t *next_id; /* address of the id of the next new thread; NULL = unknown */
	uint32_t n_kinds;
	struct kind {
		uint64_t klass; /* of a container */
		int32_t threads; /* offset of its set; -1 = unknown */
	} kinds[KINDS_MAX];
} jdk;

/* ---- a map ----------------------------------------------------------------------------------- */

struct set_walk {
	bool (*on_key)(uint64_t key, void *context);
	void *context;
	uint32_t slots_max, left; /* keys */
	uint64_t newest; /* the id of the next new thread: only recent ids are looked up; 0 = the
			  * whole map is walked */
	bool enough;
};

static void walk_list(struct set_walk *w, uint64_t node)
{
	for (int i = 0; node && i < CHAIN_MAX && w->left && !w->enough; i++) {
		uint64_t key = oop_load_sig(node + (uint32_t)jdk.key);

		if ((int32_t)load32_sig(node + (uint32_t)jdk.hash) < 0)
			return; /* a tree bin, or a marker that the table is being resized */
		w->left--;
		if (key)
			w->enough = !w->on_key(key, w->context);
		node = oop_load_sig(node + (uint32_t)jdk.next);
	}
}

/* The length of a map's table; 0 = it has none, or the length is not a power of two. @ret_slots:
 * the address of its first element. */
static uint32_t table_of(uint64_t map, uint64_t *ret_slots)
{
	uint64_t table = map ? oop_load_sig(map + (uint32_t)jdk.table) : 0;
	uint32_t length = table ? load32_sig(table + (uint32_t)continuation_sig.array_length) : 0;

	*ret_slots = table + continuation_sig.array_references;
	return length & (length - 1) ? 0 : length;
}

static void walk_map(struct set_walk *w, uint64_t map)
{
	uint64_t slots;
	uint32_t n = table_of(map, &slots);

	if (n > w->slots_max)
		return;
	for (uint32_t i = 0; i < n && w->left && !w->enough; i++)
		walk_list(w, oop_load_sig(slots + (uint64_t)i * continuation_sig.reference_bytes));
}

static uint64_t virtual_sets_slot_of(uint64_t slots, uint32_t n, uint64_t id)
{
	uint32_t hash = (uint32_t)id;

	hash = (hash ^ hash >> 16) & INT32_MAX;
	return slots + (uint64_t)(hash & (n - 1)) * continuation_sig.reference_bytes;
}

static void walk_slot(struct set_walk *w, uint64_t map, uint64_t id)
{
	uint64_t slots;
	uint32_t n = table_of(map, &slots);

	if (n)
		walk_list(w, oop_load_sig(virtual_sets_slot_of(slots, n, id)));
}

static void walk_newest(struct set_walk *w, uint64_t map)
{
	uint64_t slots;
	uint32_t n = table_of(map, &slots);

	if (n <= NEWEST) {
		walk_map(w, map);
		return;
	}
	for (uint64_t i = 1; i <= NEWEST && i < w->newest && !w->enough; i++)
		walk_list(w, oop_load_sig(virtual_sets_slot_of(slots, n, w->newest - i)));
}

static void walk_threads(struct set_walk *w, uint64_t map)
{
	if (w->newest)
		walk_newest(w, map);
	else
		walk_map(w, map);
}

/* ---- the maps of threads --------------------------------------------------------------------- */

static uint64_t map_of(jobject reference)
{
	return reference ? oop_of_handle_sig((uint64_t)(uintptr_t)reference) : 0;
}

/* The map of the container behind a weak reference; 0 = the container's class is unknown. */
static uint64_t map_behind(uint64_t weak)
{
	uint64_t container = oop_load_sig(weak + (uint32_t)jdk.referent);
	uint64_t klass = object_klass(container), set = 0;
	uint32_t n = __atomic_load_n(&jdk.n_kinds, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; klass && i < n && !set; i++)
		if (jdk.kinds[i].klass == klass && jdk.kinds[i].threads >= 0)
			set = oop_load_sig(container + (uint32_t)jdk.kinds[i].threads);
	return set ? oop_load_sig(set + (uint32_t)jdk.map) : 0;
}

uint64_t virtual_sets_id(uint64_t thread)
{
	if (!thread || object_klass(thread) != jdk.virtual_thread)
		return 0;
	return load64_sig(thread + (uint32_t)continuation_sig.thread_id);
}

static bool in_container(uint64_t weak, void *context)
{
	struct set_walk *w = context;

	walk_threads(w, map_behind(weak));
	return w->left && !w->enough;
}

static void walk_sets(struct set_walk *threads)
{
	static const sigset_t nothing_blocked;
	struct set_walk containers = { in_container, threads, SLOTS_MAX, THREADS_MAX, 0, false };

	if (!__atomic_load_n(&jdk.usable, __ATOMIC_ACQUIRE))
		return;
	(void)guard_begin_sig(&nothing_blocked);
	walk_threads(threads, map_of(jdk.root));
	if (!threads->enough)
		walk_map(&containers, map_of(jdk.containers));
}

void virtual_sets_each(bool (*on_thread)(uint64_t thread, void *context), void *context)
{
	struct set_walk threads = { on_thread, context, SLOTS_MAX, THREADS_MAX, 0, false };

	walk_sets(&threads);
}

void virtual_sets_newest(bool (*on_thread)(uint64_t thread, void *context), void *context)
{
	struct set_walk threads = { on_thread, context, SLOTS_MAX, THREADS_MAX, 0, false };

	if (jdk.next_id)
		threads.newest = __atomic_load_n(jdk.next_id, __ATOMIC_RELAXED);
	if (threads.newest)
		walk_sets(&threads);
}

struct sought {
	uint64_t id, found;
};

static bool is_sought(uint64_t thread, void *context)
{
	struct sought *s = context;

	if (virtual_sets_id(thread) == s->id)
		s->found = thread;
	return !s->found;
}

static bool seek_in_container(uint64_t weak, void *context)
{
	struct set_walk *w = context;
	struct sought *s = w->context;

	w->left = CHAIN_MAX;
	walk_slot(w, map_behind(weak), s->id);
	return !w->enough;
}

uint64_t virtual_sets_find(uint64_t id)
{
	struct sought s = { id, 0 };
	struct set_walk threads = { is_sought, &s, SLOTS_MAX, CHAIN_MAX, 0, false };
	struct set_walk containers = {
		seek_in_container, &threads, FIND_SLOTS, FIND_SETS, 0, false
	};

	if (!__atomic_load_n(&jdk.usable, __ATOMIC_ACQUIRE))
		return 0;
	walk_slot(&threads, map_of(jdk.root), id);
	if (!s.found)
		walk_map(&containers, map_of(jdk.containers));
	return s.found;
}

/* ---- finding the fields ---------------------------------------------------------------------- */

static void virtual_sets_clear(JNIEnv *env)
{
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

static jfieldID virtual_sets_field(JNIEnv *env, jclass of, const char *name, const char *type,
				   bool is_static)
{
	jfieldID id = NULL;

	if (of && is_static)
		id = (*env)->GetStaticFieldID(env, of, name, type);
	else if (of)
		id = (*env)->GetFieldID(env, of, name, type);
	virtual_sets_clear(env);
	return id;
}

static bool find_offset(JNIEnv *env, const char *class_name, const char *name, const char *type,
			int32_t *ret)
{
	jclass of = (*env)->FindClass(env, class_name);
	jfieldID id;

	virtual_sets_clear(env);
	id = virtual_sets_field(env, of, name, type, false);
	*ret = id ? field_id_offset(id) : -1;
	if (of)
		(*env)->DeleteLocalRef(env, of);
	return id;
}

/* A global reference to the map behind the static set @name of class @of. */
static jobject static_map(JNIEnv *env, jclass of, const char *name)
{
	jfieldID set_id = virtual_sets_field(env, of, name, "Ljava/util/Set;", true), map_id = NULL;
	jobject set = set_id ? (*env)->GetStaticObjectField(env, of, set_id) : NULL, map = NULL;
	jclass view = set ? (*env)->GetObjectClass(env, set) : NULL;

	map_id = virtual_sets_field(env, view, "map", "Ljava/util/concurrent/ConcurrentHashMap;",
				    false);
	if (map_id)
		map = (*env)->GetObjectField(env, set, map_id);
	return map ? (*env)->NewGlobalRef(env, map) : NULL;
}

static bool virtual_sets_find_fields(JNIEnv *env)
{
	static const char node[] = "java/util/concurrent/ConcurrentHashMap$Node";

	return continuation_sig.thread_id >= 0 &&
	       find_offset(env, "java/util/concurrent/ConcurrentHashMap$CollectionView", "map",
			   "Ljava/util/concurrent/ConcurrentHashMap;", &jdk.map) &&
	       find_offset(env, "java/util/concurrent/ConcurrentHashMap", "table",
			   "[Ljava/util/concurrent/ConcurrentHashMap$Node;", &jdk.table) &&
	       find_offset(env, node, "hash", "I", &jdk.hash) &&
	       find_offset(env, node, "key", "Ljava/lang/Object;", &jdk.key) &&
	       find_offset(env, node, "next", "Ljava/util/concurrent/ConcurrentHashMap$Node;",
			   &jdk.next) &&
	       find_offset(env, "java/lang/ref/Reference", "referent", "Ljava/lang/Object;",
			   &jdk.referent);
}

/* The address at which the JVM keeps the next thread id; the JDK itself reads it there with
 * Unsafe. */
static const uint64_t *next_id(JNIEnv *env)
{
	jclass thread = (*env)->FindClass(env, "java/lang/Thread");
	jmethodID get = NULL;
	jlong at = 0;

	if (thread)
		get = (*env)->GetStaticMethodID(env, thread, "getNextThreadIdOffset", "()J");
	virtual_sets_clear(env);
	if (get)
		at = (*env)->CallStaticLongMethod(env, thread, get);
	virtual_sets_clear(env);
	return (const uint64_t *)(uintptr_t)at;
}

static bool virtual_sets_find_all(JNIEnv *env, jobject root, jclass containers)
{
	jclass thread = (*env)->FindClass(env, "java/lang/VirtualThread");

	virtual_sets_clear(env);
	object_header_init();
	jdk.next_id = next_id(env);
	jdk.virtual_thread = klass_of_class(env, thread);
	jdk.root = static_map(env, (*env)->GetObjectClass(env, root), "VTHREADS");
	jdk.containers = static_map(env, containers, "CONTAINER_REGISTRY");
	return jdk.virtual_thread && jdk.containers && virtual_sets_find_fields(env);
}

void virtual_sets_begin(JNIEnv *env, jobject root, jclass containers)
{
	bool usable;

	if (jdk.usable || vm_sig.version < SINCE || (*env)->PushLocalFrame(env, 32) < 0) {
		virtual_sets_clear(env);
		return;
	}
	usable = virtual_sets_find_all(env, root, containers);
	(*env)->PopLocalFrame(env, NULL);
	if (!usable)
		virtual_sets_end(env);
	__atomic_store_n(&jdk.usable, usable, __ATOMIC_RELEASE);
}

void virtual_sets_learn(JNIEnv *env, jobject container)
{
	jclass of = (*env)->GetObjectClass(env, container);
	uint64_t klass = klass_of_class(env, of);
	jfieldID threads;

	for (uint32_t i = 0; i < jdk.n_kinds; i++)
		if (jdk.kinds[i].klass == klass)
			klass = 0;
	if (jdk.usable && klass && jdk.n_kinds < KINDS_MAX) {
		threads = virtual_sets_field(env, of, "threads", "Ljava/util/Set;", false);
		jdk.kinds[jdk.n_kinds].klass = klass;
		jdk.kinds[jdk.n_kinds].threads = threads ? field_id_offset(threads) : -1;
		__atomic_store_n(&jdk.n_kinds, jdk.n_kinds + 1, __ATOMIC_RELEASE);
	}
	(*env)->DeleteLocalRef(env, of);
}

/* An application thread that is searching meanwhile reads cleared references and finds nothing. */
void virtual_sets_end(JNIEnv *env)
{
	__atomic_store_n(&jdk.usable, false, __ATOMIC_RELEASE);
	if (jdk.root)
		(*env)->DeleteGlobalRef(env, jdk.root);
	if (jdk.containers)
		(*env)->DeleteGlobalRef(env, jdk.containers);
	jdk.root = jdk.containers = NULL;
	__atomic_store_n(&jdk.n_kinds, 0, __ATOMIC_RELEASE);
}

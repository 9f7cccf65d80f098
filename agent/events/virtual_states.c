/*
 * Virtual threads, which the JVM itself does not list. JDK 21 and later keep them in containers:
 * one for each executor or scope, and one for all others (jdk.internal.vm.ThreadContainers). A pass
 * walks the tree of containers and reads the fields of at most 20,000 threads; it runs Java code of
 * the JDK, in our own thread, and takes no lock of the application's.
 */
#include "agent/events/virtual_states.h"

#include <string.h>
#include "agent/base/agent.h"
#include "agent/events/lock_name.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/virtual_price.h"
#include "agent/hotspot/virtual_sets.h"
#include "agent/walker/walker.h"

#define VIRTUAL_SINCE  21
#define VIRTUAL_MAX    20000 /* threads in all */
#define CONTAINERS_MAX 64
#define DEPTH_MAX      8
#define DESCEND_MAX    200000 /* a container's children are found through its threads */
#define GROUPS_MAX     256

struct group {
	uint64_t class_handle;
	uint32_t count, mounted;
	uint8_t container, state;
};

static struct {
	bool tried, usable;
	jclass virtual_class; /* global reference */
	jobject root; /* global reference */
	jmethodID to_string, children, thread_count, threads, limit, to_array;
	jfieldID state, blocker;
} jdk;

static struct {
	char containers[CONTAINERS_MAX][256]; /* names as in thread dumps; "" = the root */
	uint32_t n_containers, n_groups, counted;
	struct group groups[GROUPS_MAX];
} found;

/* Values of VirtualThread's states, by the names of its constants: they differ between versions. */
static struct {
	const char *name;
	uint8_t state, mounted;
	int32_t value; /* -1 = this version has no such state */
} values[] = {
	{ "STARTED", WIRE_STATE_RUNNABLE, 0, -1 },
	{ "RUNNABLE", WIRE_STATE_RUNNABLE, 0, -1 },
	{ "RUNNING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "PARKING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "PARKED", WIRE_STATE_WAITING, 0, -1 },
	{ "PINNED", WIRE_STATE_WAITING, 1, -1 },
	{ "TIMED_PARKING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "TIMED_PARKED", WIRE_STATE_TIMED_WAITING, 0, -1 },
	{ "TIMED_PINNED", WIRE_STATE_TIMED_WAITING, 1, -1 },
	{ "UNPARKED", WIRE_STATE_RUNNABLE, 0, -1 },
	{ "YIELDING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "YIELDED", WIRE_STATE_RUNNABLE, 0, -1 },
	{ "BLOCKING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "BLOCKED", WIRE_STATE_BLOCKED, 0, -1 },
	{ "UNBLOCKED", WIRE_STATE_RUNNABLE, 0, -1 },
	{ "WAITING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "WAIT", WIRE_STATE_WAITING, 0, -1 },
	{ "TIMED_WAITING", WIRE_STATE_RUNNABLE, 1, -1 },
	{ "TIMED_WAIT", WIRE_STATE_TIMED_WAITING, 0, -1 },
};
#define VALUES	  (sizeof(values) / sizeof(values[0]))
#define SUSPENDED 256 /* a bit beside the state */

static bool virtual_states_clear(JNIEnv *env)
{
	if (!(*env)->ExceptionCheck(env))
		return false;
	(*env)->ExceptionClear(env);
	return true;
}

/* ---- fields and methods of this JDK ---------------------------------------------------------- */

static jclass virtual_states_find(JNIEnv *env, const char *name)
{
	jclass c = (*env)->FindClass(env, name);

	return virtual_states_clear(env) ? NULL : c;
}

static jmethodID virtual_states_method(JNIEnv *env, jclass of, const char *name,
				       const char *signature)
{
	jmethodID id = of ? (*env)->GetMethodID(env, of, name, signature) : NULL;

	return virtual_states_clear(env) ? NULL : id;
}

static void virtual_states_find_values(JNIEnv *env, jclass c)
{
	for (size_t i = 0; i < VALUES; i++) {
		jfieldID id = (*env)->GetStaticFieldID(env, c, values[i].name, "I");

		values[i].value = -1;
		if (!virtual_states_clear(env) && id)
			values[i].value = (*env)->GetStaticIntField(env, c, id);
	}
}

static void virtual_states_find_fields(JNIEnv *env, jclass c)
{
	jdk.state = (*env)->GetFieldID(env, c, "state", "I");
	virtual_states_clear(env);
	jdk.blocker = (*env)->GetFieldID(env, c, "parkBlocker", "Ljava/lang/Object;");
	virtual_states_clear(env);
	virtual_states_find_values(env, c);
	jdk.virtual_class = (*env)->NewGlobalRef(env, c);
}

static void find_root(JNIEnv *env, jclass containers)
{
	jmethodID get = (*env)->GetStaticMethodID(env, containers, "root",
						  "()Ljdk/internal/vm/ThreadContainer;");
	jobject root = NULL;

	if (!virtual_states_clear(env) && get)
		root = (*env)->CallStaticObjectMethod(env, containers, get);
	if (virtual_states_clear(env) || !root)
		return;
	jdk.root = (*env)->NewGlobalRef(env, root);
	(*env)->DeleteLocalRef(env, root);
}

static void virtual_states_find_all(JNIEnv *env)
{
	jclass thread = virtual_states_find(env, "java/lang/VirtualThread");
	jclass containers = virtual_states_find(env, "jdk/internal/vm/ThreadContainers");
	jclass container = virtual_states_find(env, "jdk/internal/vm/ThreadContainer");
	jclass stream = virtual_states_find(env, "java/util/stream/Stream");

	jdk.to_string = virtual_states_method(env, container, "toString", "()Ljava/lang/String;");
	jdk.children =
		virtual_states_method(env, container, "children", "()Ljava/util/stream/Stream;");
	jdk.threads =
		virtual_states_method(env, container, "threads", "()Ljava/util/stream/Stream;");
	jdk.thread_count = virtual_states_method(env, container, "threadCount", "()J");
	jdk.limit = virtual_states_method(env, stream, "limit", "(J)Ljava/util/stream/Stream;");
	jdk.to_array = virtual_states_method(env, stream, "toArray", "()[Ljava/lang/Object;");
	if (thread)
		virtual_states_find_fields(env, thread);
	if (containers)
		find_root(env, containers);
	jdk.usable = jdk.virtual_class && jdk.root && jdk.state && jdk.blocker && jdk.to_string &&
		     jdk.children && jdk.threads && jdk.thread_count && jdk.limit && jdk.to_array;
	if (jdk.usable)
		virtual_sets_begin(env, jdk.root, containers);
}

static bool virtual_states_prepare(JNIEnv *env)
{
	if (jdk.tried)
		return jdk.usable;
	jdk.tried = true;
	if ((*env)->PushLocalFrame(env, 16) < 0) {
		virtual_states_clear(env);
		return false;
	}
	virtual_states_find_all(env);
	(*env)->PopLocalFrame(env, NULL);
	return jdk.usable;
}

/* ---- one thread ---- */

static void virtual_states_count(uint32_t container, uint8_t state, uint64_t class_handle,
				 uint32_t n, bool mounted)
{
	struct group *g = NULL;

	for (uint32_t i = 0; i < found.n_groups && !g; i++)
		if (found.groups[i].container == container && found.groups[i].state == state &&
		    found.groups[i].class_handle == class_handle)
			g = &found.groups[i];
	if (!g && found.n_groups < GROUPS_MAX) {
		g = &found.groups[found.n_groups++];
		*g = (struct group){ .class_handle = class_handle,
				     .container = (uint8_t)container,
				     .state = state };
	}
	if (!g)
		return;
	g->count += n;
	g->mounted += mounted ? n : 0;
}

static void virtual_states_count_thread(JNIEnv *env, jobject thread, uint32_t container)
{
	int32_t value = (*env)->GetIntField(env, thread, jdk.state) & ~SUSPENDED;
	uint64_t class_handle = 0;
	jobject blocker;
	size_t i = 0;

	while (i < VALUES && values[i].value != value)
		i++;
	if (i == VALUES)
		return; /* not begun, or ended */
	if (values[i].state == WIRE_STATE_WAITING || values[i].state == WIRE_STATE_TIMED_WAITING) {
		blocker = (*env)->GetObjectField(env, thread, jdk.blocker);
		class_handle = blocker ? walker_class_of_sig(blocker) : 0;
		if (blocker)
			(*env)->DeleteLocalRef(env, blocker);
	}
	virtual_states_count(container, values[i].state, class_handle, 1, values[i].mounted);
}

/* ---- one container ---- */

/* An array of the first @max elements of a stream, or NULL. */
static jobjectArray virtual_states_first_of(JNIEnv *env, jobject of, jmethodID stream_of, jlong max)
{
	jobject stream = (*env)->CallObjectMethod(env, of, stream_of), limited = NULL;
	jobjectArray array = NULL;

	if (!virtual_states_clear(env) && stream)
		limited = (*env)->CallObjectMethod(env, stream, jdk.limit, max);
	if (!virtual_states_clear(env) && limited)
		array = (*env)->CallObjectMethod(env, limited, jdk.to_array);
	return virtual_states_clear(env) ? NULL : array;
}

static uint32_t virtual_states_name_container(JNIEnv *env, jobject container)
{
	char *buf = found.containers[found.n_containers];
	jstring name = NULL;
	jint chars;

	memset(buf, 0, sizeof(found.containers[0]));
	if (!(*env)->IsSameObject(env, container, jdk.root))
		name = (*env)->CallObjectMethod(env, container, jdk.to_string);
	if (!virtual_states_clear(env) && name) {
		chars = (*env)->GetStringLength(env, name);
		if (chars > (jint)sizeof(found.containers[0]) / 3 - 1)
			chars = (jint)sizeof(found.containers[0]) / 3 - 1;
		(*env)->GetStringUTFRegion(env, name, 0, chars, buf);
		virtual_states_clear(env);
	}
	return found.n_containers++;
}

/* Returns how many of the first threads are virtual; an executor's threads are all virtual, or none
 * is. */
static jlong virtual_states_count_first(JNIEnv *env, jobjectArray threads, uint32_t index, jsize n)
{
	jlong virtual = 0;

	for (jsize i = 0; i < n; i++) {
		jobject thread = (*env)->GetObjectArrayElement(env, threads, i);

		if (thread && (*env)->IsInstanceOf(env, thread, jdk.virtual_class)) {
			virtual ++;
			if (found.counted < VIRTUAL_MAX) {
				found.counted++;
				virtual_states_count_thread(env, thread, index);
			}
		}
		if (thread)
			(*env)->DeleteLocalRef(env, thread);
	}
	return virtual;
}

/* @all: the container's own count of its threads. Platform threads come first. */
static void virtual_states_count_threads(JNIEnv *env, jobject container, jlong all)
{
	uint32_t before = found.counted;
	jobjectArray threads =
		virtual_states_first_of(env, container, jdk.threads, VIRTUAL_MAX - before + 1);
	jsize n = threads ? (*env)->GetArrayLength(env, threads) : 0;
	uint32_t index = virtual_states_name_container(env, container);
	jlong virtual = virtual_states_count_first(env, threads, index, n), rest;

	rest = virtual - (found.counted - before) + (virtual && all > n ? all - n : 0);
	if (rest > 0)
		virtual_states_count(index, WIRE_STATE_UNKNOWN, 0,
				     (uint32_t)(rest > INT32_MAX ? INT32_MAX : rest), false);
}

static void virtual_states_count_container(JNIEnv *env, jobject container, int depth)
{
	jobjectArray children = NULL;
	jlong threads;
	jsize n;

	if (found.n_containers >= CONTAINERS_MAX || (*env)->PushLocalFrame(env, 16) < 0) {
		virtual_states_clear(env);
		return;
	}
	threads = (*env)->CallLongMethod(env, container, jdk.thread_count);
	if (!virtual_states_clear(env)) {
		virtual_states_count_threads(env, container, threads);
		if (depth < DEPTH_MAX && threads < DESCEND_MAX)
			children = virtual_states_first_of(env, container, jdk.children,
							   CONTAINERS_MAX);
	}
	n = children ? (*env)->GetArrayLength(env, children) : 0;
	for (jsize i = 0; i < n; i++) {
		jobject child = (*env)->GetObjectArrayElement(env, children, i);

		if (child) {
			virtual_states_count_container(env, child, depth + 1);
			(*env)->DeleteLocalRef(env, child);
		}
	}
	(*env)->PopLocalFrame(env, NULL);
}

/* ---- all ---- */

static void virtual_states_report(const struct group *g, uint64_t now_ns,
				  virtual_states_fn *on_group)
{
	struct wire_virtual record = {
		.mono_ns = now_ns,
		.state = g->state,
		.count = g->count,
		.mounted = g->mounted,
	};
	const char *class_name = walker_resolve_class(g->class_handle);
	static char lock[WIRE_STRING_MAX];

	lock[0] = '\0';
	if (class_name)
		lock_name(class_name, lock, sizeof(lock));
	on_group(&record, found.n_containers ? found.containers[g->container] : "", lock);
}

void virtual_states_each_group(uint64_t now_ns, virtual_states_fn *on_group)
{
	static const struct group none;
	JNIEnv *env = agent.env;
	/* a pass would initialise the JDK's class, which starts a thread (JDK 24 and later) */
	bool used = env && virtual_threads_used();

	if (!env || vm_sig.version < VIRTUAL_SINCE || (used && !virtual_states_prepare(env)))
		return;
	found.n_containers = found.n_groups = found.counted = 0;
	if (used)
		virtual_states_count_container(env, jdk.root, 0);
	for (uint32_t i = 0; i < found.n_groups; i++)
		virtual_states_report(&found.groups[i], now_ns, on_group);
	if (!found.n_groups)
		virtual_states_report(&none, now_ns, on_group);
}

/* ---- one by one ---- */

struct each {
	bool (*on_thread)(JNIEnv *env, jobject thread, void *context);
	void *context;
	jlong left;
	bool enough;
};

static void virtual_threads_each_of(JNIEnv *env, jobjectArray threads, struct each *e)
{
	jsize n = threads ? (*env)->GetArrayLength(env, threads) : 0;

	e->left -= n;
	for (jsize i = 0; i < n && !e->enough; i++) {
		jobject thread = (*env)->GetObjectArrayElement(env, threads, i);

		if (thread && (*env)->IsInstanceOf(env, thread, jdk.virtual_class))
			e->enough = !e->on_thread(env, thread, e->context);
		if (thread)
			(*env)->DeleteLocalRef(env, thread);
	}
}

static void virtual_threads_each_in(JNIEnv *env, jobject container, int depth, struct each *e)
{
	jobjectArray children = NULL;
	jsize n;

	if ((*env)->PushLocalFrame(env, 16) < 0) {
		virtual_states_clear(env);
		return;
	}
	virtual_sets_learn(env, container);
	virtual_threads_each_of(env, virtual_states_first_of(env, container, jdk.threads, e->left),
				e);
	if (depth < DEPTH_MAX && e->left > 0 && !e->enough)
		children = virtual_states_first_of(env, container, jdk.children, CONTAINERS_MAX);
	n = children ? (*env)->GetArrayLength(env, children) : 0;
	for (jsize i = 0; i < n && e->left > 0 && !e->enough; i++) {
		jobject child = (*env)->GetObjectArrayElement(env, children, i);

		if (child) {
			virtual_threads_each_in(env, child, depth + 1, e);
			(*env)->DeleteLocalRef(env, child);
		}
	}
	(*env)->PopLocalFrame(env, NULL);
}

void virtual_threads_each(bool (*on_thread)(JNIEnv *env, jobject thread, void *context),
			  void *context)
{
	struct each e = { on_thread, context, VIRTUAL_MAX, false };
	JNIEnv *env = agent.env;

	if (env && vm_sig.version >= VIRTUAL_SINCE && virtual_threads_used() &&
	    virtual_states_prepare(env))
		virtual_threads_each_in(env, jdk.root, 0, &e);
}

void virtual_states_end(void)
{
	JNIEnv *env = agent.env;

	if (env)
		virtual_sets_end(env);
	if (env && jdk.virtual_class)
		(*env)->DeleteGlobalRef(env, jdk.virtual_class);
	if (env && jdk.root)
		(*env)->DeleteGlobalRef(env, jdk.root);
	memset(&jdk, 0, sizeof(jdk));
}

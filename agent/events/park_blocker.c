/*
 * See park_priv.h. The address of the word in which the JVM keeps a thread's Thread object serves
 * as a JNI reference and saves a call per park: `&_threadObj` where that is the object itself (JDK
 * 8, 11), later the slot of its OopHandle, tagged as a global reference from 21 on. -Xcheck:jni
 * would report such a reference as broken; under it, and where a field is missing,
 * JVM_CurrentThread is called.
 */
#include <errno.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/events/park.h"
#include "agent/events/park_priv.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/jni_names.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/thread_name.h"
#include "agent/walker/walker.h"

#define TAGGED_SINCE 21 /* JDK-8299089 */
#define GLOBAL_TAG   2u

typedef jint JNICALL hash_fn(JNIEnv *env, jobject object);
typedef jobject JNICALL current_thread_fn(JNIEnv *env, jclass unused);

static struct {
	jclass synchronizer, virtual_thread; /* global references; the second NULL before JDK 21 */
	jfieldID blocker, owner, eetop, thread_id;
	jfieldID phaser; /* in a Phaser$QNode; NULL = none was seen yet */
	hash_fn *hash;
	current_thread_fn *current_thread;
	bool thread_by_slot; /* Thread objects are found by their slots; else by current_thread */
	bool slot_is_object; /* &_threadObj itself */
	uint64_t tag;
	int32_t thread_object, virtual_object; /* in a JavaThread; -1 = no such field */
	int32_t osthread, thread_number;
} known;

/* ---- the thread that parks ------------------------------------------------------------------- */

static uint64_t park_blocker_word_at(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

/* The slot's address as a JNI reference; NULL = there is none. */
static jobject thread_by_slot(uint64_t java_thread, int32_t field)
{
	uint64_t ref = java_thread + (uint32_t)field;

	if (known.slot_is_object)
		return (jobject)(uintptr_t)ref;
	ref = park_blocker_word_at(ref);
	return ref ? (jobject)(uintptr_t)(ref | known.tag) : NULL;
}

/* Do two slots hold the same object? Usually the bits are equal, but a concurrent collector may
 * have updated only one of them. */
static bool park_blocker_same(JNIEnv *env, jobject a, jobject b)
{
	uint64_t mask = ~(uint64_t)GLOBAL_TAG;

	return park_blocker_word_at((uint64_t)(uintptr_t)a & mask) ==
		       park_blocker_word_at((uint64_t)(uintptr_t)b & mask) ||
	       (*env)->IsSameObject(env, a, b);
}

static void park_blocker_find_thread(struct park_self *s)
{
	jobject mounted = NULL;

	s->thread = thread_by_slot(s->java_thread, known.thread_object);
	if (known.virtual_object >= 0)
		mounted = thread_by_slot(s->java_thread, known.virtual_object);
	if (!s->thread || !mounted || park_blocker_same(s->env, s->thread, mounted))
		return;
	s->thread = mounted;
	s->is_virtual = true;
}

void park_self_get(JNIEnv *env, struct park_self *s)
{
	s->env = env;
	s->java_thread = java_thread_of_sig(env);
	s->is_local = !known.thread_by_slot;
	s->is_virtual = false;
	if (known.thread_by_slot) {
		park_blocker_find_thread(s);
		return;
	}
	s->thread = known.current_thread(env, NULL);
	s->is_virtual = s->thread && known.virtual_thread &&
			(*env)->IsInstanceOf(env, s->thread, known.virtual_thread);
}

void park_self_put(struct park_self *s)
{
	if (s->is_local && s->thread)
		(*s->env)->DeleteLocalRef(s->env, s->thread);
	s->thread = NULL;
}

/* ---- the object it parks for ----------------------------------------------------------------- */

static uint32_t park_blocker_tid_of(JNIEnv *env, jobject thread)
{
	uint64_t java_thread = (uint64_t)(*env)->GetLongField(env, thread, known.eetop);
	uint64_t id;

	/* if the thread ends meanwhile, these loads give 0 or its former number */
	if (java_thread)
		return load32_sig(load64_sig(java_thread + (uint32_t)known.osthread) +
				  (uint32_t)known.thread_number);
	if (!known.virtual_thread || !(*env)->IsInstanceOf(env, thread, known.virtual_thread))
		return 0;
	id = (uint64_t)(*env)->GetLongField(env, thread, known.thread_id);
	return walk_virtual_number(id);
}

uint32_t park_owner(const struct park_self *s)
{
	JNIEnv *env = s->env;
	jobject blocker, owner = NULL;
	uint32_t tid = 0;

	if (!s->thread || (known.thread_by_slot && park_peek_owner(s->thread, &tid)))
		return tid;
	tid = 0;
	blocker = (*env)->GetObjectField(env, s->thread, known.blocker);
	if (!blocker)
		return 0;
	if ((*env)->IsInstanceOf(env, blocker, known.synchronizer))
		owner = (*env)->GetObjectField(env, blocker, known.owner);
	if (owner) {
		tid = park_blocker_tid_of(env, owner);
		thread_name_of(env, owner, tid);
		(*env)->DeleteLocalRef(env, owner);
	}
	(*env)->DeleteLocalRef(env, blocker);
	return tid;
}

/* The Phaser of a Phaser$QNode; NULL = not known. The class is initialised, as an instance exists.
 */
static jobject park_blocker_phaser_of(JNIEnv *env, jobject node)
{
	jfieldID field = __atomic_load_n(&known.phaser, __ATOMIC_ACQUIRE);
	jclass node_class;

	if (!field) {
		node_class = (*env)->GetObjectClass(env, node);
		field = (*env)->GetFieldID(env, node_class, "phaser",
					   "Ljava/util/concurrent/Phaser;");
		(*env)->ExceptionClear(env);
		(*env)->DeleteLocalRef(env, node_class);
		__atomic_store_n(&known.phaser, field, __ATOMIC_RELEASE);
	}
	return field ? (*env)->GetObjectField(env, node, field) : NULL;
}

/* Some blockers are made for a single wait, and refer to the object that several threads wait for.
 * Those of a CompletableFuture do not: its waits have a class and no identity. */
static void park_blocker_read(JNIEnv *env, jobject thread, struct wait_lock *lock)
{
	jobject blocker = (*env)->GetObjectField(env, thread, known.blocker), whole = NULL;

	if (!blocker)
		return;
	lock->class_handle = walker_class_of_sig(blocker);
	if (walker_class_is(lock->class_handle, "java/util/concurrent/Phaser$QNode"))
		whole = park_blocker_phaser_of(env, blocker);
	if (whole) {
		lock->class_handle = walker_class_of_sig(whole);
		lock->identity = (uint32_t)known.hash(env, whole);
		(*env)->DeleteLocalRef(env, whole);
	} else if (!walker_class_is(lock->class_handle,
				    "java/util/concurrent/CompletableFuture$Signaller")) {
		lock->identity = (uint32_t)known.hash(env, blocker);
	}
	(*env)->DeleteLocalRef(env, blocker);
}

void park_read_blocker(const struct park_self *s, struct wait_lock *lock)
{
	/* up to JDK 19 another thread may call Thread.stop: its exception is thrown when we return
	 */
	if (s->thread && !(*s->env)->ExceptionCheck(s->env))
		park_blocker_read(s->env, s->thread, lock);
}

void park_read_blocker_of(JNIEnv *env, jobject thread, struct wait_lock *lock)
{
	if (known.blocker && known.hash && !(*env)->ExceptionCheck(env))
		park_blocker_read(env, thread, lock);
}

/* ---- the agent's thread ---- */

static jclass park_blocker_class_named(JNIEnv *env, const char *name)
{
	jclass local = (*env)->FindClass(env, name), global = NULL;

	if (local) {
		global = (*env)->NewGlobalRef(env, local);
		(*env)->DeleteLocalRef(env, local);
	}
	(*env)->ExceptionClear(env);
	return global;
}

static int park_blocker_find_fields(JNIEnv *env, const char **why)
{
	jclass thread = (*env)->FindClass(env, "java/lang/Thread");

	if (thread) {
		known.blocker =
			(*env)->GetFieldID(env, thread, "parkBlocker", "Ljava/lang/Object;");
		(*env)->ExceptionClear(env);
		known.eetop = (*env)->GetFieldID(env, thread, "eetop", "J");
		(*env)->ExceptionClear(env);
		known.thread_id = (*env)->GetFieldID(env, thread, "tid", "J");
		(*env)->DeleteLocalRef(env, thread);
	}
	(*env)->ExceptionClear(env);
	known.synchronizer = park_blocker_class_named(
		env, "java/util/concurrent/locks/AbstractOwnableSynchronizer");
	if (known.synchronizer)
		known.owner = (*env)->GetFieldID(env, known.synchronizer, "exclusiveOwnerThread",
						 "Ljava/lang/Thread;");
	(*env)->ExceptionClear(env);
	known.virtual_thread = park_blocker_class_named(env, "java/lang/BaseVirtualThread");
	if (known.blocker && known.eetop && known.thread_id && known.owner)
		return 0;
	*why = "parks are left out: java.lang.Thread of this JDK lacks the fields that the agent reads";
	return -ENOTSUP;
}

/* Finds the slots of Thread objects, and compares what they hold with what the JVM returns. */
static bool park_blocker_slots_work(JNIEnv *env)
{
	struct libjvm_field field;
	struct park_self self;
	jobject current;
	bool equal;

	if (layout_flag("CheckJNICalls", false) ||
	    !libjvm_field("JavaThread", "_threadObj", &field))
		return false;
	known.thread_object = (int32_t)field.offset;
	known.slot_is_object = strcmp(field.type, "OopHandle") != 0;
	known.tag = vm_sig.version >= TAGGED_SINCE ? GLOBAL_TAG : 0;
	known.virtual_object = vm_sig.thread_vthread;
	/* this version has virtual threads, but VMStructs does not describe their slot */
	if (known.virtual_thread && known.virtual_object < 0)
		return false;
	known.thread_by_slot = true;
	park_self_get(env, &self);
	current = known.current_thread(env, NULL);
	equal = self.thread && current && (*env)->IsSameObject(env, self.thread, current);
	(*env)->DeleteLocalRef(env, current);
	return equal;
}

struct queries {
	struct park_query *first;
	uint32_t n;
};

/* The tid of the owner; 0 = the blocker is no lock, has no owner, or a virtual thread owns it. */
static uint32_t park_blocker_owner_tid(JNIEnv *env, jobject thread)
{
	jobject blocker = (*env)->GetObjectField(env, thread, known.blocker), owner = NULL;
	uint32_t tid = 0;

	if (blocker && (*env)->IsInstanceOf(env, blocker, known.synchronizer))
		owner = (*env)->GetObjectField(env, blocker, known.owner);
	if (owner)
		tid = park_blocker_tid_of(env, owner);
	if (owner)
		(*env)->DeleteLocalRef(env, owner);
	if (blocker)
		(*env)->DeleteLocalRef(env, blocker);
	return tid;
}

static void park_blocker_on_thread(JNIEnv *env, jobject thread, uint64_t java_thread, void *context)
{
	const struct queries *queries = context;

	for (uint32_t i = 0; i < queries->n; i++) {
		if (queries->first[i].java_thread != java_thread)
			continue;
		park_blocker_read(env, thread, &queries->first[i].lock);
		queries->first[i].lock.owner_tid = park_blocker_owner_tid(env, thread);
	}
}

void park_read_blockers(struct park_query *queries, uint32_t n)
{
	struct queries context = { queries, n };

	if (n && known.blocker && known.hash)
		jni_threads_each(park_blocker_on_thread, &context);
}

static void park_blocker_on_blocked(JNIEnv *env, jobject thread, uint64_t java_thread,
				    void *context)
{
	void (*on)(uint64_t, const struct wait_lock *, uint8_t) =
		*(void (**)(uint64_t, const struct wait_lock *, uint8_t))context;
	jobject blocker = (*env)->GetObjectField(env, thread, known.blocker), owner = NULL;
	struct wait_lock lock = { 0 };

	if (!blocker)
		return;
	if ((*env)->IsInstanceOf(env, blocker, known.synchronizer))
		owner = (*env)->GetObjectField(env, blocker, known.owner);
	/* a thread that owns the lock already is about to return */
	if (java_thread && jni_thread_is_parked(env, thread) &&
	    !(owner && (*env)->IsSameObject(env, owner, thread))) {
		park_blocker_read(env, thread, &lock);
		if (owner)
			lock.owner_tid = park_blocker_tid_of(env, owner);
		on(java_thread, &lock, jni_thread_is_timed(env, thread) ? WIRE_LOCK_TIMED : 0);
	}
	if (owner)
		(*env)->DeleteLocalRef(env, owner);
	(*env)->DeleteLocalRef(env, blocker);
}

void park_blocked_each(void (*on)(uint64_t java_thread, const struct wait_lock *lock,
				  uint8_t flags))
{
	if (known.blocker && known.hash)
		jni_threads_each(park_blocker_on_blocked, &on);
}

static void park_blocker_init_peek(JNIEnv *env)
{
	const struct park_fields fields = {
		.blocker = field_id_offset(known.blocker),
		.eetop = field_id_offset(known.eetop),
		.owner = field_id_offset(known.owner),
	};

	park_peek_init(env, thread_by_slot(java_thread_of_sig(env), known.thread_object),
		       known.synchronizer, known.blocker, &fields);
}

int park_blocker_init(JNIEnv *env, const char **why)
{
	int r;

	memset(&known, 0, sizeof(known));
	r = park_blocker_find_fields(env, why);
	known.osthread = (int32_t)libjvm_offset("JavaThread", "_osthread");
	if (known.osthread < 0)
		known.osthread = (int32_t)libjvm_offset("Thread", "_osthread");
	known.thread_number = (int32_t)libjvm_offset("OSThread", "_thread_id");
	known.hash = (hash_fn *)libjvm_symbol("JVM_IHashCode");
	known.current_thread = (current_thread_fn *)libjvm_symbol("JVM_CurrentThread");
	if (r == 0 && (known.osthread < 0 || known.thread_number < 0 || !known.hash ||
		       !known.current_thread)) {
		*why = "parks are left out: this libjvm lacks the fields and functions that identify the owners of locks";
		r = -ENOTSUP;
	}
	if (r == 0)
		known.thread_by_slot = park_blocker_slots_work(env);
	else
		park_blocker_deinit(env);
	if (known.thread_by_slot)
		park_blocker_init_peek(env);
	return r;
}

void park_blocker_deinit(JNIEnv *env)
{
	if (known.synchronizer)
		(*env)->DeleteGlobalRef(env, known.synchronizer);
	if (known.virtual_thread)
		(*env)->DeleteGlobalRef(env, known.virtual_thread);
	memset(&known, 0, sizeof(known));
}

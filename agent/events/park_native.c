/*
 * See park_priv.h. RegisterNatives replaces the native method of Unsafe.park, for compiled callers
 * too. From JDK 17 on the JVM prints a warning on the application's output when code outside the
 * boot loader does that. So a class of the boot loader does it, kindling.Park, which has no other
 * purpose. Two versions of the agent share that class.
 *
 * The native method to pass on to is read before, from the word behind the Method of Unsafe.park.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include "agent/base/guard.h"
#include "agent/events/park_priv.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/walker/walker.h"

#define METHODS_MAX   4096 /* methods of one class; Unsafe has some 900 */
#define MODULES_TRIES 400
#define MODULES_PAUSE 5000000 /* ns */

typedef jclass JNICALL find_boot_class_fn(JNIEnv *env, const char *name);

static const char hook_name[] = "kindling/Park";

/* clang-format off */
#define U2(n)		(uint8_t)((n) >> 8), (uint8_t)(n)
#define U4(n)		U2((n) >> 16), U2(n)
#define UTF8(n)		1, U2(n)
#define CLASS(name)	7, U2(name)
#define PAIR(name, sig) 12, U2(name), U2(sig)
#define METHOD(c, pair) 10, U2(c), U2(pair)

/* final synthetic class kindling.Park { private static native void put(); static void run() { put(); } } */
static const uint8_t hook_class[] = {
	0xca, 0xfe, 0xba, 0xbe, U2(0), U2(50), /* version of Java 6, which every JDK can load */
	U2(11), /* constants, from 1 */
	/* 1 */ UTF8(13), 'k', 'i', 'n', 'd', 'l', 'i', 'n', 'g', '/', 'P', 'a', 'r', 'k',
	/* 2 */ CLASS(1),
	/* 3 */ UTF8(16), 'j', 'a', 'v', 'a', '/', 'l', 'a', 'n', 'g', '/', 'O', 'b', 'j', 'e', 'c', 't',
	/* 4 */ CLASS(3),
	/* 5 */ UTF8(3), 'p', 'u', 't',
	/* 6 */ UTF8(3), '(', ')', 'V',
	/* 7 */ UTF8(3), 'r', 'u', 'n',
	/* 8 */ UTF8(4), 'C', 'o', 'd', 'e',
	/* 9 */ PAIR(5, 6),
	/* 10 */ METHOD(2, 9),
	U2(0x1030), U2(2), U2(4), /* final super synthetic; this, its parent */
	U2(0), U2(0), U2(2), /* no interfaces, no fields, two methods */
	U2(0x010a), U2(5), U2(6), U2(0), /* private static native put */
	U2(0x0008), U2(7), U2(6), U2(1), /* static run, one attribute: */
	U2(8), U4(16), U2(0), U2(0), /* Code of 16 bytes; no stack, no locals */
	U4(4), 0xb8, U2(10), 0xb1, /* invokestatic put, return */
	U2(0), U2(0), /* no handlers, no attributes */
	U2(0), /* no attributes of the class */
};
/* clang-format on */

static struct {
	jclass unsafe_class, hook; /* global references while in use */
	jobject unsafe; /* local: theUnsafe */
	jobject self; /* local: the agent's thread */
	jmethodID get_long, park, unpark;
	void **slot; /* where the JVM keeps the native method of Unsafe.park, behind its Method */
	park_fn *wanted; /* the function that park_native_put_method() registers */
	bool registered;
} at;

static bool park_native_clear(JNIEnv *env)
{
	if (!(*env)->ExceptionCheck(env))
		return false;
	(*env)->ExceptionClear(env);
	return true;
}

/* ---- where the native lies ---- */

/* From JDK 9 on there is also a sun.misc.Unsafe, which only calls this one. */
static const char *unsafe_name(void)
{
	return vm_sig.version <= 8 ? "sun/misc/Unsafe" : "jdk/internal/misc/Unsafe";
}

static bool park_native_find_unsafe(JNIEnv *env)
{
	jclass c = (*env)->FindClass(env, unsafe_name());
	jfieldID field;

	if (park_native_clear(env) || !c)
		return false;
	at.unsafe_class = c;
	field = (*env)->GetStaticFieldID(env, c, "theUnsafe",
					 vm_sig.version <= 8 ? "Lsun/misc/Unsafe;"
							     : "Ljdk/internal/misc/Unsafe;");
	if (park_native_clear(env))
		return false;
	at.get_long = (*env)->GetMethodID(env, c, "getLong", "(Ljava/lang/Object;J)J");
	if (park_native_clear(env))
		return false;
	at.park = (*env)->GetMethodID(env, c, "park", "(ZJ)V");
	if (park_native_clear(env))
		return false;
	at.unpark = (*env)->GetMethodID(env, c, "unpark", "(Ljava/lang/Object;)V");
	if (park_native_clear(env))
		return false;
	at.unsafe = (*env)->GetStaticObjectField(env, c, field);
	return at.unsafe != NULL;
}

static void park_native_forget_unsafe(JNIEnv *env)
{
	if (at.unsafe)
		(*env)->DeleteLocalRef(env, at.unsafe);
	if (at.unsafe_class)
		(*env)->DeleteLocalRef(env, at.unsafe_class);
	at.unsafe = NULL;
	at.unsafe_class = NULL;
}

/* The InstanceKlass of Unsafe is a hidden field of its Class object, which a collector may move.
 * Unsafe's own getLong reads it safely. */
static uint64_t park_native_klass_of_unsafe(JNIEnv *env)
{
	const int32_t *offset = libjvm_static("java_lang_Class", "_klass_offset");
	jlong klass;

	if (!offset || *offset <= 0)
		return 0;
	klass = (*env)->CallLongMethod(env, at.unsafe, at.get_long, at.unsafe_class,
				       (jlong)*offset);
	return park_native_clear(env) ? 0 : (uint64_t)klass;
}

static void **park_native_find_slot(JNIEnv *env)
{
	long methods_at = libjvm_offset("InstanceKlass", "_methods");
	long length_at = libjvm_offset("Array<int>", "_length");
	long data_at = libjvm_offset("Array<Method*>", "_data");
	size_t method_size = libjvm_type_size("Method");
	uint64_t klass = park_native_klass_of_unsafe(env), methods;
	uint32_t n;

	if (!klass || methods_at < 0 || !method_size)
		return NULL;
	methods = load64_sig(klass + (uint64_t)methods_at);
	n = load32_sig(methods + (length_at < 0 ? 0 : (uint64_t)length_at));
	for (uint32_t i = 0; i < n && n <= METHODS_MAX; i++) {
		uint64_t method =
			load64_sig(methods + (data_at < 0 ? 8 : (uint64_t)data_at) + 8ull * i);

		if (method_is_sig(method, unsafe_name(), "park"))
			return (void **)(uintptr_t)(method + method_size);
	}
	return NULL;
}

static park_fn *park_native_current(void)
{
	return (park_fn *)(uintptr_t)load64_sig((uint64_t)(uintptr_t)at.slot);
}

/* ---- the class ---- */

static void JNICALL park_native_put_method(JNIEnv *env, jclass unused)
{
	JNINativeMethod method = { (char *)"park", (char *)"(ZJ)V", (void *)at.wanted };

	(void)unused;
	at.registered = (*env)->RegisterNatives(env, at.unsafe_class, &method, 1) == JNI_OK;
}

/*
 * Until the JVM has set up its modules (the first tenth of a second of its life) a class of the
 * boot loader becomes part of java.base, and the JVM reports native methods registered in such a
 * class on the application's output. So this waits.
 */
static bool park_native_wait_for_modules(JNIEnv *env)
{
	const struct timespec pause = { 0, MODULES_PAUSE };
	jclass vm = vm_sig.version > 8 ? (*env)->FindClass(env, "jdk/internal/misc/VM") : NULL;
	jmethodID inited = NULL;
	bool ready = false;

	if (!park_native_clear(env) && vm)
		inited = (*env)->GetStaticMethodID(env, vm, "isModuleSystemInited", "()Z");
	if (park_native_clear(env) || !inited)
		ready = vm_sig.version <= 8;
	for (int i = 0; inited && !ready && i < MODULES_TRIES; i++) {
		ready = (*env)->CallStaticBooleanMethod(env, vm, inited);
		if (park_native_clear(env))
			break;
		if (!ready)
			nanosleep(&pause, NULL);
	}
	if (vm)
		(*env)->DeleteLocalRef(env, vm);
	return ready;
}

static jclass park_native_find_hook(JNIEnv *env)
{
	find_boot_class_fn *find =
		(find_boot_class_fn *)libjvm_symbol("JVM_FindClassFromBootLoader");
	jclass c = NULL;

	/* only the boot loader is asked: no loader of the application's runs */
	if (find)
		c = find(env, hook_name);
	if (park_native_clear(env) || c)
		return c;
	if (!park_native_wait_for_modules(env))
		return NULL;
	c = (*env)->DefineClass(env, hook_name, NULL, (const jbyte *)hook_class,
				sizeof(hook_class));
	if (!park_native_clear(env))
		return c;
	/* another agent has defined it meanwhile */
	c = find ? find(env, hook_name) : NULL;
	return park_native_clear(env) ? NULL : c;
}

static bool park_native_register(JNIEnv *env, park_fn *wanted)
{
	JNINativeMethod method = { (char *)"put", (char *)"()V", (void *)park_native_put_method };
	jclass hook = park_native_find_hook(env);
	jmethodID run = NULL;

	at.registered = false;
	at.wanted = wanted;
	if (!hook)
		return false;
	/* each time, as another agent may have registered its own since */
	if ((*env)->RegisterNatives(env, hook, &method, 1) == JNI_OK && !park_native_clear(env))
		run = (*env)->GetStaticMethodID(env, hook, "run", "()V");
	if (!park_native_clear(env) && run)
		(*env)->CallStaticVoidMethod(env, hook, run);
	at.registered &= !park_native_clear(env);
	(*env)->DeleteLocalRef(env, hook);
	return at.registered;
}

/* ---- on and off ---- */

static void park_now(JNIEnv *env)
{
	(*env)->CallVoidMethod(env, at.unsafe, at.park, (jboolean)JNI_FALSE,
			       (jlong)PARK_PROBE_TIME);
	park_native_clear(env);
}

static void unpark_now(JNIEnv *env)
{
	(*env)->CallVoidMethod(env, at.unsafe, at.unpark, at.self);
	park_native_clear(env);
}

static void learn_permit(JNIEnv *env)
{
	jclass thread = (*env)->FindClass(env, "java/lang/Thread");
	jmethodID current = NULL;

	if (!park_native_clear(env) && thread)
		current = (*env)->GetStaticMethodID(env, thread, "currentThread",
						    "()Ljava/lang/Thread;");
	if (!park_native_clear(env) && current)
		at.self = (*env)->CallStaticObjectMethod(env, thread, current);
	if (!park_native_clear(env) && at.self)
		park_permit_learn(env, unpark_now, park_now);
	if (at.self)
		(*env)->DeleteLocalRef(env, at.self);
	if (thread)
		(*env)->DeleteLocalRef(env, thread);
	at.self = NULL;
}

/* Do parks reach our native method? Finds out by a park that returns at once. That also works if
 * another agent's method comes first and calls ours. */
static bool park_native_is_called(JNIEnv *env)
{
	if (!park_before)
		return false;
	park_probed = 0;
	__atomic_store_n(&park_prober, env, __ATOMIC_SEQ_CST);
	(*env)->CallVoidMethod(env, at.unsafe, at.park, (jboolean)JNI_FALSE,
			       (jlong)PARK_PROBE_TIME);
	park_native_clear(env);
	__atomic_store_n(&park_prober, NULL, __ATOMIC_SEQ_CST);
	return park_probed;
}

/* 0, or -errno with a static sentence. */
static int park_native_put_ours(JNIEnv *env, const char **why)
{
	static const char not_found[] =
		"parks are left out: the agent did not find the native method of Unsafe.park";
	struct walk_mapping where;
	park_fn *before;

	if (park_native_find_unsafe(env))
		at.slot = park_native_find_slot(env);
	if (!at.slot) {
		*why = not_found;
		return -ENOTSUP;
	}
	before = park_native_current();
	/* ours may still be called by another agent's */
	if (before == park_ours || park_native_is_called(env))
		return 0;
	if (!walker_resolve_pc((uint64_t)(uintptr_t)before, &where)) {
		*why = not_found;
		return -ENOTSUP;
	}
	__atomic_store_n(&park_before, before, __ATOMIC_RELEASE);
	if (park_native_register(env, park_ours) && park_native_is_called(env))
		return 0;
	*why = "parks are left out: the JVM did not accept the agent's native method for Unsafe.park";
	return -EPERM;
}

int park_native_put(JNIEnv *env, const char **why)
{
	int r;

	if (strcmp(walker_name(), "hotspot") != 0) {
		*why = "parks are left out: the agent cannot read this JVM's threads";
		return -ENOTSUP;
	}
	if (at.slot && park_native_current() == park_ours)
		return 0;
	r = park_native_put_ours(env, why);
	if (r == 0)
		learn_permit(env);
	park_native_forget_unsafe(env);
	return r;
}

void park_native_take_back(JNIEnv *env)
{
	/* another agent's native method calls ours, which therefore stays and passes on */
	if (park_native_current() == park_ours && park_native_find_unsafe(env))
		(void)park_native_register(env, park_before);
	park_native_forget_unsafe(env);
}

/* See walker.h. Starts the parts of the walker in the agent's thread, and chooses between the two
 * implementations. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code.h"
#include "agent/hotspot/code_cache.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/stub_names.h"
#include "agent/walker/asgct/asgct.h"
#include "agent/walker/java/hotspot.h"
#include "agent/walker/java/scopes.h"
#include "agent/walker/native/maps.h"
#include "agent/walker/native/unwind.h"
#include "agent/walker/walk_priv.h"
#include "proto/wire.h"

#define QUIESCENT_TRIES 200
#define PAUSE_NS	1000000

static char note[256];
static bool own; /* true = java/ walks, not asgct/ */

/* Text about the cost of the fallback in JVMs that have virtual threads (a preview in JDK 19, final
 * in 21). */
static const char *walker_price(JNIEnv *env)
{
	jclass klass = (*env)->FindClass(env, "java/lang/VirtualThread");

	(*env)->ExceptionClear(env);
	if (!klass)
		return "";
	(*env)->DeleteLocalRef(env, klass);
	return "; its JVMTI environment slows virtual-thread yields on this JDK until the JVM ends";
}

static int walker_choose(JavaVM *vm, JNIEnv *env, const char **why)
{
	const char *reason = "";
	int r;

	note[0] = '\0';
	own = hotspot_init(env, &reason) == 0;
	vm_known_sig = own;
	if (own) {
		walk_with_sig = hotspot_walk_sig;
		return 0;
	}
	r = asgct_init(vm, env, why);
	if (r < 0) {
		static char both[sizeof(note)];

		snprintf(both, sizeof(both), "%s, and %s", reason, *why);
		*why = both;
		return r;
	}
	snprintf(note, sizeof(note), "stacks by AsyncGetCallTrace, because %s%s", reason,
		 walker_price(env));
	walk_with_sig = asgct_walk_sig;
	return 0;
}

int walker_init(JavaVM *vm, JNIEnv *env, const char **why)
{
	struct libjvm_image image;
	int r;

	if (!libjvm_code_cache(&code_cache_sig.low, &code_cache_sig.high)) {
		*why = "the bounds of the code cache are not in libjvm's tables";
		return -ENOTSUP;
	}
	r = java_thread_init(env);
	if (r < 0) {
		*why = "the JVM's thread pointer was not found";
		return r;
	}
	if (libjvm_image(&image)) /* libjvm.so has the largest tables of all libraries, and is never
				   * unloaded */
		maps_stays(image.low, image.high);
	r = maps_refresh();
	if (r < 0) {
		*why = "/proc/self/maps cannot be read";
		return r;
	}
	return walker_choose(vm, env, why);
}

void walker_deinit(void)
{
	struct timespec pause = { 0, PAUSE_NS };
	bool quiescent;

	vm_known_sig = false;
	quiescent = guard_is_quiescent();
	for (int i = 0; i < QUIESCENT_TRIES && !quiescent; i++) {
		nanosleep(&pause, NULL);
		quiescent = guard_is_quiescent();
	}
	if (own)
		hotspot_deinit(quiescent);
	else
		asgct_deinit();
	maps_free();
}

const char *walker_name(void)
{
	return own ? "hotspot" : "asgct";
}

const char *walker_note(void)
{
	return note;
}

uint32_t walker_left_out(void)
{
	return maps_left_out();
}

void walker_refresh(void)
{
	(void)maps_refresh();
	if (own)
		hotspot_refresh();
}

void walker_catch_up(void)
{
	static bool named;

	if (own && __atomic_exchange_n(&code_places_sig.wanted, false, __ATOMIC_RELAXED))
		code_find_places(true);
	if (own && !named)
		stub_names_refresh();
	named = own;
}

uint64_t walker_bytes(void)
{
	return maps_bytes() + (own ? hotspot_bytes() : asgct_bytes());
}

void walker_parts(uint64_t *part)
{
	part[WIRE_PART_ROWS] = maps_bytes();
	part[WIRE_PART_PC_CACHE] = unwind_cache_bytes();
	part[WIRE_PART_MEMO] = scopes_bytes();
	part[WIRE_PART_NAMES] = own ? method_bytes() : asgct_bytes();
	part[WIRE_PART_STATIC] -= part[WIRE_PART_PC_CACHE] + part[WIRE_PART_MEMO];
}

bool walker_names_full(void)
{
	return own && method_store_full();
}

void walker_forget_names(void)
{
	if (!own)
		return;
	method_forget();
	scopes_forget();
}

bool walker_resolve_method(uint64_t where, struct walk_method *ret)
{
	if (!own)
		return asgct_resolve_method(where, ret);
	return method_resolve((const struct method_copy *)(uintptr_t)where, ret);
}

enum idle_sight walker_method_idle(uint64_t where)
{
	return vm_known_sig ? method_idle((struct method_copy *)(uintptr_t)where) : IDLE_NO;
}

int32_t walker_resolve_line(uint64_t where, int32_t bci)
{
	if (!own)
		return asgct_resolve_line(where, bci);
	return method_line((const struct method_copy *)(uintptr_t)where, bci);
}

const char *walker_resolve_class(uint64_t class_handle)
{
	static char itself[WIRE_STRING_MAX + 32];
	uint64_t copy = class_handle & ~(uint64_t)CLASS_BITS;
	const char *name = copy ? class_resolve((const struct method_copy *)(uintptr_t)copy) : NULL;

	if (!name || copy == class_handle)
		return name;
	if (class_handle & CLASS_INIT_LOCK)
		return "class initialization";
	snprintf(itself, sizeof(itself), "java/lang/Class for %s", name);
	return itself;
}

bool walker_class_is(uint64_t class_handle, const char *name)
{
	const struct method_copy *copy = (const struct method_copy *)(uintptr_t)class_handle;

	return copy && !(class_handle & CLASS_BITS) && strcmp(copy->text, name) == 0;
}

bool walker_resolve_pc(uint64_t pc, struct walk_mapping *ret)
{
	if (maps_find(pc, ret))
		return true;
	/* the library may have been loaded since the last refresh; this reads nothing if the
	 * dynamic linker has loaded no library */
	(void)maps_refresh();
	return maps_find(pc, ret);
}

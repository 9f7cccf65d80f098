/* walker.h over AsyncGetCallTrace: puts the parts together, in the agent's thread. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include "agent/libjvm.h"
#include "agent/walker/java_thread.h"
#include "agent/walker/jvm_tools.h"
#include "agent/walker/maps.h"
#include "agent/walker/stubs.h"
#include "agent/walker/unwind.h"
#include "agent/walker/walk_priv.h"

static const char *note = "";

/* VirtualThread is there from 19 on as a preview, for good from 21. */
static bool has_virtual_threads(JNIEnv *env)
{
	jclass klass = (*env)->FindClass(env, "java/lang/VirtualThread");

	(*env)->ExceptionClear(env);
	if (klass)
		(*env)->DeleteLocalRef(env, klass);
	return klass != NULL;
}

static void *find_symbol(const char *name)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);

	/* an embedding launcher may have loaded libjvm RTLD_LOCAL */
	return symbol ? symbol : libjvm_symbol(name);
}

int walker_init(JavaVM *vm, JNIEnv *env, const char **why)
{
	int r;

	walk_asgct = (asgct_fn *)find_symbol("AsyncGetCallTrace");
	if (!walk_asgct) {
		*why = "this JVM has no AsyncGetCallTrace: not HotSpot";
		return -ENOTSUP;
	}
	if (!libjvm_code_cache(&unwind_code_cache.low, &unwind_code_cache.high)) {
		*why = "the bounds of the code cache are not in libjvm's tables";
		return -ENOTSUP;
	}
	r = jvm_tools_init(vm, env);
	if (r < 0) {
		*why = "the JVM gave no JVMTI environment within 5 s";
		return r;
	}
	r = java_thread_init(env);
	if (r < 0) {
		*why = "the JVM's thread pointer was not found";
		return r;
	}
	if (has_virtual_threads(env))
		note = "AsyncGetCallTrace needs a JVMTI environment, which slows virtual-thread "
		       "yields on this JDK until the JVM ends";
	r = maps_refresh();
	if (r < 0) {
		*why = "/proc/self/maps cannot be read";
		return r;
	}
	return 0;
}

void walker_deinit(void)
{
	jvm_tools_deinit();
	maps_free();
}

const char *walker_name(void)
{
	return "asgct";
}

const char *walker_note(void)
{
	return note;
}

void walker_refresh(void)
{
	(void)maps_refresh();
}

uint64_t walker_bytes(void)
{
	return maps_bytes() + stubs_bytes();
}

bool walker_resolve_pc(uint64_t pc, struct walk_mapping *ret)
{
	if (maps_find(pc, ret))
		return true;
	/* a library of the last seconds; nothing is read when the linker has loaded none */
	(void)maps_refresh();
	return maps_find(pc, ret);
}

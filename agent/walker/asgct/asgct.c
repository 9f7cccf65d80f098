#include "agent/walker/asgct/asgct.h"

#include <dlfcn.h>
#include <errno.h>
#include "agent/hotspot/libjvm.h"
#include "agent/walker/asgct/asgct_priv.h"
#include "agent/walker/asgct/jvm_tools.h"
#include "agent/walker/asgct/stubs.h"

static void *find_symbol(const char *name)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);

	/* a launcher that embeds the JVM may have loaded libjvm with RTLD_LOCAL */
	return symbol ? symbol : libjvm_symbol(name);
}

int asgct_init(JavaVM *vm, JNIEnv *env, const char **why)
{
	int r;

	walk_asgct = (asgct_fn *)find_symbol("AsyncGetCallTrace");
	if (!walk_asgct) {
		*why = "this JVM has no AsyncGetCallTrace: not HotSpot";
		return -ENOTSUP;
	}
	if (jdk_bug_affects(JDK_BUG_TRACE, libjvm_version())) {
		*why = "AsyncGetCallTrace of a JDK this old can crash the JVM (JDK-8283849)";
		return -ENOTSUP;
	}
	r = jvm_tools_init(vm, env);
	if (r < 0)
		*why = "the JVM gave no JVMTI environment within 5 s";
	return r;
}

void asgct_deinit(void)
{
	jvm_tools_deinit();
}

uint64_t asgct_bytes(void)
{
	return stubs_bytes();
}

/* See hotspot.h. */
#include "agent/walker/java/hotspot.h"

#include <errno.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/stub_names.h"
#include "agent/hotspot/thread_status.h"
#include "agent/walker/java/scopes.h"

int hotspot_init(JNIEnv *env, const char **why)
{
	int r = layout_read(why);

	if (r < 0)
		return r;
	/* under -Xcheck:jni the JVM checks whether its handlers are still set, and prints warnings
	 * into the application's output */
	r = guard_init(!layout_flag("CheckJNICalls", false));
	if (r < 0) {
		*why = "the handler for SIGSEGV cannot be set";
		return r;
	}
	if (method_init() < 0) {
		*why = "no memory for the names of methods";
		return -ENOMEM;
	}
	continuation_init(env);
	code_find_places(true);
	continuation_find_entry();
	thread_status_init(env);
	return 0;
}

void hotspot_deinit(bool quiescent)
{
	guard_deinit(quiescent);
	if (quiescent)
		method_deinit();
	scopes_forget();
}

void hotspot_refresh(void)
{
	guard_refresh();
	code_find_places(false);
	stub_names_refresh();
}

uint64_t hotspot_bytes(void)
{
	return method_bytes() + scopes_bytes();
}

/* See jvmti_env.h. */
#include "agent/hotspot/jvmti_env.h"

#include <errno.h>
#include <stddef.h>
#include "agent/base/agent.h"

static bool is_there;

int jvmti_env_make(jvmtiEnv **env, jint version)
{
	jint r = *env ? JNI_OK : (*agent.vm)->GetEnv(agent.vm, (void **)env, version);

	if (r != JNI_OK)
		*env = NULL;
	is_there |= *env != NULL;
	/* HotSpot answers so between the phases ONLOAD and LIVE, also to an attached thread
	 * (JvmtiExport::get_jvmti_interface) */
	return r == JNI_OK ? 0 : r == JNI_EDETACHED ? -EAGAIN : -ENOTSUP;
}

bool jvmti_env_is_there(void)
{
	return is_there;
}

void jvmti_env_rest(jvmtiEnv *env, const jvmtiCapabilities *had)
{
	(void)(*env)->RelinquishCapabilities(env, had);
}

/* See jvmti_env.h. */
#include "agent/hotspot/jvmti_env.h"

#include <stddef.h>
#include "agent/base/agent.h"

static bool is_there;

bool jvmti_env_make(jvmtiEnv **env, jint version)
{
	if (!*env && (*agent.vm)->GetEnv(agent.vm, (void **)env, version) != JNI_OK)
		*env = NULL;
	is_there |= *env != NULL;
	return *env != NULL;
}

bool jvmti_env_is_there(void)
{
	return is_there;
}

void jvmti_env_rest(jvmtiEnv *env, const jvmtiCapabilities *had)
{
	(void)(*env)->RelinquishCapabilities(env, had);
}

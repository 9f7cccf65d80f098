/* An agent that takes the JVMTI capability for allocation samples, which the JVM gives to only
 * one agent. */
#include <jvmti.h>

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	const jvmtiCapabilities wanted = { .can_generate_sampled_object_alloc_events = 1 };
	jvmtiEnv *jvmti;

	(void)options;
	(void)reserved;
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK)
		return JNI_ERR;
	return (*jvmti)->AddCapabilities(jvmti, &wanted) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}

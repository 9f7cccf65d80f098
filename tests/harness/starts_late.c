/* An agent that keeps a JVM in its start while the file exists that its options name: after the JVM
 * has begun to catch SIGQUIT, before it has the thread that acts on it. */
#include <jvmti.h> /* declares Agent_OnLoad() */
#include <unistd.h>

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	(void)vm;
	(void)reserved;
	while (access(options, F_OK) == 0)
		usleep(10000);
	return JNI_OK;
}

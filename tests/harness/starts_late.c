/* An agent that delays the start of a JVM while the file named in its options exists: the JVM
 * catches SIGQUIT already, but does not have the thread that acts on it yet. With "vmstart:"
 * before the name the delay comes later: the JVM accepts attach requests, but does not give out
 * JVMTI environments yet. */
#include <jvmti.h> /* declares Agent_OnLoad() */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_VM_START "vmstart:"

static char *held;

static void wait_until_gone(void)
{
	while (access(held, F_OK) == 0)
		usleep(10000);
}

static void JNICALL on_vm_start(jvmtiEnv *jvmti, JNIEnv *env)
{
	(void)jvmti;
	(void)env;
	wait_until_gone();
}

static jint wait_at_vm_start(JavaVM *vm)
{
	const jvmtiEventCallbacks callbacks = { .VMStart = on_vm_start };
	jvmtiEnv *jvmti;

	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_0) != JNI_OK ||
	    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE)
		return JNI_ERR;
	return (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_START,
						  NULL) == JVMTI_ERROR_NONE
		       ? JNI_OK
		       : JNI_ERR;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	const char *later = strncmp(options, AT_VM_START, strlen(AT_VM_START)) == 0
				    ? options + strlen(AT_VM_START)
				    : NULL;

	(void)reserved;
	held = strdup(later ? later : options);
	if (!held)
		return JNI_ERR;
	if (later)
		return wait_at_vm_start(vm);
	wait_until_gone();
	return JNI_OK;
}

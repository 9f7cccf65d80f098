/*
 * The entry points of the library: Agent_OnAttach (dynamic attach) and Agent_OnLoad (-agentpath).
 * Both always return 0, at once: they run inside the JVM and delay safepoints, and another result
 * would unmap code that a handler may be running. The agent's own thread does the work
 * (agent_thread.c).
 */
#include "agent/base/agent.h"

#include <link.h>
#include <string.h>
#include "agent/hotspot/jvmti_env.h"
#include "agent/hotspot/quiet.h"
#include "agent/session/agent_thread.h"

static int agent_on_object(struct dl_phdr_info *info, size_t size, void *data)
{
	uintptr_t here = (uintptr_t)&agent;
	size_t n;

	(void)size;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || here < start ||
		    here >= start + info->dlpi_phdr[i].p_memsz)
			continue;
		n = info->dlpi_name ? strlen(info->dlpi_name) : 0;
		if (n >= sizeof(agent.library))
			n = 0;
		memcpy(agent.library, info->dlpi_name, n);
		agent.library[n] = '\0';
		return 1;
	}
	return 0;
}

__attribute__((constructor)) static void on_mapped(void)
{
	dl_iterate_phdr(agent_on_object, NULL);
	quiet_begin(agent.library);
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
	(void)reserved;
	quiet_end();
	agent.vm = vm;
	agent_thread_begin(options ? options : "");
	return 0;
}

/* ---- -agentpath: wait until there is a JVM to attach to -------------------------------------- */

static char load_options[2 * PATH_BYTES + 32];

static void JNICALL on_vm_init(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	(void)env;
	(void)thread;
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_VM_INIT, NULL);
	agent_thread_begin(load_options); /* why the environment stays: jvmti_env.h */
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	jvmtiEventCallbacks callbacks;
	jvmtiEnv *jvmti = NULL;

	(void)reserved;
	quiet_end();
	agent.vm = vm;
	if (!options || strlen(options) >= sizeof(load_options) ||
	    jvmti_env_make(&jvmti, JVMTI_VERSION_1_1) < 0)
		return 0;
	memcpy(load_options, options, strlen(options) + 1);
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.VMInit = on_vm_init;
	if ((*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE)
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
	return 0;
}

/* The JVM calls this at its exit, once per load. Threads are still running, so nothing may be
 * freed. */
JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm)
{
	(void)vm;
}

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include "agent/hotspot/libjvm.h"
#include "agent/walker/asgct/jvm_tools.h"
#include "agent/walker/asgct/names.h"
#include "agent/walker/asgct/stubs.h"

#define LIVE_TRIES    250
#define LIVE_PAUSE_NS 20000000

static jvmtiEnv *tools; /* kept by deinit, because the JVM never frees all of a disposed
			 * environment */

/* An empty callback: the event is enabled because AsyncGetCallTrace fails with -1 while ClassLoad
 * is disabled. */
static void JNICALL on_class_load(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass klass)
{
	(void)jvmti;
	(void)env;
	(void)thread;
	(void)klass;
}

/* An empty callback: methods that are compiled while this event is enabled get debug information at
 * every instruction. */
static void JNICALL on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *address,
				jint length, const jvmtiAddrLocationMap *map, const void *info)
{
	(void)jvmti;
	(void)method;
	(void)size;
	(void)address;
	(void)length;
	(void)map;
	(void)info;
}

/* The jmethodID of a frame must exist before the handler meets the frame: the handler would read
 * NULL otherwise. */
static void make_method_ids(jvmtiEnv *jvmti, jclass klass)
{
	jmethodID *methods;
	jint n;

	if ((*jvmti)->GetClassMethods(jvmti, klass, &n, &methods) == JVMTI_ERROR_NONE)
		(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
}

static void JNICALL on_class_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass klass)
{
	(void)env;
	(void)thread;
	make_method_ids(jvmti, klass);
}

static void make_all_method_ids(JNIEnv *env)
{
	jclass *classes;
	jint n;

	if ((*tools)->GetLoadedClasses(tools, &n, &classes) != JVMTI_ERROR_NONE)
		return;
	for (jint i = 0; i < n; i++) {
		make_method_ids(tools, classes[i]);
		(*env)->DeleteLocalRef(env, classes[i]);
	}
	(*tools)->Deallocate(tools, (unsigned char *)classes);
}

/* Waits for the live phase: an agent that is loaded at start-up runs before classes exist. */
static bool wait_until_live(JavaVM *vm)
{
	struct timespec pause = { .tv_nsec = LIVE_PAUSE_NS };
	jvmtiPhase phase;

	for (int i = 0; i < LIVE_TRIES; i++) {
		if (!tools && (*vm)->GetEnv(vm, (void **)&tools, JVMTI_VERSION_1_1) != JNI_OK)
			tools = NULL;
		if (tools && (*tools)->GetPhase(tools, &phase) == JVMTI_ERROR_NONE &&
		    phase == JVMTI_PHASE_LIVE)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Adds the capabilities one by one, so that the refusal of one does not affect the others. */
static void add_capabilities(void)
{
	jvmtiCapabilities lines = { .can_get_line_numbers = 1 };
	jvmtiCapabilities files = { .can_get_source_file_name = 1 };
	jvmtiCapabilities compiled = { .can_generate_compiled_method_load_events = 1 };

	(void)(*tools)->AddCapabilities(tools, &lines);
	(void)(*tools)->AddCapabilities(tools, &files);
	if (!jdk_bug_affects(JDK_BUG_COMPILED, libjvm_version())) /* without the capability the
								   * event stays off, too */
		(void)(*tools)->AddCapabilities(tools, &compiled);
}

static const jvmtiEvent events[] = {
	JVMTI_EVENT_CLASS_LOAD,
	JVMTI_EVENT_CLASS_PREPARE,
	JVMTI_EVENT_COMPILED_METHOD_LOAD,
};

static void set_events(jvmtiEventMode mode)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		(void)(*tools)->SetEventNotificationMode(tools, mode, events[i], NULL);
}

int jvm_tools_init(JavaVM *vm, JNIEnv *env)
{
	jvmtiEventCallbacks callbacks;

	if (!wait_until_live(vm))
		return -ETIMEDOUT;
	add_capabilities();
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.ClassLoad = on_class_load;
	callbacks.ClassPrepare = on_class_prepare;
	callbacks.CompiledMethodLoad = on_compiled;
	callbacks.DynamicCodeGenerated = stubs_on_code;
	if ((*tools)->SetEventCallbacks(tools, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE)
		return -ENOTSUP;
	set_events(JVMTI_ENABLE); /* before the pass over all classes, so that no class is missed */
	make_all_method_ids(env);
	if (!jdk_bug_affects(JDK_BUG_STUBS, libjvm_version()))
		stubs_load(tools);
	names_init(vm, tools);
	return 0;
}

void jvm_tools_deinit(void)
{
	if (tools)
		set_events(JVMTI_DISABLE);
}

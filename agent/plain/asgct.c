/*
 * What AsyncGetCallTrace needs: a JVMTI environment with the ClassLoad event on, and a jmethodID
 * for every method that may be met, made beforehand (else all frames have no method). Names through
 * JVMTI too. The walker that needs none of this takes this file's place.
 */
#include "agent/plain/asgct.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include "agent/libjvm.h"
#include "agent/plain/maps.h"

#define NAME_BYTES 1024

struct asgct asgct;

static jvmtiEnv *jvmti;
static int jvm_major;

static void JNICALL on_class_load(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass klass)
{
	(void)ti;
	(void)jni;
	(void)thread;
	(void)klass; /* AsyncGetCallTrace refuses unless somebody listens */
}

static void make_method_ids(jvmtiEnv *ti, jclass klass)
{
	jmethodID *methods;
	jint n;

	if ((*ti)->GetClassMethods(ti, klass, &n, &methods) == JVMTI_ERROR_NONE)
		(*ti)->Deallocate(ti, (unsigned char *)methods);
}

static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass klass)
{
	(void)jni;
	(void)thread;
	make_method_ids(ti, klass);
}

static void make_all_method_ids(JNIEnv *env)
{
	jclass *classes;
	jint n;

	if ((*jvmti)->GetLoadedClasses(jvmti, &n, &classes) != JVMTI_ERROR_NONE)
		return;
	for (jint i = 0; i < n; i++) {
		make_method_ids(jvmti, classes[i]);
		(*env)->DeleteLocalRef(env, classes[i]);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

static bool jvmti_open(JavaVM *vm)
{
	/* an agent loaded early runs before the live phase: the environment comes a little later */
	for (int i = 0; i < 500; i++) {
		struct timespec pause = { 0, 10000000 };
		jvmtiPhase phase;

		if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_0) == JNI_OK &&
		    (*jvmti)->GetPhase(jvmti, &phase) == JVMTI_ERROR_NONE &&
		    phase == JVMTI_PHASE_LIVE)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

int walker_init(JavaVM *vm, JNIEnv *env, const char **why)
{
	jvmtiEventCallbacks callbacks;
	jvmtiCapabilities capabilities;
	const int *major;

	if (asgct.call) { /* a second session of this library: events on again */
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_LOAD, NULL);
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_PREPARE,
						   NULL);
		make_all_method_ids(env);
		return 0;
	}
	if (!libjvm_find() || !libjvm_code_cache(&asgct.code_low, &asgct.code_high)) {
		*why = "libjvm exports no VMStructs: not a HotSpot of JDK 8 or later";
		return -ENOSYS;
	}
	if (!jvmti_open(vm)) {
		*why = "the JVM gave no JVMTI environment within 5 s";
		return -ETIMEDOUT;
	}
	major = libjvm_static("Abstract_VM_Version", "_vm_major_version");
	jvm_major = major ? *major : 0;
	memset(&capabilities, 0, sizeof(capabilities));
	capabilities.can_get_line_numbers = 1;
	capabilities.can_get_source_file_name = 1;
	(void)(*jvmti)->AddCapabilities(jvmti, &capabilities);
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.ClassLoad = on_class_load;
	callbacks.ClassPrepare = on_class_prepare;
	(*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_LOAD, NULL);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_PREPARE, NULL);
	make_all_method_ids(env);
	asgct.vm = vm;
	asgct.call = (asgct_fn *)libjvm_symbol("AsyncGetCallTrace");
	if (!asgct.call) {
		*why = "libjvm exports no AsyncGetCallTrace";
		return -ENOSYS;
	}
	maps_refresh();
	return 0;
}

void walker_deinit(void)
{
	if (!jvmti)
		return;
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_CLASS_LOAD, NULL);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_CLASS_PREPARE, NULL);
	maps_free();
}

const char *walker_name(void)
{
	return "asgct";
}

const char *walker_note(void)
{
	return jvm_major >= 21 && jvm_major != 25 /* JDK 8 says 25: see libjvm_code_cache() */ ?
		       "virtual-thread yields are slower while this JVM lives (JVMTI environment)" :
	       jvm_major == 25 && libjvm_static("CodeCache", "_low_bound") ?
		       "virtual-thread yields are slower while this JVM lives (JVMTI environment)" :
		       "";
}

void walker_refresh(void)
{
	maps_refresh();
}

uint64_t walker_bytes(void)
{
	return maps_bytes();
}

/* ---- names ------------------------------------------------------------------------------ */

static void copy_and_free(char *dst, char *src)
{
	size_t n;

	dst[0] = '\0';
	if (!src)
		return;
	n = strlen(src);
	if (n >= NAME_BYTES)
		n = NAME_BYTES - 1;
	memcpy(dst, src, n);
	dst[n] = '\0';
	(*jvmti)->Deallocate(jvmti, (unsigned char *)src);
}

/* "Lpkg/Main$$Lambda.0x00007f01;" -> "pkg/Main$$Lambda": addresses would keep profiles of two runs
 * from being merged. */
static void normalise_class(char *name)
{
	size_t n = strlen(name);
	char *cut;

	if (n >= 2 && name[0] == 'L' && name[n - 1] == ';') {
		name[n - 1] = '\0';
		memmove(name, name + 1, n - 1);
	}
	cut = strstr(name, "$$Lambda");
	if (cut)
		cut[8] = '\0';
	cut = strstr(name, ".0x");
	if (!cut)
		cut = strstr(name, "/0x");
	if (cut)
		*cut = '\0';
}

bool walker_resolve_method(uint64_t where, struct walk_method *ret)
{
	static char class_name[NAME_BYTES], method[NAME_BYTES], signature[NAME_BYTES];
	static char file[NAME_BYTES];
	char *name = NULL, *sig = NULL, *text = NULL;
	jmethodID id = (jmethodID)(uintptr_t)where;
	JNIEnv *env = NULL;
	jclass klass;

	if (!id || (*jvmti)->GetMethodName(jvmti, id, &name, &sig, NULL) != JVMTI_ERROR_NONE)
		return false;
	copy_and_free(method, name);
	copy_and_free(signature, sig);
	if ((*jvmti)->GetMethodDeclaringClass(jvmti, id, &klass) != JVMTI_ERROR_NONE)
		return false;
	if ((*jvmti)->GetClassSignature(jvmti, klass, &text, NULL) != JVMTI_ERROR_NONE)
		text = NULL;
	copy_and_free(class_name, text);
	normalise_class(class_name);
	text = NULL;
	if ((*jvmti)->GetSourceFileName(jvmti, klass, &text) != JVMTI_ERROR_NONE)
		text = NULL;
	copy_and_free(file, text);
	if ((*asgct.vm)->GetEnv(asgct.vm, (void **)&env, JNI_VERSION_1_6) == JNI_OK)
		(*env)->DeleteLocalRef(env, klass);
	*ret = (struct walk_method){ class_name, method, signature, file };
	return class_name[0] != '\0';
}

int32_t walker_resolve_line(uint64_t where, int32_t bci)
{
	static jvmtiLineNumberEntry *table; /* of the last method asked for */
	static jint n;
	static uint64_t owner;
	int32_t line = -1;

	if (bci < 0)
		return -1;
	if (owner != where) {
		if (table)
			(*jvmti)->Deallocate(jvmti, (unsigned char *)table);
		table = NULL;
		n = 0;
		owner = where;
		if ((*jvmti)->GetLineNumberTable(jvmti, (jmethodID)(uintptr_t)where, &n, &table) !=
		    JVMTI_ERROR_NONE) {
			table = NULL;
			n = 0;
		}
	}
	for (jint i = 0; i < n; i++) /* entries are in no promised order */
		if (table[i].start_location <= bci &&
		    (line < 0 || table[i].line_number > 0) &&
		    (i + 1 == n || table[i + 1].start_location > bci ||
		     table[i + 1].start_location < table[i].start_location))
			line = table[i].line_number;
	return line;
}

bool walker_resolve_pc(uint64_t pc, struct walk_mapping *ret)
{
	return maps_find(pc, ret);
}

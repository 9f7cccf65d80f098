#include <stdbool.h>
#include <string.h>
#include "agent/base/walk.h"
#include "agent/hotspot/class_name.h"
#include "agent/walker/asgct/asgct.h"
#include "agent/walker/asgct/names.h"

#define NAME_BYTES  (WIRE_STRING_MAX + 1)
#define LINES_SLOTS 64 /* methods whose line table is cached */

static JavaVM *jvm;
static jvmtiEnv *tools;

struct lines {
	uint64_t method;
	jvmtiLineNumberEntry *table; /* JVMTI's memory */
	jint n;
};
static struct lines lines[LINES_SLOTS];

void names_init(JavaVM *vm, jvmtiEnv *jvmti)
{
	jvm = vm;
	tools = jvmti;
}

static void asgct_names_deallocate(void *p)
{
	if (p)
		(void)(*tools)->Deallocate(tools, p);
}

/* Copies a JVMTI string, cut to the wire's limit, and frees it. NULL becomes "". */
static void asgct_names_keep(char *to, char *from)
{
	size_t n = from ? strlen(from) : 0;

	if (n > NAME_BYTES - 1)
		n = NAME_BYTES - 1;
	if (n)
		memcpy(to, from, n);
	to[n] = '\0';
	asgct_names_deallocate(from);
}

static void drop_local(jobject object)
{
	JNIEnv *env;

	if ((*jvm)->GetEnv(jvm, (void **)&env, JNI_VERSION_1_6) == JNI_OK)
		(*env)->DeleteLocalRef(env, object);
}

bool asgct_resolve_method(uint64_t where, struct walk_method *ret)
{
	static char class_name[NAME_BYTES], name[NAME_BYTES], signature[NAME_BYTES];
	static char file[NAME_BYTES];
	jmethodID method = (jmethodID)(uintptr_t)where;
	char *text = NULL, *text2 = NULL;
	jclass klass;

	if (!tools || !method ||
	    (*tools)->GetMethodDeclaringClass(tools, method, &klass) != JVMTI_ERROR_NONE)
		return false;
	if ((*tools)->GetMethodName(tools, method, &text, &text2, NULL) != JVMTI_ERROR_NONE) {
		drop_local(klass);
		return false;
	}
	asgct_names_keep(name, text);
	asgct_names_keep(signature, text2);
	text = NULL;
	if ((*tools)->GetClassSignature(tools, klass, &text, NULL) != JVMTI_ERROR_NONE)
		text = NULL;
	asgct_names_keep(class_name, text);
	names_normalise_class(class_name);
	text = NULL;
	if ((*tools)->GetSourceFileName(tools, klass, &text) != JVMTI_ERROR_NONE)
		text = NULL;
	asgct_names_keep(file, text);
	drop_local(klass);
	*ret = (struct walk_method){
		.class_name = class_name, .name = name, .signature = signature, .file = file
	};
	return true;
}

static const struct lines *lines_of(uint64_t where)
{
	struct lines *l = &lines[(where >> 3) % LINES_SLOTS];

	if (l->method == where)
		return l;
	asgct_names_deallocate(l->table);
	*l = (struct lines){ .method = where };
	if ((*tools)->GetLineNumberTable(tools, (jmethodID)(uintptr_t)where, &l->n, &l->table) !=
	    JVMTI_ERROR_NONE) {
		l->table = NULL;
		l->n = 0;
	}
	return l;
}

int32_t asgct_resolve_line(uint64_t where, int32_t bci)
{
	const struct lines *l;
	jlocation best = -1;
	int32_t line = -1;

	if (!tools || !where || bci < 0)
		return -1;
	l = lines_of(where);
	/* finds the entry with the last start at or before @bci; the table need not be sorted */
	for (jint i = 0; i < l->n; i++) {
		if (l->table[i].start_location <= bci && l->table[i].start_location > best) {
			best = l->table[i].start_location;
			line = l->table[i].line_number;
		}
	}
	return line;
}

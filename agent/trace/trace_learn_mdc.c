/*
 * Learns the classes in which logging frameworks keep an MDC (trace_mdc_sig.c says which). A class
 * of the JDK counts only if it holds one of the keys, because others use such ThreadLocals, too.
 */
#include <string.h>
#include "agent/hotspot/method.h"
#include "agent/trace/trace_priv.h"

#define PAIRS_MAX 64
#define NODES_MAX 256
#define HASHTABLE "java/util/Hashtable"
#define JBOSS_MAP "org/jboss/logmanager/FastCopyHashMap"

static void trace_learn_values(JNIEnv *env, jclass of, enum trace_kind kind,
			       const jfieldID fields[TRACE_FIELDS])
{
	trace_learn_class(env, &trace_sig.values, of, kind, fields);
}

static bool trace_learn_map(JNIEnv *env, jobject map, jclass of)
{
	if (!trace_jdk_has_key(env, map))
		return false;
	trace_learn_values(env, of, TRACE_MDC, (jfieldID[TRACE_FIELDS]){ NULL });
	return true;
}

/* Collections.synchronizedMap() and unmodifiableMap(), as logging frameworks use them. */
static bool trace_learn_wrapped(JNIEnv *env, jobject wrapper, jclass of)
{
	jfieldID at = trace_jdk_field(env, of, "m", "Ljava/util/Map;");
	jobject map = at ? (*env)->GetObjectField(env, wrapper, at) : NULL;

	if (!map ||
	    klass_of_class(env, (*env)->GetObjectClass(env, map)) != trace_sig.hash_map_klass ||
	    !trace_jdk_has_key(env, map))
		return false;
	trace_learn_values(env, of, TRACE_MDC_WRAPPED, (jfieldID[TRACE_FIELDS]){ at });
	return true;
}

static jclass trace_learn_class_of_nodes(JNIEnv *env, jobjectArray table)
{
	jsize n = table ? (*env)->GetArrayLength(env, table) : 0;
	jobject node = NULL;

	for (jsize i = 0; i < n && i < NODES_MAX && !node; i++)
		node = (*env)->GetObjectArrayElement(env, table, i);
	return node ? (*env)->GetObjectClass(env, node) : NULL;
}

/* A table of nodes with the fields key, @value_name and, if they are chained, next. */
static bool trace_learn_nodes(JNIEnv *env, jobject map, jclass of, const char *table_type,
			      const char *value_name, const char *next_type)
{
	jfieldID table_at = trace_jdk_field(env, of, "table", table_type), key, value, next;
	jobjectArray table = table_at ? (*env)->GetObjectField(env, map, table_at) : NULL;
	jclass of_node = trace_learn_class_of_nodes(env, table);

	key = trace_jdk_field(env, of_node, "key", "Ljava/lang/Object;");
	value = trace_jdk_field(env, of_node, value_name, "Ljava/lang/Object;");
	next = next_type ? trace_jdk_field(env, of_node, "next", next_type) : NULL;
	if (!key || !value || (next_type && !next) ||
	    !trace_jdk_nodes_have_key(env, table, key, next))
		return false;
	trace_learn_values(env, of, TRACE_MDC_NODES,
			   (jfieldID[TRACE_FIELDS]){ table_at, key, value, next });
	return true;
}

static bool trace_learn_sorted(JNIEnv *env, jclass of, const char *name)
{
	jfieldID keys = trace_jdk_field(env, of, "keys", "[Ljava/lang/String;");
	jfieldID values = trace_jdk_field(env, of, "values", "[Ljava/lang/Object;");
	jfieldID size = trace_jdk_field(env, of, "size", "I");

	if (!keys || !values || !size) {
		trace_learn_fails("no keys, values and size", name);
		return false;
	}
	trace_learn_values(env, of, TRACE_MDC_SORTED,
			   (jfieldID[TRACE_FIELDS]){ keys, values, size });
	return true;
}

static bool trace_learn_pairs(JNIEnv *env, jobjectArray array, jclass of)
{
	jsize n = (*env)->GetArrayLength(env, array);
	bool found = false;

	for (jsize i = 1; i + 1 < n && i < PAIRS_MAX && !found; i += 2) {
		jobject key = (*env)->GetObjectArrayElement(env, array, i);

		if (!key)
			break;
		found = trace_jdk_is_key(env, key);
		(*env)->DeleteLocalRef(env, key);
	}
	/* the class mirror of JDK 28 names another Klass: trace_jdk.c */
	if (found)
		trace_learn_klass(env, &trace_sig.values, of, trace_sig.objects_klass,
				  TRACE_MDC_PAIRS, (jfieldID[TRACE_FIELDS]){ NULL });
	return found;
}

bool trace_learn_concurrent(JNIEnv *env, jobject map)
{
	return trace_learn_nodes(env, map, (*env)->GetObjectClass(env, map),
				 "[L" TRACE_CONCURRENT "$Node;", "val",
				 "L" TRACE_CONCURRENT "$Node;");
}

bool trace_learn_mdc(JNIEnv *env, jobject value, jclass of, const char *name)
{
	if (strcmp(name, "java/util/HashMap") == 0)
		return trace_learn_map(env, value, of);
	if (strcmp(name, "java/util/Collections$SynchronizedMap") == 0 ||
	    strcmp(name, "java/util/Collections$UnmodifiableMap") == 0)
		return trace_learn_wrapped(env, value, of);
	if (strcmp(name, HASHTABLE) == 0)
		return trace_learn_nodes(env, value, of, "[L" HASHTABLE "$Entry;", "value",
					 "L" HASHTABLE "$Entry;");
	if (strcmp(name, JBOSS_MAP) == 0)
		return trace_learn_nodes(env, value, of, "[L" JBOSS_MAP "$Entry;", "value", NULL);
	if (trace_learn_ends(name, "logging/log4j/util/SortedArrayStringMap"))
		return trace_learn_sorted(env, of, name);
	if (strcmp(name, "[Ljava/lang/Object;") == 0)
		return trace_learn_pairs(env, value, of);
	return false;
}

/*
 * Learns the classes of Vert.x (trace_vertx_sig.c says which), and with them those of the values in
 * the local data of a thread's Context: OpenTelemetry's contexts, and Quarkus's MDC.
 */
#include <string.h>
#include "agent/hotspot/method.h"
#include "agent/trace/trace_priv.h"

#define NAME_BYTES   256
#define SUPERCLASSES 4 /* a program's own class of threads extends Vert.x's */
#define DATA_MAX     64
#define THREAD	     "io/vertx/core/impl/VertxThread"

/* What was in some Context before: the next one has it too, though not at each moment. */
static struct trace_found vertx_known;
static bool vertx_is_new; /* since the last trace_learn_vertx_is_new() */

/* The field of a Context that has its local data. */
static const struct {
	const char *name, *type;
} data_fields[] = {
	{ "array", "[Ljava/lang/Object;" }, /* since 4.5.2: it extends AtomicReferenceArray */
	{ "locals", "[Ljava/lang/Object;" }, /* Vert.x 5 */
	{ "localData", "Ljava/util/concurrent/ConcurrentMap;" }, /* before 4.5.2 */
};

static void trace_vertx_class_name(JNIEnv *env, jclass of, char *ret)
{
	trace_jdk_class_name(klass_of_class(env, of), ret, NAME_BYTES);
}

static bool trace_vertx_is(JNIEnv *env, jobject object, const char *class_name)
{
	char name[NAME_BYTES];

	trace_vertx_class_name(env, (*env)->GetObjectClass(env, object), name);
	return strcmp(name, class_name) == 0;
}

static bool trace_vertx_extends_thread(JNIEnv *env, jclass of)
{
	char name[NAME_BYTES];

	for (int i = 0; of && i < SUPERCLASSES; i++) {
		trace_vertx_class_name(env, of, name);
		if (strcmp(name, THREAD) == 0)
			return true;
		if (strcmp(name, "java/lang/Thread") == 0)
			return false;
		of = (*env)->GetSuperclass(env, of);
	}
	return false;
}

/* As ConcurrentHashMap keeps it in a node. */
static uint32_t trace_vertx_hash(const char *key)
{
	return trace_jdk_hash(key, (uint32_t)strlen(key)) & INT32_MAX;
}

/* Checks the value of a Context's local data under @key, NULL = it needs none. */
static void trace_vertx_check_value(JNIEnv *env, jobject key, jobject value,
				    struct trace_found *found)
{
	bool is_object = key && trace_vertx_is(env, key, "java/lang/Object"), tracer;

	if (key && trace_jdk_is_text(env, key, TRACE_QUARKUS_MDC)) {
		found->mdc |= trace_wanted.mdc && trace_vertx_is(env, value, TRACE_CONCURRENT) &&
			      trace_learn_concurrent(env, value);
		return;
	}
	if (key && !is_object && !trace_jdk_is_text(env, key, TRACE_QUARKUS_OTEL) &&
	    !trace_jdk_is_text(env, key, TRACE_VERTX_OTEL))
		return;
	tracer = trace_learn_value(env, value).tracer;
	found->tracer |= tracer;
	if (tracer && is_object)
		__atomic_store_n(&trace_sig.vertx_object_keys, true, __ATOMIC_RELAXED);
}

static void trace_vertx_on_entry(JNIEnv *env, jobject key, jobject value, void *context)
{
	trace_vertx_check_value(env, key, value, context);
}

static void trace_vertx_check_array(JNIEnv *env, jobjectArray data, struct trace_found *found)
{
	jsize n = (*env)->GetArrayLength(env, data);

	for (jsize i = 0; i < n && i < DATA_MAX; i++) {
		jobject value = (*env)->GetObjectArrayElement(env, data, i);

		if (!value)
			continue;
		if ((*env)->PushLocalFrame(env, TRACE_LOCAL_REFS) == 0) {
			if (trace_vertx_is(env, value, TRACE_CONCURRENT))
				trace_jdk_concurrent_each(env, value, trace_vertx_on_entry, found);
			else
				trace_vertx_check_value(env, NULL, value, found);
			(*env)->PopLocalFrame(env, NULL);
		}
		(*env)->DeleteLocalRef(env, value);
	}
}

static void trace_vertx_check_context(JNIEnv *env, jobject context, struct trace_found *found)
{
	jclass of = (*env)->GetObjectClass(env, context);
	jfieldID at = NULL;
	jobject data;

	for (size_t i = 0; i < sizeof(data_fields) / sizeof(data_fields[0]) && !at; i++)
		at = trace_jdk_field(env, of, data_fields[i].name, data_fields[i].type);
	/* also if it has none: a handler that meets an unknown class asks for a search */
	trace_learn_class(env, &trace_sig.vertx_contexts, of, at ? TRACE_VERTX : TRACE_NO_TRACE,
			  (jfieldID[TRACE_FIELDS]){ at });
	data = at ? (*env)->GetObjectField(env, context, at) : NULL;
	if (data && trace_vertx_is(env, data, TRACE_CONCURRENT))
		trace_jdk_concurrent_each(env, data, trace_vertx_on_entry, found);
	else if (data && trace_vertx_is(env, data, "[Ljava/lang/Object;"))
		trace_vertx_check_array(env, data, found);
}

static jfieldID trace_vertx_context_field(JNIEnv *env, jclass of)
{
	jfieldID at = trace_jdk_field(env, of, "context", "Lio/vertx/core/impl/ContextInternal;");

	if (!at) /* Vert.x 5 */
		at = trace_jdk_field(env, of, "context",
				     "Lio/vertx/core/internal/ContextInternal;");
	return at;
}

/* Learns the class @of of @holder in @c, and what is in its Context. */
static struct trace_found trace_vertx_check_holder(JNIEnv *env, struct trace_classes *c,
						   jobject holder, jclass of)
{
	struct trace_found found = { false, false };
	jfieldID at = trace_vertx_context_field(env, of);
	jobject context = at ? (*env)->GetObjectField(env, holder, at) : NULL;

	trace_sig.vertx_otel_key = trace_vertx_hash(TRACE_VERTX_OTEL);
	trace_sig.quarkus_otel_key = trace_vertx_hash(TRACE_QUARKUS_OTEL);
	trace_sig.vertx_mdc_key = trace_vertx_hash(TRACE_QUARKUS_MDC);
	if (at)
		trace_learn_class(env, c, of, TRACE_VERTX, (jfieldID[TRACE_FIELDS]){ at });
	if (context)
		trace_vertx_check_context(env, context, &found);
	vertx_is_new |= found.tracer > vertx_known.tracer || found.mdc > vertx_known.mdc;
	vertx_known.tracer |= found.tracer;
	vertx_known.mdc |= found.mdc;
	return vertx_known;
}

/* Also a class of which no thread has a Context now is learnt: there are several, and this may be
 * the last search for a while. */
struct trace_found trace_learn_vertx_thread(JNIEnv *env, jobject thread)
{
	jclass of = (*env)->GetObjectClass(env, thread);

	if (!trace_vertx_extends_thread(env, of))
		return (struct trace_found){ false, false };
	return trace_vertx_check_holder(env, &trace_sig.vertx_threads, thread, of);
}

struct trace_found trace_learn_vertx_dispatch(JNIEnv *env, jobject value, jclass of)
{
	return trace_vertx_check_holder(env, &trace_sig.values, value, of);
}

bool trace_learn_vertx_is_new(void)
{
	bool is_new = vertx_is_new;

	vertx_is_new = false;
	return is_new;
}

void trace_learn_vertx_forget(void)
{
	vertx_known = (struct trace_found){ false, false };
	trace_sig.vertx_object_keys = false;
}

/*
 * Learns the classes of tracers from objects in the application. A class is recognised by its name,
 * whatever class loader it came from and whatever package it was relocated to. A weak reference to
 * each class shows when it is unloaded, because another class could then get its address.
 */
#include <stdio.h>
#include <string.h>
#include "agent/base/agent.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/method.h"
#include "agent/trace/trace_priv.h"

#define NAME_BYTES 256
#define OTEL	   "io/opentelemetry/"
#define OTEL_KEY   OTEL "context/DefaultContextKey"
#define SKYWALKING "org/apache/skywalking/apm/agent/core/context/"
#define SPAN_KEY   "opentelemetry-trace-span-key"
#define VERTX_DISPATCH "io/vertx/core/impl/VertxImpl$ContextDispatch"

struct trace_wanted trace_wanted;

static struct trace_learnt {
	uint64_t *klass; /* its key in one of the tables; NULL = this entry is free */
	jweak of;
} trace_learnt[6 * TRACE_SLOTS];

static char learn_problem[256];

const char *trace_learn_problem(void)
{
	return learn_problem;
}

void trace_learn_fails(const char *what, const char *name)
{
	if (!learn_problem[0])
		snprintf(learn_problem, sizeof(learn_problem),
			 "%s in %.150s: its trace ids are not read", what, name);
}

bool trace_learn_ends(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* ---- the tables ---- */

/* A free slot of the table; TRACE_SLOTS = the class is known already, or the table is full. */
static uint32_t trace_learn_free_slot(const struct trace_classes *c, uint64_t klass)
{
	uint32_t unused = TRACE_SLOTS;

	for (uint32_t i = 0; i < TRACE_SLOTS; i++) {
		if (c->klass[i] == klass)
			return TRACE_SLOTS;
		if (!c->klass[i] && unused == TRACE_SLOTS)
			unused = i;
	}
	return unused;
}

static bool trace_learn_remember(JNIEnv *env, uint64_t *klass, jclass of)
{
	for (uint32_t i = 0; i < sizeof(trace_learnt) / sizeof(trace_learnt[0]); i++) {
		struct trace_learnt *l = &trace_learnt[i];

		if (l->klass)
			continue;
		l->of = (*env)->NewWeakGlobalRef(env, of);
		if ((*env)->ExceptionCheck(env))
			(*env)->ExceptionClear(env);
		l->klass = l->of ? klass : NULL;
		return l->of;
	}
	return false;
}

void trace_learn_klass(JNIEnv *env, struct trace_classes *c, jclass of, uint64_t klass,
		       enum trace_kind kind, const jfieldID fields[TRACE_FIELDS])
{
	uint32_t slot = klass ? trace_learn_free_slot(c, klass) : TRACE_SLOTS;

	if (slot == TRACE_SLOTS || !trace_learn_remember(env, &c->klass[slot], of))
		return;
	for (uint32_t i = 0; i < TRACE_FIELDS; i++)
		c->of[slot].at[i] = fields[i] ? field_id_offset(fields[i]) : -1;
	c->of[slot].kind = (uint8_t)kind;
	__atomic_store_n(&c->klass[slot], klass, __ATOMIC_RELEASE);
	if (slot >= c->n)
		__atomic_store_n(&c->n, slot + 1, __ATOMIC_RELEASE);
}

void trace_learn_class(JNIEnv *env, struct trace_classes *c, jclass of, enum trace_kind kind,
		       const jfieldID fields[TRACE_FIELDS])
{
	trace_learn_klass(env, c, of, klass_of_class(env, of), kind, fields);
}

static void trace_learn_drop(JNIEnv *env, struct trace_learnt *l)
{
	__atomic_store_n(l->klass, 0, __ATOMIC_RELEASE);
	(*env)->DeleteWeakGlobalRef(env, l->of);
	*l = (struct trace_learnt){ 0 };
}

void trace_learn_sweep(JNIEnv *env)
{
	for (uint32_t i = 0; i < sizeof(trace_learnt) / sizeof(trace_learnt[0]); i++)
		if (trace_learnt[i].klass && (*env)->IsSameObject(env, trace_learnt[i].of, NULL))
			trace_learn_drop(env, &trace_learnt[i]);
}

void trace_learn_forget(JNIEnv *env)
{
	for (uint32_t i = 0; i < sizeof(trace_learnt) / sizeof(trace_learnt[0]); i++)
		if (trace_learnt[i].klass)
			trace_learn_drop(env, &trace_learnt[i]);
	trace_learn_vertx_forget();
	learn_problem[0] = '\0';
}

static void trace_learn_name(JNIEnv *env, jclass of, char *ret)
{
	trace_jdk_class_name(klass_of_class(env, of), ret, NAME_BYTES);
}

/* ---- OpenTelemetry ---- */

/* "io/opentelemetry/javaagent/shaded/io/opentelemetry/context/DefaultContextKey" ->
 * "Lio/opentelemetry/javaagent/shaded/io/opentelemetry/api/trace/SpanContext;": the tracer's own
 * copy of that type. @key_name ends with the name of the class of keys, which may be in other
 * packages. */
static void trace_learn_context_type(const char *key_name, char *ret)
{
	size_t n = strlen(key_name) - strlen(OTEL_KEY);

	snprintf(ret, NAME_BYTES, "L%.*s" OTEL "api/trace/SpanContext;", (int)n, key_name);
}

/* Learns the class of the object under a span key, and where it has its ids. */
static void trace_learn_span(JNIEnv *env, jobject span, const char *key_name)
{
	jclass of = (*env)->GetObjectClass(env, span), of_ids;
	char name[NAME_BYTES], type[NAME_BYTES];
	jfieldID at, trace_id, span_id;
	jobject ids;

	trace_learn_name(env, of, name);
	trace_learn_context_type(key_name, type);
	at = trace_jdk_field(env, of, "context", type);
	if (!at)
		at = trace_jdk_field(env, of, "spanContext", type);
	ids = at ? (*env)->GetObjectField(env, span, at) : NULL;
	if (!ids) {
		trace_learn_fails("no span context", name);
		return;
	}
	of_ids = (*env)->GetObjectClass(env, ids);
	trace_id = trace_jdk_field(env, of_ids, "traceId", "Ljava/lang/String;");
	span_id = trace_jdk_field(env, of_ids, "spanId", "Ljava/lang/String;");
	if (!trace_id || !span_id) {
		trace_learn_name(env, of_ids, name);
		trace_learn_fails("no traceId and spanId", name);
		return;
	}
	trace_learn_class(env, &trace_sig.ids, of_ids, TRACE_OTEL,
			  (jfieldID[TRACE_FIELDS]){ trace_id, span_id });
	trace_learn_class(env, &trace_sig.spans, of, TRACE_OTEL, (jfieldID[TRACE_FIELDS]){ at });
}

/* Checks one pair of a context: if @key is the span key, @value is a span. */
static void trace_learn_pair(JNIEnv *env, jobject key, jobject value)
{
	jclass of = (*env)->GetObjectClass(env, key);
	char name[NAME_BYTES], text[NAME_BYTES] = "";
	jstring key_name = NULL;
	jfieldID at;

	trace_learn_name(env, of, name);
	if (!trace_learn_ends(name, OTEL_KEY))
		return;
	at = trace_jdk_field(env, of, "name", "Ljava/lang/String;");
	if (at)
		key_name = (*env)->GetObjectField(env, key, at);
	if (!key_name) {
		trace_learn_fails("no name", name);
		return;
	}
	trace_learn_class(env, &trace_sig.keys, of, TRACE_OTEL, (jfieldID[TRACE_FIELDS]){ at });
	if ((*env)->GetStringUTFLength(env, key_name) >= (jsize)sizeof(text) / 2)
		return;
	(*env)->GetStringUTFRegion(env, key_name, 0, (*env)->GetStringLength(env, key_name), text);
	if (strcmp(text, SPAN_KEY) == 0 && value)
		trace_learn_span(env, value, name);
}

static bool trace_learn_otel(JNIEnv *env, jobject context, jclass of, const char *name)
{
	jfieldID at = trace_jdk_field(env, of, "entries", "[Ljava/lang/Object;");
	jobjectArray entries = at ? (*env)->GetObjectField(env, context, at) : NULL;
	jsize n = entries ? (*env)->GetArrayLength(env, entries) : 0;

	if (!at)
		trace_learn_fails("no entries", name);
	for (jsize i = 0; i + 1 < n && i < 64; i += 2) {
		jobject key = (*env)->GetObjectArrayElement(env, entries, i);
		jobject value = (*env)->GetObjectArrayElement(env, entries, i + 1);

		if (key)
			trace_learn_pair(env, key, value);
	}
	if (at)
		trace_learn_class(env, &trace_sig.values, of, TRACE_OTEL,
				  (jfieldID[TRACE_FIELDS]){ at });
	return at;
}

/* ---- SkyWalking ---- */

static bool trace_learn_skywalking(JNIEnv *env, jobject context, jclass of, const char *name)
{
	jfieldID segment =
		trace_jdk_field(env, of, "segment", "L" SKYWALKING "trace/TraceSegment;");
	jfieldID stack = trace_jdk_field(env, of, "activeSpanStack", "Ljava/util/LinkedList;");
	jfieldID id, own_id, text, number;
	jobject s, g, list, span;
	jclass of_s, of_g, of_span;

	if (!segment || !stack) {
		trace_learn_fails("no segment and span stack", name);
		return false;
	}
	s = (*env)->GetObjectField(env, context, segment);
	list = (*env)->GetObjectField(env, context, stack);
	if (!s || !list)
		return false;
	of_s = (*env)->GetObjectClass(env, s);
	id = trace_jdk_field(env, of_s, "relatedGlobalTraceId",
			     "L" SKYWALKING "ids/DistributedTraceId;");
	own_id = trace_jdk_field(env, of_s, "traceSegmentId", "Ljava/lang/String;");
	g = id ? (*env)->GetObjectField(env, s, id) : NULL;
	span = trace_jdk_list_last(env, list);
	if (!id || !own_id) /* SkyWalking 6 and 7 */
		trace_learn_fails("no relatedGlobalTraceId", SKYWALKING "trace/TraceSegment");
	if (!g || !own_id || !span)
		return false;
	of_g = (*env)->GetObjectClass(env, g);
	of_span = (*env)->GetObjectClass(env, span);
	text = trace_jdk_field(env, of_g, "id", "Ljava/lang/String;");
	number = trace_jdk_field(env, of_span, "spanId", "I");
	if (text)
		trace_learn_class(env, &trace_sig.keys, of_g, TRACE_SKYWALKING,
				  (jfieldID[TRACE_FIELDS]){ text });
	if (number)
		trace_learn_class(env, &trace_sig.spans, of_span, TRACE_SKYWALKING,
				  (jfieldID[TRACE_FIELDS]){ number });
	trace_learn_class(env, &trace_sig.ids, of_s, TRACE_SKYWALKING,
			  (jfieldID[TRACE_FIELDS]){ id, own_id });
	trace_learn_class(env, &trace_sig.values, of, TRACE_SKYWALKING,
			  (jfieldID[TRACE_FIELDS]){ segment, stack });
	return text && number;
}

/* A trace that SkyWalking does not sample. */
static bool trace_learn_ignored(JNIEnv *env, jclass of)
{
	trace_learn_class(env, &trace_sig.values, of, TRACE_NO_TRACE,
			  (jfieldID[TRACE_FIELDS]){ NULL });
	return true;
}

/* ---- Brave ---- */

static bool trace_learn_brave(JNIEnv *env, jclass of, const char *name)
{
	jfieldID high = trace_jdk_field(env, of, "traceIdHigh", "J");
	jfieldID low = trace_jdk_field(env, of, "traceId", "J");
	jfieldID span = trace_jdk_field(env, of, "spanId", "J");

	if (!high || !low || !span) {
		trace_learn_fails("no traceId and spanId", name);
		return false;
	}
	trace_learn_class(env, &trace_sig.values, of, TRACE_BRAVE,
			  (jfieldID[TRACE_FIELDS]){ high, low, span });
	return true;
}

struct trace_found trace_learn_value(JNIEnv *env, jobject value)
{
	jclass of = (*env)->GetObjectClass(env, value);
	struct trace_found found = { false, false };
	char name[NAME_BYTES];

	trace_learn_name(env, of, name);
	if (trace_wanted.otel && trace_learn_ends(name, OTEL "context/ArrayBasedContext"))
		found.tracer = trace_learn_otel(env, value, of, name);
	else if (trace_wanted.skywalking && strcmp(name, SKYWALKING "TracingContext") == 0)
		found.tracer = trace_learn_skywalking(env, value, of, name);
	else if (trace_wanted.skywalking && strcmp(name, SKYWALKING "IgnoredTracerContext") == 0)
		found.tracer = trace_learn_ignored(env, of);
	else if (trace_wanted.brave && trace_learn_ends(name, "brave/propagation/TraceContext"))
		found.tracer = trace_learn_brave(env, of, name);
	else if (strcmp(name, VERTX_DISPATCH) == 0)
		found = trace_learn_vertx_dispatch(env, value, of);
	else
		found.mdc = trace_wanted.mdc && trace_learn_mdc(env, value, of, name);
	return found;
}

/*
 * The metadata event of a JFR file: every type that is used, with its fields in the order in which
 * they are written. The JDK's own events have their fields in the order that is expected by
 * readers that ignore metadata, such as async-profiler's converter.
 */
#include "daemon/report/jfr_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRINGS_MAX 256
#define FIELDS_MAX  10

enum field_flags {
	POOL = 1, /* the value is a key in a constant pool */
	ARRAY = 2,
	TICKS = 4, /* a moment */
	NANOS = 8, /* a length of time */
	TICKS_LONG = 16, /* a length of time in ticks */
};

struct field {
	const char *name;
	enum jfr_type type;
	unsigned flags;
	const char *label;
};

struct type {
	enum jfr_type id;
	const char *name, *super, *label;
	bool simple; /* has one field, and is displayed as that field */
	struct field fields[FIELDS_MAX]; /* ends with an entry without a name */
};

#define EVENT	   "jdk.jfr.Event"
#define ANNOTATION "java.lang.annotation.Annotation"
#define START                                              \
	{                                                  \
		"startTime", JFR_LONG, TICKS, "Start Time" \
	}
#define WHO                                                        \
	{ "sampledThread", JFR_THREAD, POOL, "Thread" },           \
	{                                                          \
		"stackTrace", JFR_STACK_TRACE, POOL, "Stack Trace" \
	}

#define BY                                                         \
	{ "eventThread", JFR_THREAD, POOL, "Event Thread" },       \
	{                                                          \
		"stackTrace", JFR_STACK_TRACE, POOL, "Stack Trace" \
	}
#define IDS                                        \
	{ "traceId", JFR_STRING, 0, "Trace Id" },  \
	{                                          \
		"spanId", JFR_STRING, 0, "Span Id" \
	}
#define LASTED { "duration", JFR_LONG, TICKS_LONG, "Duration" }, BY

static const struct type types[] = {
	{ .id = JFR_BOOLEAN, .name = "boolean" },
	{ .id = JFR_CHAR, .name = "char" },
	{ .id = JFR_FLOAT, .name = "float" },
	{ .id = JFR_DOUBLE, .name = "double" },
	{ .id = JFR_BYTE, .name = "byte" },
	{ .id = JFR_SHORT, .name = "short" },
	{ .id = JFR_INT, .name = "int" },
	{ .id = JFR_LONG, .name = "long" },
	{ .id = JFR_STRING, .name = "java.lang.String" },
	{ .id = JFR_CLASS,
	  .name = "java.lang.Class",
	  .fields = { { "classLoader", JFR_CLASS_LOADER, POOL, NULL },
		      { "name", JFR_SYMBOL, POOL, NULL },
		      { "package", JFR_PACKAGE, POOL, NULL },
		      { "modifiers", JFR_INT, 0, NULL } } },
	{ .id = JFR_THREAD,
	  .name = "java.lang.Thread",
	  .fields = { { "osName", JFR_STRING, 0, NULL },
		      { "osThreadId", JFR_LONG, 0, NULL },
		      { "javaName", JFR_STRING, 0, NULL },
		      { "javaThreadId", JFR_LONG, 0, NULL } } },
	{ .id = JFR_CLASS_LOADER,
	  .name = "jdk.types.ClassLoader",
	  .fields = { { "type", JFR_CLASS, POOL, NULL }, { "name", JFR_SYMBOL, POOL, NULL } } },
	{ .id = JFR_FRAME_TYPE,
	  .name = "jdk.types.FrameType",
	  .simple = true,
	  .fields = { { "description", JFR_STRING, 0, NULL } } },
	{ .id = JFR_THREAD_STATE,
	  .name = "jdk.types.ThreadState",
	  .simple = true,
	  .fields = { { "name", JFR_STRING, 0, NULL } } },
	{ .id = JFR_STACK_TRACE,
	  .name = "jdk.types.StackTrace",
	  .fields = { { "truncated", JFR_BOOLEAN, 0, NULL },
		      { "frames", JFR_STACK_FRAME, ARRAY, NULL } } },
	{ .id = JFR_STACK_FRAME,
	  .name = "jdk.types.StackFrame",
	  .fields = { { "method", JFR_METHOD, POOL, NULL },
		      { "lineNumber", JFR_INT, 0, NULL },
		      { "bytecodeIndex", JFR_INT, 0, NULL },
		      { "type", JFR_FRAME_TYPE, POOL, NULL } } },
	{ .id = JFR_METHOD,
	  .name = "jdk.types.Method",
	  .fields = { { "type", JFR_CLASS, POOL, NULL },
		      { "name", JFR_SYMBOL, POOL, NULL },
		      { "descriptor", JFR_SYMBOL, POOL, NULL },
		      { "modifiers", JFR_INT, 0, NULL },
		      { "hidden", JFR_BOOLEAN, 0, NULL } } },
	{ .id = JFR_PACKAGE,
	  .name = "jdk.types.Package",
	  .fields = { { "name", JFR_SYMBOL, POOL, NULL } } },
	{ .id = JFR_SYMBOL,
	  .name = "jdk.types.Symbol",
	  .simple = true,
	  .fields = { { "string", JFR_STRING, 0, NULL } } },
	{ .id = JFR_LABEL,
	  .name = "jdk.jfr.Label",
	  .super = ANNOTATION,
	  .fields = { { "value", JFR_STRING, 0, NULL } } },
	{ .id = JFR_CATEGORY,
	  .name = "jdk.jfr.Category",
	  .super = ANNOTATION,
	  .fields = { { "value", JFR_STRING, ARRAY, NULL } } },
	{ .id = JFR_TIMESTAMP,
	  .name = "jdk.jfr.Timestamp",
	  .super = ANNOTATION,
	  .fields = { { "value", JFR_STRING, 0, NULL } } },
	{ .id = JFR_TIMESPAN,
	  .name = "jdk.jfr.Timespan",
	  .super = ANNOTATION,
	  .fields = { { "value", JFR_STRING, 0, NULL } } },
	{ .id = JFR_EXECUTION_SAMPLE,
	  .name = "jdk.ExecutionSample",
	  .super = EVENT,
	  .label = "Method Profiling Sample",
	  .fields = { START, WHO, { "state", JFR_THREAD_STATE, POOL, "Thread State" } } },
	{ .id = JFR_ACTIVE_SETTING,
	  .name = "jdk.ActiveSetting",
	  .super = EVENT,
	  .label = "Recording Setting",
	  .fields = { START,
		      { "id", JFR_LONG, 0, "Event Id" },
		      { "name", JFR_STRING, 0, "Setting Name" },
		      { "value", JFR_STRING, 0, "Setting Value" } } },
	{ .id = JFR_MONITOR_ENTER,
	  .name = "jdk.JavaMonitorEnter",
	  .super = EVENT,
	  .label = "Java Monitor Blocked",
	  .fields = { START,
		      LASTED,
		      { "monitorClass", JFR_CLASS, POOL, "Monitor Class" },
		      { "previousOwner", JFR_THREAD, POOL, "Previous Monitor Owner" },
		      { "address", JFR_LONG, 0, "Monitor Address" } } },
	{ .id = JFR_MONITOR_WAIT,
	  .name = "jdk.JavaMonitorWait",
	  .super = EVENT,
	  .label = "Java Monitor Wait",
	  .fields = { START,
		      LASTED,
		      { "monitorClass", JFR_CLASS, POOL, "Monitor Class" },
		      { "notifier", JFR_THREAD, POOL, "Notifier Thread" },
		      { "timeout", JFR_LONG, NANOS, "Timeout" },
		      { "timedOut", JFR_BOOLEAN, 0, "Timed Out" },
		      { "address", JFR_LONG, 0, "Monitor Address" } } },
	{ .id = JFR_THREAD_PARK,
	  .name = "jdk.ThreadPark",
	  .super = EVENT,
	  .label = "Java Thread Park",
	  .fields = { START,
		      LASTED,
		      { "parkedClass", JFR_CLASS, POOL, "Class Parked On" },
		      { "timeout", JFR_LONG, NANOS, "Park Timeout" },
		      { "until", JFR_LONG, NANOS, "Park Until" },
		      { "address", JFR_LONG, 0, "Address of Object Parked" } } },
	{ .id = JFR_ALLOCATION,
	  .name = "jdk.ObjectAllocationSample",
	  .super = EVENT,
	  .label = "Object Allocation Sample",
	  .fields = { START,
		      BY,
		      { "objectClass", JFR_CLASS, POOL, "Object Class" },
		      { "weight", JFR_LONG, 0, "Sample Weight" } } },
	{ .id = JFR_CPU_TIME,
	  .name = "kindling.CpuTime",
	  .super = EVENT,
	  .label = "CPU Time of a Stack",
	  .fields = { START,
		      WHO,
		      { "samples", JFR_LONG, 0, "Samples" },
		      { "cpuTime", JFR_LONG, NANOS, "CPU Time" },
		      IDS } },
	{ .id = JFR_ACCOUNTS,
	  .name = "kindling.Accounts",
	  .super = EVENT,
	  .label = "Samples Taken and Lost",
	  .fields = { START,
		      { "taken", JFR_LONG, 0, "Samples Taken" },
		      { "delivered", JFR_LONG, 0, "Samples Delivered" },
		      { "dropped", JFR_LONG, 0, "Samples Dropped" },
		      { "droppedTime", JFR_LONG, NANOS, "CPU Time Dropped" },
		      { "interval", JFR_LONG, NANOS, "Mean Interval" },
		      { "samples", JFR_LONG, 0, "Samples in this File" },
		      { "cpuTime", JFR_LONG, NANOS, "CPU Time in this File" },
		      { "processCpuTime", JFR_LONG, NANOS, "CPU Time of the Process" },
		      { "summary", JFR_STRING, 0, "Summary" } } },
	{ .id = JFR_WAIT_TIME,
	  .name = "kindling.WaitTime",
	  .super = EVENT,
	  .label = "Waiting Time of a Stack",
	  .fields = { START,
		      WHO,
		      { "lockClass", JFR_CLASS, POOL, "Class of the Lock" },
		      { "waits", JFR_LONG, 0, "Waits" },
		      { "waitTime", JFR_LONG, NANOS, "Time" },
		      IDS } },
	{ .id = JFR_ALLOCATED,
	  .name = "kindling.Allocated",
	  .super = EVENT,
	  .label = "Bytes Allocated by a Stack",
	  .fields = { START,
		      WHO,
		      { "objectClass", JFR_CLASS, POOL, "Object Class" },
		      { "samples", JFR_LONG, 0, "Samples" },
		      { "bytes", JFR_LONG, 0, "Bytes" },
		      IDS } },
	{ .id = JFR_OFFCPU,
	  .name = "kindling.OffCpu",
	  .super = EVENT,
	  .label = "Thread Off the CPU",
	  .fields = { START, LASTED, { "reason", JFR_STRING, 0, "Reason" }, IDS } },
	{ .id = JFR_OFFCPU_TIME,
	  .name = "kindling.OffCpuTime",
	  .super = EVENT,
	  .label = "Time Off the CPU of a Stack",
	  .fields = { START,
		      WHO,
		      { "reason", JFR_STRING, 0, "Reason" },
		      { "intervals", JFR_LONG, 0, "Intervals" },
		      { "offCpuTime", JFR_LONG, NANOS, "Time" },
		      IDS } },
	{ .id = JFR_EVENT_ACCOUNTS,
	  .name = "kindling.EventAccounts",
	  .super = EVENT,
	  .label = "Waits and Allocations Taken and Lost",
	  .fields = { START,
		      { "event", JFR_STRING, 0, "Event" },
		      { "taken", JFR_LONG, 0, "Taken" },
		      { "delivered", JFR_LONG, 0, "Delivered" },
		      { "dropped", JFR_LONG, 0, "Dropped" },
		      { "droppedWeight", JFR_LONG, 0, "Weight Dropped" },
		      { "interval", JFR_LONG, 0, "Interval or Threshold" },
		      { "samples", JFR_LONG, 0, "Events in this File" },
		      { "weight", JFR_LONG, 0, "Weight in this File" },
		      { "summary", JFR_STRING, 0, "Summary" } } },
};

/* The tree of elements refers to strings by number; they are written before it. */
struct tree {
	struct text_out out;
	const char *strings[STRINGS_MAX];
	char numbers[STRINGS_MAX][8]; /* the numbers as text */
	unsigned n, n_numbers;
};

static void jfr_types_name(struct tree *t, const char *s)
{
	unsigned i = 0;

	while (i < t->n && strcmp(t->strings[i], s) != 0)
		i++;
	if (i == t->n) {
		if (i == STRINGS_MAX) {
			t->out.failed = true;
			return;
		}
		t->strings[t->n++] = s;
	}
	jfr_u64(&t->out, i);
}

/* Writes an element. @attributes: "key", "value", ... NULL. Its @children elements follow. */
static void jfr_types_element(struct tree *t, const char *what, const char *const *attributes,
			      unsigned children)
{
	unsigned n = 0;

	while (attributes[n])
		n++;
	jfr_types_name(t, what);
	jfr_u64(&t->out, n / 2);
	for (unsigned i = 0; i < n; i++)
		jfr_types_name(t, attributes[i]);
	jfr_u64(&t->out, children);
}

static const char *jfr_types_number(struct tree *t, unsigned id)
{
	/* a string that is known keeps its number; only a new one takes one */
	char *s = t->numbers[t->n_numbers % STRINGS_MAX];

	snprintf(s, sizeof(t->numbers[0]), "%u", id);
	for (unsigned i = 0; i < t->n; i++)
		if (strcmp(t->strings[i], s) == 0)
			return t->strings[i];
	t->n_numbers++;
	return s;
}

static void jfr_types_annotation(struct tree *t, enum jfr_type type, const char *key,
				 const char *value)
{
	const char *attributes[] = { "class", jfr_types_number(t, type), key, value, NULL };

	jfr_types_element(t, "annotation", attributes, 0);
}

static void jfr_types_field(struct tree *t, const struct field *f)
{
	const char *attributes[9] = { "name", f->name, "class", jfr_types_number(t, f->type) };
	unsigned n = 4, timed = f->flags & (TICKS | NANOS | TICKS_LONG) ? 1 : 0;

	if (f->flags & POOL) {
		attributes[n++] = "constantPool";
		attributes[n++] = "true";
	}
	if (f->flags & ARRAY) {
		attributes[n++] = "dimension";
		attributes[n++] = "1";
	}
	jfr_types_element(t, "field", attributes, timed + (f->label ? 1 : 0));
	if (f->label)
		jfr_types_annotation(t, JFR_LABEL, "value", f->label);
	if (f->flags & TICKS)
		jfr_types_annotation(t, JFR_TIMESTAMP, "value", "TICKS");
	if (f->flags & NANOS)
		jfr_types_annotation(t, JFR_TIMESPAN, "value", "NANOSECONDS");
	if (f->flags & TICKS_LONG)
		jfr_types_annotation(t, JFR_TIMESPAN, "value", "TICKS");
}

static void jfr_types_type(struct tree *t, const struct type *c)
{
	const char *attributes[9] = { "name", c->name, "id", jfr_types_number(t, c->id) };
	unsigned n = 4, fields = 0;

	if (c->super) {
		attributes[n++] = "superType";
		attributes[n++] = c->super;
	}
	if (c->simple) {
		attributes[n++] = "simpleType";
		attributes[n++] = "true";
	}
	while (fields < FIELDS_MAX && c->fields[fields].name)
		fields++;
	jfr_types_element(t, "class", attributes, fields + (c->label ? 2 : 0));
	if (c->label) {
		jfr_types_annotation(t, JFR_LABEL, "value", c->label);
		jfr_types_annotation(t, JFR_CATEGORY, "value-0",
				     strncmp(c->name, "jdk.", 4) == 0 ? "Java Application"
								      : "kindling");
	}
	for (unsigned i = 0; i < fields; i++)
		jfr_types_field(t, &c->fields[i]);
}

void jfr_put_types(struct text_out *t, uint64_t start_ticks)
{
	static const char *const none[] = { NULL };
	static const char *const region[] = { "locale", "en_US", "gmtOffset", "0", NULL };
	struct tree tree = { .n = 0 };
	size_t at = jfr_begin(t, JFR_METADATA), n_types = sizeof(types) / sizeof(types[0]);

	jfr_types_element(&tree, "root", none, 2);
	jfr_types_element(&tree, "metadata", none, (unsigned)n_types);
	for (size_t i = 0; i < n_types; i++)
		jfr_types_type(&tree, &types[i]);
	jfr_types_element(&tree, "region", region, 0);
	jfr_u64(t, start_ticks);
	jfr_u64(t, 0); /* duration */
	jfr_u64(t, 1); /* number of this metadata */
	jfr_u64(t, tree.n);
	for (unsigned i = 0; i < tree.n; i++)
		jfr_string(t, tree.strings[i]);
	if (tree.out.p)
		text_bytes(t, tree.out.p, tree.out.len);
	t->failed |= tree.out.failed;
	free(tree.out.p);
	jfr_end(t, at);
}

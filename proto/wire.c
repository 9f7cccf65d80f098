/* See wire.h: the names of events, drops and counters. wire_write.c and wire_read.c build and read
 * frames. */
#include "proto/wire.h"

const char *const wire_counter_names[WIRE_COUNTER_COUNT] = {
#define X(id, name, text) [WIRE_COUNTER_##id] = name,
	WIRE_COUNTERS(X)
#undef X
};

const char *const wire_drop_names[WIRE_DROP_COUNT] = {
#define X(id, name, text) [WIRE_DROP_##id] = name,
	WIRE_DROPS(X)
#undef X
};

const char *const wire_part_names[WIRE_PART_COUNT] = {
#define X(id, name, text) name,
	WIRE_PARTS(X)
#undef X
};

const char *const wire_kind_names[WIRE_KIND_COUNT] = {
	[WIRE_KIND_UNKNOWN] = "unknown",
	[WIRE_KIND_JAVA] = "java",
	[WIRE_KIND_INTERPRETED] = "interpreted",
	[WIRE_KIND_C1] = "c1",
	[WIRE_KIND_C2] = "c2",
	[WIRE_KIND_INLINED] = "inlined",
	[WIRE_KIND_NATIVE_METHOD] = "native_method",
	[WIRE_KIND_NATIVE] = "native",
	[WIRE_KIND_STUB] = "stub",
	[WIRE_KIND_KERNEL] = "kernel",
	[WIRE_KIND_SYNTHETIC] = "synthetic",
	[WIRE_KIND_CLASS] = "class",
};

const char *const wire_event_names[WIRE_EVENT_COUNT] = {
#define X(id, name, unit) [WIRE_EVENT_##id] = name,
	WIRE_EVENTS(X)
#undef X
};

const char *const wire_wait_names[WIRE_WAIT_COUNT] = {
	[WIRE_WAIT_ENTER] = "enter",
	[WIRE_WAIT_WAIT] = "wait",
	[WIRE_WAIT_PARK] = "park",
};

const char *const wire_state_names[WIRE_STATE_COUNT] = {
	[WIRE_STATE_UNKNOWN] = "unknown",
	[WIRE_STATE_RUNNABLE] = "runnable",
	[WIRE_STATE_BLOCKED] = "blocked",
	[WIRE_STATE_WAITING] = "waiting",
	[WIRE_STATE_TIMED_WAITING] = "timed_waiting",
};

const char *const wire_pause_names[WIRE_PAUSE_KIND_COUNT] = {
	[WIRE_PAUSE_NONE] = "none",
	[WIRE_PAUSE_SAFEPOINT] = "safepoint",
	[WIRE_PAUSE_GC] = "gc",
};

const char *const wire_offcpu_names[WIRE_OFFCPU_STATUS_COUNT] = {
	[WIRE_OFFCPU_NONE] = "none",
	[WIRE_OFFCPU_RUNNABLE] = "runnable",
	[WIRE_OFFCPU_SLEEP] = "sleep",
	[WIRE_OFFCPU_WAIT] = "wait",
	[WIRE_OFFCPU_PARK] = "park",
	[WIRE_OFFCPU_LOCK] = "lock",
	[WIRE_OFFCPU_BLOCKED_IN_VM] = "blocked_in_vm",
	[WIRE_OFFCPU_GC] = "gc",
	[WIRE_OFFCPU_UNMOUNTED] = "unmounted",
};

_Static_assert(WIRE_ACCOUNTS_WORDS <= 64, "one event's keys end before the next one's");

/* See safepoints.h: finds the JVM's variables, and the names of VM operations. */
#include "agent/hotspot/safepoints.h"

#include <string.h>
#include "agent/base/clock.h"
#include "agent/base/guard.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/safepoint_timers.h"

#define FIRST_JDK      17
#define OPERATIONS_MAX 160
#define NAME_MAX       64
#define COUNTER_MAX    (1ull << 40)

enum { BEGIN, REACHED, END, COUNTER, OPERATION, NAMES, HIDDEN_COUNT };

static const char *const hidden[HIDDEN_COUNT] = {
	[BEGIN] = "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE",
	[REACHED] = "_ZN16SafepointTracing28_last_safepoint_sync_time_nsE",
	[END] = "_ZN16SafepointTracing27_last_safepoint_end_time_nsE",
	[COUNTER] = "_ZN20SafepointSynchronize18_safepoint_counterE",
	[OPERATION] = "_ZN16SafepointTracing13_current_typeE",
	[NAMES] = "_ZN12VM_Operation6_namesE",
};

static struct {
	bool tried, usable;
	bool timers; /* the JVM has the earlier form */
	const char *const *names; /* by VMOp_Type */
	struct libjvm_image image;
} vm;

/* Do the variables hold plausible values? The file may be another build than the library that runs.
 * Before the first safepoint only the end is set, to the time at which the JVM started. */
static bool safepoints_plausible(const struct safepoints_at *at)
{
	uint64_t begin = *at->begin_ns, end = *at->end_ns, now = mono_ns();

	return begin <= now && end <= now && *at->reached_ns <= now && *at->counter < COUNTER_MAX &&
	       *at->operation >= 0 && *at->operation < OPERATIONS_MAX &&
	       (begin != 0) == (*at->counter != 0);
}

static bool safepoints_find(struct safepoints_at *ret)
{
	const void *at[HIDDEN_COUNT];

	if (libjvm_version().feature < FIRST_JDK || !libjvm_image(&vm.image) ||
	    !libjvm_hidden(hidden, HIDDEN_COUNT, at))
		return false;
	*ret = (struct safepoints_at){
		.begin_ns = at[BEGIN],
		.reached_ns = at[REACHED],
		.end_ns = at[END],
		.counter = at[COUNTER],
		.operation = at[OPERATION],
	};
	vm.names = at[NAMES];
	return safepoints_plausible(ret) && *safepoints_operation(*ret->operation);
}

bool safepoints_init(void)
{
	struct safepoint_timers timers;
	struct safepoints_at at;

	if (vm.tried)
		return vm.usable;
	vm.tried = true;
	vm.usable = safepoints_find(&at);
	if (vm.usable)
		safepoints_at_sig = at;
	if (!vm.usable && safepoint_timers_find(&timers)) {
		struct safepoint last;

		safepoint_timers_sig = timers;
		vm.timers = vm.usable = true;
		(void)safepoints_last_sig(&last); /* the next one's times are told by differences */
	}
	return vm.usable;
}

const char *safepoints_operation(int32_t operation)
{
	const char *name;
	uint64_t at;

	if (vm.timers)
		return operation < 0 ? "" : safepoint_timers_collector((uint32_t)operation);
	if (!vm.names || operation < 0 || operation >= OPERATIONS_MAX ||
	    (uint64_t)(uintptr_t)(vm.names + operation + 1) > vm.image.high ||
	    !guard_readable_sig((uint64_t)(uintptr_t)(vm.names + operation)))
		return "";
	name = vm.names[operation];
	at = (uint64_t)(uintptr_t)name;
	if (at < vm.image.low || at + NAME_MAX > vm.image.high || !guard_readable_sig(at) ||
	    !guard_readable_sig(at + NAME_MAX - 1))
		return "";
	for (int i = 0; i < NAME_MAX; i++) {
		if (!name[i])
			return name;
		if (name[i] <= ' ' || name[i] > '~')
			return "";
	}
	return "";
}

bool safepoints_collects(int32_t operation)
{
	/* from vmOperation.hpp of JDK 17 to 28. Operations that only verify, or wait for a
	 * collector's threads, are left out */
	static const char *const begins[] = {
		"CollectFor",
		"GenCollect",
		"SerialCollect",
		"SerialGCCollect",
		"ParallelCollect",
		"ParallelGC",
		"G1Collect",
		"G1Pause",
		"G1TryInitiate",
		"ZMarkStart",
		"ZMarkEnd",
		"ZRelocateStart",
		"XMarkStart",
		"XMarkEnd",
		"XRelocateStart",
		"ShenandoahFull",
		"ShenandoahInit",
		"ShenandoahFinal",
		"ShenandoahDegenerated",
	};
	const char *name = safepoints_operation(operation);

	if (vm.timers)
		return operation >= 0;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

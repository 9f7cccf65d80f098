/* See idle.h; the rules are in proto/idle.c. */
#include "daemon/profile/idle.h"

#include <string.h>
#include "daemon/ground/mem.h"

#define MARK_NO	 1
#define MARK_YES 2

#define COMM_MAX   15 /* bytes of a thread's name in the kernel */
#define SHORT_HEAD 7 /* JDK 28 cuts longer names in the middle: "VM Peri..Thread" */

/* Threads of the JVM itself that wait for requests. */
static const char *const services[] = {
	"Signal Dispatcher", "Attach Listener",		 "Notification Thread",
	"Service Thread",    "Monitor Deflation Thread",
};

/* Threads that HotSpot makes for itself. Where there are several, a number follows. */
static const char *const vm_threads[] = {
	"VM Thread",
	"VM Periodic Task Thread",
	"C1 CompilerThread",
	"C2 CompilerThread",
	"JVMCI CompilerThread",
	"JVMCI-native CompilerThread",
	"Sweeper thread",
	"GC Thread#",
	"GC task thread#",
	"ParGC Thread#",
	"Gang worker#",
	"G1 Main Marker",
	"G1 Main Concurrent Mark GC Thread",
	"G1 Conc#",
	"G1 Refine#",
	"G1 Refine Control", /* JDK 26 and later */
	"G1 Refinement Workers#",
	"G1 Service",
	"G1 Young RemSet Sampling",
	"G1 Concurrent Refinement Thread#",
	"G1 Parallel Marking Threads",
	"Concurrent Mark-Sweep GC Thread",
	"CMS Main Thread",
	"CMS Thread#",
	"Surrogate Locker Thread",
	"Safepoint Cleanup Thread#",
	"StrDedup",
	"StringDedupThread",
	"String Deduplication Thread",
	"StringDedupProcessor",
	"RuntimeWorker#",
	"ZDirector",
	"ZDriver",
	"ZDriverMinor",
	"ZDriverMajor",
	"ZServiceability",
	"ZStat",
	"ZUncommitter",
	"ZUncommitter#",
	"ZUnmapper",
	"ZWorker#",
	"ZWorkerYoung#",
	"ZWorkerOld#",
	"XDirector",
	"XDriver",
	"XStat",
	"XUncommitter",
	"XUnmapper",
	"XWorker#",
	"ShenandoahControlThread",
	"Shenandoah Control Thread",
	"Shenandoah Generational Control Thread",
	"Shenandoah Regulator Thread",
	"Shenandoah Uncommit",
	"Shenandoah Uncommit Thread",
	"Shenandoah GC Threads#",
	"ShenControl", /* JDK 27 and later */
	"ShenRegulator",
	"ShenUncommit",
	"ShenWorker#",
	"Safepoint-cleanup-thread#",
	"AsyncLog Thread",
	"JFR Recorder Thread",
	"JFR Periodic Tasks",
	"JFR Sampler Thread",
	"JFR Thread Sampler",
	"DestroyJavaVM", /* it waits until the last other thread has ended */
	"java", /* the launcher, which waits for the main thread; in JDK 8 all of them */
};

/* Is it @full with a number or without, as a name or as much of it as the kernel keeps? */
static bool idle_is_cut(const char *name, const char *full)
{
	size_t same = 0, len = strlen(name), digits;

	while (full[same] && name[same] == full[same])
		same++;
	if (same == SHORT_HEAD && strncmp(name + same, "..", 2) == 0)
		return len == COMM_MAX && strlen(full) >= COMM_MAX;
	if (full[same])
		return len == COMM_MAX && same == COMM_MAX;
	digits = strspn(name + same, "0123456789");
	return same + digits == len ||
	       (digits && strncmp(name + same + digits, " (", 2) == 0); /* "Gang worker#0 (" */
}

static enum idle_sight profile_idle_look(const struct stream *stream, uint32_t node)
{
	enum idle_sight sight = IDLE_UNDECIDED;
	struct stream_frame f;

	for (int i = 0; i < IDLE_FRAMES_MAX && sight == IDLE_UNDECIDED; i++) {
		if (!stream_node(stream, node, &f, &node))
			return IDLE_NO;
		if (wire_kind_is_method(f.kind))
			sight = idle_frame(f.class_name, f.method);
	}
	return sight;
}

bool idle_stack(const struct stream *stream, uint32_t node)
{
	uint8_t mark = stream_node_mark(stream, node);

	if (mark == 0) {
		mark = profile_idle_look(stream, node) == IDLE_YES ? MARK_YES : MARK_NO;
		stream_mark_node(stream, node, mark);
	}
	return mark == MARK_YES;
}

bool idle_wait(const struct stream *stream, const struct stream_lock *wait)
{
	return wait->wait != WIRE_WAIT_ENTER && idle_stack(stream, wait->node);
}

static bool has_method(const struct stream *stream, uint32_t node)
{
	struct stream_frame f;

	for (int i = 0; i < IDLE_FRAMES_MAX && stream_node(stream, node, &f, &node); i++)
		if (wire_kind_is_method(f.kind))
			return true;
	return false;
}

bool idle_vm_thread(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(vm_threads); i++)
		if (idle_is_cut(name, vm_threads[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (idle_is_cut(name, services[i]))
			return true;
	return idle_is_cut(name, "Reference Handler") ||
	       idle_is_cut(name, "VirtualThread-unblocker"); /* JDK 24 and later */
}

bool idle_sample(const struct stream *stream, const struct stream_sample *sample)
{
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (strcmp(sample->thread, services[i]) == 0)
			return !has_method(stream, sample->node);
	return idle_stack(stream, sample->node);
}

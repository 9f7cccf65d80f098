/* See thread_status.h. */
#include "agent/hotspot/thread_status.h"

#include "agent/base/guard.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/oop.h"
#include "proto/wire.h"

/* bits of threadStatus, as JVMTI_THREAD_STATE_x */
#define STATUS_SLEEPING	      0x0040u
#define STATUS_IN_OBJECT_WAIT 0x0100u
#define STATUS_PARKED	      0x0200u
#define STATUS_ENTERING	      0x0400u

/* JavaThreadState: the same numbers in every version */
#define STATE_IN_NATIVE 4u
#define STATE_IN_JAVA	8u
#define STATE_LAST	11u

struct thread_status_layout thread_status_layout_sig = { -1, -1, -1, false, -1 };

/* The last known number of collections, and when it was first seen. */
static struct {
	uint32_t count;
	uint64_t changed_ns;
} collections;

/* Has there been a stop-the-world collection since @begin_ns? The JVM counts a collection when it
 * begins; the threads that it stops can see the new number only when they run again at its end. */
static bool was_collected_sig(uint64_t begin_ns, uint64_t now_ns)
{
	uint32_t count;

	if (!oop_sig.count)
		return false;
	count = __atomic_load_n(oop_sig.count, __ATOMIC_ACQUIRE);
	if (count != __atomic_load_n(&collections.count, __ATOMIC_ACQUIRE)) {
		/* the time is written first, so that a thread that sees the number also sees its
		 * time */
		__atomic_store_n(&collections.changed_ns, now_ns, __ATOMIC_RELEASE);
		__atomic_store_n(&collections.count, count, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&collections.changed_ns, __ATOMIC_ACQUIRE) >= begin_ns;
}

static uint64_t status_object_sig(uint64_t java_thread)
{
	uint64_t slot = java_thread + (uint32_t)vm_sig.thread_object;

	return oop_load_wide_sig(thread_status_layout_sig.slot_is_object ? slot : load64_sig(slot));
}

/* threadStatus; 0 = it cannot be read now, because a collector is moving the object. */
static uint32_t status_word_sig(uint64_t java_thread)
{
	const struct thread_status_layout *l = &thread_status_layout_sig;
	uint64_t before = oop_epoch_sig(), thread = status_object_sig(java_thread), in = thread;
	uint32_t status;

	if (!thread || load64_sig(thread + (uint32_t)l->eetop) != java_thread)
		return 0;
	if (l->holder >= 0)
		in = oop_load_sig(thread + (uint32_t)l->holder);
	status = in ? load32_sig(in + (uint32_t)l->status) : 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return before && oop_epoch_sig() == before ? status : 0;
}

/* For a thread whose status cannot be read; of waits and parks its stack tells. */
static uint8_t status_by_monitor_sig(uint64_t java_thread)
{
	int32_t pending = thread_status_layout_sig.pending;

	return pending >= 0 && load64_sig(java_thread + (uint32_t)pending) ? WIRE_OFFCPU_LOCK
									   : WIRE_OFFCPU_NONE;
}

uint8_t thread_status_of_sig(uint32_t status)
{
	if (status & STATUS_ENTERING)
		return WIRE_OFFCPU_LOCK;
	if (status & STATUS_IN_OBJECT_WAIT)
		return WIRE_OFFCPU_WAIT;
	if (status & STATUS_PARKED)
		return WIRE_OFFCPU_PARK;
	return status & STATUS_SLEEPING ? WIRE_OFFCPU_SLEEP : WIRE_OFFCPU_RUNNABLE;
}

uint8_t thread_status_sig(uint64_t begin_ns, uint64_t now_ns)
{
	/* called for every thread, including the JVM's own, so that a collection is noticed
	 * early */
	bool collected = was_collected_sig(begin_ns, now_ns);
	uint64_t java_thread;
	uint32_t word, state;
	uint8_t status;

	if (!vm_known_sig || thread_status_layout_sig.status < 0 || vm_sig.thread_object < 0)
		return WIRE_OFFCPU_NONE;
	java_thread = java_thread_address_sig();
	if (!java_thread)
		return WIRE_OFFCPU_NONE;
	word = status_word_sig(java_thread);
	status = word ? thread_status_of_sig(word) : status_by_monitor_sig(java_thread);
	if (status > WIRE_OFFCPU_RUNNABLE)
		return status;
	state = load32_sig(java_thread + (uint32_t)vm_sig.thread_state);
	if (state <= STATE_IN_NATIVE || state == STATE_IN_JAVA || state > STATE_LAST)
		return status;
	return collected ? WIRE_OFFCPU_GC : WIRE_OFFCPU_BLOCKED_IN_VM;
}

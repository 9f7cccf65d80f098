/*
 * Waits of virtual threads without a carrier (JDK 21 and later): parks, sleeps, sockets. JVMTI's
 * extension events VirtualThreadUnmount and VirtualThreadMount report where one begins and ends, in
 * the virtual thread itself, in native state. A wait that lasted as long as the threshold goes into
 * the ring as an OFFCPU event, with the stack of the mount, which is that of the unmount; shorter
 * ones are counted. docs/decisions/0041.
 *
 * The events, and the JVMTI environment even without them, make each unmount and mount slower. So
 * they are on only while START asks for them (virtual_min_ns).
 */
#pragma once

#include "agent/base/events.h"
#include "agent/events/unmounted_table.h"

extern const struct events_source unmounted_source;

/* Agent's thread: the threshold in force, which the CPU budget may have raised; 0 = the events are
 * off. */
uint64_t unmounted_min_ns(void);

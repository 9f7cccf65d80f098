/*
 * Contended monitors and Object.wait, told by JVMTI. Its environment slows yields of virtual
 * threads on JDK 21 and later for the life of the JVM: made only when asked for, and by itself only
 * where it costs nothing more, or when the JVM has run for a minute without virtual threads.
 */
#pragma once

#include "agent/base/events.h"
#include "agent/hotspot/virtual_price.h"

extern const struct events_source monitors_source;

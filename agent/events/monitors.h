/*
 * Contended monitors and Object.wait, reported by JVMTI. On JDK 21 and later its environment slows
 * down yields of virtual threads until the JVM ends. So it is created only when START asks for it,
 * when it adds no cost, or when the JVM has run for a minute without virtual threads.
 */
#pragma once

#include "agent/base/events.h"
#include "agent/hotspot/virtual_price.h"

extern const struct events_source monitors_source;

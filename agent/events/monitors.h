/*
 * Contended monitors and Object.wait, told by JVMTI. Its environment slows yields of virtual
 * threads on JDK 21 and later for the life of the JVM: made only when asked for, and by itself only
 * where virtual threads are not in use.
 */
#pragma once

#include "agent/events/events.h"

extern const struct events_source monitors_source;

/* Agent's thread. Has the application ever had a virtual thread? Also true where nobody can tell.
 */
bool virtual_threads_used(void);

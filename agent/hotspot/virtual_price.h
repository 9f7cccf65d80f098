/*
 * Decides whether a JVMTI environment would cost this application anything: from JDK 21 on it makes
 * every yield of a virtual thread slower until the JVM ends (docs/locks.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, attached. */

/* Has the application ever had a virtual thread? Also true if unknown. */
bool virtual_threads_used(void);
/* Is there an environment already, the agent's own or that of a -javaagent or a debugger? */
bool virtual_price_is_paid(void);
/* Nanoseconds to wait until a JVM that has had no virtual threads is unlikely to start any; 0 = it
 * is old enough. */
uint64_t virtual_price_wait_ns(void);

/*
 * From JDK 21 on a JVMTI environment makes every yield of a virtual thread slower until the JVM
 * ends (docs/locks.md). Would this application pay that price?
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, attached. */

/* Has the application ever had a virtual thread? Also true if unknown. */
bool virtual_threads_used(void);
/* Is there an environment already, the agent's own or that of a -javaagent or a debugger? */
bool virtual_price_is_paid(void);
/* How long to wait until a JVM without virtual threads so far is unlikely to start any; 0 = no
 * longer. */
uint64_t virtual_price_wait_ns(void);

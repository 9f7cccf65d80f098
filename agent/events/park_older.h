/*
 * Threads that parked for a lock before ours was the native of Unsafe.park: their ends do not come
 * through us. Those that wait for an owner are entered as waits and looked at again now and then,
 * so that a deadlock older than the session is seen. Only the agent's thread, while parks are on.
 */
#pragma once

#include <stdint.h>

/* A session begins: look for them at the next tick. */
void park_older_begin(void);
/* When to come again; UINT64_MAX = none is left. */
uint64_t park_older_tick(uint64_t now_ns);

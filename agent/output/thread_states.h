/*
 * What threads do, for a reader that asks (WIRE_START_THREADS): every 5 s the states and CPU times
 * of platform threads, as changes, and the virtual threads counted by container, state and what
 * they wait for. Agent's thread only; nothing of it exists while nobody asks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A START came: @wanted = it has WIRE_START_THREADS. All states are sent anew. */
void thread_states_begin(bool wanted);
/* Looks at all threads and sends what has changed, when it is time. */
void thread_states_tick(uint64_t now_ns);
uint64_t thread_states_next_ns(void); /* UINT64_MAX = nobody asks */
/* States that were sent were dropped: all of them are sent again. */
void thread_states_forget(void);
void thread_states_end(void);
uint64_t thread_states_bytes(void);
/* As jni_names_pass() reports it: Thread's own status, in the words of JVMTI. */
void thread_states_java(uint32_t tid, int32_t status);

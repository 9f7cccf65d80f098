/*
 * The states of threads, for a reader that asks for them (WIRE_START_THREADS). Every 5 s it sends
 * the changes of the states and CPU times of platform threads, and the numbers of virtual threads
 * by container, state and the class they wait for. Only the agent's thread; without such a reader
 * it uses no memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A new START; @wanted: it has WIRE_START_THREADS. All states are sent again. */
void thread_states_begin(bool wanted);
/* If it is time, sends the states that have changed. */
void thread_states_tick(uint64_t now_ns);
uint64_t thread_states_next_ns(void); /* UINT64_MAX = no reader asks for states */
/* States were dropped: all of them are sent again. */
void thread_states_forget(void);
void thread_states_end(void);
uint64_t thread_states_bytes(void);
/* For jni_names_pass(): the status field of Thread in JVMTI's bits. */
void thread_states_java(uint32_t tid, uint64_t java_thread, int32_t status);

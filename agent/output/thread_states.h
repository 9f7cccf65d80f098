/*
 * The states of threads, for a reader that asks for them (WIRE_START_THREADS): every 5 s the
 * changes of the states and CPU times of platform threads, and the number of virtual threads by
 * container, state and what they wait for. Only the agent's thread; without such a reader it uses
 * no memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A START came: @wanted = it has WIRE_START_THREADS. All states are sent again. */
void thread_states_begin(bool wanted);
/* Sends what has changed in the states of all threads, when it is due. */
void thread_states_tick(uint64_t now_ns);
uint64_t thread_states_next_ns(void); /* UINT64_MAX = no reader asks for states */
/* States were lost on the way: all of them are sent again. */
void thread_states_forget(void);
void thread_states_end(void);
uint64_t thread_states_bytes(void);
/* For jni_names_pass(): the status field of Thread in JVMTI's bits. */
void thread_states_java(uint32_t tid, int32_t status);

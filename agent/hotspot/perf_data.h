/*
 * The JVM's performance counters (jvmstat), in its own memory: a list of named values that it
 * maintains unless it runs with -XX:-UsePerfData. Their places never change. With
 * -XX:+PerfDisableSharedMem the memory is gone when the JVM ends, so loads are guarded. Agent's
 * thread, after guard_begin_sig().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PERF_DATA_TEXT_MAX 64u

/* The address of a counter that is a number; 0 = this JVM does not have it. */
uint64_t perf_data_number(const char *name);
/* Copies a counter that is a text; false = this JVM does not have it, or it is longer. */
bool perf_data_text(const char *name, char ret[PERF_DATA_TEXT_MAX]);

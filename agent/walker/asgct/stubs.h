/*
 * Names of the code that the JVM generated at its start (interpreter, adapters, intrinsics): asked
 * once, sorted, never changed afterwards. What is generated later has no name.
 */
#pragma once

#include <jvmti.h>
#include <stdint.h>

/* The callback for DynamicCodeGenerated while stubs_load() runs. */
void JNICALL stubs_on_code(jvmtiEnv *jvmti, const char *name, const void *address, jint length);
void stubs_load(jvmtiEnv *jvmti);
uint64_t stubs_bytes(void);
/* A label that lives for ever: "[StubRoutines (1)]"; NULL if @pc is in no named stub. */
const char *stubs_find_sig(uint64_t pc);

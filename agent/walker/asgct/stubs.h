/*
 * Names of the code that the JVM generates when it starts (interpreter, adapters, intrinsics): read
 * once, sorted, constant afterwards. Code that is generated later has no name.
 */
#pragma once

#include <jvmti.h>
#include <stdint.h>

/* The callback of JVMTI's event DynamicCodeGenerated while stubs_load() runs. */
void JNICALL stubs_on_code(jvmtiEnv *jvmti, const char *name, const void *address, jint length);
void stubs_load(jvmtiEnv *jvmti);
uint64_t stubs_bytes(void);
/* A label that is never freed: "[StubRoutines (1)]"; NULL if @pc is in no named stub. */
const char *stubs_find_sig(uint64_t pc);

/*
 * The last safepoint of this JVM, by the JVM's own account: from JDK 17 on it writes down when it
 * called the threads to a stop, when the last of them had stopped and when it let them go, for its
 * log (class SafepointTracing, safepoint.cpp), whether that is on or not. libjvm does not export
 * these variables; its symbol table has them (libjvm_hidden()). Only the last safepoint is there:
 * whoever looks too seldom misses one, and knows that from the number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the JVM has it. end = NULL: not known. */
struct safepoints_at {
	const uint64_t *begin_ns, *reached_ns, *end_ns; /* end: 0 during a safepoint */
	const uint64_t *counter; /* odd during a safepoint */
	const int32_t *operation; /* what it was for: VM_Operation::VMOp_Type */
};
extern struct safepoints_at safepoints_at_sig;

/* Times are CLOCK_MONOTONIC, as os::javaTimeNanos() is on Linux. */
struct safepoint {
	uint64_t begin_ns, reached_ns, end_ns;
	uint64_t number; /* how many there have been, this one included */
	int32_t operation;
};

/* Agent's thread: looks for the variables, once; reads libjvm's file. false = not in this JVM. */
bool safepoints_init(void);
/* Handler: the last safepoint. false = one is in progress, there was none, or it was just changing.
 */
bool safepoints_last_sig(struct safepoint *ret);
/* What it was for, in the JVM's word: "G1CollectForAllocation"; "" = unknown. Agent's thread. */
const char *safepoints_operation(int32_t operation);
/* Does an operation of that name collect garbage? */
bool safepoints_collects(const char *name);

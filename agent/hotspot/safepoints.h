/*
 * The last safepoint, as recorded by the JVM itself. From JDK 17 on the JVM records when it asked
 * the threads to stop, when the last of them had stopped and when they were released (class
 * SafepointTracing, safepoint.cpp); it does so for its log, even if that is off. libjvm does not
 * export these variables, but its symbol table has them (libjvm_hidden()). Only the last safepoint
 * is available; gaps in their numbers show that safepoints were missed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The JVM's variables, in its memory. end_ns = NULL: not known. */
struct safepoints_at {
	const uint64_t *begin_ns, *reached_ns, *end_ns; /* CLOCK_MONOTONIC; end: 0 during a
							 * safepoint */
	const uint64_t *counter; /* odd during a safepoint */
	const int32_t *operation; /* the operation that needed it: VM_Operation::VMOp_Type */
};
extern struct safepoints_at safepoints_at_sig;

/* Times are CLOCK_MONOTONIC, as os::javaTimeNanos() is on Linux. */
struct safepoint {
	uint64_t begin_ns, reached_ns, end_ns;
	uint64_t number; /* number of safepoints so far, including this one */
	int32_t operation;
};

/* Agent's thread: finds the variables; only the first call reads libjvm's file. false = this JVM
 * does not have them. */
bool safepoints_init(void);
/* Handler: the last safepoint. false = one is in progress, there was none, or the variables changed
 * during the read. */
bool safepoints_last_sig(struct safepoint *ret);
/* Agent's thread: the JVM's name of an operation, such as "G1CollectForAllocation"; "" = unknown.
 * Never freed. */
const char *safepoints_operation(int32_t operation);
/* Does an operation of that name collect garbage? */
bool safepoints_collects(const char *name);

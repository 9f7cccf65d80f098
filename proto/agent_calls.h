/*
 * The system calls that our agent makes in addition to those that every JVM makes anyway: a seccomp
 * filter must allow them, or let them fail. The arguments are those that filters check.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct agent_call {
	int nr;
	const char *name;
	uint64_t args[6];
};
extern const struct agent_call agent_calls[];
extern const size_t agent_call_count;

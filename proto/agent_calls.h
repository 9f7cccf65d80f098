/*
 * System calls that our agent makes and that are not part of every JVM's daily life anyway: what a
 * seccomp filter has to let through, or let fail. The arguments are those that filters look at.
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

/* Reads the values of a HotSpot JVM's flags from its memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "injector/inject.h"
#include "proto/jdk_bugs.h"

struct vmflag {
	const char *name;
	size_t size; /* size of the value in bytes: 1 = bool, 8 = a pointer or number */
	bool found;
	uint64_t value; /* in the lowest @size bytes */
};

/*
 * Looks up @n flags by name. Returns 0, with found and value set for those that this JVM has; or
 * -errno if its memory cannot be read or is not that of a HotSpot JVM.
 */
int vmflags_read(struct inject *in, struct vmflag *flags, size_t n);

/* The value of a text flag, cut to @size; "" if it is not set or this JVM does not have it. 0 or
 * -errno. */
int vmflags_text(struct inject *in, const char *name, char *ret, size_t size);

/* The version of the JDK, from the tables of vmtables.h. 0 or -errno. */
int vmflags_version(struct inject *in, struct jdk_version *ret);

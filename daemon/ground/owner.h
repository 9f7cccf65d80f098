/* The environment variable by which the owner of an application refuses kindling. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OWNER_VARIABLE "KINDLING_DISABLE"

/* @environ: "NAME=value" entries, each with a NUL. Any value but "0" and "" refuses. Pure. */
bool owner_says_no(const char *environ, size_t len);
/* The same for a process, anywhere in its environment. @pid_dfd: its directory in /proc. 1 = it
 * refuses, 0 = it does not, or -errno. */
int owner_forbids(int pid_dfd);

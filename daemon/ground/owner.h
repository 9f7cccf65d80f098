/* The setting by which an application's owner refuses kindling, in the environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OWNER_VARIABLE "KINDLING_DISABLE"

/* @environ: "NAME=value" entries, each ended by a NUL. Anything but 0 and nothing at all is a no.
 */
bool owner_says_no(const char *environ, size_t len); /* pure */
/* The same of a process, @pid_dfd is its directory in /proc, however much stands before it there:
 * 1 = it is a no, 0, or -errno. */
int owner_forbids(int pid_dfd);

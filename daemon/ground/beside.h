/* Finds files that are installed together with the running program, relative to its own path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes the real path of <directory of the program>/@relative, if that exists and fits. false =
 * @dst is unchanged. */
bool beside_find(char *dst, size_t size, const char *relative);
/* The same for a program of kindling: in the same directory (a build tree), or in ../bin (kindlingd
 * is installed into sbin). */
bool beside_find_program(char *dst, size_t size, const char *name);

/* Finds the options of a JVM, on its command line and in its environment. Pure. */
#pragma once

#include <stddef.h>

/* One source of options: words between NULs (command line) or spaces and quotes (variables). */
typedef void java_options_fn(void *userdata, const char *list, size_t len);

/*
 * Calls @fn for every source in the order in which a JVM reads them; later options win:
 * JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS (the launcher puts it before the command line), the command
 * line up to the main class, _JAVA_OPTIONS.
 *
 * @cmdline, @environ: NUL-separated as in /proc, and NUL-terminated
 */
void java_options_each(const char *cmdline, size_t cmdline_len, const char *environ,
		       size_t environ_len, java_options_fn *fn, void *userdata);

/* Makes the name of a JVM from its command line. Pure. */
#pragma once

#include <stddef.h>

/*
 * @cmdline: arguments, each ended by a NUL, @len bytes (the last NUL may be missing)
 * @exe: file name of the program, "java" for the launcher
 * @fallback: used if the command line contains no name, e.g. the comm of the process
 *
 * "com.example.Main" for `java -cp x com.example.Main`, "app.jar" for `java -jar /x/app.jar`, the
 * program's own name for a program that brings its own JVM. Always NUL-terminated UTF-8.
 */
void jvm_name(const char *cmdline, size_t len, const char *exe, const char *fallback, char *ret,
	      size_t ret_size);

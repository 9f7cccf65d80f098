/* Recognizes a JVM by the library that it has mapped as code. */
#pragma once

#include <stdbool.h>

struct jvm_library {
	char path[4096]; /* "" = there is none (yet) */
	bool deleted;
	bool j9; /* OpenJ9's library; it wins over libjvm.so, which OpenJ9 has only as a stub */
};
/* Looks at one more line of /proc/PID/maps; a maps_fn, @library is a struct jvm_library. Pure. */
void jvm_library_line(void *library, char *line);
/* Looks at all lines, capped. @pid_dfd: directory of /proc/PID. 0, or -errno (-ESRCH: the process
 * has ended). */
int jvm_library_read(int pid_dfd, struct jvm_library *ret);

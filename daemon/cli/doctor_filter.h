/* For kindling doctor: what a seccomp filter does that the injector could not read. */
#pragma once

#include <sys/types.h>

/* One check of a JVM, as `kindling doctor` prints it. */
struct doctor_check {
	char name[16];
	char verdict[8]; /* ok, no or unknown */
	char finding[1600];
	char change[320]; /* what to do; "" = nothing */
};

/* Completes @check, the injector's with the result "not read", if the filter's configuration can
 * be found. */
void doctor_look_at_filter(pid_t pid, struct doctor_check *check);

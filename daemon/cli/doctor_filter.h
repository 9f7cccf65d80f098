/* For kindling doctor: what a seccomp filter does that the injector could not read. */
#pragma once

#include <cjson/cJSON.h>
#include <sys/types.h>

/* Completes @check, the injector's with the result "not read", if the filter's configuration can
 * be found. */
void doctor_look_at_filter(pid_t pid, cJSON *check);

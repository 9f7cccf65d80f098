/* For kindling doctor: what a seccomp filter that was not read would do. */
#pragma once

#include <cjson/cJSON.h>
#include <sys/types.h>

/* Completes @check, one of the injector's with the result "not read", if the configuration of the
 * filter is known. */
void doctor_look_at_filter(pid_t pid, cJSON *check);

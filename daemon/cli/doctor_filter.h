/* For kindling doctor: what a seccomp filter that was not read would do. */
#pragma once

#include <cjson/cJSON.h>
#include <sys/types.h>

/* Change @check, one of the injector's that says "not read", where the filter's maker tells. */
void doctor_look_at_filter(pid_t pid, cJSON *check);

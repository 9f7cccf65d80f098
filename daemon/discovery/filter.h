/*
 * What a process' seccomp filter does to the system calls of our agent, by the words of whoever
 * made it: nothing is done to the process. All pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum filter_effect {
	FILTER_UNKNOWN,
	FILTER_HARMLESS, /* the calls succeed, or fail with an error */
	FILTER_DEADLY, /* one of them ends the process */
};

/* A container's: linux.seccomp of its OCI config.json. @ret_call: the deadly one. */
enum filter_effect filter_of_bundle(const char *text, size_t len, const char **ret_call);

/* A service's: lines of `systemctl show`, SystemCallFilter= and SystemCallErrorNumber=. */
enum filter_effect filter_of_unit(const char *text, const char **ret_call);
/* The service by the text of /proc/PID/cgroup; false: it is in none. */
bool filter_unit_name(const char *cgroup, char *ret, size_t ret_size);

/*
 * Finds out what the seccomp filter of a process does to the system calls of our agent, from the
 * configuration that the filter was made of; the process itself is not touched. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum filter_effect {
	FILTER_UNKNOWN,
	FILTER_HARMLESS, /* the calls succeed, or fail with an error */
	FILTER_DEADLY, /* one of them kills the process */
};

/* A container's filter: linux.seccomp of its OCI config.json, @text. *ret_call: the system call for
 * which the process would be killed. */
enum filter_effect filter_of_bundle(const char *text, size_t len, const char **ret_call);

/* A service's filter: lines of `systemctl show`, SystemCallFilter= and SystemCallErrorNumber=. */
enum filter_effect filter_of_unit(const char *text, const char **ret_call);
/* The systemd unit from the text of /proc/PID/cgroup; false = the process is in none. */
bool filter_unit_name(const char *cgroup, char *ret, size_t ret_size);

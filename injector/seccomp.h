/* Finds out whether a target's seccomp filters would end it for a system call of the agent. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "injector/inject.h"

/*
 * Runs one filter as the kernel does.
 *
 * @code: the program; untrusted, so every index is checked
 * @len:  instructions in @code
 * @data: the system call
 *
 * Returns the filter's result (action and data); SECCOMP_RET_ALLOW if the kernel would not have
 * accepted the program. Pure.
 */
uint32_t seccomp_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data);

/* Does @action end the process? A trap counts, because without a handler it does. */
bool seccomp_is_deadly(uint32_t action);

/*
 * Reads the filters of @in (of which only proc_dfd is used); this stops one of its threads for some
 * 50 us. The kernel refuses it to a process that has a filter itself.
 *
 * @ret_name: name of the first system call of the agent that would end it, NULL = none; static
 *
 * Returns 0, or -errno if they cannot be read (-EBUSY = no thread sleeps on a futex).
 */
int seccomp_read(const struct inject *in, const char **ret_name);

/*
 * Refuses a target whose filters would kill it for a system call of the agent, whose thread
 * inherits them. If this process has a filter itself, it uses the service of filters.h. Waits a
 * second at most for a thread that sleeps. If the filters cannot be read for another reason (an old
 * kernel, a debugger on the target, no answer), the target passes. Returns 0, -EPERM + fault, or
 * -EAGAIN + fault if no thread sleeps now.
 */
int seccomp_check(struct inject *in);

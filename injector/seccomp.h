/* What a target's seccomp filters would do to the system calls of our agent. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "injector/inject.h"

/*
 * Run one filter as the kernel does.
 *
 * @code: the program; it may be anything, every index is checked
 * @len:  instructions in @code
 * @data: the system call
 *
 * Returns the filter's word (action and data), SECCOMP_RET_ALLOW when the program is not one that
 * the kernel would have taken. Pure.
 */
uint32_t seccomp_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data);

/* Does @action end the process? A trap without a handler does, too. */
bool seccomp_is_deadly(uint32_t action);

/*
 * Read the filters of @in (proc_dfd is enough), which stops one of its threads for some 50 us. A
 * process that has a filter itself is refused by the kernel.
 *
 * @ret_name: the first system call of our agent that would end it, NULL = none; static
 *
 * Returns 0, or -errno: they cannot be read (-EBUSY: no thread sleeps on a futex).
 */
int seccomp_read(const struct inject *in, const char **ret_name);

/*
 * Refuses a target whose filters would kill it at a call that the agent makes: the agent's thread
 * inherits filters. If this process has a filter itself, it asks filters.h. Waits a second at most
 * for a thread that sleeps. If the filters cannot be read (an old kernel, a debugger on the target,
 * no answer) the target passes. Returns 0, -EPERM + fault, or -EAGAIN + fault: no thread sleeps
 * now.
 */
int seccomp_check(struct inject *in);

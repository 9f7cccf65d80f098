/*
 * Has a child ended, and how? Nobody waits for the kernel to release it: a thread does.
 *
 * When a process is waited for, the kernel removes its entries in /proc from its cache, and tries
 * again for as long as somebody else is removing one of them. Whoever looks into the child's
 * directory in /proc and loses its CPU at that moment keeps the caller of wait(2) computing until
 * it has a CPU again; where CPUs are scarce that may take long. The thread that waits here has the
 * lowest priority, so that it does not take the CPU from the one it waits for.
 *
 * To be called from one thread of a process only.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* 1: it has ended, *ret_status is as from wait(2), *ret_cpu_ns is its CPU time (may be NULL); the
 * thread releases it, so this must not be called for it again. 0: it runs. -ECHILD: no such child.
 */
int release_ended(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns);

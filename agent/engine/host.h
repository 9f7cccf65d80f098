/*
 * Signals of the daemon's host engine, and what each weighs.
 *
 * The clocks of a CPU know nothing of threads: a thread is met in proportion to the time that it
 * runs, wherever it is then. So each signal weighs the same: one interval for each tick that it
 * stands for. Ticks get lost, though (a hypervisor takes the CPU, a signal is blocked, chance), and
 * the weights of a thread are to add up to its CPU clock. What is missing, or too much, is made up
 * for in small parts by the samples that follow, over many intervals: no place gets more than
 * another. (The time since the last sample as a weight would be exact, too, and give the time of
 * short runs, which are seldom met, to the long ones after them.)
 *
 * A thread that ends leaves the difference to a pool, and samples of threads that are young take
 * their part of it: so threads that live less than an interval are right in sum.
 */
#pragma once

#include <signal.h>
#include "agent/engine/cpu_timer.h"

/* In the handler. false = not a signal of the host engine's. */
bool host_on_signal_sig(const siginfo_t *info, void *ucontext);
/* The calling thread ends, and @s, its slot as it was, is no longer one. @name: see
 * engine_account_sig(). */
void host_thread_end(const struct slot *s, const char *name);
/* Up to where one thread's clock may run ahead of its samples before it is accounted for as "[no
 * signal]".
 */
uint64_t host_lag_max_ns_sig(void);

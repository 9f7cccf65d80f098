/*
 * The signals of the daemon's host engine, and the weights of their samples.
 *
 * Clock events on each CPU interrupt whatever thread runs there, so a thread is sampled in
 * proportion to its CPU time. Therefore every signal has the same weight: one interval for each
 * tick that it stands for. But ticks get lost (a hypervisor takes the CPU away, a thread blocks the
 * signal, chance), and the weights of a thread must add up to its CPU clock. So each of the
 * following samples makes up for a small part of the difference, over many intervals; no stack then
 * gets much more weight than others. (The time since the last sample would also be an exact weight,
 * but it would give the time of short runs, which are rarely hit, to the long ones after them.)
 *
 * A thread that ends leaves its difference to a pool, from which the samples of young threads take
 * a part. So the sum is right even for threads that live less than an interval.
 */
#pragma once

#include <signal.h>
#include "agent/engine/cpu_timer.h"

/* In the handler. false = the signal does not come from the host engine. */
bool host_on_signal_sig(const siginfo_t *info, void *ucontext);
/* The calling thread ends; @s: a copy of its slot, which has been released. @name: see
 * engine_account_sig(). */
void host_thread_end(const struct slot *s, const char *name);
/* The CPU time, in ns, by which a thread may be ahead of its samples before the excess is accounted
 * for as "[no signal]". */
uint64_t host_lag_max_ns_sig(void);

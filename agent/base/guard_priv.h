/* Shared by guard.c, which installs the hook, and guard_sig.c, which contains it. */
#pragma once

#include <signal.h>
#include <stdint.h>

struct guard {
	uint32_t hooked; /* 1 = faults are caught; 0 = ask the kernel */
	uint32_t epoch; /* counts walks: an answer of the kernel is valid for one walk */
	uint64_t faults;
	struct sigaction segv, bus; /* the handlers that were installed before ours */
};

extern struct guard guard_state_sig;
void guard_hook_sig(int signo, siginfo_t *info, void *ucontext);

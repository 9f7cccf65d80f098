/* Between guard.c, which installs the hook, and guard_sig.c, which is it. */
#pragma once

#include <signal.h>
#include <stdint.h>

struct guard {
	uint32_t hooked; /* 1 = faults are caught; 0 = ask the kernel */
	uint32_t epoch; /* of walks: what the kernel said holds for one */
	uint64_t faults;
	struct sigaction segv, bus; /* what was there before us */
};

extern struct guard guard_state_sig;
void guard_hook_sig(int signo, siginfo_t *info, void *ucontext);

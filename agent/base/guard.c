/* See guard.h. */
#include "agent/base/guard.h"

#include <errno.h>
#include <stddef.h>
#include "agent/base/guard_priv.h"

static bool segv_installed, bus_installed;

static bool guard_is_ours(int signo)
{
	struct sigaction now;

	return sigaction(signo, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == guard_hook_sig;
}

/* Installs the hook, but never twice: if another handler has been installed in front of ours and
 * passes faults on to it, a second hook would pass them back. Mask and flags stay those of the
 * JVM's handler, which ours replaces. */
static int guard_hook(int signo, struct sigaction *previous, bool *installed)
{
	struct sigaction action, old;

	if (*installed)
		return guard_is_ours(signo) ? 0 : -EBUSY;
	if (sigaction(signo, NULL, &old) < 0)
		return -errno;
	*previous = old;
	action = old;
	action.sa_flags |= SA_SIGINFO;
	action.sa_sigaction = guard_hook_sig;
	if (sigaction(signo, &action, NULL) < 0)
		return -errno;
	*installed = true;
	return 0;
}

int guard_init(bool with_hook)
{
	struct guard *g = &guard_state_sig;
	int r;

	if (!with_hook) {
		__atomic_store_n(&g->hooked, 0, __ATOMIC_RELEASE);
		return 0;
	}
	r = guard_hook(SIGSEGV, &g->segv, &segv_installed);
	if (r == 0)
		r = guard_hook(SIGBUS, &g->bus, &bus_installed);
	__atomic_store_n(&g->hooked, r == 0, __ATOMIC_RELEASE);
	return r == -EBUSY ? 0 : r; /* not an error: the kernel is asked instead */
}

/* A runtime loaded later (Go, for example) installs its handler in front of this hook and claims
 * all faults on its threads: while that is so, no load may fault. */
void guard_refresh(void)
{
	bool front =
		segv_installed && bus_installed && guard_is_ours(SIGSEGV) && guard_is_ours(SIGBUS);

	__atomic_store_n(&guard_state_sig.hooked, front, __ATOMIC_RELEASE);
}

static void guard_unhook(int signo, const struct sigaction *previous, bool *installed)
{
	if (*installed && guard_is_ours(signo) && sigaction(signo, previous, NULL) == 0)
		*installed = false;
}

void guard_deinit(bool quiescent)
{
	struct guard *g = &guard_state_sig;

	if (!quiescent)
		return;
	__atomic_store_n(&g->hooked, 0, __ATOMIC_SEQ_CST);
	guard_unhook(SIGBUS, &g->bus, &bus_installed);
	guard_unhook(SIGSEGV, &g->segv, &segv_installed);
}

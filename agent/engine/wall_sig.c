/* Handles a wall-clock signal in the thread it was sent to: see wall.h. Its siginfo distinguishes
 * it from a CPU signal: this process queued it, with a pointer into our table. */
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/arch.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/wall.h"

struct wall wall;

static struct wall_thread *wall_thread_of_sig(const siginfo_t *info)
{
	uintptr_t p = (uintptr_t)info->si_value.sival_ptr;
	uintptr_t base = (uintptr_t)__atomic_load_n(&wall.threads, __ATOMIC_ACQUIRE);

	if (info->si_code != SI_QUEUE || !base || p < base ||
	    p >= base + WALL_THREADS_MAX * sizeof(struct wall_thread) ||
	    (p - base) % sizeof(struct wall_thread))
		return NULL;
	return (struct wall_thread *)p;
}

static void wall_sample_sig(struct wall_thread *t, void *ucontext)
{
	struct ring_sample head = {
		.event = WIRE_EVENT_WALL,
		.weight = t->weight_ns,
		.tid = t->tid,
		.slot = (uint32_t)(t - wall.threads) + 1,
	};

	engine_sample_sig(&head, NULL, ucontext);
}

bool wall_on_signal_sig(const siginfo_t *info, void *ucontext)
{
	struct wall_thread *t = wall_thread_of_sig(info);
	uint32_t sent = WALL_SENT;
	struct regs regs;

	if (!t)
		return false;
	/* a withdrawn signal, or one for an earlier thread with this tid, finds another state */
	if (!__atomic_load_n(&wall.on, __ATOMIC_ACQUIRE) ||
	    t->tid != (uint32_t)syscall(SYS_gettid) ||
	    !__atomic_compare_exchange_n(&t->state, &sent, WALL_IN_HANDLER, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return true;
	regs = regs_get(ucontext);
	t->pc = regs.pc;
	t->sp = regs.sp;
#if defined(__x86_64__) /* on arm64 that register holds the call's result by now */
	t->argument = (uint64_t)((const ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RDI];
#endif
	wall_sample_sig(t, ucontext);
	__atomic_store_n(&t->state, WALL_IDLE, __ATOMIC_RELEASE);
	return true;
}

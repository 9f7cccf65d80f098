/*
 * The signal handler: count, walk, push. Keeps errno, takes no lock, allocates nothing. Exactly one
 * of pushed and drop[cause] is added to for every sample counted in taken.
 */
#include "agent/engine/cpu_timer.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/agent.h"

#define HANDLER_NS_MAX NS_PER_MS /* more than this was preemption, not our work */

struct engine engine;
struct scratch scratch[SCRATCH_BUFFERS];

static struct scratch *scratch_claim_sig(void)
{
	for (int i = 0; i < SCRATCH_BUFFERS; i++) {
		uint32_t idle = 0;

		if (__atomic_compare_exchange_n(&scratch[i].busy, &idle, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return &scratch[i];
	}
	return NULL;
}

static uint64_t mono_ns_sig(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void add_sig(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_SEQ_CST);
}

static void drop_sig(enum wire_drop cause, uint64_t weight_ns)
{
	add_sig(&agent.books.drop_ns[cause], weight_ns);
	add_sig(&agent.books.drop[cause], 1);
}

static void wake_writer_sig(void)
{
	uint64_t one = 1;

	if (__atomic_exchange_n(&agent.writer_idle, 0, __ATOMIC_SEQ_CST) == 0)
		return;
	if (write(agent.wake_fd, &one, sizeof(one)) < 0)
		return; /* it also wakes by itself once a second */
}

/* Is the signal one of our timers', for the thread it interrupts? */
static struct slot *slot_of_sig(const siginfo_t *info)
{
	uintptr_t p = (uintptr_t)info->si_value.sival_ptr;
	uintptr_t base = (uintptr_t)__atomic_load_n(&engine.slots, __ATOMIC_ACQUIRE);

	if (info->si_code != SI_TIMER || !base || p < base ||
	    p >= base + SLOTS_MAX * sizeof(struct slot) || (p - base) % sizeof(struct slot))
		return NULL;
	return (struct slot *)p;
}

static void forward_sig(int signo, siginfo_t *info, void *ucontext)
{
	if (engine.previous.sa_flags & SA_SIGINFO) {
		if (engine.previous.sa_sigaction)
			engine.previous.sa_sigaction(signo, info, ucontext);
	} else if (engine.previous.sa_handler != SIG_DFL && engine.previous.sa_handler != SIG_IGN) {
		engine.previous.sa_handler(signo);
	}
	/* SIG_DFL would end the process: a late signal of ours, or a stranger's, is swallowed */
}

/* A thread says its own name: when the writer comes round it may be gone. */
static void name_sig(struct slot *slot, char *name)
{
	name[0] = '\0';
	if (!slot->named)
		syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
	slot->named = 1;
}

static void push_sig(struct slot *slot, uint64_t now_ns, uint64_t weight_ns, void *ucontext)
{
	struct scratch *s = scratch_claim_sig();
	struct ring_sample head = {
		.mono_ns = now_ns,
		.weight_ns = weight_ns,
		.tid = slot->tid,
	};
	struct walk walk;

	if (!s) {
		drop_sig(WIRE_DROP_NO_SCRATCH, weight_ns);
		return;
	}
	walk.frames = s->frames;
	walk_sig(&walk, ucontext);
	head.n_frames = walk.n;
	head.broken = walk.broken;
	head.virtual_id = walk.virtual_id;
	if (walk.virtual_id)
		__builtin_memcpy(head.name, walk.virtual_name, sizeof(head.name));
	else
		name_sig(slot, head.name);
	if (walk.broken)
		add_sig(&agent.books.broken, 1);
	if (ring_push_sig(&agent.ring, &head, walk.frames)) {
		add_sig(&agent.books.pushed_ns, weight_ns);
		add_sig(&agent.books.pushed, 1);
		wake_writer_sig();
	} else {
		drop_sig(WIRE_DROP_RING_FULL, weight_ns);
	}
	__atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
}

static void sample_sig(struct slot *slot, const siginfo_t *info, void *ucontext)
{
	uint64_t begin_ns, took_ns, weight_ns;

	if (!__atomic_load_n(&engine.running, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_TIMED ||
	    slot->tid != (uint32_t)syscall(SYS_gettid))
		return;
	weight_ns =
		(1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0)) * slot->interval_ns;
	add_sig(&agent.books.taken_ns, weight_ns);
	add_sig(&agent.books.taken, 1);
	slot->booked_ns += weight_ns;
	if (slot->in_handler) {
		drop_sig(WIRE_DROP_NESTED, weight_ns);
		return;
	}
	slot->in_handler = 1;
	begin_ns = mono_ns_sig();
	push_sig(slot, begin_ns, weight_ns, ucontext);
	took_ns = mono_ns_sig() - begin_ns;
	add_sig(&agent.books.handler_ns, took_ns < HANDLER_NS_MAX ? took_ns : HANDLER_NS_MAX);
	slot->in_handler = 0;
}

void engine_handler_sig(int signo, siginfo_t *info, void *ucontext)
{
	int saved_errno = errno;
	struct slot *slot;

	__atomic_fetch_add(&engine.inside, 1, __ATOMIC_SEQ_CST);
	slot = slot_of_sig(info);
	if (slot)
		sample_sig(slot, info, ucontext);
	__atomic_fetch_sub(&engine.inside, 1, __ATOMIC_SEQ_CST);
	if (!slot) /* another's handler may never return: we are not inside any more */
		forward_sig(signo, info, ucontext);
	errno = saved_errno;
}

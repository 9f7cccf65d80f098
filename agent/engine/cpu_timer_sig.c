/*
 * The signal handler: count, walk, push. Keeps errno, takes no lock, allocates nothing.
 */
#include "agent/engine/cpu_timer.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/base/producer.h"
#include "agent/engine/handler_cost.h"
#include "agent/engine/host.h"
#include "agent/engine/pauses.h"
#include "agent/engine/slots.h"
#include "agent/engine/wall.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/thread_status.h"
#include "agent/trace/trace.h"

struct engine engine;
struct handler_cost handler_cost;
struct scratch scratch[SCRATCH_BUFFERS];

/* Tids are given out in sequence, so a few pages of the table serve most JVMs. A larger part is
 * touched only when there is no room in the part before it. No two parts have a slot in common, so
 * threads with full neighbourhoods in one have others in the next, whatever their numbers. */
struct slot *slot_probe_sig(uint32_t tid, uint32_t i)
{
	uint32_t size = SLOTS_FIRST << (i / SLOT_PROBES_EACH);

	/* the parts before it have as many slots as it has, less those of the first */
	return &engine.slots[size - SLOTS_FIRST + ((tid + i % SLOT_PROBES_EACH) & (size - 1))];
}

struct slot *slot_find_sig(uint32_t tid)
{
	for (uint32_t i = 0; engine.slots && i < SLOT_PROBES; i++) {
		struct slot *s = slot_probe_sig(tid, i);

		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) >= SLOT_TIMED && s->tid == tid)
			return s;
	}
	return NULL;
}

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

static uint64_t clock_ns_sig(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t mono_ns_sig(void)
{
	return clock_ns_sig(CLOCK_MONOTONIC);
}

static void counters_add_sig(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_SEQ_CST);
}

void engine_account_sig(uint32_t tid, const char *name, uint64_t weight_ns, const char *label)
{
	struct walk_frame frame = {
		.where = (uint64_t)(uintptr_t)label,
		.bci = -1,
		.kind = WIRE_KIND_SYNTHETIC,
	};
	struct ring_sample head = {
		.mono_ns = mono_ns_sig(),
		.weight = weight_ns,
		.tid = tid,
		.n_frames = 1,
	};

	if (name)
		memcpy(head.name, name, COMM_BYTES);
	producer_take_sig(&head);
	(void)producer_put_sig(&head, &frame);
}

/* The slot of a signal from one of our timers; NULL for other signals. */
static struct slot *slot_of_sig(const siginfo_t *info)
{
	uintptr_t p = (uintptr_t)info->si_value.sival_ptr;
	uintptr_t base = (uintptr_t)__atomic_load_n(&engine.slots, __ATOMIC_ACQUIRE);

	if (info->si_code != SI_TIMER || !base || p < base ||
	    p >= base + SLOTS_MAX * sizeof(struct slot) || (p - base) % sizeof(struct slot))
		return NULL;
	return (struct slot *)p;
}

static void cpu_timer_forward_sig(int signo, siginfo_t *info, void *ucontext)
{
	const struct sigaction *to =
		signo == engine.off_signo ? &engine.off_previous : &engine.previous;

	if (to->sa_flags & SA_SIGINFO) {
		if (to->sa_sigaction)
			to->sa_sigaction(signo, info, ucontext);
	} else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN) {
		to->sa_handler(signo);
	}
	/* SIG_DFL would end the process, so a late signal of ours, or a signal of another program,
	 * is ignored */
}

/* The thread reads its own name now: it may have ended when the writer reads the sample. A thread
 * that starts has the name of the one that made it, and may wait with it, until HotSpot gives it its
 * own: a Java thread has its own before its first Java frame, of others some samples carry it. */
static void slot_name_sig(struct slot *slot, const struct walk *w, char *name)
{
	name[0] = '\0';
	if (slot->name_reads >= NAME_READS_MAX)
		return;
	syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
	slot->name_reads++;
	if (w->n && wire_kind_is_method(w->frames[w->n - 1].kind))
		slot->name_reads = NAME_READS_MAX;
}

/* The kernel's name has 15 bytes. The full one goes before the sample. */
static void slot_full_name_sig(struct slot *slot)
{
	uint32_t generation = __atomic_load_n(&thread_name_generation_sig, __ATOMIC_ACQUIRE);

	if (slot->full_name_done == generation)
		return;
	if (!thread_name_here_sig(slot->tid) && ++slot->full_name_tries < NAME_READS_MAX)
		return;
	slot->full_name_done = generation;
	slot->full_name_tries = 0;
}

/* Pushes a second sample of the same stack, thread and moment as @head. */
static void engine_push_second_sig(struct ring_sample *also, const struct ring_sample *head,
				   const struct walk_frame *frames)
{
	struct ring_sample copy = *head;

	copy.event = also->event;
	copy.weight = also->weight;
	copy.status = also->status;
	copy.name[0] = head->virtual_id ? copy.name[0] : '\0'; /* the other sample carries it */
	(void)producer_put_sig(&copy, frames);
}

static void engine_push_sig(struct ring_sample *head, struct ring_sample *also, struct slot *slot,
			    void *ucontext)
{
	bool is_new = slot && !slot->name_reads; /* the writer should resolve its name before it ends */
	struct scratch *s = scratch_claim_sig();
	char context[RING_CONTEXT_BYTES];
	struct walk walk;

	if (!s) {
		producer_drop_sig(head, WIRE_DROP_NO_SCRATCH);
		if (also)
			producer_drop_sig(also, WIRE_DROP_NO_SCRATCH);
		return;
	}
	walk.frames = s->frames;
	walk_sig(&walk, ucontext);
	head->n_frames = walk.n;
	head->broken = walk.broken;
	head->virtual_id = walk.virtual_id;
	if (walk.virtual_id)
		__builtin_memcpy(head->name, walk.virtual_name, sizeof(head->name));
	else if (slot)
		slot_name_sig(slot, &walk, head->name);
	if (guard_begin_sig(&((ucontext_t *)ucontext)->uc_sigmask)) {
		if (slot && !walk.virtual_id)
			slot_full_name_sig(slot);
		trace_into_sig(0, head, context);
	}
	if (head->event == WIRE_EVENT_OFFCPU)
		head->status = thread_status_sig(head->mono_ns - head->weight, head->mono_ns);
	if (walk.broken && (also || head->event == WIRE_EVENT_CPU))
		counters_add_sig(&agent.counters.broken, 1);
	if (producer_put_sig(head, walk.frames))
		producer_wake_sig(is_new);
	if (also)
		engine_push_second_sig(also, head, walk.frames);
	__atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
}

void handler_took_sig(uint64_t ns)
{
	uint32_t i = __atomic_fetch_add(&handler_cost.n, 1, __ATOMIC_ACQ_REL);

	__atomic_store_n(&handler_cost.took_ns[i & (HANDLER_RECENT - 1)],
			 ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX, __ATOMIC_RELAXED);
	counters_add_sig(&agent.counters.handler_time[wire_time_bucket(ns)], 1);
}

void engine_sample_both_sig(struct ring_sample *head, struct ring_sample *also, struct slot *slot,
			    void *ucontext)
{
	uint64_t n = __atomic_fetch_add(&agent.counters.handled, 1, __ATOMIC_RELAXED);
	bool timed = handler_is_timed_sig(n);
	uint64_t begin_ns = timed ? clock_ns_sig(CLOCK_THREAD_CPUTIME_ID) : 0;

	pauses_check_sig();
	producer_take_sig(head);
	if (also)
		producer_take_sig(also);
	head->mono_ns = mono_ns_sig();
	engine_push_sig(head, also, slot, ucontext);
	if (timed)
		handler_took_sig(clock_ns_sig(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}

void engine_sample_sig(struct ring_sample *head, struct slot *slot, void *ucontext)
{
	engine_sample_both_sig(head, NULL, slot, ucontext);
}

static void slot_drop_sig(const struct ring_sample *head)
{
	producer_take_sig(head);
	producer_drop_sig(head, WIRE_DROP_NESTED);
}

void slot_sample_sig(struct slot *slot, uint64_t weight_ns, uint64_t off_ns, void *ucontext)
{
	struct ring_sample cpu = { .weight = weight_ns, .tid = slot->tid };
	struct ring_sample off = {
		.event = WIRE_EVENT_OFFCPU,
		.weight = off_ns,
		.tid = slot->tid,
	};
	struct ring_sample *head = off_ns ? &off : &cpu;
	struct ring_sample *also = off_ns && weight_ns ? &cpu : NULL;

	slot->accounted_ns += weight_ns;
	if (slot->in_handler) {
		slot_drop_sig(head);
		if (also)
			slot_drop_sig(also);
		return;
	}
	slot->in_handler = 1;
	engine_sample_both_sig(head, also, slot, ucontext);
	slot->in_handler = 0;
}

static bool is_running_sig(void)
{
	return __atomic_load_n(&engine.running, __ATOMIC_ACQUIRE);
}

static void on_timer_sig(struct slot *slot, const siginfo_t *info, void *ucontext)
{
	uint64_t overruns = info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0;

	if (is_running_sig() && __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SLOT_TIMED &&
	    slot->tid == (uint32_t)syscall(SYS_gettid))
		slot_sample_sig(slot, (1 + overruns) * slot->interval_ns, 0, ucontext);
}

void engine_handler_sig(int signo, siginfo_t *info, void *ucontext)
{
	int saved_errno = errno;
	struct slot *slot;
	bool ours;

	__atomic_fetch_add(&engine.inside, 1, __ATOMIC_SEQ_CST);
	slot = slot_of_sig(info);
	ours = slot != NULL;
	if (slot)
		on_timer_sig(slot, info, ucontext);
	else
		ours = host_on_signal_sig(info, ucontext) || wall_on_signal_sig(info, ucontext);
	__atomic_fetch_sub(&engine.inside, 1, __ATOMIC_SEQ_CST);
	if (!ours) /* not counted as inside: another program's handler may never return */
		cpu_timer_forward_sig(signo, info, ucontext);
	errno = saved_errno;
}

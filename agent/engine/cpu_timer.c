/* See cpu_timer.h. Timers are made by raw system calls, because glibc's unversioned timer_create
 * has an old ABI. */
#include "agent/engine/cpu_timer.h"
#include "agent/engine/old_copy.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/engine/host.h"
#include "agent/engine/slots.h"

#define PAGE_BYTES 4096u

static uint64_t phase; /* phase of the last thread's first expiry, in 1/2^64 of an interval */

/* A number below @n. Successive numbers are spread evenly (golden-section steps), so that of
 * threads shorter than the interval the right share gets a sample; random numbers would miss that
 * by the square root of the number of threads. */
static uint64_t phase_spread_below(uint64_t n)
{
	uint64_t x = __atomic_add_fetch(&phase, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);

	return (x >> 40) * n >> 24;
}

/* ---- slots ------------------------------------------------------------------------------ */

static void slots_raise_end(const struct slot *s)
{
	uint32_t end = __atomic_load_n(&engine.slots_end, __ATOMIC_RELAXED);
	uint32_t next = (uint32_t)(s - engine.slots) + 1;

	while (end < next && !__atomic_compare_exchange_n(&engine.slots_end, &end, next, true,
							  __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

uint32_t slots_end(void)
{
	return engine.slots ? __atomic_load_n(&engine.slots_end, __ATOMIC_SEQ_CST) : 0;
}

struct slot *slot_claim(uint32_t tid)
{
	for (uint32_t i = 0; i < SLOT_PROBES; i++) {
		struct slot *s = slot_probe_sig(tid, i);
		uint32_t free_state = SLOT_FREE;

		if (__atomic_compare_exchange_n(&s->state, &free_state, SLOT_CLAIMED, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			slots_raise_end(s);
			s->tid = tid;
			s->in_handler = 0;
			s->accounted_ns = 0;
			s->missing_ns = 0;
			s->name_reads = s->full_name_tries = s->full_name_done = 0;
			s->timer_id = -1;
			s->scan = engine.scan;
			return s;
		}
	}
	return NULL;
}

/* ---- timers ----------------------------------------------------------------------------- */

static int timer_new(struct slot *s)
{
	clockid_t clock = (clockid_t)(~s->tid << 3 | 6); /* CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED */
	struct sigevent ev;
	int id;

	memset(&ev, 0, sizeof(ev));
	ev.sigev_signo = engine.signo;
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_value.sival_ptr = s;
#ifdef sigev_notify_thread_id
	ev.sigev_notify_thread_id = (int)s->tid;
#else
	ev._sigev_un._tid = (int)s->tid;
#endif
	if (syscall(SYS_timer_create, clock, &ev, &id) < 0)
		return -errno;
	s->timer_id = id;
	return 0;
}

/* @used_ns: the thread's CPU time that needs no accounting. */
static void timer_arm(struct slot *s, uint64_t used_ns)
{
	struct itimerspec spec;
	uint64_t now = thread_cpu_ns(s->tid), since_ns, wait_ns;

	/* a new thread has used some CPU time already: that is part of its first interval */
	since_ns = now != UINT64_MAX && now > used_ns ? now - used_ns : 0;
	s->interval_ns = engine.interval_ns;
	/* spread uniformly over one interval: then the expected number of expiries is CPU time /
	 * interval exactly, however short the thread lives */
	s->first_ns = 1 + phase_spread_below(s->interval_ns);
	s->armed_cpu_ns = used_ns == UINT64_MAX ? 0 : used_ns;
	s->accounted_ns = 0;
	wait_ns = s->first_ns > since_ns ? s->first_ns - since_ns : 1;
	spec.it_value.tv_sec = (time_t)(wait_ns / NS_PER_S);
	spec.it_value.tv_nsec = (long)(wait_ns % NS_PER_S);
	spec.it_interval.tv_sec = (time_t)(s->interval_ns / NS_PER_S);
	spec.it_interval.tv_nsec = (long)(s->interval_ns % NS_PER_S);
	syscall(SYS_timer_settime, s->timer_id, 0, &spec, NULL);
}

int slot_arm(struct slot *s, uint64_t used_ns)
{
	int r = -EAGAIN;

	s->timer_id = -1;
	if (engine.host) {
		__atomic_store_n(&s->seen_cpu_ns, used_ns, __ATOMIC_RELAXED);
		__atomic_store_n(&s->state, SLOT_HOST, __ATOMIC_RELEASE);
		return 0;
	}
	if (__atomic_add_fetch(&engine.timers, 1, __ATOMIC_RELAXED) <= engine.timers_max)
		r = timer_new(s);
	if (r < 0) {
		__atomic_store_n(&engine.timer_error, r, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&engine.timers, 1, __ATOMIC_RELAXED);
		s->armed_cpu_ns = used_ns;
		__atomic_store_n(&s->state, SLOT_UNTIMED, __ATOMIC_RELEASE);
		return r;
	}
	s->interval_ns = engine.interval_ns;
	/* before it is armed, as the first expiry may be due at once */
	__atomic_store_n(&s->state, SLOT_TIMED, __ATOMIC_RELEASE);
	timer_arm(s, used_ns);
	return 0;
}

void slot_release(struct slot *s)
{
	if (s->timer_id >= 0) {
		syscall(SYS_timer_delete, s->timer_id);
		__atomic_sub_fetch(&engine.timers, 1, __ATOMIC_RELAXED);
	}
	s->timer_id = -1;
	__atomic_store_n(&s->state, SLOT_FREE, __ATOMIC_RELEASE);
}

bool slot_take(struct slot *s)
{
	uint32_t state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

	return state >= SLOT_TIMED &&
	       __atomic_compare_exchange_n(&s->state, &state, SLOT_CLAIMED, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* ---- in the thread itself --------------------------------------------------------------- */

/* engine_stop() waits for threads between cpu_timer_enter() and cpu_timer_leave(), so that the
 * memory they use is not freed. */
static bool cpu_timer_enter(void)
{
	__atomic_fetch_add(&engine.inside, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&engine.running, __ATOMIC_SEQ_CST);
}

static void cpu_timer_leave(void)
{
	__atomic_fetch_sub(&engine.inside, 1, __ATOMIC_SEQ_CST);
}

void engine_thread_begin(void)
{
	struct slot *s;

	if (cpu_timer_enter()) {
		/* a scan has found this thread already, or an earlier thread with this tid ended
		 * unseen */
		s = slot_find_sig(thread_id());
		if (s && slot_take(s))
			slot_release(s);
		s = slot_claim(thread_id());
		if (s)
			(void)slot_arm(s, 0); /* all of its CPU time is to be accounted for */
	}
	cpu_timer_leave();
}

/* The CPU time of an ending thread that no signal has covered. */
static uint64_t slot_uncovered_ns(const struct slot *s, uint32_t state)
{
	uint64_t used = thread_cpu_ns(0), due_ns;

	used -= s->armed_cpu_ns;
	if (state == SLOT_UNTIMED)
		return used;
	if (used < s->first_ns)
		return 0;
	due_ns = ((used - s->first_ns) / s->interval_ns + 1) * s->interval_ns;
	return due_ns > s->accounted_ns ? due_ns - s->accounted_ns : 0;
}

static void engine_account_uncovered(const struct slot *s, uint32_t state)
{
	char name[COMM_BYTES] = "";
	uint64_t rest_ns;

	syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
	if (state == SLOT_HOST) {
		host_thread_end(s, name);
		return;
	}
	rest_ns = slot_uncovered_ns(s, state);
	if (!rest_ns)
		return;
	if (state == SLOT_UNTIMED) {
		engine_account_sig(s->tid, name, rest_ns, "[no timer]");
		return;
	}
	__atomic_fetch_add(&agent.counters.exited, 1, __ATOMIC_RELAXED);
	engine_account_sig(s->tid, name, rest_ns, ENGINE_EXITED);
}

/* All CPU time of the ending thread is accounted for. Without this entry a scan that still sees the
 * thread would account for it again. */
static void ended_add(void)
{
	uint32_t i = __atomic_fetch_add(&engine.ended_next, 1, __ATOMIC_RELAXED) & (ENDED_MAX - 1);
	struct ended *e = &engine.ended[i];

	__atomic_store_n(&e->tid, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->mono_ns, mono_ns(), __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->cpu_ns, thread_cpu_ns(0), __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->tid, thread_id(), __ATOMIC_SEQ_CST);
}

void engine_thread_end(void)
{
	struct slot *s, last;
	uint32_t state;

	if (cpu_timer_enter()) {
		ended_add();
		s = slot_find_sig(thread_id());
		state = s ? s->state : SLOT_FREE;
		if (s && slot_take(s)) {
			last = *s;
			slot_release(s);
			engine_account_uncovered(&last, state);
		}
	}
	cpu_timer_leave();
}

/* ---- start and stop --------------------------------------------------------------------- */

static bool handler_is_ours(int signo)
{
	struct sigaction now;

	return sigaction(signo, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == engine_handler_sig;
}

bool engine_has_signal(void)
{
	return handler_is_ours(engine.signo);
}

/* Signals for which a JVM without a profiler has no handler. */
static const int candidates[] = { SIGPROF, SIGVTALRM, SIGSTKFLT, SIGPWR };
#define N_CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

/* @ret_now: what engine_restore_signal() has to put back. */
static bool cpu_timer_is_free(int signo, struct sigaction *ret_now)
{
	if (sigaction(signo, NULL, ret_now) < 0)
		return false;
	if (!old_copy_has_ended(ret_now))
		return !(ret_now->sa_flags & SA_SIGINFO) && ret_now->sa_handler == SIG_DFL;
	*ret_now = (struct sigaction){ .sa_handler = SIG_DFL };
	return true;
}

bool engine_is_alone(void)
{
	struct sigaction now;

	for (size_t i = 0; i < N_CANDIDATES; i++)
		if (!handler_is_ours(candidates[i]) && !cpu_timer_is_free(candidates[i], &now) &&
		    now.sa_handler != SIG_IGN)
			return false;
	return true;
}

/* Two signals that come at once have their handlers one after the other: a handler that is
 * interrupted at its first instruction would be in the other's stack. */
static int cpu_timer_set_handler(int signo)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = engine_handler_sig;
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	if (engine.signo)
		sigaddset(&action.sa_mask, engine.signo);
	if (engine.off_signo)
		sigaddset(&action.sa_mask, engine.off_signo);
	return sigaction(signo, &action, NULL) < 0 ? -errno : 0;
}

/* Takes SIGPROF if it is free and not reserved, else the next signal that is free. */
static int cpu_timer_take_signal(int *ret_signo, struct sigaction *ret_previous)
{
	struct sigaction old;

	for (size_t i = 0; i < N_CANDIDATES; i++) {
		if (candidates[i] == SIGPROF && engine.spare_sigprof)
			continue;
		if (!cpu_timer_is_free(candidates[i], &old))
			continue;
		*ret_previous = old;
		*ret_signo = candidates[i];
		return cpu_timer_set_handler(candidates[i]);
	}
	return -EBUSY;
}

static int install_handler(void)
{
	if (engine.signo && engine_has_signal())
		return 0;
	return cpu_timer_take_signal(&engine.signo, &engine.previous);
}

void engine_own_signal(bool wanted)
{
	if (!wanted || (engine.off_signo && handler_is_ours(engine.off_signo)))
		return;
	engine.off_signo = 0;
	if (cpu_timer_take_signal(&engine.off_signo, &engine.off_previous) < 0)
		engine.off_signo = 0;
	else if (engine_has_signal())
		(void)cpu_timer_set_handler(engine.signo);
}

/* A signal of ours may be pending in a thread that blocks it, and SIG_DFL would then end the
 * process. Ignoring the signal first discards pending ones, sigaction(2). */
static void cpu_timer_restore(int *signo, const struct sigaction *previous)
{
	struct sigaction ignore;

	if (!*signo || !handler_is_ours(*signo))
		return;
	memset(&ignore, 0, sizeof(ignore));
	ignore.sa_handler = SIG_IGN;
	if (sigaction(*signo, &ignore, NULL) == 0 && sigaction(*signo, previous, NULL) == 0)
		*signo = 0;
}

/* The kernel may still delay a signal of the host engine; then our handlers stay. */
void engine_restore_signal(void)
{
	if (engine.host_ever)
		return;
	cpu_timer_restore(&engine.signo, &engine.previous);
	cpu_timer_restore(&engine.off_signo, &engine.off_previous);
}

static int cpu_timer_allocate(void)
{
	size_t bytes = WALK_FRAMES_MAX * sizeof(struct walk_frame);
	uint8_t *frames;
	void *slots;

	if (engine.slots)
		return 0;
	slots = mmap(NULL, SLOTS_MAX * sizeof(struct slot), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED)
		return -ENOMEM;
	frames = mmap(NULL, SCRATCH_BUFFERS * bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (frames == MAP_FAILED) {
		munmap(slots, SLOTS_MAX * sizeof(struct slot));
		return -ENOMEM;
	}
	for (int i = 0; i < SCRATCH_BUFFERS; i++)
		scratch[i].frames = (struct walk_frame *)(frames + (size_t)i * bytes);
	engine.slots_end = 0;
	__atomic_store_n(&engine.slots, slots, __ATOMIC_RELEASE);
	return 0;
}

void engine_free(void)
{
	struct slot *slots = engine.slots;

	if (!slots)
		return;
	/* a signal that is still pending finds no slot and is not taken for ours */
	__atomic_store_n(&engine.slots, NULL, __ATOMIC_SEQ_CST);
	munmap(slots, SLOTS_MAX * sizeof(struct slot));
	munmap(scratch[0].frames, SCRATCH_BUFFERS * WALK_FRAMES_MAX * sizeof(struct walk_frame));
	for (int i = 0; i < SCRATCH_BUFFERS; i++)
		scratch[i].frames = NULL;
}

uint64_t engine_bytes(void)
{
	const uint32_t in_page = PAGE_BYTES / sizeof(struct slot);
	uint64_t bytes = SCRATCH_BUFFERS * WALK_FRAMES_MAX * sizeof(struct walk_frame);

	if (!engine.slots)
		return 0;
	/* counts the pages in which a slot has ever been used */
	for (uint32_t i = 0; i < slots_end(); i += in_page)
		for (uint32_t k = i; k < i + in_page && k < SLOTS_MAX; k++)
			if (engine.slots[k].tid) {
				bytes += PAGE_BYTES;
				break;
			}
	return bytes;
}

static const char *why_no_timer(int r)
{
	switch (r) {
	case -ENOSYS:
		return "this kernel (or what emulates it) has no timer_create";
	case -EPERM:
	case -EACCES:
		return "timer_create is refused, probably by a seccomp filter";
	case -EAGAIN:
		return "the limit RLIMIT_SIGPENDING of the JVM's user leaves no room for timers";
	default:
		return "timer_create was refused for every thread";
	}
}

int engine_hold_signal(const char **why)
{
	int r = cpu_timer_allocate();

	if (r < 0) {
		*why = "no memory for the table of threads";
		return r;
	}
	r = install_handler();
	if (r < 0)
		*why = "the application or its libraries handle SIGPROF, SIGVTALRM, SIGSTKFLT and SIGPWR, so that no signal is free";
	return r;
}

int engine_start(uint64_t interval_ns, bool host, const char **why)
{
	int r = engine_hold_signal(why);

	if (r < 0)
		return r;
	/* each session begins at another phase */
	phase = mono_ns() * 0x9e3779b97f4a7c15ull;
	engine.host = host;
	engine.host_ever |= host;
	engine.pool_ns = 0;
	engine.handler = (uint64_t)(uintptr_t)engine_handler_sig;
	engine.interval_ns = interval_ns;
	engine.agent_tid = thread_id();
	engine.timer_error = -EAGAIN;
	scan_begin();
	__atomic_store_n(&engine.running, 1, __ATOMIC_SEQ_CST);
	thread_start_hook();
	scan_first();
	if (!host && engine.timers == 0) {
		r = engine.timer_error;
		(void)engine_stop();
		*why = why_no_timer(r);
		return r;
	}
	return 0;
}

bool engine_stop(void)
{
	struct timespec pause = { 0, 100000 };

	__atomic_store_n(&engine.running, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < slots_end(); i++)
		if (slot_take(&engine.slots[i]))
			slot_release(&engine.slots[i]);
	for (int i = 0; i < 5000; i++) {
		if (__atomic_load_n(&engine.inside, __ATOMIC_SEQ_CST) == 0)
			break;
		nanosleep(&pause, NULL);
	}
	/* threads that were just starting may have got a timer meanwhile */
	for (uint32_t i = 0; i < slots_end(); i++)
		if (slot_take(&engine.slots[i]))
			slot_release(&engine.slots[i]);
	return __atomic_load_n(&engine.inside, __ATOMIC_SEQ_CST) == 0;
}

void engine_set_interval(uint64_t interval_ns)
{
	engine.interval_ns = interval_ns;
	for (uint32_t i = 0; i < slots_end(); i++) {
		struct slot *s = &engine.slots[i];

		/* the slot is claimed while its timer is rearmed, so that the thread's end cannot
		 * release it; one tick of the thread may be ignored meanwhile */
		if (s->state == SLOT_TIMED && slot_take(s)) {
			timer_arm(s, thread_cpu_ns(s->tid));
			__atomic_store_n(&s->state, SLOT_TIMED, __ATOMIC_RELEASE);
		}
	}
}

uint32_t engine_threads(void)
{
	return (uint32_t)(engine.host ? engine.hosted : engine.timers);
}

/* See cpu_timer.h. Timers by raw syscalls: the unversioned timer_create of glibc is an old ABI. */
#include "agent/engine/cpu_timer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/agent.h"

#define PROBE_MAX 64u /* slots a tid may lie in */

struct engine engine;

static uint64_t random_state;

/* xorshift: spreads the first expiries, nothing more; races between threads do no harm */
static uint64_t random_below(uint64_t n)
{
	uint64_t x = __atomic_load_n(&random_state, __ATOMIC_RELAXED);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	x += thread_id();
	__atomic_store_n(&random_state, x, __ATOMIC_RELAXED);
	return (x * 0x9e3779b97f4a7c15ull >> 11) % n;
}

/* ---- slots ------------------------------------------------------------------------------ */

static uint32_t first_probe(uint32_t tid)
{
	return (tid * 2654435761u) >> 18; /* 14 bits, SLOTS_MAX */
}

struct slot *slot_find(uint32_t tid)
{
	uint32_t first = first_probe(tid);

	for (uint32_t i = 0; i < PROBE_MAX; i++) {
		struct slot *s = &engine.slots[(first + i) & (SLOTS_MAX - 1)];

		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) >= SLOT_TIMED && s->tid == tid)
			return s;
	}
	return NULL;
}

static struct slot *slot_claim(uint32_t tid)
{
	uint32_t first = first_probe(tid);

	for (uint32_t i = 0; i < PROBE_MAX; i++) {
		struct slot *s = &engine.slots[(first + i) & (SLOTS_MAX - 1)];
		uint32_t free_state = SLOT_FREE;

		if (__atomic_compare_exchange_n(&s->state, &free_state, SLOT_CLAIMED, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			s->tid = tid;
			s->timer_id = -1;
			s->in_handler = 0;
			s->booked_ns = 0;
			s->named = 0;
			s->scan = engine.scan;
			return s;
		}
	}
	return NULL;
}

/* ---- timers ----------------------------------------------------------------------------- */

static int timer_new(struct slot *s)
{
	clockid_t clock = (~(clockid_t)s->tid << 3) | 6; /* CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED */
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

static void timer_arm(struct slot *s)
{
	struct itimerspec spec;
	uint64_t now = thread_cpu_ns(s->tid);

	s->interval_ns = engine.interval_ns;
	/* uniform over one interval: the expected number of expiries is then CPU time / interval
	 * exactly, however short the thread lives */
	s->first_ns = 1 + random_below(s->interval_ns);
	s->armed_cpu_ns = now == UINT64_MAX ? 0 : now;
	s->booked_ns = 0;
	spec.it_value.tv_sec = (time_t)(s->first_ns / NS_PER_S);
	spec.it_value.tv_nsec = (long)(s->first_ns % NS_PER_S);
	spec.it_interval.tv_sec = (time_t)(s->interval_ns / NS_PER_S);
	spec.it_interval.tv_nsec = (long)(s->interval_ns % NS_PER_S);
	syscall(SYS_timer_settime, s->timer_id, 0, &spec, NULL);
}

/* Give a claimed slot its timer, or mark it as one without. */
static int slot_arm(struct slot *s)
{
	int r = -EAGAIN;

	if (__atomic_add_fetch(&engine.timers, 1, __ATOMIC_RELAXED) <= engine.timers_max)
		r = timer_new(s);
	if (r < 0) {
		__atomic_sub_fetch(&engine.timers, 1, __ATOMIC_RELAXED);
		s->armed_cpu_ns = thread_cpu_ns(s->tid);
		__atomic_store_n(&s->state, SLOT_UNTIMED, __ATOMIC_RELEASE);
		return r;
	}
	s->interval_ns = engine.interval_ns;
	/* before arming: the first expiry may be due at once */
	__atomic_store_n(&s->state, SLOT_TIMED, __ATOMIC_RELEASE);
	timer_arm(s);
	return 0;
}

static void slot_release(struct slot *s)
{
	if (s->timer_id >= 0) {
		syscall(SYS_timer_delete, s->timer_id);
		__atomic_sub_fetch(&engine.timers, 1, __ATOMIC_RELAXED);
	}
	s->timer_id = -1;
	__atomic_store_n(&s->state, SLOT_FREE, __ATOMIC_RELEASE);
}

/* Take a slot away from whoever might also want to release it. */
static bool slot_take(struct slot *s)
{
	uint32_t state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

	return state >= SLOT_TIMED &&
	       __atomic_compare_exchange_n(&s->state, &state, SLOT_CLAIMED, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

void engine_book(uint32_t tid, const char *name, uint64_t weight_ns, const char *label)
{
	struct walk_frame frame = {
		.where = (uint64_t)(uintptr_t)label,
		.bci = -1,
		.kind = WIRE_KIND_SYNTHETIC,
	};
	struct ring_sample head = {
		.mono_ns = mono_ns(),
		.weight_ns = weight_ns,
		.tid = tid,
		.n_frames = 1,
	};

	if (name)
		memcpy(head.name, name, sizeof(head.name));
	__atomic_fetch_add(&agent.books.taken_ns, weight_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&agent.books.taken, 1, __ATOMIC_SEQ_CST);
	if (ring_push_sig(&agent.ring, &head, &frame)) {
		__atomic_fetch_add(&agent.books.pushed_ns, weight_ns, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&agent.books.pushed, 1, __ATOMIC_SEQ_CST);
	} else {
		__atomic_fetch_add(&agent.books.drop_ns[WIRE_DROP_RING_FULL], weight_ns,
				   __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&agent.books.drop[WIRE_DROP_RING_FULL], 1, __ATOMIC_SEQ_CST);
	}
}

/* ---- a thread about itself -------------------------------------------------------------- */

struct slot *engine_thread_begin(void)
{
	uint32_t tid = thread_id();
	struct slot *s;

	if (!__atomic_load_n(&engine.running, __ATOMIC_ACQUIRE))
		return NULL;
	s = slot_find(tid);
	if (s) /* a scan was faster */
		return s;
	s = slot_claim(tid);
	if (s)
		(void)slot_arm(s);
	return s;
}

void engine_thread_end(struct slot *s)
{
	uint64_t used, due_ns = 0;
	uint32_t tid = thread_id();
	char name[16] = "";

	if (!engine.slots || s->tid != tid || s->state != SLOT_TIMED || !slot_take(s))
		return;
	/* no signal of this timer comes after this */
	slot_release(s);
	used = thread_cpu_ns(0) - s->armed_cpu_ns;
	if (used >= s->first_ns)
		due_ns = ((used - s->first_ns) / s->interval_ns + 1) * s->interval_ns;
	if (due_ns > s->booked_ns && __atomic_load_n(&engine.running, __ATOMIC_ACQUIRE)) {
		syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
		engine_book(tid, name, due_ns - s->booked_ns, "[exited between ticks]");
		__atomic_fetch_add(&agent.books.exited, 1, __ATOMIC_RELAXED);
	}
}

/* ---- scans ------------------------------------------------------------------------------ */

static void on_thread(uint32_t tid, bool first_scan)
{
	struct slot *s = slot_find(tid);
	uint64_t used;

	if (tid == engine.agent_tid)
		return;
	if (!s) {
		s = slot_claim(tid);
		if (!s)
			return;
		used = first_scan ? 0 : thread_cpu_ns(tid);
		(void)slot_arm(s);
		/* it began after the engine did: all it has used so far was not sampled */
		if (used && used != UINT64_MAX)
			engine_book(tid, NULL, used, "[found late]");
	} else if (s->state == SLOT_UNTIMED) {
		used = thread_cpu_ns(tid);
		if (used != UINT64_MAX && used > s->armed_cpu_ns) {
			engine_book(tid, NULL, used - s->armed_cpu_ns, "[no timer]");
			s->armed_cpu_ns = used;
		}
	}
	s->scan = engine.scan;
}

struct dirent64_head {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static void scan_tasks(bool first_scan)
{
	static char buf[32768];
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return;
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64_head *e = (const void *)(buf + at);
			uint32_t tid = 0;

			for (const char *p = e->name; *p >= '0' && *p <= '9'; p++)
				tid = tid * 10 + (uint32_t)(*p - '0');
			if (tid)
				on_thread(tid, first_scan);
			at += e->reclen;
		}
	}
	close(fd);
}

/* Threads that ended without telling us: their timers stay allocated until deleted. */
static void sweep(void)
{
	int32_t untimed = 0;

	for (uint32_t i = 0; i < SLOTS_MAX; i++) {
		struct slot *s = &engine.slots[i];

		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) < SLOT_TIMED)
			continue;
		if (engine.scan - s->scan >= 2 && thread_cpu_ns(s->tid) == UINT64_MAX) {
			if (slot_take(s))
				slot_release(s);
		} else if (s->state == SLOT_UNTIMED) {
			untimed++;
		}
	}
	engine.untimed = untimed;
}

/* RLIMIT_SIGPENDING is counted per uid, neighbours included: take half of what is left. */
static int32_t timers_allowed(void)
{
	char buf[4096];
	uint64_t used = 0, limit = 0;
	const char *p;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return 1024;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	p = strstr(buf, "SigQ:");
	if (!p)
		return 1024;
	for (p += 5; *p == ' ' || *p == '\t'; p++)
		;
	for (; *p >= '0' && *p <= '9'; p++)
		used = used * 10 + (uint64_t)(*p - '0');
	if (*p == '/')
		p++;
	for (; *p >= '0' && *p <= '9' && limit < UINT32_MAX; p++)
		limit = limit * 10 + (uint64_t)(*p - '0');
	if (limit <= used)
		return 0;
	limit = (limit - used) / 2;
	return limit < SLOTS_MAX ? (int32_t)limit : (int32_t)SLOTS_MAX;
}

void engine_scan(void)
{
	int32_t more = timers_allowed();

	engine.timers_max = engine.timers + more;
	engine.scan++;
	scan_tasks(false);
	sweep();
}

/* ---- start and stop --------------------------------------------------------------------- */

/* SIGPROF while nobody has it, else the next that nobody uses; a signal once taken stays ours. */
static int install_handler(void)
{
	static const int candidates[] = { SIGPROF, SIGVTALRM, SIGSTKFLT, SIGPWR };
	struct sigaction old, action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = engine_handler_sig;
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		if (sigaction(candidates[i], NULL, &old) < 0)
			continue;
		if (!(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL) {
			engine.previous = old;
			engine.signo = candidates[i];
			return sigaction(engine.signo, &action, NULL) < 0 ? -errno : 0;
		}
	}
	return -EBUSY;
}

int engine_start(uint64_t interval_ns, const char **why)
{
	int r;

	if (!engine.slots) {
		void *mem = mmap(NULL, SLOTS_MAX * sizeof(struct slot), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (mem == MAP_FAILED) {
			*why = "no memory for the table of threads";
			return -ENOMEM;
		}
		engine.slots = mem;
	}
	if (!engine.installed) {
		r = install_handler();
		if (r < 0) {
			*why = "SIGPROF, SIGVTALRM, SIGSTKFLT and SIGPWR all have handlers of others";
			return r;
		}
		engine.installed = true;
	}
	random_state ^= mono_ns() | 1;
	engine.interval_ns = interval_ns;
	engine.agent_tid = thread_id();
	engine.timers_max = timers_allowed();
	engine.scan++;
	__atomic_store_n(&engine.running, 1, __ATOMIC_RELEASE);
	thread_start_hook();
	scan_tasks(true);
	if (engine.timers == 0) {
		engine_stop();
		*why = "timer_create was refused for every thread (seccomp or RLIMIT_SIGPENDING)";
		return -EPERM;
	}
	return 0;
}

void engine_stop(void)
{
	__atomic_store_n(&engine.running, 0, __ATOMIC_RELEASE);
	if (!engine.slots)
		return;
	for (uint32_t i = 0; i < SLOTS_MAX; i++)
		if (slot_take(&engine.slots[i]))
			slot_release(&engine.slots[i]);
}

void engine_set_interval(uint64_t interval_ns)
{
	engine.interval_ns = interval_ns;
	for (uint32_t i = 0; engine.slots && i < SLOTS_MAX; i++) {
		struct slot *s = &engine.slots[i];

		/* held while it is armed anew, so that its thread's end cannot free it under us;
		 * a tick of the thread meanwhile is ignored, once */
		if (s->state == SLOT_TIMED && slot_take(s)) {
			timer_arm(s);
			__atomic_store_n(&s->state, SLOT_TIMED, __ATOMIC_RELEASE);
		}
	}
}

uint32_t engine_threads(void)
{
	return (uint32_t)engine.timers;
}

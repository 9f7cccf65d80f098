/*
 * Finds threads that thread_start.c did not see: those alive at the start, those that other
 * libraries create, and those that ended without engine_thread_end(). A pass over /proc/self/task
 * costs about 2 us per thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/base/tasks.h"
#include "agent/engine/host.h"
#include "agent/engine/slots.h"

/* from engine_thread_end() to the thread's disappearance from /proc, at most */
#define ENDING_NS      NS_PER_S
#define STAT_STARTTIME 22 /* field of /proc/PID/stat, proc(5) */

static long scan_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static const char *scan_read_number(const char *p, uint64_t *ret)
{
	*ret = 0;
	while (*p == ' ' || *p == '\t')
		p++;
	for (; *p >= '0' && *p <= '9' && *ret < UINT64_MAX / 10 - 1; p++)
		*ret = *ret * 10 + (uint64_t)(*p - '0');
	return p;
}

/* ---- what is allowed --------------------------------------------------------------------- */

/* RLIMIT_SIGPENDING counts the timers of all processes of the user: we use half of what the others
 * leave. */
static int32_t timers_allowed(void)
{
	uint64_t used, limit, ours = (uint64_t)engine.timers;
	char buf[4096];
	const char *p;

	if (scan_read_file("/proc/self/status", buf, sizeof(buf)) <= 0 ||
	    !(p = strstr(buf, "SigQ:")))
		return 1024;
	p = scan_read_number(p + 5, &used);
	scan_read_number(*p == '/' ? p + 1 : p, &limit);
	used = used > ours ? used - ours : 0;
	if (limit <= used)
		return 0;
	limit = (limit - used) / 2;
	return limit < SLOTS_MAX ? (int32_t)limit : (int32_t)SLOTS_MAX;
}

static uint64_t boot_ticks(void)
{
	struct timespec ts;
	long hz = sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &ts);
	hz = hz > 0 ? hz : 100;
	return (uint64_t)ts.tv_sec * (uint64_t)hz +
	       (uint64_t)ts.tv_nsec / (NS_PER_S / (uint64_t)hz);
}

/* The first pass may have missed a thread that was there: its earlier CPU time is not to be
 * accounted for. */
static bool born_since_start(uint32_t tid)
{
	char path[48], buf[512];
	uint64_t ticks;
	const char *p;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	if (scan_read_file(path, buf, sizeof(buf)) <= 0 || !(p = strrchr(buf, ')')))
		return false;
	p++;
	for (int field = 3; field < STAT_STARTTIME; field++) {
		p = strchr(p + 1, ' ');
		if (!p)
			return false;
	}
	scan_read_number(p, &ticks);
	return ticks >= engine.started_ticks;
}

/* ---- one thread ---------------------------------------------------------------------------- */

/* Has the thread reported its end, but not yet left /proc? */
static bool scan_has_ended(uint32_t tid, uint64_t used)
{
	for (uint32_t i = 0; i < ENDED_MAX; i++) {
		const struct ended *e = &engine.ended[i];

		if (__atomic_load_n(&e->tid, __ATOMIC_SEQ_CST) == tid &&
		    used >= __atomic_load_n(&e->cpu_ns, __ATOMIC_SEQ_CST) &&
		    mono_ns() - __atomic_load_n(&e->mono_ns, __ATOMIC_SEQ_CST) < ENDING_NS)
			return true;
	}
	return false;
}

static void scan_found(uint32_t tid, bool first_scan)
{
	uint64_t used = thread_cpu_ns(tid);
	struct slot *s;

	if (scan_has_ended(tid, used))
		return;
	s = slot_claim(tid);
	if (!s) {
		engine.no_slot++;
		return;
	}
	(void)slot_arm(s, used);
	if (used && used != UINT64_MAX && !first_scan && born_since_start(tid))
		engine_account_sig(tid, NULL, used, "[found late]");
}

/* A thread without a timer: accounts for its CPU time and tries to get a timer again. */
static void scan_untimed(struct slot *s)
{
	uint64_t used = thread_cpu_ns(s->tid);

	if (used == UINT64_MAX || !slot_take(s))
		return;
	if (used > s->armed_cpu_ns)
		engine_account_sig(s->tid, NULL, used - s->armed_cpu_ns, "[no timer]");
	(void)slot_arm(s, used);
}

/* A running thread that gets no signals: accounts for its CPU time. */
static void scan_unsignalled(struct slot *s)
{
	uint64_t used = thread_cpu_ns(s->tid);
	uint64_t seen = __atomic_load_n(&s->seen_cpu_ns, __ATOMIC_RELAXED);

	/* the thread's own handler may do this at the same time: only one exchange succeeds */
	if (used != UINT64_MAX && used > seen && used - seen > host_lag_max_ns_sig() &&
	    __atomic_compare_exchange_n(&s->seen_cpu_ns, &seen, used, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		engine_account_sig(s->tid, NULL, used - seen, "[no signal]");
}

static void scan_on_thread(uint32_t tid, bool first_scan)
{
	struct slot *s;
	uint32_t state;

	if (tid == engine.agent_tid)
		return;
	s = slot_find_sig(tid);
	if (!s) {
		scan_found(tid, first_scan);
		return;
	}
	state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
	if (state == SLOT_UNTIMED)
		scan_untimed(s);
	else if (state == SLOT_HOST)
		scan_unsignalled(s);
	s->scan = engine.scan;
}

/* ---- all threads --------------------------------------------------------------------------- */

static void scan_on_task(uint32_t tid, void *first_scan)
{
	scan_on_thread(tid, *(const bool *)first_scan);
}

/* Releases the slots of threads that ended without engine_thread_end(), whose timers would stay
 * allocated. */
static void scan_sweep(void)
{
	int32_t without = engine.no_slot, hosted = 0;

	for (uint32_t i = 0; i < slots_end(); i++) {
		struct slot *s = &engine.slots[i];
		uint32_t state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

		if (state < SLOT_TIMED)
			continue;
		/* it has ended; or it has two slots, because it and a scan claimed one each at the
		 * same time */
		if ((s->scan != engine.scan && thread_cpu_ns(s->tid) == UINT64_MAX) ||
		    slot_find_sig(s->tid) != s) {
			if (slot_take(s))
				slot_release(s);
		} else if (state == SLOT_UNTIMED) {
			without++;
		} else if (state == SLOT_HOST) {
			hosted++;
		}
	}
	engine.untimed = without;
	engine.hosted = hosted;
}

static void scan_pass(bool first_scan)
{
	engine.timers_max = timers_allowed();
	engine.scan++;
	engine.no_slot = 0;
	tasks_each(scan_on_task, &first_scan);
	scan_sweep();
}

void scan_begin(void)
{
	engine.started_ticks = boot_ticks();
	engine.timers_max = timers_allowed();
}

void scan_first(void)
{
	scan_pass(true);
}

uint64_t engine_scan(void)
{
	uint64_t begin_ns = mono_ns();

	scan_pass(false);
	return mono_ns() - begin_ns;
}

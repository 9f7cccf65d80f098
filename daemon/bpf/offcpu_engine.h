/*
 * The off-CPU half of the host engine. One BPF program at every context switch adds up, for each
 * thread of a target, the time on the CPU, in the run queue, and off the CPU by class; together
 * they are the time that passed. A time off the CPU of at least the target's minimum becomes a
 * record with its kernel stack. It also triggers the agent's signal, which is delayed until the
 * thread is back in user mode, so that no system call is interrupted. The signal is that of
 * host_engine.h, under the same checks; its value is described in proto/host_cookie.h.
 *
 * Needs the host engine, so Linux 5.15 (6.18 without restartable sequences). The programs run only
 * while there is a target, and end with their descriptors. offcpu_engine_new() needs CAP_BPF and
 * CAP_PERFMON; the other functions need no capability.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>
#include <sys/types.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu.h"
#include "daemon/bpf/offcpu_minimum.h"
#include "daemon/ground/mem.h"

#define OFFCPU_ENGINE_WHY_MAX HOST_ENGINE_WHY_MAX
#define OFFCPU_MIN_NS_DEFAULT 1000000
#define OFFCPU_MIN_NS_LEAST   10000
#define OFFCPU_LAST_TICKS     60

struct offcpu_engine;

/* How signals are delayed until the thread returns to user mode. */
enum offcpu_way {
	OFFCPU_BY_TASK_WORK, /* Linux 6.18 */
	OFFCPU_BY_RSEQ, /* Linux 6.13; only threads with restartable sequences (glibc 2.35) */
	/* the same from Linux 5.15 on, by a signal of its own: host_engine_target.off_signo */
	OFFCPU_BY_OWN_SIGNAL,
};

/* One time off the CPU; offcpu.h explains each member. */
struct offcpu_interval {
	pid_t pid; /* in the first pid namespace */
	/* in the thread's innermost pid namespace: the number that the thread itself sees */
	uint32_t tid;
	uint32_t host_tid;
	uint64_t end_ns, duration_ns, runqueue_ns, throttled_ns, stay_ns;
	uint32_t waker_pid, waker_tid, waker_own_tid;
	int syscall_nr;
	enum offcpu_class class;
	char state;
	unsigned flags;
};

typedef void offcpu_interval_fn(void *userdata, const struct offcpu_interval *i,
				const uint64_t *ips, unsigned n);

/* The times of one thread so far: oncpu_ns + runqueue_ns + all of off_ns = to_ns - from_ns. */
struct offcpu_times {
	pid_t pid;
	/* the number that the thread itself sees; 0 = unknown, because it has not run yet */
	uint32_t tid;
	uint32_t host_tid;
	bool ended;
	bool runs; /* it is on the CPU at to_ns */
	bool halted; /* it is not, because of a signal, a debugger or a frozen control group */
	enum offcpu_class class; /* unless `runs`: the class of its present time off the CPU */
	int syscall_nr; /* unless `runs`: the system call it is in; -1 = none, or unknown */
	uint64_t since_ns; /* when its present run or time off the CPU began */
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint64_t oncpu_ns, runqueue_ns;
	uint64_t off_ns[OFFCPU_CLASS_COUNT]; /* [OFFCPU_RUNQUEUE] is 0 */
	uint64_t short_count; /* times off the CPU without a record */
};

typedef void offcpu_times_fn(void *userdata, const struct offcpu_times *t);

/* Counts of one target, or of all since the start. `_ns`: the sum of the times off the CPU in
 * question. */
struct offcpu_counts {
	uint64_t intervals, interval_ns; /* long enough for a record */
	uint64_t signalled, signalled_ns;
	uint64_t over_budget, over_budget_ns; /* without a signal, to save CPU time */
	uint64_t unreachable, unreachable_ns; /* without a signal: blocked, another handler, ... */
	/* without a signal: offcpu_engine_bare_stack(), offcpu_engine_idle_habit() */
	uint64_t unneeded, unneeded_ns;
	/* waits for work that got no signal because signals are short; those below sixteen minimums
	 * have no record either */
	uint64_t spared;
	uint64_t lost, lost_ns; /* without a record */
	uint64_t crowded; /* times that a thread found no room in the table */
};

/* The state and the cost of the engine, for status. */
struct offcpu_state {
	enum offcpu_way way;
	bool syscall_exits; /* a program runs at the end of each system call of the host */
	unsigned targets;
	/* records name the thread's waker; false = there are too many switches for that */
	bool wakers;
	/* since when wakers are missing, or, during a rest, everything; CLOCK_MONOTONIC, 0 = nothing
	 * is missing */
	uint64_t reduced_since_ns;
	uint64_t wakers_again_s; /* in so many seconds at least they are tried again; 0 = no pause */
	bool resting; /* paused, because there are too many switches */
	unsigned resting_targets; /* those that alone are paused */
	/* the longest of any target now; 0 = no targets */
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	uint64_t signals_per_s, all_signals_per_s; /* at most, now: per target, and of all */
	uint64_t signal_price_ns; /* measured; 0 = none was sent yet */
	uint64_t switches_per_s; /* of the host */
	uint64_t cost_ppm; /* of all CPUs, estimated from sampled runs */
	uint64_t rests; /* number of pauses */
	/* context switches for which the kernel did not call the program, see account_run() */
	uint64_t missed;
	uint64_t ends_lost; /* ended threads whose times found no room in the ring */
};

/*
 * Loads the programs; none runs before there is a target. @host is borrowed and must outlive the
 * engine; if it sends its signals at once, this engine delays its own by rseq. @signals_per_s: the
 * maximum per target; the maximum for all targets is that times the number of CPUs. Both are less
 * while signals would cost so much that nobody could be asked who woke a thread. @syscall_exits:
 * where signals are not delayed by task work, threads without restartable sequences have them too,
 * and every system call of the host pays for it while there is a target. 0, or -errno with a
 * sentence in @why (OFFCPU_ENGINE_WHY_MAX bytes).
 */
int offcpu_engine_new(struct host_engine *host, uint64_t signals_per_s, bool syscall_exits,
		      struct offcpu_engine **ret, char *why);
/* The same by a way that the kernel has, but not the best one: for tests. */
int offcpu_engine_new_by(struct host_engine *host, enum offcpu_way way, uint64_t signals_per_s,
			 bool syscall_exits, struct offcpu_engine **ret, char *why);
/* @signals_per_s of offcpu_engine_new() becomes what 1 % of a CPU pays for by the measured price of
 * a signal, as soon as that is known. */
void offcpu_engine_follow_price(struct offcpu_engine *e);
/* From which duration on times off the CPU of @pid would have records, while threads that wait for
 * work are spared some of theirs; 0 = they are not, or it is not measured now. */
uint64_t offcpu_engine_spared_ns(const struct offcpu_engine *e, pid_t pid);
enum offcpu_way offcpu_engine_way(const struct offcpu_engine *e);
struct offcpu_engine *offcpu_engine_free(struct offcpu_engine *e);
DEFINE_FREEP(struct offcpu_engine, offcpu_engine_free);

/* The number of signals per second that cost 1 % of a CPU, if an interrupt costs @price_ns
 * (host_engine_price()). */
uint64_t offcpu_engine_affordable(uint64_t price_ns);

/*
 * Adds @pid, or changes its minimum. If the targets of one @tenant cost too much, only they rest;
 * so does a target that costs more than a limit of its own. Signals are sent to it only while it is
 * also a target of the host engine; its agent must understand off-CPU cookies. 0, -EINVAL (a
 * minimum below OFFCPU_MIN_NS_LEAST), -ENOSPC or the kernel's error.
 */
int offcpu_engine_set(struct offcpu_engine *e, pid_t pid, uint64_t tenant, uint64_t min_ns);
void offcpu_engine_remove(struct offcpu_engine *e, pid_t pid);
/* A wait of this thread in a futex, or a sleep, had a stack without a Java frame. From the third of
 * them on its waits in futexes and its sleeps have records, but no signals; one is not enough,
 * because a Java thread that starts has such a wait too. @host_tid: its number in the first pid
 * namespace. */
void offcpu_engine_bare_stack(struct offcpu_engine *e, pid_t pid, uint32_t host_tid);
/* By its stack, a time off the CPU of this thread that ended at @end_ns was a wait for work, as its
 * last ones of this @class were, @always if dozens of them were. While the target has many signals,
 * further ones are spared them until the thread is asked again: enum offcpu_spares. */
void offcpu_engine_idle_habit(struct offcpu_engine *e, pid_t pid, uint32_t host_tid,
			      enum offcpu_class class, bool always, uint64_t end_ns);
/* As its lock events tell, this thread waited for work in futexes more than once, until @end_ns.
 * While signals are short, and if nothing is known of it, its waits in futexes are taken for the
 * same until it is asked. */
void offcpu_engine_waits_for_work(struct offcpu_engine *e, pid_t pid, uint32_t host_tid,
				  uint64_t end_ns);
/* A wait of this thread in a futex that ended at @end_ns is a lock event, as all its last ones are;
 * 0 = one was none. While signals or records are short, further ones are spared them: enum
 * offcpu_spares. */
void offcpu_engine_told_habit(struct offcpu_engine *e, pid_t pid, uint32_t host_tid,
			      uint64_t end_ns);
/* Readable when a quarter of the ring is full; call offcpu_engine_drain() then, and a few times a
 * second. */
int offcpu_engine_fd(const struct offcpu_engine *e);
/* Sets the receivers of the records: @on_interval for each time off the CPU, @on_end for the final
 * times of each thread; NULL = none. */
void offcpu_engine_listen(struct offcpu_engine *e, offcpu_interval_fn *on_interval,
			  offcpu_times_fn *on_end, void *userdata);
/* Leaves at most @max slots of the table of threads to all targets: for tests, because the table is
 * large. */
void offcpu_engine_limit_threads(struct offcpu_engine *e, uint64_t max);
/* Passes on the records that are in the ring now. A record is there before the handler of its
 * signal runs. */
void offcpu_engine_drain(struct offcpu_engine *e);
/* Passes the times of all threads of @pid (0 = of all targets) up to now, in any order. Returns the
 * number of threads. */
unsigned offcpu_engine_threads(const struct offcpu_engine *e, pid_t pid, offcpu_times_fn *fn,
			       void *userdata);
/* Call once a second: adapts minimums and measures the cost. */
void offcpu_engine_tick(struct offcpu_engine *e);
void offcpu_engine_state(const struct offcpu_engine *e, struct offcpu_state *ret);
/* What this target's threads that wait for work again and again are spared now. */
enum offcpu_spares offcpu_engine_spares(const struct offcpu_engine *e, pid_t pid);
/* In how many of the last ticks (*ret_of, OFFCPU_LAST_TICKS at most) this target was measured:
 * fewer than all, if it or the host switches so often that this would cost too much. */
unsigned offcpu_engine_measured(const struct offcpu_engine *e, pid_t pid, unsigned *ret_of);
/* When it, or all, rested last: CLOCK_MONOTONIC, 0 = never. */
uint64_t offcpu_engine_rested_ns(const struct offcpu_engine *e, pid_t pid);
/* Of all targets since the start. */
void offcpu_engine_counts(const struct offcpu_engine *e, struct offcpu_counts *ret);
/* The threads of @pid (0 = of all targets) that had no room in the table at the last tick: their
 * times are not measured. */
uint64_t offcpu_engine_without_slot(const struct offcpu_engine *e, pid_t pid);
/* The counts and minimums of one target. false = @pid is not a target. */
bool offcpu_engine_target(const struct offcpu_engine *e, pid_t pid, struct offcpu_counts *ret,
			  struct offcpu_minimums ret_minimums[OFFCPU_PARTS]);

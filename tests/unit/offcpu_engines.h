/*
 * The two engines for tests of times off the CPU, and what they reported. A test is skipped where
 * the kernel refuses BPF, with the sentence that a user would see.
 */
#pragma once

#include <stdbool.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "tests/unit/offcpu_children.h"

#define RECORDS_MAX 8192
#define CLOCKS_APART_NS 5000 /* the programs' clock and that of threads, at the most */

/* What the engines reported since they were made. */
struct offcpu_seen {
	struct host_engine *host;
	struct offcpu_engine *engine;
	struct offcpu_interval intervals[RECORDS_MAX];
	uint64_t stack_hashes[RECORDS_MAX];
	unsigned n, stacks;
	unsigned ended, ended_wrong;
};

struct offcpu_lookup {
	uint32_t tid;
	struct offcpu_times times;
	unsigned n, wrong;
};

extern struct offcpu_seen seen;
extern enum offcpu_way offcpu_way; /* of offcpu_engines_or_skip() */

/* With OFFCPU_SYSCALL_EXITS in the environment the engine has programs at the ends of system calls,
 * and the test runs without restartable sequences (GLIBC_TUNABLES). */
void offcpu_engines_or_skip(uint64_t signals_per_s);
void offcpu_engines_free(void);
/* Has the process @pid of @tenant measured. */
void offcpu_measure_of(uint64_t tenant, pid_t pid, uint64_t min_ns);
/* Has the process @pid measured, whose signal handler is at @handler. */
void offcpu_measure(pid_t pid, uint64_t handler, uint64_t min_ns);
/* Waits of the target @pid for which no signal was left. */
uint64_t offcpu_waits_over_budget(pid_t pid);
/* Stops the child @pid, a target, for a moment, because its counts change one after the other, and
 * checks that each time off the CPU has one of the fates that are counted. */
void offcpu_counts_add_up(pid_t pid);
/* For offcpu_engine_threads(): finds one thread's times and checks the sums of all. */
void offcpu_look_up(void *userdata, const struct offcpu_times *t);
struct offcpu_times offcpu_times_of(pid_t pid, uint32_t tid);
/* The longest time off the CPU that was reported within that wait of this thread; NULL = none. */
const struct offcpu_interval *offcpu_interval_in(uint32_t tid, const struct wait *w);
/* Has this thread had a signal for this time off the CPU? One of a signal of its own does not tell
 * which time it is for, so each counts once. */
bool offcpu_cookie_came(uint32_t tid, uint64_t off_ns);
/* Was there a signal for this record, or for another one of the same stay in the kernel? */
bool offcpu_stay_came(const struct offcpu_interval *v);
/* The number of threads in the table. */
unsigned offcpu_threads_of(pid_t pid);

/* Maps the memory that children share with the test, also after execve(). */
bool offcpu_engines_shared(void);

/* Runs the table of tests in each way in which signals are delayed, up to the way @last; the value
 * is the exit code. */
#define offcpu_engines_run(tests, last)                                                        \
	({                                                                                     \
		static const char *const names_[] = { "by task work", "by rseq",               \
						      "by a signal of its own" };              \
		int failed_ = offcpu_engines_shared() ? 0 : 1;                                 \
		bool exits_ = getenv("OFFCPU_SYSCALL_EXITS") != NULL;                          \
		for (int i_ = exits_ ? OFFCPU_BY_RSEQ : 0; i_ <= (last) && !failed_; i_++) {   \
			offcpu_way = (enum offcpu_way)i_;                                      \
			failed_ += cmocka_run_group_tests_name(names_[i_], tests, NULL, NULL); \
		}                                                                              \
		failed_;                                                                       \
	})

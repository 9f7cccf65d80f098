/*
 * Programs that leave the CPU in known ways, for tests of the off-CPU engine: children of the test,
 * which tell what they measured themselves in memory that they share with it.
 */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/clock.h"

#define WAITS	    20
#define WAIT_NS	     (12 * NS_PER_MS) /* asked for by each wait of WAITING */
#define LONG_NS	    (40 * NS_PER_MS)
#define COOKIES_MAX 8192
#define MANY_THREADS 100
#define OWN_SIGNAL                                                                    \
	SIGVTALRM /* for times off the CPU, where that is another signal than SIGPROF \
		   */

/* the kinds of waits */
enum { SLEEPS, FUTEXES, POLLS, PIPES, SOCKETS, KINDS };

/* One wait as its thread measured it. */
struct wait {
	uint64_t begin_ns, end_ns;
};

/* Results of a child. */
struct words {
	uint64_t handler; /* 0 = not installed yet */
	uint32_t go, done, generation;
	uint32_t tids[KINDS];
	struct wait waits[KINDS][WAITS];
	uint64_t cpu_ns[KINDS];
	uint32_t n_cookies;
	struct {
		uint64_t cookie;
		uint32_t tid;
	} cookies[COOKIES_MAX];
};

extern struct words *shared; /* the test maps it */

enum offcpu_manner {
	WAITING,
	COMPETING,
	CROWDED, /* as COMPETING, and a thread that sleeps for WAIT_NS again and again */
	SLEEPING,
	MIXED,
	UNHANDLED,
	BEGINNING,
	ASLEEP,
	SELDOM,
	LONG, /* it sleeps for half a minute, then again */
	BLOCKING,
	MANY, /* MANY_THREADS that begin when `go` is set, and sleep */
	DISGUISED, /* as SELDOM to whoever looks at the system call, with another kernel stack */
	PARKING, /* it waits in a futex, for 0.2 ms again and again */
	STORMING
};

/* Forks. The child dies with the test. */
pid_t offcpu_child(enum offcpu_manner manner);
/* Waits until the child has installed its signal handler. */
void offcpu_child_wait(void);
/* Kills the child, which must have lived until now. */
void offcpu_child_end(pid_t pid);
/* Installs the handler, which notes each signal's cookie, in this process. */
void offcpu_child_install(void);
/* Sleeps that long, also when signals come. */
void offcpu_child_nap(uint64_t ns);

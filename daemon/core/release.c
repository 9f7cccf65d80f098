/* See release.h. The pids go to the thread through a ring without a lock: a thread of the lowest
 * priority must not hold one that others wait for. */
#include "daemon/core/release.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/clock.h"

#define WAITING_MAX 1024u /* children that wait for the thread; a power of two */
#define LOWEST	    19

static struct {
	pid_t owner; /* the process that the thread belongs to; 0 = there is none yet */
	pid_t pids[WAITING_MAX];
	atomic_uint first, end;
	sem_t some;
} waiting;

static void *release_main(void *unused)
{
	(void)setpriority(PRIO_PROCESS, 0, LOWEST); /* of this thread */
	for (;;) {
		unsigned first = waiting.first;

		while (sem_wait(&waiting.some) < 0)
			;
		while (wait4(waiting.pids[first % WAITING_MAX], NULL, 0, NULL) < 0 &&
		       errno == EINTR)
			;
		waiting.first = first + 1;
	}
	return unused;
}

/* Starts the thread. A process that was forked has its parent's ring, but not the thread. */
static bool release_begin(void)
{
	sigset_t all, old;
	pthread_t thread;

	if (waiting.owner == getpid())
		return true;
	waiting.first = waiting.end = 0;
	if (sem_init(&waiting.some, 0, 0) < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* that thread handles no signals */
	if (pthread_create(&thread, NULL, release_main, NULL) == 0) {
		pthread_detach(thread);
		waiting.owner = getpid();
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return waiting.owner == getpid();
}

static void release_child(pid_t pid)
{
	if (!release_begin() || waiting.end - waiting.first == WAITING_MAX) {
		(void)wait4(pid, NULL, WNOHANG, NULL);
		return;
	}
	waiting.pids[waiting.end % WAITING_MAX] = pid;
	waiting.end++;
	(void)sem_post(&waiting.some);
}

/* As the kernel puts it together for wait(2). */
static int release_status(const siginfo_t *si)
{
	if (si->si_code == CLD_EXITED)
		return (si->si_status & 0xff) << 8;
	return si->si_status | (si->si_code == CLD_DUMPED ? 0x80 : 0);
}

static uint64_t release_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * 1000;
}

int release_ended(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns)
{
	struct rusage used = { 0 };
	siginfo_t si = { 0 };

	/* the system call tells the CPU time as well, which the function of the C library leaves
	 * out */
	if (pid <= 0 ||
	    syscall(SYS_waitid, P_PID, pid, &si, WEXITED | WNOHANG | WNOWAIT, &used) < 0)
		return -ECHILD;
	if (!si.si_pid)
		return 0;
	*ret_status = release_status(&si);
	if (ret_cpu_ns)
		*ret_cpu_ns = release_ns(&used.ru_utime) + release_ns(&used.ru_stime);
	release_child(pid);
	return 1;
}

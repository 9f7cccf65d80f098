/*
 * Processes that only wake up and use a little CPU time: how long does this machine keep those
 * waiting who need as little as kindling does? kindling's own gaps are compared with theirs.
 *
 *   wakes PROCESSES US    the first sleeps 50 ms and writes the time, the others pass it on, each to
 *                         the next, as samples go from an agent to whoever follows them; the third
 *                         first uses US microseconds of CPU time for each, as kindlingd-data
 *                         has to for all that it reads. Answers each line of its input with the
 *                         longest time between two since the last line or, if that is longer,
 *                         for which one was on its way, in ms; ends at the end of the input
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_NS   50000000
#define LENGTH_MAX 16
#define WORKS	   2 /* the one that uses CPU time */
#define US_MAX	   20000

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void wake(int out)
{
	const struct timespec t = { 0, SLEEP_NS };
	uint64_t now;

	do {
		(void)nanosleep(&t, NULL);
		now = clock_ns(CLOCK_MONOTONIC);
	} while (write(out, &now, sizeof(now)) == sizeof(now));
}

static void use_cpu(uint64_t ns)
{
	uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

static void pass_on(int in, int out, uint64_t work_ns)
{
	uint64_t time_ns;

	while (read(in, &time_ns, sizeof(time_ns)) == sizeof(time_ns)) {
		use_cpu(work_ns);
		if (write(out, &time_ns, sizeof(time_ns)) != sizeof(time_ns))
			break;
	}
}

/* Returns where to read from the new process, which reads @in; -1 = it begins the row. */
static int begin(int in, uint64_t work_ns)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0)
		exit(1);
	pid = fork();
	if (pid < 0)
		exit(1);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		if (in < 0)
			wake(ends[1]);
		else
			pass_on(in, ends[1], work_ns);
		_exit(0);
	}
	close(ends[1]);
	if (in >= 0)
		close(in);
	return ends[0];
}

static int measure(int in)
{
	struct pollfd fds[] = { { .fd = in, .events = POLLIN }, { .fd = 0, .events = POLLIN } };
	uint64_t last_ns = clock_ns(CLOCK_MONOTONIC), longest_ns = 0, gap_ns, begun_ns;
	char line[64];

	while (poll(fds, 2, -1) > 0) {
		gap_ns = clock_ns(CLOCK_MONOTONIC) - last_ns;
		if (gap_ns > longest_ns)
			longest_ns = gap_ns;
		if (fds[0].revents) {
			if (read(in, &begun_ns, sizeof(begun_ns)) != sizeof(begun_ns))
				return 1;
			last_ns = clock_ns(CLOCK_MONOTONIC);
			if (last_ns - begun_ns > longest_ns)
				longest_ns = last_ns - begun_ns;
		}
		if (fds[1].revents) {
			if (read(0, line, sizeof(line)) <= 0)
				return 0;
			printf("%.1f\n", (double)longest_ns / 1e6);
			fflush(stdout);
			longest_ns = 0;
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0, us = argc == 3 ? atoi(argv[2]) : -1, in = -1;

	if (n <= WORKS || n > LENGTH_MAX || us < 0 || us > US_MAX)
		return 2;
	for (int i = 0; i < n - 1; i++)
		in = begin(in, i == WORKS ? (uint64_t)us * 1000 : 0);
	return measure(in);
}

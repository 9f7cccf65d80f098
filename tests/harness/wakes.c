/*
 * Processes that do nothing but wake up: how long does this machine keep those waiting who need
 * almost no CPU time? kindling's own gaps are compared with theirs.
 *
 *   wakes PROCESSES    the first sleeps 50 ms and writes a byte, the others pass it on, each to the
 *                      next, as samples go from an agent to whoever follows them. Answers each line
 *                      of its input with the longest time between two bytes since the last line,
 *                      in ms; ends at the end of the input
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

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void wake(int out)
{
	const struct timespec t = { 0, SLEEP_NS };

	do
		(void)nanosleep(&t, NULL);
	while (write(out, "", 1) == 1);
}

static void pass_on(int in, int out)
{
	char bytes[64];
	ssize_t n;

	do
		n = read(in, bytes, sizeof(bytes));
	while (n > 0 && write(out, bytes, (size_t)n) == n);
}

/* Returns where to read from the new process, which reads @in; -1 = it begins the row. */
static int begin(int in)
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
			pass_on(in, ends[1]);
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
	uint64_t last_ns = now_ns(), longest_ns = 0, gap_ns;
	char bytes[64];

	while (poll(fds, 2, -1) > 0) {
		gap_ns = now_ns() - last_ns;
		if (gap_ns > longest_ns)
			longest_ns = gap_ns;
		if (fds[0].revents) {
			if (read(in, bytes, sizeof(bytes)) <= 0)
				return 1;
			last_ns = now_ns();
		}
		if (fds[1].revents) {
			if (read(0, bytes, sizeof(bytes)) <= 0)
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
	int n = argc == 2 ? atoi(argv[1]) : 0, in = -1;

	if (n < 2 || n > LENGTH_MAX)
		return 2;
	for (int i = 1; i < n; i++)
		in = begin(in);
	return measure(in);
}

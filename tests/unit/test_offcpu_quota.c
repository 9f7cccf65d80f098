/* Waits for the CPU quota of a cgroup: the child has a fifth of a CPU, for which its threads
 * compete. */
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000
#define PERIODS	      30
#define PERIOD_NS     (100 * NS_PER_MS)

static char cgroup[128];

static bool write_text(const char *name, const char *text)
{
	char path[200];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", cgroup, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* A cgroup, of either version, whose processes may use a fifth of a CPU. False = this machine
 * allows none. */
static bool make_cgroup(void)
{
	static const struct {
		const char *parent, *file, *value;
	} ways[] = {
		{ "/sys/fs/cgroup", "cpu.max", "20000 100000" },
		{ "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000" },
		{ "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", "20000" },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		snprintf(cgroup, sizeof(cgroup), "%s/kindling-test-%d", ways[i].parent,
			 (int)getpid());
		if (mkdir(cgroup, 0700) < 0)
			continue;
		if (write_text(ways[i].file, ways[i].value))
			return true;
		rmdir(cgroup);
	}
	return false;
}

/* For how long the cgroup had no quota so far. */
static uint64_t cgroup_throttled_ns(void)
{
	char path[160], line[80];
	uint64_t ret = 0;
	unsigned long long n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cpu.stat", cgroup);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "throttled_usec %llu", &n) == 1)
			ret = n * 1000;
		if (sscanf(line, "throttled_time %llu", &n) == 1) /* version 1 */
			ret = n;
	}
	fclose(f);
	return ret;
}

/* Measures a child of this manner in the cgroup, on one CPU; skips the test if there is none. */
static pid_t begin(enum offcpu_manner manner)
{
	cpu_set_t first;
	char text[16];
	pid_t pid;

	offcpu_engines_or_skip(SIGNALS_PER_S);
	if (!make_cgroup()) {
		print_message("no cgroup with a quota here\n");
		offcpu_engines_free();
		skip();
	}
	pid = offcpu_child(manner);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(pid, sizeof(first), &first);
	offcpu_child_wait();
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	assert_true(write_text("cgroup.procs", text));
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	return pid;
}

static void end(pid_t pid)
{
	offcpu_child_end(pid);
	offcpu_engines_free();
	rmdir(cgroup);
}

/* Waits of at least 20 ms for the quota that have a signal; *@ret_came: of how many it arrived. */
static unsigned count_throttled(unsigned *ret_came)
{
	unsigned throttled = 0, came = 0;

	for (unsigned n = 0; n < seen.n; n++) {
		const struct offcpu_interval *v = &seen.intervals[n];

		if (v->class != OFFCPU_THROTTLED || v->duration_ns < 20 * NS_PER_MS ||
		    !(v->flags & OFFCPU_SIGNALLED))
			continue;
		throttled++;
		if (ret_came)
			came += offcpu_stay_came(v);
	}
	if (ret_came)
		*ret_came = came;
	return throttled;
}

static void a_used_up_quota_is_told_from_the_run_queue(void **state)
{
	unsigned throttled, came;
	pid_t pid = begin(COMPETING);

	(void)state;
	for (int i = 0; i < 200 && count_throttled(NULL) < 10; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
	}
	throttled = count_throttled(&came);
	end(pid);
	print_message("%u waits for the quota, signals told of %u\n", throttled, came);
	assert_true(throttled >= 10);
	assert_true(came >= throttled - 3); /* one signal of each thread may not have arrived yet */
}

/* The time without quota in the records of a thread. */
static uint64_t recorded_ns(uint32_t tid)
{
	uint64_t ns = 0;

	for (unsigned n = 0; n < seen.n; n++) {
		const struct offcpu_interval *v = &seen.intervals[n];

		assert_true(v->throttled_ns <= v->runqueue_ns);
		if (v->host_tid != tid)
			continue;
		ns += v->throttled_ns;
		if (v->class == OFFCPU_THROTTLED)
			ns += v->duration_ns - v->runqueue_ns;
	}
	return ns;
}

/* The kernel looks at the quota at ticks, and from Linux 6.18 on a wait for it goes on until the
 * thread has a CPU. */
static void is_about(uint64_t ns, uint64_t expected_ns)
{
	assert_true(ns > expected_ns - expected_ns / 5 && ns < expected_ns + expected_ns / 3);
}

/* Both threads that compute wait for the quota all the time that the cgroup has none, whichever of
 * them had the CPU. The one that sleeps does, too, from the end of its sleep on, and its sleeps are
 * much shorter. */
static void times_without_quota_are_those_of_the_cgroup(void **state)
{
	uint64_t cgroup_ns, waited_ns[3];
	pid_t pid = begin(CROWDED);
	struct offcpu_times t[3];

	(void)state;
	usleep(PERIODS * PERIOD_NS / 1000);
	for (int i = 0; i < 3; i++)
		t[i] = offcpu_times_of(pid, i < 2 ? shared->tids[i] : (uint32_t)pid);
	cgroup_ns = cgroup_throttled_ns();
	offcpu_engine_drain(seen.engine);
	for (int i = 0; i < 3; i++) {
		waited_ns[i] = t[i].off_ns[OFFCPU_THROTTLED];
		print_message("%llu ms without quota, %llu in records, %llu in the run queue\n",
			      (unsigned long long)(waited_ns[i] / NS_PER_MS),
			      (unsigned long long)(recorded_ns(t[i].host_tid) / NS_PER_MS),
			      (unsigned long long)(t[i].runqueue_ns / NS_PER_MS));
	}
	print_message("the cgroup: %llu ms\n", (unsigned long long)(cgroup_ns / NS_PER_MS));
	end(pid);
	assert_true(cgroup_ns > PERIODS * PERIOD_NS / 4);
	is_about(waited_ns[0], cgroup_ns);
	is_about(waited_ns[1], cgroup_ns);
	assert_true(waited_ns[2] > cgroup_ns / 2);
	for (int i = 0; i < 3; i++)
		is_about(recorded_ns(t[i].host_tid), waited_ns[i]);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_used_up_quota_is_told_from_the_run_queue),
	cmocka_unit_test(times_without_quota_are_those_of_the_cgroup),
};

int main(void)
{
	return offcpu_engines_run(tests, OFFCPU_BY_OWN_SIGNAL);
}

/* Waits for the CPU quota of a cgroup: the child has a fifth of a CPU, for which its threads compete. */
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

/* Measures a child of this manner in the cgroup, on one CPU. 0 = this machine allows none. */
static pid_t begin(enum offcpu_manner manner)
{
	cpu_set_t first;
	char text[16];
	pid_t pid;

	if (!make_cgroup()) {
		print_message("no cgroup with a quota here\n");
		return 0;
	}
	offcpu_engines_or_skip(SIGNALS_PER_S);
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
	if (!pid)
		return;
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

/* The part of the waits of the sleeping thread in which it was awake, but had no quota. */
static uint64_t throttled_after_sleeps(uint32_t tid)
{
	uint64_t ns = 0;

	for (unsigned n = 0; n < seen.n; n++) {
		const struct offcpu_interval *v = &seen.intervals[n];

		assert_true(v->throttled_ns <= v->runqueue_ns);
		if (v->host_tid == tid && v->class == OFFCPU_SLEEP)
			ns += v->throttled_ns;
	}
	return ns;
}

/* Both threads that compute wait for the quota all the time that the cgroup has none, whichever of
 * them had the CPU; the one that sleeps does from its end of the sleep on. */
static void times_without_quota_are_those_of_the_cgroup(void **state)
{
	uint64_t before_ns, passed_ns, begin_ns, waited_ns[3];
	pid_t pid = begin(CROWDED);
	struct offcpu_times t[3];

	(void)state;
	if (!pid)
		return;
	usleep(2 * PERIOD_NS / 1000);
	before_ns = cgroup_throttled_ns();
	for (int i = 0; i < 3; i++)
		t[i] = offcpu_times_of(pid, i < 2 ? shared->tids[i] : (uint32_t)pid);
	begin_ns = clock_mono_ns();
	usleep(PERIODS * PERIOD_NS / 1000);
	begin_ns = clock_mono_ns() - begin_ns;
	passed_ns = cgroup_throttled_ns() - before_ns;
	for (int i = 0; i < 3; i++) {
		struct offcpu_times now =
			offcpu_times_of(pid, i < 2 ? shared->tids[i] : (uint32_t)pid);

		waited_ns[i] = now.off_ns[OFFCPU_THROTTLED] - t[i].off_ns[OFFCPU_THROTTLED];
		print_message("of %llu ms %llu ms without quota, run queue %llu ms; the cgroup %llu ms\n",
			      (unsigned long long)(begin_ns / NS_PER_MS),
			      (unsigned long long)(waited_ns[i] / NS_PER_MS),
			      (unsigned long long)((now.runqueue_ns - t[i].runqueue_ns) / NS_PER_MS),
			      (unsigned long long)(passed_ns / NS_PER_MS));
	}
	offcpu_engine_drain(seen.engine);
	print_message("after sleeps: %llu ms\n",
		      (unsigned long long)(throttled_after_sleeps((uint32_t)pid) / NS_PER_MS));
	end(pid);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_used_up_quota_is_told_from_the_run_queue),
	cmocka_unit_test(times_without_quota_are_those_of_the_cgroup),
};

int main(void)
{
	return offcpu_engines_run(tests, OFFCPU_BY_OWN_SIGNAL);
}

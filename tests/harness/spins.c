/*
 * A JVM agent unrelated to kindling, whose thread uses a third of a CPU in a function of this
 * library. Tests check whose library that is, and whether the function gets its name.
 */
#include <jvmti.h>
#include <pthread.h>
#include <time.h>

#define RUN_NS 5000000

static volatile unsigned long turns;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static __attribute__((noinline)) void spins_turn(void)
{
	for (int i = 0; i < 100000; i++)
		turns++;
}

static void *spins(void *unused)
{
	const struct timespec pause = { 0, 2L * RUN_NS };

	for (;;) {
		for (long begin = now_ns(); now_ns() < begin + RUN_NS;)
			spins_turn();
		nanosleep(&pause, NULL);
	}
	return unused;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	pthread_t thread;

	(void)vm;
	(void)options;
	(void)reserved;
	return pthread_create(&thread, NULL, spins, NULL);
}

/* Where the permit of a thread is found, in made-up JavaThreads: in the thread itself, or in its
 * Parker, to which other pointers lead too. Each case has its own process, because a place once
 * found is kept. */
#include "tests/unit/unit.h"
#include <jni.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/base/guard.h"
#include "agent/events/park_priv.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/libjvm.h"

#define WORDS	64
#define COUNTER 18 /* of a Parker: 144 bytes, behind a mutex and two condition variables */
#define OWNER	(COUNTER + 2)
#define PARKER	36 /* the words from a thread's statistics to its Parker */

struct thread {
	uint64_t before[16];
	uint64_t *statistics, other, *parker;
	uint64_t permit;
};

static struct thread agents, another;
static uint64_t heap[WORDS], parker_of_another[WORDS], elsewhere[WORDS];
static volatile int32_t *counter, *second;

size_t libjvm_type_size(const char *type)
{
	assert_string_equal(type, "JavaThread");
	return sizeof(struct thread);
}

uint64_t java_thread_of_sig(const JNIEnv *env)
{
	return (uint64_t)(uintptr_t)env;
}

static void unpark(JNIEnv *env)
{
	(void)env;
	*counter = 1;
	if (second)
		*second = 1;
}

static void park(JNIEnv *env)
{
	(void)env;
	*counter = 0;
	if (second)
		*second = 0;
}

/* cmocka's own checks would go on in the child with the parent's other tests. */
static void expect_true(bool right, int line)
{
	if (right)
		return;
	(void)fprintf(stderr, "line %d\n", line);
	_exit(1);
}
#define EXPECT(right) expect_true(right, __LINE__)

static bool has_permit(struct thread *t)
{
	return park_has_permit((uint64_t)(uintptr_t)t);
}

static void learn(volatile void *permit)
{
	counter = permit;
	EXPECT(guard_init(true) == 0);
	park_permit_learn((JNIEnv *)&agents, unpark, park);
}

/* As JDK 8 does: a thread allocates its statistics and then its Parker, which follows in the heap.
 */
static void begin_parkers(void)
{
	uint64_t *parker = heap + PARKER;

	agents.statistics = heap;
	agents.parker = parker;
	parker[OWNER] = (uint64_t)(uintptr_t)&agents;
	another.parker = parker_of_another;
	parker_of_another[OWNER] = (uint64_t)(uintptr_t)&another;
}

static void neighbours(void)
{
	begin_parkers();
	elsewhere[PARKER + COUNTER] = 1; /* of something that is no permit */
	another.statistics = elsewhere;
	learn(heap + PARKER + COUNTER);
	EXPECT(!has_permit(&another));
	parker_of_another[COUNTER] = 1;
	EXPECT(has_permit(&another));
	another.statistics = NULL;
	EXPECT(has_permit(&another));
	parker_of_another[COUNTER] = 0;
	EXPECT(!has_permit(&another));
}

static void no_parker(void)
{
	begin_parkers();
	heap[PARKER + OWNER] = 0;
	learn(heap + PARKER + COUNTER);
	*counter = 1;
	EXPECT(!has_permit(&agents));
}

static void two_words(void)
{
	begin_parkers();
	second = (volatile int32_t *)&agents.permit;
	learn(heap + PARKER + COUNTER);
	*counter = 1;
	EXPECT(!has_permit(&agents));
}

/* As from JDK 17 on. An object before the thread in the heap leads into it. */
static void in_the_thread(void)
{
	agents.statistics = (uint64_t *)&agents - 1;
	another.statistics = elsewhere;
	learn(&agents.permit);
	EXPECT(!has_permit(&another));
	another.permit = 1;
	EXPECT(has_permit(&another));
}

static void run_apart(void (*scenario)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		scenario();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_neighbours_pointer_is_not_taken_for_the_parkers(void **state)
{
	(void)state;
	run_apart(neighbours);
}

static void a_word_in_no_parker_is_not_taken(void **state)
{
	(void)state;
	run_apart(no_parker);
}

static void of_two_words_none_is_taken(void **state)
{
	(void)state;
	run_apart(two_words);
}

static void a_permit_in_the_thread_needs_no_pointer(void **state)
{
	(void)state;
	run_apart(in_the_thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_neighbours_pointer_is_not_taken_for_the_parkers),
		cmocka_unit_test(a_word_in_no_parker_is_not_taken),
		cmocka_unit_test(of_two_words_none_is_taken),
		cmocka_unit_test(a_permit_in_the_thread_needs_no_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The names of threads that no sample names: a pass reads them from the kernel. The JVM is a stand-in here,
 * without Java threads; the threads are this program's own. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/events.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/wall.h"
#include "agent/hotspot/jni_names.h"
#include "agent/hotspot/thread_name.h"
#include "agent/output/threads.h"
#include "agent/output/writer.h"
#include "daemon/ground/mem.h"
#include "tests/unit/unit.h"

#define PASSES 8

struct engine engine;
struct events events;

/* ---- stand-ins ------------------------------------------------------------------------------- */

static struct {
	uint32_t tid; /* names of this thread are counted */
	unsigned n;
	char last[32];
} sent;

struct wire_str wire_text(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

void writer_thread(const struct wire_thread *t)
{
	if (t->tid != sent.tid)
		return;
	sent.n++;
	snprintf(sent.last, sizeof(sent.last), "%.*s", (int)t->name.len, t->name.p);
}

static const char *java_name; /* of a Java thread with the number sent.tid; NULL = there is none */

void jni_names_pass(jni_name_fn *on_name, jni_state_fn *on_state)
{
	(void)on_state;
	if (java_name)
		on_name(sent.tid, 1, java_name);
}

struct slot *slot_find_sig(uint32_t tid)
{
	(void)tid;
	return NULL;
}

void thread_name_mark_sent(uint32_t number, uint64_t id)
{
	(void)number;
	(void)id;
}

void thread_name_forget(uint32_t number)
{
	(void)number;
}

void thread_name_forget_all(void)
{
}

void wall_thread_seen(uint32_t tid, const char *name)
{
	(void)tid;
	(void)name;
}

/* ---- a thread -------------------------------------------------------------------------------- */

static pthread_barrier_t turn;

/* At each turn it takes the next name. */
static void *rename_itself(void *unused)
{
	static const char *const names[] = { "G1 Main Marker", "G1 Conc#0" };

	(void)unused;
	__atomic_store_n(&sent.tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (unsigned i = 0; i <= ARRAY_SIZE(names); i++) {
		pthread_barrier_wait(&turn);
		if (i < ARRAY_SIZE(names))
			prctl(PR_SET_NAME, names[i]);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

static void next(void)
{
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
}

static pthread_t begin(void)
{
	pthread_t t;

	memset(&sent, 0, sizeof(sent));
	prctl(PR_SET_NAME, "java");
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&t, NULL, rename_itself, NULL);
	while (!__atomic_load_n(&sent.tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	return t;
}

static void end(pthread_t t)
{
	pthread_join(t, NULL);
	pthread_barrier_destroy(&turn);
	threads_free();
}

static void a_new_thread_is_named_again_when_it_has_its_own_name(void **state)
{
	pthread_t t = begin();

	(void)state;
	engine.offcpu = 1;
	threads_refresh(true);
	assert_string_equal(sent.last, "java"); /* of the thread that made it */
	next();
	threads_refresh(true);
	assert_string_equal(sent.last, "G1 Main Marker");
	assert_int_equal(sent.n, 2);
	/* names are sent when they change, and are not read for ever */
	for (int i = 0; i < PASSES; i++)
		threads_refresh(true);
	assert_int_equal(sent.n, 2);
	next();
	threads_refresh(true);
	assert_int_equal(sent.n, 2);
	next();
	end(t);
}

static void without_times_off_the_cpu_nobody_asks_for_names(void **state)
{
	pthread_t t = begin();

	(void)state;
	engine.offcpu = 0;
	threads_refresh(true);
	assert_int_equal(sent.n, 0);
	for (int i = 0; i < 3; i++)
		next();
	end(t);
}

/* A pass over thousands of threads takes long: their first samples must not cause one each. */
static void first_sample_of_a_thread_that_a_pass_has_named_changes_nothing(void **state)
{
	(void)state;
	memset(&sent, 0, sizeof(sent));
	sent.tid = 4711;
	java_name = "http-nio-8080-exec-1";
	engine.offcpu = 0;
	threads_refresh(true);
	assert_int_equal(sent.n, 1);
	threads_seen(4711, "http-nio-8080-e");
	assert_false(threads_are_missing());
	assert_int_equal(sent.n, 1);
	/* the kernel gave the number to another thread */
	threads_seen(4711, "worker");
	assert_true(threads_are_missing());
	assert_string_equal(sent.last, "worker");
	/* and again, to one whose full name comes before its first sample */
	threads_named(4711, 2, "request-of-a-customer");
	threads_seen(4711, "request-of-a-cu");
	assert_string_equal(sent.last, "request-of-a-customer");
	java_name = NULL;
	threads_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_times_off_the_cpu_nobody_asks_for_names),
		cmocka_unit_test(first_sample_of_a_thread_that_a_pass_has_named_changes_nothing),
		/* comes last: if it fails, its thread waits for ever */
		cmocka_unit_test(a_new_thread_is_named_again_when_it_has_its_own_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Threads are caught at their start: libjvm's import of pthread_create (one GOT slot, there from
 * JDK 8 to 28 and on musl) points to ours, which starts the thread through a trampoline. A thread
 * of 3 ms is sampled like any other then, and what its ticks could not deliver is accounted for at
 * its end.
 *
 * The slot's page is written through /proc/self/mem, or made writable and left so; it is never made
 * read-only again, because other profilers write there too and would fault. The trampoline stays on
 * the stacks of living threads after detach: that is one reason why the library is never unmapped.
 */
#include "agent/engine/cpu_timer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/hotspot/libjvm.h"

typedef int create_fn(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		      void *arg);

struct thread_start {
	void *(*start)(void *);
	void *arg;
};

static void **hooked_slot;
static create_fn *real_create;

static void *thread_start_trampoline(void *p)
{
	struct thread_start s = *(struct thread_start *)p;
	void *result;

	free(p);
	engine_thread_begin();
	result = s.start(s.arg);
	engine_thread_end(); /* of whatever session is on now */
	return result;
}

static int thread_start_create(pthread_t *thread, const pthread_attr_t *attr,
			       void *(*start)(void *), void *arg)
{
	struct thread_start *s;
	int r;

	if (!__atomic_load_n(&engine.running, __ATOMIC_ACQUIRE))
		return real_create(thread, attr, start, arg);
	s = malloc(sizeof(*s));
	if (!s)
		return real_create(thread, attr, start, arg);
	s->start = start;
	s->arg = arg;
	r = real_create(thread, attr, thread_start_trampoline, s);
	if (r)
		free(s);
	return r;
}

static bool write_slot(void **slot, void *value)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	long page = sysconf(_SC_PAGESIZE);
	bool done = false;

	if (fd >= 0) {
		done = pwrite(fd, &value, sizeof(value), (off_t)(uintptr_t)slot) == sizeof(value);
		close(fd);
	}
	if (done)
		return true;
	/* kernels with PROC_MEM_NO_FORCE refuse */
	if (mprotect((void *)((uintptr_t)slot & ~((uintptr_t)page - 1)), (size_t)page,
		     PROT_READ | PROT_WRITE) < 0)
		return false;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	return true;
}

void thread_start_hook(void)
{
	void **slot;

	if (hooked_slot)
		return;
	slot = libjvm_import_slot("pthread_create");
	if (!slot || !*slot)
		return;
	real_create = (create_fn *)*slot;
	if (write_slot(slot, (void *)thread_start_create))
		hooked_slot = slot;
}

void thread_start_unhook(void)
{
	/* another agent may have put itself in front of us: then ours stays, as a pass-through */
	if (hooked_slot && *hooked_slot == (void *)thread_start_create &&
	    write_slot(hooked_slot, (void *)real_create))
		hooked_slot = NULL;
}

/*
 * Notices threads when they start: the slot for pthread_create in libjvm's GOT (one, in JDK 8 to 28
 * and on musl) points to our function, which starts the thread through a trampoline. So a thread of
 * 3 ms is sampled like any other, and the CPU time that its ticks did not cover is accounted for
 * when it ends.
 *
 * The slot is written through /proc/self/mem; if the kernel refuses, its page is made writable. The
 * page is never made read-only again, because other profilers write there too and would fault. The
 * trampoline stays on the stacks of living threads after detach, which is one reason why the
 * library is never unmapped.
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
	/* the current session may be another one than that in which the thread began */
	engine_thread_end();
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

static bool import_slot_write(void **slot, void *value)
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
	if (import_slot_write(slot, (void *)thread_start_create))
		hooked_slot = slot;
}

void thread_start_unhook(void)
{
	/* another agent may have hooked in before us: then our function stays and only passes on */
	if (hooked_slot && *hooked_slot == (void *)thread_start_create &&
	    import_slot_write(hooked_slot, (void *)real_create))
		hooked_slot = NULL;
}

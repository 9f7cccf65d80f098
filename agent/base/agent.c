/* See agent.h. */
#include "agent/base/agent.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

struct agent agent = { .wake_fd = -1 };

static uint32_t wakers; /* threads that may write to wake_fd right now */

void agent_wake(void)
{
	uint64_t one = 1;
	int fd;

	__atomic_fetch_add(&wakers, 1, __ATOMIC_SEQ_CST);
	fd = __atomic_load_n(&agent.wake_fd, __ATOMIC_SEQ_CST);
	if (fd >= 0)
		while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	__atomic_fetch_sub(&wakers, 1, __ATOMIC_SEQ_CST);
}

void agent_close_wake_fd(void)
{
	struct timespec pause = { 0, NS_PER_MS };
	int fd = __atomic_exchange_n(&agent.wake_fd, -1, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&wakers, __ATOMIC_SEQ_CST))
		nanosleep(&pause, NULL);
	if (fd >= 0)
		close(fd);
}

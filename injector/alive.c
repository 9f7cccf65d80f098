/* Checks that the target is still the process that was to be attached to. */
#include "injector/inject.h"

#include <poll.h>
#include "daemon/ground/proc.h"

bool inject_alive(const struct inject *in)
{
	struct pollfd p = { .fd = in->pidfd, .events = POLLIN };
	char stat[1024];

	if (poll(&p, 1, 0) != 0) /* readable = the process has ended, pidfd_open(2) */
		return false;
	return proc_read(in->proc_dfd, "stat", stat, sizeof(stat)) > 0 &&
	       proc_start_time(stat) == in->start_time;
}

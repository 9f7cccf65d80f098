/*
 * JVMs that are starting. HotSpot catches SIGQUIT long before it starts the thread that looks for
 * .attach_pidN: in between it loads agents of its command line, touches the pages of its heap
 * (AlwaysPreTouch), and reads its archives. That takes seconds where memory is large, a disk is
 * slow or a cgroup has little CPU time. A signal sent meanwhile is kept, and not as a pending
 * signal of the process, so nobody outside can see whether the JVM has handled it: the file would
 * be removed too early, and the JVM would print a thread dump into the application's output.
 * Therefore the signal is sent only when that thread exists.
 *
 * JDK 9 and later give their threads names. "Signal Dispatcher" is cut to 15 bytes: at its end, or
 * by newer JDKs in its middle ("Signal ..atcher").
 */
#include "injector/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"
#include "injector/vmflags.h"

#define DISPATCHER "Signal "
#define WAIT_NS	   NS_PER_S /* then the daemon tries again */
#define PAUSE_MS   2
/* an older JVM has no such thread for a reason that is not known here */
#define STARTING_S_MAX	600
#define NAMED_SINCE_JDK 9
#define THREADS_MAX	65536
#define STATE_NONE	'-'
#define STATE_UNKNOWN	'\0'

static bool is_dispatcher(int task_dfd, const char *tid, char *ret_state)
{
	char path[300], text[1024];

	snprintf(path, sizeof(path), "%s/comm", tid);
	if (proc_read(task_dfd, path, text, sizeof(text)) <= 0 ||
	    strncmp(text, DISPATCHER, strlen(DISPATCHER)) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/stat", tid);
	*ret_state = proc_read(task_dfd, path, text, sizeof(text)) > 0 ? proc_state(text)
								       : STATE_UNKNOWN;
	return true;
}

/* Finds the thread that handles signals. Returns its state as in proc(5), STATE_NONE or
 * STATE_UNKNOWN. */
static char dispatcher_state(const struct inject *in)
{
	CLEANUP(fd_closep)
	int dfd = openat(in->proc_dfd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dfd >= 0 ? fdopendir(fcntl(dfd, F_DUPFD_CLOEXEC, 3)) : NULL;
	char state = dir ? STATE_NONE : STATE_UNKNOWN;
	struct dirent *e;

	for (int i = 0; dir && i < THREADS_MAX && (e = readdir(dir)); i++)
		if (is_dispatcher(dfd, e->d_name, &state))
			break;
	if (dir)
		closedir(dir);
	return state;
}

static bool starting_has_dispatcher(const struct inject *in)
{
	return dispatcher_state(in) != STATE_NONE;
}

bool starting_signals_are_handled(const struct inject *in)
{
	char state = dispatcher_state(in);

	return state == 'S' || state == STATE_NONE || state == STATE_UNKNOWN;
}

static bool starting_is_young(const struct inject *in)
{
	uint64_t since_boot_s = clock_ns(CLOCK_BOOTTIME) / NS_PER_S;
	long ticks = sysconf(_SC_CLK_TCK);

	return ticks > 0 && in->start_time / (uint64_t)ticks + STARTING_S_MAX > since_boot_s;
}

static bool starting_names_threads(struct inject *in)
{
	struct jdk_version v = { 0, 0 };

	return vmflags_version(in, &v) == 0 && v.feature >= NAMED_SINCE_JDK;
}

int starting_wait(struct inject *in)
{
	uint64_t begin_mono_ns = clock_mono_ns();

	if (starting_has_dispatcher(in) || !starting_is_young(in) || !starting_names_threads(in))
		return 0;
	while (!starting_has_dispatcher(in)) {
		if (!inject_alive(in))
			return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended",
					 in->pid);
		if (clock_mono_ns() - begin_mono_ns > WAIT_NS || inject_remaining_ms(in) == 0) {
			fault_set(in->fault, EAGAIN, FAULT_SIGNAL,
				  "the JVM is still starting: it takes no attach requests yet");
			in->fault->flags |= FAULT_RETRY_SOON;
			return -EAGAIN;
		}
		inject_pause_ms(PAUSE_MS);
	}
	return 0;
}

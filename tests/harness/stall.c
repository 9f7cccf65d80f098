/*
 * A process that looks like a JVM with an agent, whose pipe does not answer: libjvm.so is in its
 * maps, it catches SIGQUIT, and the FIFOs of an agent are open in it, with the mutex of events
 * held.
 *
 *   stall DIRECTORY     DIRECTORY/kindling/VERSION/ gets the FIFOs; runs until it is killed
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/held_pipe.h"

static void on_sigquit(int signo)
{
	(void)signo;
}

static int map_libjvm(const char *dir)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/libjvm.so", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return -1;
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
}

static int make_fifo(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/kindling", dir);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/kindling/%s", dir, KINDLING_VERSION);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/kindling/%s/%s-%d", dir, KINDLING_VERSION, name,
		 (int)getpid());
	if (mkfifo(path, 0600) < 0)
		return -1;
	return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	struct held_pipe held = { 0 };
	int events_fd, control_fd;

	if (argc != 2)
		return 2;
	events_fd = make_fifo(argv[1], "events");
	control_fd = make_fifo(argv[1], "control");
	if (signal(SIGQUIT, on_sigquit) == SIG_ERR || map_libjvm(argv[1]) < 0 || events_fd < 0 ||
	    control_fd < 0)
		return 1;
	if (!held_pipe_begin(&held, events_fd))
		return 77;
	puts("READY");
	fflush(stdout);
	for (;;)
		pause();
}

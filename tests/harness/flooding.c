/*
 * A process that looks like a JVM, and the agent that floods the daemon in its name.
 *
 * flooding DIRECTORY UID    runs as UID until it is killed; maps a libjvm.so from DIRECTORY,
 * catches SIGQUIT and prints READY
 *
 * The same program is the daemon's injector (`injector` in the settings): for such a process it
 * acts as an agent that sends new names, stacks and threads as fast as they are read
 * (tests/unit/fake_session.h, "flood"); for all others it executes the real injector.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/fake_session.h"

static bool is_flooding(const char *pid)
{
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (f) {
		(void)!fgets(comm, sizeof(comm), f);
		fclose(f);
	}
	return strcmp(comm, "flooding\n") == 0;
}

static int inject(char **argv)
{
	static char manner[] = "flood";

	if (!is_flooding(argv[3])) {
		injector_real(argv);
		return 1;
	}
	if (strcmp(argv[5], "cleanup") == 0)
		return 0;
	if (strcmp(argv[5], "attach") == 0)
		argv[6] = manner;
	return injector(argv);
}

static void on_sigquit(int signo)
{
	(void)signo;
}

static int map_libjvm(const char *in)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/libjvm.so", in);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return -1;
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
	uid_t uid;

	if (is_injector(argc, argv))
		return inject(argv);
	if (argc != 3)
		return 2;
	uid = (uid_t)strtoul(argv[2], NULL, 10);
	if (signal(SIGQUIT, on_sigquit) == SIG_ERR || map_libjvm(argv[1]) < 0 || setgid(uid) < 0 ||
	    setuid(uid) < 0)
		return 1;
	puts("READY");
	fflush(stdout);
	for (;;)
		pause();
}

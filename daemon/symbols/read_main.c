/*
 * kindling-symbols [PATH]: an ELF file on stdin, a symbol table on stdout, exit status 0; anything
 * else on failure. Open directories as 3 and 4 are the roots of the container in which the file is
 * PATH, and of the host: there its debug file is looked for. Started by the daemon, as nobody,
 * under limits: all of these files come from strangers.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "daemon/symbols/read_elf.h"

#define NOBODY	65534
#define ROOT_FD 3
#define HOST_FD 4

static void limit(int what, rlim_t n)
{
	struct rlimit r = { n, n };

	(void)setrlimit((__rlimit_resource_t)what, &r);
}

static int if_open(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
	const struct debug_places places = { if_open(ROOT_FD), if_open(HOST_FD),
					     argc > 1 ? argv[1] : NULL };
	uint8_t *bytes;
	size_t len, done = 0;

	if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
		printf("Usage: %s [PATH] < ELF-FILE > TABLE\n"
		       "Used by kindlingd; reads the function symbols.\n",
		       argv[0]);
		return argv[1][0] == '-' && argv[1][1] == '-' && argv[1][2] == 'h' ? 0 : 2;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef SANITIZED /* ASan reserves terabytes of addresses, its leak check starts a thread */
	limit(RLIMIT_AS, (rlim_t)2 << 30); /* files are mapped */
	limit(RLIMIT_DATA, (rlim_t)96 << 20);
	limit(RLIMIT_NOFILE, 16);
	/* nobody is left behind who could change the table after the daemon has checked it */
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_CPU, 6);
#else
	limit(RLIMIT_CPU, 30);
#endif
	/* nobody waits for names: work that somebody waits for comes first */
	(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	(void)setpriority(PRIO_PROCESS, 0, 19);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, TABLE_BYTES_MAX);
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		return 1;
	if (read_elf(STDIN_FILENO, &places, &bytes, &len) < 0)
		return 1;
	while (done < len) {
		ssize_t n = write(STDOUT_FILENO, bytes + done, len - done);

		if (n < 0)
			return 1;
		done += (size_t)n;
	}
	free(bytes);
	return 0;
}

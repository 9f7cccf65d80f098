/*
 * kindling-symbols: an ELF file on stdin, a symbol table on stdout, exit status 0; anything else on
 * failure. Started by the daemon, as nobody, under limits: the file comes from a container.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "daemon/symbols/read_elf.h"

#define NOBODY 65534

static void limit(int what, rlim_t n)
{
	struct rlimit r = { n, n };

	(void)setrlimit((__rlimit_resource_t)what, &r);
}

int main(int argc, char **argv)
{
	uint8_t *bytes;
	size_t len, done = 0;

	if (argc > 1) {
		printf("Usage: %s < ELF-FILE > TABLE\nUsed by kindlingd; reads the function symbols.\n",
		       argv[0]);
		return argv[1][0] == '-' && argv[1][1] == '-' && argv[1][2] == 'h' ? 0 : 2;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef SANITIZED /* ASan reserves terabytes of addresses, its leak check starts a thread */
	limit(RLIMIT_AS, (rlim_t)2 << 30);
	limit(RLIMIT_NOFILE, 3);
	/* nobody is left behind who could change the table after the daemon has checked it */
	limit(RLIMIT_NPROC, 0);
#endif
	limit(RLIMIT_CPU, 20);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, TABLE_BYTES_MAX);
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		return 1;
	if (read_elf(STDIN_FILENO, &bytes, &len) < 0)
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

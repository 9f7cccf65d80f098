/*
 * kindling-look: looks at one process after the other for kindlingd, see look.h. It reads what may
 * keep it waiting for ever, and holds nothing that anybody else waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/discovery/look.h"

#define FD 3

int main(void)
{
	static struct look_answer a;
	struct look_question q;
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	/* it ends with the daemon's end of the socket; a signal to the group is not meant for it */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	if (fcntl(FD, F_SETFD, FD_CLOEXEC) < 0) {
		fputs("kindling-look is started by kindlingd, and does nothing by itself\n",
		      stderr);
		return 2;
	}
	while ((n = recv(FD, &q, sizeof(q), 0)) == (ssize_t)sizeof(q) ||
	       (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		a.number = q.number;
		a.result = jvm_probe(proc_dfd, q.pid, &a.jvm);
		if (send(FD, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			break;
	}
	return 0;
}

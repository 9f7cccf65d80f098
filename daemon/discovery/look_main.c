/*
 * kindling-look: looks at one process after the other for kindlingd, see look.h. What it reads may
 * block it forever, so it holds nothing that anybody else waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/discovery/look_message.h"
#include "daemon/discovery/look_rights.h"
#include "daemon/ground/mem.h"

#define FD 3

static void look_main_close_all(int fds[LOOK_FDS])
{
	for (int i = 0; i < LOOK_FDS; i++)
		fds[i] = fd_close(fds[i]);
}

/* Closes the question's descriptors before it answers: closing the last descriptor of a directory
 * may block, and then this question must be the one that is not answered, not the next. */
static int look_main_answer(int proc_dfd, const struct look_question *q, int asked[LOOK_FDS])
{
	static struct look_answer a;
	int fds[LOOK_FDS] = { -1, -1 }, r;

	memset(&a, 0, sizeof(a));
	look_find_out(proc_dfd, q, asked[0], &a, fds);
	look_main_close_all(asked);
	r = look_send(FD, &a, sizeof(a), fds, LOOK_FDS, 0);
	look_main_close_all(fds);
	return r;
}

int main(int argc, char **argv)
{
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static struct look_question q;
	int fds[LOOK_FDS], r = 0;
	ssize_t n;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("kindling-look " KINDLING_VERSION) < 0;
	/* it ends when the daemon's socket is closed; signals to the process group, as by Ctrl-C,
	 * are not meant for it */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	if (fcntl(FD, F_SETFD, FD_CLOEXEC) < 0) {
		fputs("kindling-look is started by kindlingd, and does nothing by itself\n",
		      stderr);
		return 2;
	}
	if (look_give_up_rights() < 0)
		return 1;
	while (r == 0) {
		n = look_receive(FD, &q, sizeof(q), fds, 0);
		if (n == -EINTR)
			continue;
		if (n != (ssize_t)sizeof(q))
			break;
		r = look_main_answer(proc_dfd, &q, fds);
	}
	return 0;
}

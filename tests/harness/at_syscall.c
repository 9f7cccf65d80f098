/*
 * Runs a program and, when it is about to make (or has just made) a certain system call, runs a
 * shell command while the program is stopped. So a test can swap a file, stop a process or kill an
 * injector at an exact moment.
 *
 * at_syscall before|after NUMBER[:NTH] HOOK PROGRAM [ARGUMENT...]
 *
 * Exit status: the program's; 128 + signal if one ended it; 126 if the call was never made.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* The number of the call at which the program stopped, and whether the call is about to begin. */
static int at(pid_t pid, int *ret_entry)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
		return -1;
	*ret_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
	return *ret_entry ? (int)info.entry.nr : -1;
}

static int follow(pid_t pid, int before, const char *call, const char *hook)
{
	int status, entry = 0, current = -1, fired = 0, number = atoi(call);
	int nth = strchr(call, ':') ? atoi(strchr(call, ':') + 1) : 1;

	for (;;) {
		long deliver = 0;

		if (waitpid(pid, &status, 0) != pid)
			return 125;
		if (WIFEXITED(status))
			return fired ? WEXITSTATUS(status) : 126;
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			int nr = at(pid, &entry);

			if (entry)
				current = nr;
			if (!fired && current == number && entry == before && --nth == 0) {
				fired = 1;
				if (system(hook) != 0)
					fprintf(stderr, "at_syscall: the hook failed\n");
			}
		} else if (WSTOPSIG(status) != SIGTRAP) {
			deliver = WSTOPSIG(status);
		}
		(void)ptrace(fired ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL, (void *)deliver);
	}
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 5)
		return 2;
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execv(argv[4], argv + 4);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 125;
	(void)ptrace(PTRACE_SETOPTIONS, pid, NULL,
		     (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	(void)ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	return follow(pid, strcmp(argv[1], "before") == 0, argv[2], argv[3]);
}

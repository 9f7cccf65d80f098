/*
 * The answer of kindling-inject on its result socket (fd 3, SOCK_SEQPACKET, made by the daemon) is
 * one message, a struct inject_result. End of file without a message means that the injector has
 * died. The two pipe ends go to a receiver (receive.h) over the descriptor pipes_fd, or, if that is
 * not given, with the answer (SCM_RIGHTS). The daemon uses a receiver, because a process that holds
 * a descriptor of a pipe may have to wait for the target.
 *
 * Called by the daemon as
 *   kindling-inject --result-fd 3 PID START_TIME attach LIBRARY [quiet=0] [deadline_ms=10000]
 *     [pipe=1048576] [over_tmp=1] [pipes_fd=4]
 *
 * It checks the identity (pidfd, start time), runs the preflight, asks the JVM for an attach socket
 * if it has none, and meanwhile places LIBRARY in
 * /tmp/kindling/<version>/libkindling-<hash>.so of the target's mount namespace (or below a
 * private directory in /tmp, private_dir.c), makes the FIFOs
 * events-<random> and control-<random> beside it, opens `events` for reading (O_NONBLOCK) and
 * `control` O_RDWR, and writes the START frame that it finds on its stdin into `control`. It asks
 * the JVM to load the library with the options "events=PATH,control=PATH", waits for the agent's
 * HELLO, removes the names and the library file, and answers. If no file in /tmp may be executed,
 * or /tmp is full, the library is on a tmpfs in m-<pid>-<random>/ beside the FIFOs (mount.c). With
 * over_tmp=1 a tmpfs covers a /tmp that the JVM cannot write to, until the attach is done
 * (cover.c).
 *
 * The same program is the receiver, with its socket as 3:
 *   ... PID START_TIME receive
 *       the pipes come from an injector, over stdin
 *   ... PID START_TIME reattach uid=N [pipe=1048576] [known=1]
 *       the pipes are those of an agent that is already in the target; known=1: the daemon knows
 *       the attach that loaded it
 */
#pragma once

#include "daemon/ground/fault.h"

/* How the library was placed in the target. The numbers are sent to the daemon: append only. */
enum inject_strategy {
	INJECT_NOT_PLACED,
	INJECT_COPY, /* a file in its /tmp */
	INJECT_MOUNT, /* on a tmpfs that is mounted during the load, because /tmp is noexec or
		       * full */
	INJECT_OVER, /* on a tmpfs over /tmp, if the settings allow it, because the JVM cannot write
		      * to /tmp */
};

static inline const char *inject_strategy_name(unsigned strategy)
{
	static const char *const names[] = { "", "copy", "mount", "tmpfs" };

	return strategy < sizeof(names) / sizeof(names[0]) ? names[strategy] : "";
}

/* Exit status of `kindling-inject PID START_TIME cleanup` if a file had to stay; 0 = none is
 * left. */
#define INJECT_STATUS_LEFT 4

struct inject_result {
	struct fault fault; /* code 0 = success, fds[0] = events, fds[1] = control */
	uint32_t strategy; /* enum inject_strategy */
	uint32_t left; /* 1 = a file had to stay, because the target is stopped or frozen: clean up
			* later */
	char library[124]; /* path in the target's mount namespace, NUL-terminated */
};

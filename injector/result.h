/*
 * What kindling-inject answers on its result socket (fd 3, SOCK_SEQPACKET, made by the daemon):
 * one message, a struct inject_result. End of file without a message means "injector died". The two
 * pipe ends go to a receiver (receive.h) over the descriptor pipes_fd, or, without one, as
 * SCM_RIGHTS with the answer: whoever holds a descriptor of a pipe may have to wait for the target.
 *
 * Called by the daemon as
 *   kindling-inject --result-fd 3 PID START_TIME attach LIBRARY [quiet=0] [deadline_ms=10000]
 *     [pipe=1048576] [over_tmp=1] [pipes_fd=4]
 * It checks identity (pidfd, start time), runs the preflight, asks the JVM for its attach socket
 * where it has none, and meanwhile places LIBRARY in
 * /tmp/kindling/<version>/libkindling-<hash>.so of the target's mount namespace, makes the FIFOs
 * events-<random> and control-<random> beside it, opens events for reading (O_NONBLOCK) and control
 * O_RDWR, and writes the START frame it finds on its stdin into control. It asks the JVM to load
 * the library with the options "events=PATH,control=PATH", waits until the agent has opened both,
 * unlinks the names and the library file, and answers. Where the library cannot be a file in /tmp
 * that may be executed it lies on a tmpfs in m-<pid>-<random>/ beside the FIFOs (mount.c). With
 * over_tmp=1, where the JVM may write nowhere in /tmp, a tmpfs lies over it meanwhile (cover.c).
 *
 * The same program is the receiver, with its socket as 3:
 *   ... PID START_TIME receive                       the pipes come from an injector, over stdin
 *   ... PID START_TIME reattach uid=N [pipe=1048576] [known=1]  the pipes of an agent that is there
 * already
 */
#pragma once

#include "daemon/ground/fault.h"

/* How the library came into the target. The number crosses the socket: append only. */
enum inject_strategy {
	INJECT_NOT_PLACED,
	INJECT_COPY, /* a file in its /tmp */
	INJECT_MOUNT, /* on a tmpfs that is mounted during the load, because /tmp is noexec or
		       * full */
	INJECT_OVER, /* on a tmpfs over /tmp, opt-in: the JVM cannot write anywhere in /tmp */
};

static inline const char *inject_strategy_name(unsigned strategy)
{
	static const char *const names[] = { "", "copy", "mount", "tmpfs" };

	return strategy < sizeof(names) / sizeof(names[0]) ? names[strategy] : "";
}

/* Exit status of `kindling-inject PID START_TIME cleanup`, 0 = nothing of ours is left. */
#define INJECT_STATUS_LEFT 4

struct inject_result {
	struct fault fault; /* code 0 = success, fds[0] = events, fds[1] = control */
	uint32_t strategy; /* enum inject_strategy */
	uint32_t left; /* 1 = something had to stay while the target stands still: clean up later */
	char library[124]; /* path in the target's mount namespace, NUL-terminated */
};

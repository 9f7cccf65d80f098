/*
 * The receiver is the process that reads one agent's FIFOs for the daemon. Reads, writes, ioctls
 * and even closes of a pipe wait for the pipe's mutex; any process that shares the pipe can hold it
 * as long as it likes, and no signal ends that wait. So the daemon holds no descriptor of a pipe,
 * and talks to a process that it can give up (docs/decisions/0008).
 *
 * Both sides send messages over a SOCK_SEQPACKET pair: the first byte is the kind, the rest is the
 * content. The receiver ends when the daemon's end is closed, or when no process can write into
 * `events` any more and everything has been passed on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/version.h"

#define RECEIVE_BYTES (32 * 1024) /* largest content of a RECEIVE_DATA */

/* Messages to the daemon. */
#define RECEIVE_DATA 'D' /* bytes of events */
/* The pipe was not read for so long that the agent has stopped sampling. */
#define RECEIVE_LATE 'L'
/* To RECEIVE_ASK: all data that was in `events` by then and was allowed has been sent. */
#define RECEIVE_ANSWER	  'A'
#define RECEIVE_UNWRITTEN 'U' /* a RECEIVE_WRITE could not be written into control */
#define RECEIVE_FOUND	  'F' /* the first message of `reattach`: a struct receive_found */
/* Messages to the receiver. */
#define RECEIVE_WRITE 'W' /* bytes for `control`: at most one frame */
#define RECEIVE_ASK   'Q'
/* A uint32_t: the number of bytes of `events` that may be passed on until the next such message. At
 * first there is no limit. */
#define RECEIVE_ALLOW	  'B'
#define RECEIVE_UNBOUNDED UINT32_MAX
/* A uint32_t: milliseconds between two reads of `events`; all data that the agent writes meanwhile
 * becomes one message. 0 at first. */
#define RECEIVE_GATHER 'G'

struct receive_found {
	int32_t found; /* 1 = it has been taken over, 0 = there is none, -EBUSY = another process
			* reads from it */
	char sent_away[VERSION_BYTES]; /* the version of an agent that was told to detach, "" =
					* none */
};

struct inject;

/* Passes on data from @events_fd until the end. @socket_fd must be blocking. The caller keeps all
 * three descriptors. */
void receive_run(int socket_fd, int events_fd, int control_fd);
/* `receive`: an injector sends the FIFOs, as one message on @pipes_fd. Returns an exit status. */
int receive_attached(int socket_fd, int pipes_fd);
/* `reattach`: the FIFOs are those of an agent in the target that has no reader. Agents of other
 * versions are told to detach, and if the daemon does not know the attach (@known = false), so is
 * one of our version. @uid: of the target. Returns an exit status. */
int receive_reattached(const struct inject *in, int socket_fd, size_t pipe_bytes, uid_t uid,
		       bool known);
/* The injector's side of receive_attached(). 0 or -errno. */
int receive_send_pipes(int pipes_fd, int events_fd, int control_fd);

/* reattach.c: the FIFOs of the agent of our version; if ret->found is 1, the caller owns the two
 * descriptors. An agent whose attach the daemon does not know (@known = false) is told to detach.
 * Waits up to a second while another process reads from one of the FIFOs. */
void reattach_find(const struct inject *in, uid_t uid, bool known, struct receive_found *ret,
		   int *ret_events_fd, int *ret_control_fd);

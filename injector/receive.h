/*
 * A receiver: the process that reads one agent's FIFOs for the daemon. A read of a pipe, a write,
 * an ioctl and even a close wait for the pipe's mutex; any process that shares the pipe can hold it
 * as long as it likes, and no signal ends that wait. So the daemon holds no descriptor of a pipe,
 * and talks to a process that it can abandon (docs/decisions/0008).
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

#define RECEIVE_BYTES (32 * 1024) /* of one RECEIVE_DATA, at most */

/* To the daemon. */
#define RECEIVE_DATA 'D' /* bytes of events */
#define RECEIVE_LATE 'L' /* the pipe was not read for so long that the agent has paused itself */
#define RECEIVE_ANSWER \
	'A' /* to RECEIVE_ASK; what events held by then, and was allowed, was passed on before */
#define RECEIVE_UNWRITTEN 'U' /* a RECEIVE_WRITE could not be written into control */
#define RECEIVE_FOUND	  'F' /* of `reattach`: a struct receive_found, first of all */
/* To the receiver. */
#define RECEIVE_WRITE 'W' /* bytes for control: at most a frame */
#define RECEIVE_ASK   'Q'
/* A uint32_t: the number of bytes of `events` that may be passed on until the next such message. At
 * first there is no limit. */
#define RECEIVE_ALLOW	  'B'
#define RECEIVE_UNBOUNDED UINT32_MAX
/* A uint32_t: the ms between two reads of `events`, so that what an agent writes meanwhile becomes
 * one message. 0 at first. */
#define RECEIVE_GATHER 'G'

struct receive_found {
	int32_t found; /* 1 = it has been taken over, 0 = there is none, -EBUSY = another process
			* reads from it */
	char sent_away[VERSION_BYTES]; /* the version of an agent that was, "" = none */
};

struct inject;

/* Read from @events_fd until the end. @socket_fd is blocking. Takes neither. */
void receive_run(int socket_fd, int events_fd, int control_fd);
/* `receive`: the FIFOs come from an injector, as one message on @pipes_fd. An exit status. */
int receive_attached(int socket_fd, int pipes_fd);
/* `reattach`: the FIFOs are those of an agent that lives in the process without a reader; agents of
 * other versions, and those of no attach of ours, are sent away. An exit status. */
int receive_reattached(const struct inject *in, int socket_fd, size_t pipe_bytes, uid_t uid,
		       bool known);
/* The injector's side of receive_attached(). 0 or -errno. */
int receive_send_pipes(int pipes_fd, int events_fd, int control_fd);

/* reattach.c: descriptors of the agent of our version, open for use. One that is not @known, of no
 * attach of ours, is sent away. Takes up to a second while somebody reads from one of them. */
void reattach_find(const struct inject *in, uid_t uid, bool known, struct receive_found *ret,
		   int *ret_events_fd, int *ret_control_fd);

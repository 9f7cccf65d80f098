/*
 * The daemon's side of a receiver, the process that reads a target's pipe (injector/receive.h,
 * docs/decisions/0008). One that no longer answers is abandoned: it is killed, which has no effect
 * while it waits for a pipe, and it is counted until it has ended. Meanwhile its target is not
 * tried again, and if one container has too many such receivers, none of its JVMs is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/clock.h"
#include "injector/receive.h"

struct target;
struct targets;

#define STUCK_NS	    NS_PER_S /* from the kill; a process that is not stuck ends at once */
#define RECEIVERS_STUCK_MAX 8 /* of one container, or of one user where there is none */

/* Starts a receiver. Its messages arrive at t->priv->socket_fd, see receiver_read(). @pipes_fd: a
 * socket on which an injector will send it the pipes, borrowed; -1 = it searches the process for an
 * agent that is there already. 0 or -errno. */
int receiver_start(struct target *t, int pipes_fd);
/* Reads a message: returns its type (RECEIVE_DATA ...), and its content in @buf and *ret_len. 0 =
 * no message now, -EPIPE = the receiver has ended. */
int receiver_read(struct target *t, uint8_t *buf, size_t size, size_t *ret_len);
/* Sends bytes for the agent's control pipe. 0 or -errno. If the receiver cannot write them it
 * answers RECEIVE_UNWRITTEN later. */
int receiver_write(struct target *t, const uint8_t *buf, size_t len);
/* Sets how many bytes of events the receiver may pass on from now on. 0 or -errno. */
int receiver_allow(struct target *t, uint32_t bytes);
/* Sets how long the receiver waits after a read of the pipe, ms; 0 when it starts. 0 or -errno. */
int receiver_gather(struct target *t, uint32_t ms);
/* Asks for a RECEIVE_ANSWER, which proves that the receiver lives. */
void receiver_ask(struct target *t);
void receiver_stop(struct target *t); /* kills it; t->priv->stuck is set until it has ended */
/* May a receiver be started for @t? 0, or -EBUSY: one of its own that was killed still has not
 * ended, or too many of its tenant's have not. */
int receiver_allowed(const struct target *t);
/* Each second: gives up receivers that do not answer. @userdata: the struct targets. */
void receivers_on_second(void *userdata);

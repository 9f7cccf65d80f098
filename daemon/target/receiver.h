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

/* Start one; what it says comes to session_message(). @pipes_fd: on which an injector sends it the
 * pipes, borrowed; -1 = it looks for an agent that is there already. 0 or -errno. */
int receiver_start(struct target *t, int pipes_fd);
/* A message's type, its content in @buf and *ret_len; 0 = none now, -EPIPE = it has ended. */
int receiver_read(struct target *t, uint8_t *buf, size_t size, size_t *ret_len);
/* Bytes for control. 0 or -errno; whether they went in is not known yet. */
int receiver_write(struct target *t, const uint8_t *buf, size_t len);
/* How many bytes of events it may pass on from now on. 0 or -errno. */
int receiver_allow(struct target *t, uint32_t bytes);
/* How long it leaves the pipe alone after a read, ms; 0 at its begin. 0 or -errno. */
int receiver_gather(struct target *t, uint32_t ms);
/* For a RECEIVE_ANSWER. */
void receiver_ask(struct target *t);
void receiver_stop(struct target *t);
/* May one be started for @t? -EBUSY: one that was given up still lives, its own or too many. */
int receiver_allowed(const struct target *t);
/* Each second: who does not answer? */
void receivers_on_second(void *userdata);

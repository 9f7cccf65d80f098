/*
 * What an agent is known by: 128 random bits that travel with the attach, in its START, and that
 * every HELLO has to say back. A daemon that starts again knows them from a file that only root may
 * read, "agents" in the state directory; two FIFOs of the right names prove nothing.
 * docs/decisions/0013.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/proc.h"
#include "proto/wire.h"

struct secret {
	pid_t pid;
	uint64_t start_time;
	bool former; /* of a daemon before this one, which has not attached to it yet */
	uint8_t bytes[WIRE_SECRET_BYTES];
};

struct secrets {
	char path[300]; /* "" = kept in memory alone */
	char boot_id[PROC_BOOT_ID_SIZE];
	struct secret *list;
	unsigned n, room;
	unsigned lines; /* in the file, also of processes that ended */
};

/* @dir: where the file "agents" lies. What is of another boot, or of a process that has ended, is
 * dropped. */
void secrets_open(struct secrets *s, const char *dir);
void secrets_close(struct secrets *s); /* frees; the file stays */
/* A new one for a process that is about to be attached to, in place of its last. 0 or -errno. */
int secrets_make(struct secrets *s, pid_t pid, uint64_t start_time, uint8_t ret[WIRE_SECRET_BYTES]);
/* WIRE_SECRET_BYTES, valid until the next call of another function; NULL = no attach to it is
 * known. */
const uint8_t *secrets_find(const struct secrets *s, pid_t pid, uint64_t start_time);
/* A daemon before this one attached to it, and this one has not. */
bool secrets_is_former(const struct secrets *s, pid_t pid, uint64_t start_time);
void secrets_forget(struct secrets *s, pid_t pid, uint64_t start_time);
